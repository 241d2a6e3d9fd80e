// The layers of a job for a table. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "new_job/job_text.h"
#include "new_job/table/roles.h"

namespace tenon::new_job {

// The names of the layers that the key "fit" lists: "units" if there are numbers.
[[nodiscard]] std::vector<std::string> fitted_layers(const Roles& roles);
// The names of the key "outputs".
[[nodiscard]] std::vector<std::string> outputs_of(const Target& target);

// Writes the layers between the slots and the costs. rows: of the training.
void write_layers(JobText& job, const Target& target, const Roles& roles, int64_t rows);

}  // namespace tenon::new_job
