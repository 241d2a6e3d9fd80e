// tenon rerun: trains again from the record of a training, and says whether the model is the same.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/cli/cli.h"

namespace tenon::rerun {

constexpr int kDiffers = 1;  // an exit code beside those of cli::Exit

int run_rerun(const cli::Arguments& arguments);

}  // namespace tenon::rerun
