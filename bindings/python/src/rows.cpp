// SPDX-License-Identifier: Apache-2.0
#include "rows.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>

#include "elements.h"
#include "gathered.h"

namespace tenon_python {

namespace {

using tenon_arrow::CopyElements;

// What the elements of a slot may be, beside numbers of its type.
struct Domain {
  bool nan = false;    // floats: NaN
  uint64_t limit = 0;  // integers: those below it; 0: all
};

// Whether the slot holds a number as complaint_of and tenon::Sample say, without a branch.
template <typename To, typename From>
[[nodiscard]] bool fits(From number, Domain domain) {
  if constexpr (std::is_floating_point_v<From>) {
    const bool same = std::isinf(static_cast<To>(number)) == std::isinf(number);
    return same & (domain.nan | (number == number));
  } else {
    // Negative numbers are beyond every limit as unsigned ones.
    const bool below = (domain.limit == 0) | (static_cast<uint64_t>(number) < domain.limit);
    if constexpr (std::is_integral_v<To> && !std::is_same_v<To, bool>) return below & std::in_range<To>(number);
    return below;
  }
}

// How many of the numbers fit before the first one that does not; those are copied.
template <typename From, typename To>
size_t copy_numbers(const From* __restrict from, To* __restrict to, size_t count, Domain domain) {
  if constexpr (std::is_floating_point_v<From> && !std::is_floating_point_v<To>) {
    return 0;
  } else {
    unsigned unfit = 0;  // the compiler makes vectors of loops without an exit
    if constexpr (std::is_same_v<From, To>) {
      std::memcpy(to, from, count * sizeof(To));
      if (std::is_floating_point_v<To> ? domain.nan : domain.limit == 0) return count;
      for (size_t i = 0; i < count; ++i) unfit |= fits<To>(to[i], domain) ? 0U : 1U;
    } else {
      for (size_t i = 0; i < count; ++i) {
        to[i] = static_cast<To>(from[i]);  // NOLINT(bugprone-signed-char-misuse): an int8 is a number
        unfit |= fits<To>(from[i], domain) ? 0U : 1U;
      }
    }
    if (unfit == 0) return count;
    size_t first = 0;
    while (fits<To>(from[first], domain)) ++first;
    return first;
  }
}

// How elements of one type become those of a slot; nothing fits one of a type that numbers do not convert to.
CopyElements copy_of(tn_dtype from, const Slot& slot) {
  const Domain domain{slot.nan, slot.index_limit > 0 ? static_cast<uint64_t>(slot.index_limit) : 0};
  CopyElements copy = [](const void*, void*, size_t) { return size_t{0}; };
  const auto to = [&](auto target) {
    using To = decltype(target);
    (void)tenon_arrow::with_elements(from, nullptr, 0, [&](auto none) {
      using From = typename decltype(none)::value_type;
      copy = [domain](const void* numbers, void* elements, size_t count) {
        return copy_numbers(static_cast<const From*>(numbers), static_cast<To*>(elements), count, domain);
      };
    });
  };
  if (slot.dtype == TN_BOOL)
    to(bool{});
  else
    (void)tenon_arrow::with_elements(slot.dtype, nullptr, 0,
                                     [&](auto none) { to(typename decltype(none)::value_type{}); });
  return copy;
}

// Why rows of an array do not fit a slot.
std::string complaint_of_rows(const tenon::Array& array, const Slot& slot, int64_t first, int64_t last) {
  auto one = static_cast<const tenon::SlotOptions&>(slot);  // what tenon::Sample refuses, it names
  one.storage = TN_RAGGED;
  one.levels = 1;
  if (array.storage == TN_CSR) one.shape = {};
  size_t elements = 1;
  for (const int64_t extent : one.shape) elements *= static_cast<size_t>(extent);
  const auto* const at =
      static_cast<const char*>(array.data) + static_cast<size_t>(first) * elements * tn_dtype_bytes(array.dtype);
  std::string why;
  const bool is_read = tenon_arrow::with_elements(array.dtype, at, static_cast<size_t>(last - first) * elements,
                                                  [&](const auto& numbers) {
                                                    why = complaint_of(slot, numbers);
                                                    if (!why.empty()) return;
                                                    try {
                                                      tenon::detail::SlotValues values(one);
                                                      values.clear();
                                                      values.set(numbers);
                                                    } catch (const tenon::Error& error) {
                                                      why = error.what();
                                                    }
                                                  });
  return is_read ? why : "its element type is not read";
}

std::string complaint_of_sample(const tenon::Array& array, const Slot& slot, int64_t sample) {
  if (array.storage == TN_DENSE) return complaint_of_rows(array, slot, sample, sample + 1);
  const int64_t first = array.offsets[0][sample], last = array.offsets[0][sample + 1];
  if (array.storage == TN_CSR) {
    std::vector<int64_t> columns(array.ids + first, array.ids + last);
    std::sort(columns.begin(), columns.end());
    if (const auto twice = std::adjacent_find(columns.begin(), columns.end()); twice != columns.end())
      return "it has column " + std::to_string(*twice) + " twice";
    return array.data == nullptr ? "" : complaint_of_rows(array, slot, first, last);
  }
  if (array.levels < 2) return complaint_of_rows(array, slot, first, last);
  std::string why;
  for (int64_t i = first; i < last && why.empty(); ++i)
    why = complaint_of_rows(array, slot, array.offsets[1][i], array.offsets[1][i + 1]);
  return why;
}

class Rows {
 public:
  Rows(Slots slots, const std::vector<Values*>& columns) : slots_(std::move(slots)) {
    for (size_t i = 0; i < columns.size(); ++i) {
      arrays_.push_back(columns[i]->array);
      owners_.emplace_back(columns[i]->owners);
      gathered_.emplace_back(tn_dtype_bytes(slots_[i].dtype), copy_of(columns[i]->array.dtype, slots_[i]));
    }
  }

  [[nodiscard]] int64_t size() const {
    if (arrays_.empty()) return 0;
    return arrays_[0].storage == TN_DENSE ? arrays_[0].shape.at(0) : arrays_[0].samples;
  }

  // Throws for the first of the samples that does not fit, and the first of its slots.
  void read_at(std::span<const int64_t> numbers, tn_array* values) {
    std::optional<size_t> unfit;
    int64_t sample = 0;
    for (size_t i = 0; i < slots_.size(); ++i) {
      const size_t fitting = gathered_[i].gather(arrays_[i], numbers);
      gathered_[i].lend(arrays_[i], values[i]);
      if (fitting == numbers.size()) continue;
      unfit = i;
      sample = numbers[fitting];
      numbers = numbers.first(fitting);
    }
    if (unfit) refuse(*unfit, sample);
  }

 private:
  [[noreturn]] void refuse(size_t slot, int64_t sample) const {
    const std::string& name = slots_[slot].name;
    const std::string why = complaint_of_sample(arrays_[slot], slots_[slot], sample);
    throw tenon::Error(TN_BAD_DATA,
                       "sample " + std::to_string(sample) + ": slot \"" + name +
                           "\": " + (why.empty() ? "it was changed while it was read" : why),
                       "reader", name);
  }

  Slots slots_;
  std::vector<tenon::Array> arrays_;
  std::vector<Held> owners_;
  std::vector<tenon_arrow::Gathered> gathered_;
};

}  // namespace

Reader open_rows(const tenon::Host& host, const std::vector<nb::dict>& options, const std::vector<Values*>& columns) {
  using User = tenon::detail::UserObject<Rows>;
  const Slots slots = slots_from(options);
  const tenon::Schema schema = schema_of(slots);
  const tenon::detail::Slots c_slots(schema);
  auto user = std::make_unique<User>(host.host_ref()->thrown, schema, Rows(slots, columns));
  tn_source_options c = {};
  c.size = sizeof c;
  c.slots_count = c_slots.size();
  c.slots = c_slots.data();
  c.samples = user->function.size();
  c.user = user.get();
  c.read_at = [](void* of, const int64_t* numbers, int64_t count, tn_array* values, tn_error* error) {
    User& rows = User::of(of);
    return rows.guarded(error, [&] { rows.function.read_at({numbers, static_cast<size_t>(count)}, values); });
  };
  c.release = User::release;
  Reader result(tenon::detail::made<tenon::Reader>(host.host_ref(), [&](tn_reader* to, tn_error* error) {
    return tn_reader_create_from(host.get(), &c, to, error);
  }));
  user.release();  // NOLINT: the host has it
  return result;
}

}  // namespace tenon_python
