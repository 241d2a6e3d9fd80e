// What a resume may change of the training that it continues. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tenon::host {

// What differs from the checkpoint by the will of the application.
struct RunChanges {
  std::vector<std::string> lines;  // one for each difference, as `compare` describes it
  std::vector<size_t> rates;       // updaters with another learning rate: 0, and those of groups from 1 on
  int64_t batch = 0;               // the samples of a minibatch in the checkpoint, if they differ; else 0
};

// Throws TN_INVALID naming a name of tn_checkpoint_options.resume_with that is none.
void check_changeable(const std::vector<std::string>& names);

// Gives a stored run (check_same_run) the values that the present one has under these names, and returns what this has
// changed.
[[nodiscard]] RunChanges accept_changes(const std::vector<std::string>& names, nlohmann::json& stored,
                                        const nlohmann::json& present);

// Returns the names that accept all differences of two runs; none if some are not acceptable.
[[nodiscard]] std::vector<std::string> accepting_names(nlohmann::json stored, const nlohmann::json& present);

}  // namespace tenon::host
