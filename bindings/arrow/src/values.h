// The values of a column: numbers, lists of them, maps, and categories. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "table.h"

namespace tenon_arrow {

// Memory for `count` elements, aligned for each of them, with an address also of none.
template <typename Element>
[[nodiscard]] std::pair<Element*, Memory> new_elements(int64_t count) {
  const auto block = std::make_shared<std::vector<Element>>(static_cast<size_t>(std::max<int64_t>(count, 1)));
  return {block->data(), block};
}

// Rows of numbers [rows, shape of a row...], and the lists that they belong to. A number of the row-major rows may lie
// in the memory of Arrow.
struct Values {
  tn_dtype dtype = TN_F32;
  std::vector<int64_t> shape;
  const char* data = nullptr;
  Memory memory;
  // Of lists, the outermost first: list i of a level has the elements of the level below from [i] to [i + 1].
  std::vector<std::shared_ptr<const std::vector<int64_t>>> offsets = {};
  std::shared_ptr<const Values> numbers = {};  // of maps, whose keys are the rows
  // Of categories, whose numbers are int64: their names, as bytes.
  std::shared_ptr<const std::vector<std::string>> names = {};

  [[nodiscard]] int64_t row_elements() const;
  [[nodiscard]] int64_t samples() const;
};

// Returns the values of a column. Throws for nulls, TN_INVALID for elements that are no numbers or categories. Values
// of one chunk are not copied, but booleans and misaligned ones. expected: ends the message, such as "float32 [3]".
[[nodiscard]] Values values_of(const Column& column, const Place& place, const std::string& expected);
// The same where nulls are known, or have any number.
[[nodiscard]] Values present_values_of(const Column& column, const Place& place, const std::string& expected);

[[nodiscard]] bool is_text(std::string_view format);
// Returns the texts of a column, as bytes. Throws for nulls.
[[nodiscard]] std::vector<std::string> texts_of(const Column& column, const Place& place);
// Returns the numbers and names of a column with dictionaries and without nulls. Chunks may have dictionaries of their
// own: names are in the order of their first use, those of the first dictionary in its order. Entries that are no texts
// have their names as Python writes them: numbers, truth values and dates.
[[nodiscard]] Values categories_of(const Column& column, const Place& place);

// Throws TN_INVALID for numbers that are not below `count`, from 0 on.
void check_categories(const Values& numbers, int64_t count, const Place& place);

// Returns the element type of a format; 0 for those of other elements.
[[nodiscard]] tn_dtype dtype_of(std::string_view format);
// Returns what elements of a format are called.
[[nodiscard]] std::string kind_of(const ArrowSchema& type);

}  // namespace tenon_arrow
