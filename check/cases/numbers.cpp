// SPDX-License-Identifier: Apache-2.0
#include "check/cases/numbers.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/text.h"

namespace tenon::check {

std::string shown(double value) { return base::brief(value, 9); }

double largest_of(const Numbers& values) {
  double result = 0;
  for (const double value : values) result = std::max(result, std::abs(value));
  return result;
}

bool identical(const Numbers& a, const Numbers& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0);
}

}  // namespace tenon::check
