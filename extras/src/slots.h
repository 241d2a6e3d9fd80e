// What the readers of this pack share: the text that declares a slot, and numbers of every type.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <tenon/plugin.hpp>
#include <vector>

namespace extras {

// "slot = source, source: type"; the name of the slot and the type may be left out. Types:
//   i8 i16 i32 i64 u8 u16 u32 bool f32 f64    a number; of several sources a vector
//   f32[28,28]                                numbers of this shape in one source
//   i64 sequence, f32[3] sequence             any number of numbers, or of rows
//   i64 < 10                                  integers below a limit
//   category, category sequence               texts, as numbers
struct SlotText {
  std::string slot;
  std::vector<std::string> sources;
  tn_dtype dtype = 0;  // 0: as the data has it
  std::vector<int64_t> shape = {};
  int64_t limit = -1;
  bool shaped = false, sequence = false, category = false;
};

// Throws TN_INVALID, naming the attribute, for a text that is none of these, and for two slots of one name.
[[nodiscard]] std::vector<SlotText> parse_slots(const std::vector<std::string>& texts, const char* attribute);

// The slots that the attribute declares or, without it, one for each of these columns; without those that nothing
// needs.
[[nodiscard]] std::vector<SlotText> choose_slots(const tn::ReaderOpen& open, const char* attribute,
                                                 const std::vector<std::string>& columns);
// Removes the slots that nothing needs. Where nothing needs any, all stay.
void keep_needed(std::vector<SlotText>& slots, const tn::ReaderOpen& open);

// The last of the parts of data, such as files, that starts at or before a sample.
template <typename Part>
[[nodiscard]] Part& part_of(std::vector<Part>& parts, int64_t sample) {
  const auto after = std::upper_bound(parts.begin(), parts.end(), sample,
                                      [](int64_t number, const Part& part) { return number < part.start; });
  return *(after - 1);
}

// The product of a shape. Throws TN_INVALID, naming the slot, for more elements than 2^40.
[[nodiscard]] int64_t elements_of(const std::string& slot, const std::vector<int64_t>& shape);

[[nodiscard]] std::string name_of(tn_dtype dtype);
[[nodiscard]] inline bool is_float(tn_dtype dtype) { return tn_dtype_code(dtype) == 2; }

// Why a value has no place in a slot; the reader adds the place in the data and makes it a TN_BAD_DATA.
struct Unfit {
  std::string why;
};

// Writes a number as element `index` of an array. Throws Unfit for an integer that the type or the limit (-1: none)
// excludes, and for a float where integers are.
void put(tn_dtype dtype, void* to, int64_t index, int64_t number, int64_t limit);
void put(tn_dtype dtype, void* to, int64_t index, double number);
// Throws Unfit if an integer of the array is not below the limit.
void check_below(tn_dtype dtype, const void* numbers, int64_t count, int64_t limit);

// Categories with their numbers.
class Categories {
 public:
  // The names that a model has; those of data, in the order of numbers if all are whole numbers, else of their bytes.
  void use(const std::vector<std::string_view>& names);
  void find(std::vector<std::string> names);
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  // Throws Unfit for a text that has no number.
  [[nodiscard]] int64_t number(std::string_view text) const;

 private:
  void index();
  std::vector<std::string> names_;
  std::vector<size_t> sorted_;  // places of the names in the order of their bytes
};

// The files of patterns such as "data/*.h5", in the order of their bytes. Throws TN_NOT_FOUND for a pattern without
// one.
[[nodiscard]] std::vector<std::string> files_of(const tn::ReaderOpen& open, const char* attribute);

// Throws TN_CANCELLED if the host asks for the end of a long call.
inline void check_cancelled(const volatile int32_t* cancel) {
  if (cancel != nullptr && *cancel != 0) throw tn::Failure(TN_CANCELLED, "", "was cancelled");
}

}  // namespace extras
