// What the rows of earlier steps left for later ones, such as the keys and values that attention sees.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/array_view.h"
#include "core/system.h"

namespace tenon::host {

using namespace core;

// Values of all rows of all steps, in the order of the steps, and for each row of the present step the numbers of the
// rows that it continues. A row that several rows continue is there once, and none is moved when the rows of a step
// change: only their numbers are.
class History {
 public:
  // shapes: of the values that a row leaves, of this type. Borrows nothing.
  History(std::shared_ptr<Allocator> allocator, tn_dtype dtype, const std::vector<std::vector<int64_t>>& shapes);

  // Forgets all rows; the next step has `rows` rows, which continue none.
  void begin(size_t rows);
  // Adds what the rows of this step left, values[k] being [rows, W...] with the rows in the order of the step.
  void add(const std::vector<ArrayView>& values);
  // Begins the next step, whose rows continue the rows `parents` of this one.
  void advance(const std::vector<size_t>& parents);

  // Sequences of row numbers, int64: of each row of the step those of the rows before, the first row first. Valid until
  // the next change.
  [[nodiscard]] ArrayView past() const;
  // Value k of all rows. As sequences of the rows of the step it belongs to the first one, since it needs offsets.
  [[nodiscard]] ArrayView value(size_t k) const;

 private:
  // Memory that grows by doubling.
  struct Column {
    Buffer memory;
    uint64_t row_bytes = 0;
    std::vector<int64_t> shape;  // with the rows first
  };
  void grow(Column& column, uint64_t bytes);

  std::shared_ptr<Allocator> allocator_;
  const tn_dtype dtype_;
  std::vector<Column> columns_;
  size_t rows_ = 0;                   // of the columns
  size_t added_ = 0;                  // of them by the last step
  Buffer past_, next_past_;           // advance writes `next_past_`, since it reads `past_`
  std::vector<int64_t> ends_;         // offsets of past_
  std::vector<int64_t> column_ends_;  // offsets of the columns
};

}  // namespace tenon::host
