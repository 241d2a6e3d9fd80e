// "Did you mean": the nearest of the known names. The program uses the public API alone, so it has its own copy.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace tenon::cli {

// Returns the closest of `known` if it is close enough to be a misspelling, or the one that other frameworks call
// `name`; else "".
[[nodiscard]] std::string nearest(const std::string& name, const std::vector<std::string>& known);

// Returns "a, b and 7 more", with the first 20 names.
[[nodiscard]] std::string listed(const std::vector<std::string>& names);

// Returns "; did you mean \"x\"?", or "; known: a, b" if no name is near, or "" if `known` is empty.
[[nodiscard]] std::string suggestion(const std::string& name, const std::vector<std::string>& known);

}  // namespace tenon::cli
