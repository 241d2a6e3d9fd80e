// What a folder holds. std::filesystem's iterators end the process where they get no memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace tenon {

// Names in a folder, in no order, without "." and "..". A failure is told by `error`, and some may be missing then.
[[nodiscard]] std::vector<std::string> names_in(const std::filesystem::path& folder, std::error_code& error);

}  // namespace tenon
