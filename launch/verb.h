// tenon launch: starts and supervises several processes of `tenon train`. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/cli/cli.h"

namespace tenon::launch {

int run_launch(const cli::Arguments& arguments);

}  // namespace tenon::launch
