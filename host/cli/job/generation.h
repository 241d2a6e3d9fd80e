// [generate]: how texts are generated with the model of a job. docs/generation.md describes it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/cli/job/job.h"
#include "host/cli/job/toml_tree.h"

namespace tenon::cli {

void read_generation(Section& top, Job& job);

}  // namespace tenon::cli
