// Lists and creates folders. Listing replaces the iterators of std::filesystem, which end the process if memory runs
// out. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace tenon::core {

// Returns the names in a folder, unsorted, without "." and "..". Sets `error`; after a failure names may be missing.
[[nodiscard]] std::vector<std::string> names_in(const std::filesystem::path& folder, std::error_code& error);

// Creates a folder unless it exists, and syncs the folder around it, which must exist. Throws an Error naming the path:
// TN_NOT_FOUND, TN_IO, or TN_INVALID if a file has this name.
void make_folder(const std::filesystem::path& folder);

// Creates a folder in an existing one, and returns its name: `name`, or "NAME-1" and so on if there is one of that
// name. Throws TN_IO naming the path.
[[nodiscard]] std::string make_new_folder(const std::filesystem::path& folder, const std::string& name);

}  // namespace tenon::core
