// Formulas written as text, recorded as programs. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <tenon/plugin.hpp>

namespace tenon::arithmetic {

// Records the formula `text` of these names and returns its value. Throws tn::Failure about the attribute `attribute`,
// with the place in the text, if it is none.
//
//   formula:    {name "=" or ";"} or
//   or:         and {"or" and}
//   and:        not {"and" not}
//   not:        "not" not | comparison
//   comparison: sum [("<" | "<=" | ">" | ">=" | "==" | "!=") sum]
//   sum:        product {("+" | "-") product}
//   product:    sign {("*" | "/") sign}
//   sign:       ("-" | "+") sign | power
//   power:      atom ["**" sign]
//   atom:       number | name | function "(" or {"," or} ")" | "(" or ")"
[[nodiscard]] tn::Float record_formula(const std::string& text, const char* attribute, tn::Program& program,
                                       const std::map<std::string, tn::Float>& names);

// The functions, as a list for messages and documentation.
inline constexpr const char* kFunctions =
    "abs, clip, cos, erf, exp, expm1, floor, is_finite, log, log1p, max, min, pow, reciprocal, relu, round, sigmoid, "
    "sign, sin, softplus, sqrt, square, stop, tanh, where";

}  // namespace tenon::arithmetic
