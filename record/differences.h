// Sentences about what differs between two records, or a record and a training. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tenon::record {

// before: as in the record; now: of this training. An empty text says that there is no difference.

// Compares files by their digests: 'data file "t.csv", block 3 of 9: bytes 2097152 to 3145727 differ'.
[[nodiscard]] std::string file_difference(const nlohmann::json& before, const nlohmann::json& now);
// Compares the versions of library and plugins.
[[nodiscard]] std::string version_difference(const nlohmann::json& before, const nlohmann::json& now);
// Compares what decides how is computed: arithmetic, device, type of numbers.
[[nodiscard]] std::string arithmetic_difference(const nlohmann::json& before, const nlohmann::json& now);
// Compares what an application's training is made of: '/topology/layers/2/attributes/size is 5, in the record 4'.
[[nodiscard]] std::string training_difference(const nlohmann::json& before, const nlohmann::json& now);
// Compares cost and metrics after each pass and in each test.
[[nodiscard]] std::string curve_difference(const nlohmann::json& before, const nlohmann::json& now);
// Compares the values in the end, and the files of models.
[[nodiscard]] std::string model_difference(const nlohmann::json& before, const nlohmann::json& now);
// Returns sentences about what differs without an effect on the result: digests of files, the processor.
[[nodiscard]] std::vector<std::string> remarks(const nlohmann::json& before, const nlohmann::json& now);
// Returns the first parameter whose digests differ, for messages: '"hidden.weight" [16, 8]'.
[[nodiscard]] std::string first_parameter(const nlohmann::json& parameters, const std::string& before,
                                          const std::string& now);

}  // namespace tenon::record
