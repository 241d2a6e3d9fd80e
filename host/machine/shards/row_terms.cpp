// SPDX-License-Identifier: Apache-2.0
#include "host/machine/shards/row_terms.h"

#include <bit>

#include "host/machine/shards/dense_sum.h"

namespace tenon::host {

namespace {

// The places of ids in a list, by open addressing: a row costs one line of the cache.
class IdPlaces {
 public:
  // most: ids.
  explicit IdPlaces(size_t most) : slots_(std::bit_ceil(2 * most + 1)), shift_(64 - std::countr_zero(slots_.size())) {}

  // Returns the place of an id; one that is new gets this place.
  size_t place(int64_t id, size_t otherwise) {
    size_t at = static_cast<size_t>(static_cast<uint64_t>(id) * 0x9E3779B97F4A7C15U >> shift_);
    while (slots_[at].is_used && slots_[at].id != id) at = (at + 1) & (slots_.size() - 1);
    Slot& slot = slots_[at];
    if (!slot.is_used) slot = {id, otherwise, true};
    return slot.place;
  }

 private:
  struct Slot {
    int64_t id = 0;
    size_t place = 0;
    bool is_used = false;
  };
  std::vector<Slot> slots_;
  int shift_;
};

}  // namespace

void add_rows(tn_dtype compute, RowTerms& to, const RowTerms& from, uint64_t row_bytes) {
  IdPlaces places(to.ids.size() + from.ids.size());
  for (size_t i = 0; i < to.ids.size(); ++i) places.place(to.ids[i], i);
  for (size_t i = 0; i < from.ids.size(); ++i) {
    const std::byte* const values = from.values.data() + i * row_bytes;
    const size_t place = places.place(from.ids[i], to.ids.size());
    if (place == to.ids.size()) {
      to.ids.push_back(from.ids[i]);
      to.values.insert(to.values.end(), values, values + row_bytes);
    } else {
      add_numbers(compute, nullptr, to.values.data() + place * row_bytes, values, row_bytes);
    }
  }
}

}  // namespace tenon::host
