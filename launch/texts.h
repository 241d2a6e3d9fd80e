// Texts of launcher and agent. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace tenon::launch {

// Returns bytes as hexadecimal digits, and back; a text that is none is cut at the first other character.
[[nodiscard]] std::string digits_of(const std::string& bytes);
[[nodiscard]] std::string bytes_of(const std::string& digits);

// Returns "process 2", or "process 2 on node1".
[[nodiscard]] std::string process_name(int64_t rank, const std::string& node);
// Returns a number and its noun: "1 process", "3 processes".
[[nodiscard]] std::string counted(int64_t number, const std::string& one, const std::string& several);

}  // namespace tenon::launch
