// SPDX-License-Identifier: Apache-2.0
#include "host/machine/shards/row_terms.h"

#include <unordered_map>

#include "host/machine/shards/dense_sum.h"

namespace tenon::host {

void add_rows(tn_dtype compute, RowTerms& to, const RowTerms& from, uint64_t row_bytes) {
  std::unordered_map<int64_t, size_t> places;
  for (size_t i = 0; i < to.ids.size(); ++i) places.emplace(to.ids[i], i);
  for (size_t i = 0; i < from.ids.size(); ++i) {
    const std::byte* const values = from.values.data() + i * row_bytes;
    const auto [place, is_new] = places.emplace(from.ids[i], to.ids.size());
    if (is_new) {
      to.ids.push_back(from.ids[i]);
      to.values.insert(to.values.end(), values, values + row_bytes);
    } else {
      add_numbers(compute, nullptr, to.values.data() + place->second * row_bytes, values, row_bytes);
    }
  }
}

}  // namespace tenon::host
