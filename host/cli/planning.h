// Plans of jobs, for the verbs plan and plugins lock. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "host/cli/job/job.h"

namespace tenon::cli {

// Plans what a verb does with one reader, which loads every plugin that the verb needs; trains nothing. Returns the
// object that docs/plan.md describes. training: else the computation of the outputs.
[[nodiscard]] nlohmann::json plan_job(const Host& host, const Job& job, const JobReader& reader, bool training);

// Throws Failure(kBadConfig), naming layer, kernel and plugin, if a layer of the plan has no backward that the training
// needs.
void require_backward(const nlohmann::json& plan);

// Returns the names of the layers of a call, as "hidden/fc + hidden/relu"; "-" for one without a name.
[[nodiscard]] std::string joined(const nlohmann::json& layers);

}  // namespace tenon::cli
