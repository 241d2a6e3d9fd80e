// Lists of numbers in fp64, and how they are compared and shown. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace tenon::check {

using Numbers = std::vector<double>;

// Whether both have the same bits, NaN included.
[[nodiscard]] bool identical(const Numbers& a, const Numbers& b);
// The largest absolute value; 0 of none.
[[nodiscard]] double largest_of(const Numbers& values);
// "0.53125", with all digits that tell it from its neighbours in fp32.
[[nodiscard]] std::string shown(double value);

}  // namespace tenon::check
