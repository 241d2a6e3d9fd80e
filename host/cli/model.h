// The model file that a verb works with. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "host/cli/job.h"

namespace tenon::cli {

// given: the path of --model, or empty for the job's own.
[[nodiscard]] Model load_model(const Host& host, const Job& job, const std::string& given);

}  // namespace tenon::cli
