// "Did you mean": the nearest of the known names. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace tenon::base {

// Returns the entry of `known` that is closest to `name` if the difference may be a typing error, or the one that other
// frameworks call `name`; else "". Names of more than 64 bytes are no typing errors.
[[nodiscard]] std::string nearest(const std::string& name, const std::vector<std::string>& known);

// Returns "; did you mean \"x\"?", or "; known: a, b" if no name is near, or "" if `known` is empty.
[[nodiscard]] std::string suggestion(const std::string& name, const std::vector<std::string>& known);

}  // namespace tenon::base
