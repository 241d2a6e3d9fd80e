// Partial results of global reductions: folds the accumulator of a chunk into a partial result, and combines the
// partial results of all chunks. The order depends on the grid alone; sums are carried in f64.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tenon::cpu {

// A reduction: its operation, and the type of its lanes.
struct Fold {
  uint16_t operation;  // TN_OP_REDUCE_*
  uint8_t kind;
  bool wide;
};

// lanes [count] = the result of a reduction over no elements.
void fill_identity(const Fold& fold, void* lanes, int64_t count);
// lanes [count] -> *partial = their reduction. A partial scalar takes 8 bytes: a double for sums, else one lane.
void fold_scalar(const Fold& fold, const void* lanes, int64_t count, void* partial);
// lanes [rows, columns] -> partial [columns] lanes = the reduction of each column.
void fold_columns(const Fold& fold, const void* lanes, int64_t rows, int64_t columns, void* partial);
// partials [count], 8 bytes each -> *result, one lane.
void combine_scalars(const Fold& fold, const void* partials, int64_t count, void* result);
// partials [rows, columns] lanes -> elements [first, last) of result [columns] = the reduction of each column.
void combine_columns(const Fold& fold, const void* partials, int64_t rows, int64_t columns, int64_t first, int64_t last,
                     void* result);

}  // namespace tenon::cpu
