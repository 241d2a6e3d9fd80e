// tenon new job: looks at a table or at folders of pictures, and writes a job that trains on them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/cli/cli.h"

namespace tenon::new_job {

int run_new_job(const cli::Arguments& arguments);

}  // namespace tenon::new_job
