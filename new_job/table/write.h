// The job for a table. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "new_job/request.h"

namespace tenon::new_job {

// Reads the table and writes the job. Throws cli::Failure.
[[nodiscard]] Written job_for_table(const Request& request);

}  // namespace tenon::new_job
