// SPDX-License-Identifier: Apache-2.0
#include "host/machine/shards/row_terms.h"

#include <bit>
#include <utility>

#include "host/machine/shards/dense_sum.h"

namespace tenon::host {

namespace {

// The places of ids in a list, by open addressing: to find a row costs a line of the cache or two.
class IdPlaces {
 public:
  // Borrows the ids.
  explicit IdPlaces(const std::vector<int64_t>& ids)
      : ids_(ids), slots_(std::bit_ceil(2 * ids.size()), kNone), shift_(64 - std::countr_zero(slots_.size())) {
    for (size_t i = 0; i < ids.size(); ++i) slots_[slot(ids[i])] = i;
  }

  static constexpr size_t kNone = ~size_t{0};
  // Returns the place of an id; kNone: it is not there.
  [[nodiscard]] size_t place(int64_t id) const { return slots_[slot(id)]; }

 private:
  // Returns the slot of an id, or where it would be.
  [[nodiscard]] size_t slot(int64_t id) const {
    size_t at = static_cast<size_t>(static_cast<uint64_t>(id) * 0x9E3779B97F4A7C15U >> shift_);
    while (slots_[at] != kNone && ids_[slots_[at]] != id) at = (at + 1) & (slots_.size() - 1);
    return at;
  }

  const std::vector<int64_t>& ids_;
  std::vector<size_t> slots_;  // places; at least half are free
  int shift_;
};

}  // namespace

void add_rows(tn_dtype compute, RowTerms& to, RowTerms& from, uint64_t row_bytes) {
  if (from.ids.empty()) return;
  if (to.ids.empty()) return std::swap(to, from);
  if (to.memory.data() != to.values.data()) to.memory.assign(to.values.begin(), to.values.end());
  const IdPlaces places(to.ids);
  for (size_t i = 0; i < from.ids.size(); ++i) {
    const std::span<const std::byte> values = from.values.subspan(i * row_bytes, row_bytes);
    const size_t place = places.place(from.ids[i]);
    if (place == IdPlaces::kNone) {
      to.ids.push_back(from.ids[i]);
      to.memory.insert(to.memory.end(), values.begin(), values.end());
    } else {
      add_numbers(compute, nullptr, to.memory.data() + place * row_bytes, values.data(), row_bytes);
    }
  }
  to.values = to.memory;
}

}  // namespace tenon::host
