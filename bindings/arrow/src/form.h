// The values of columns in the form of a data layer or slot. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <tenon/tenon_base.hpp>
#include <vector>

#include "values.h"

namespace tenon_arrow {

// What a data layer or slot takes.
struct Form {
  tn_dtype dtype = 0;  // 0: that of the values
  std::vector<int64_t> shape = {};
  int32_t storage = TN_DENSE;
  uint32_t levels = 1;  // TN_RAGGED: 1 or 2
  int64_t index_limit = -1;
};

// "float32 [3]", "sequences of int64 []".
[[nodiscard]] std::string text_of(const Form& form);

// An array with the memory that it lies in.
struct Samples {
  tenon::Array array;
  std::vector<Memory> memory;
  std::shared_ptr<const std::vector<std::string>> names;  // as in Values

  [[nodiscard]] int64_t count() const { return array.storage == TN_DENSE ? array.shape.at(0) : array.samples; }
};

// Returns values as an array of the form's storage, in their own element type (sparse vectors: float32): lists as
// sequences, or as vectors if all have one size, columns or maps as sparse vectors. null: lists are vectors. Throws
// where the values have none. expected: ends messages.
[[nodiscard]] Samples in_form(Values values, const Form* form, const Place& place, const std::string& expected);

// Returns the samples in another element type, as tenon_arrow.h says; those of this type as they are.
[[nodiscard]] Samples converted(Samples samples, tn_dtype dtype, const Place& place);

// Returns the samples of a column for a slot, in its element type. names: of the slot's categories and texts; null:
// those of the column.
[[nodiscard]] Samples samples_of(const Column& column, const Form& form, const std::vector<std::string>* names,
                                 const Place& place);

// Returns the form that values of a type have on their own, as a slot; nothing if they have none, such as texts.
[[nodiscard]] std::optional<Form> own_form(const ArrowSchema& type);

}  // namespace tenon_arrow
