// The entries of the attribute "columns" of the reader csv. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "new_job/job_text.h"
#include "new_job/table/roles.h"

namespace tenon::new_job {

// Writes the reader of the training data and that of the rows that are held out.
void write_readers(JobText& job, const Table& table, const Target& target, const Roles& roles, const Request& request,
                   int64_t batch);

}  // namespace tenon::new_job
