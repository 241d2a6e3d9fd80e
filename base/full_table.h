// Tables that begin with their size. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace tenon::base {

// A table of full size: one of an older version ends early, and the rest is 0; one of a newer version is cut.
template <typename Table>
Table full_table(const Table& from) {
  Table table = {};
  std::memcpy(&table, &from, std::min<std::size_t>(from.size, sizeof table));
  table.size = sizeof table;
  return table;
}

}  // namespace tenon::base
