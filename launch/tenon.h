// The program `tenon` of this machine, as tenon-launch and tenon-dist run it. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tenon::launch {

// Returns the program that runs this one, or the one beside it.
[[nodiscard]] std::string tenon_program();
// Returns what it writes with these words, in JSON; null if it fails, or says nothing for a minute.
[[nodiscard]] nlohmann::json answer_of_tenon(std::vector<std::string> words);

}  // namespace tenon::launch
