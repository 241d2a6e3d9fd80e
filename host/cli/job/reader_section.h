// Reads [reader.train] and [reader.test] of job files. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/cli/job/job.h"
#include "host/cli/job/toml_tree.h"

namespace tenon::cli {

// Reads the key "reader" of a job into job.train and job.test. Throws Failure(kBadConfig) naming place and key.
void read_readers(Section& top, Job& job);

}  // namespace tenon::cli
