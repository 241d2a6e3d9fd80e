// Copies of a plugin's tables, some functions of which a check replaces. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/plugin.h>

#include <algorithm>
#include <cstring>

namespace tenon::check {

// A table of full size: an older plugin's may end early, a newer one's behind it.
template <typename Table>
Table full_table(const Table& inner) {
  Table result = {};
  std::memcpy(&result, &inner, std::min<size_t>(inner.size, sizeof result));
  result.size = sizeof result;
  return result;
}

// A descriptor whose lists are to be replaced by others of copies. It has no requirements of components, which name the
// tables that were copied.
inline tn_plugin full_plugin(const tn_plugin& inner) {
  tn_plugin result = full_table(inner);
  result.requirements_count = 0;
  result.requirements = nullptr;
  return result;
}

}  // namespace tenon::check
