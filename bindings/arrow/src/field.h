// Columns that are exported: arrays, texts and tables as the structs of Arrow. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <tenon/tenon_base.hpp>
#include <vector>

#include "table.h"

namespace tenon_arrow {

// A column, or a part of one. Any number of structs share it.
struct Field {
  std::string format, name;
  int64_t length = 0;
  std::vector<const void*> buffers;
  std::vector<Memory> memory;                               // that the buffers lie in
  std::vector<std::shared_ptr<const Field>> children = {};  // the last one is the dictionary, if there is one
  bool has_dictionary = false;

  [[nodiscard]] bool has_nulls() const { return !buffers.empty() && buffers.front() != nullptr; }
};
using FieldRef = std::shared_ptr<const Field>;

// Returns a row-major array as a column. Its memory is lent: `memory` keeps it. dictionary: of integers; or null.
// Throws TN_UNSUPPORTED for element types that Arrow lacks, TN_INVALID, naming the column, for an array that is
// damaged.
[[nodiscard]] FieldRef field_of(const std::string& name, const tenon::Array& array, const Memory& memory,
                                FieldRef dictionary = nullptr);
// Returns a copy of an array, and its memory.
[[nodiscard]] std::pair<tenon::Array, Memory> copy_of(const std::string& name, const tenon::Array& array);
// Returns texts as a column.
[[nodiscard]] FieldRef texts_field(const std::string& name, const tn_text* texts, int64_t count);
// Returns columns as a table. Throws TN_INVALID for columns that differ in length.
[[nodiscard]] FieldRef table_of(std::vector<FieldRef> columns);

// Write a struct, which the caller releases. If they throw, *out has nothing to release.
void write_schema(const FieldRef& field, ArrowSchema* out);
void write_array(const FieldRef& field, ArrowArray* out);
// Returns a stream of one chunk.
[[nodiscard]] ArrowArrayStream stream_of(FieldRef table);

}  // namespace tenon_arrow
