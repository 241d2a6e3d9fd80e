// "Did you mean": the nearest of the known names. The program sees the public API only, so it has its own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace tenon::cli {

// The closest of `known` when it is close enough to be a slip of the pen, else empty.
[[nodiscard]] std::string nearest(const std::string& name, const std::vector<std::string>& known);

// "; did you mean \"x\"?", or "; known: a, b" when nothing is near, or "" when nothing is known.
[[nodiscard]] std::string suggestion(const std::string& name, const std::vector<std::string>& known);

}  // namespace tenon::cli
