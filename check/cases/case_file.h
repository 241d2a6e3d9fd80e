// Reads the author's cases. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "check/cases/attributes.h"

namespace tenon::check {

// Returns the cases of a file, tables [[case]] in TOML or, if its name ends with ".json", a list of objects, each with
// a "type". Throws tenon::Error: TN_NOT_FOUND, or TN_BAD_CONFIG with file and place.
[[nodiscard]] json read_cases(const std::filesystem::path& file);

}  // namespace tenon::check
