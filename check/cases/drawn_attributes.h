// Attributes drawn from a component's own schema. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <random>
#include <vector>

#include "check/cases/attributes.h"

namespace tenon::check {

// Sets of attributes that the schema allows: the first values of all required ones; then with one attribute changed;
// then drawn ones. Empty if a required text has no choices: only its author can give it.
[[nodiscard]] std::vector<json> drawn_attributes(const json& schema, std::mt19937_64& random);

// Returns for each attribute of the schema the values of which each may be another branch of a layer's code: the
// choices of a text, both values of a flag, and the bounds of an integer, without the default.
[[nodiscard]] std::vector<std::vector<json>> branch_values(const json& schema);

}  // namespace tenon::check
