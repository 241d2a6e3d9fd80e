// Partial results of global reductions: from a chunk's accumulator, and from all chunks to the result. Everything is
// combined in the order of the grid; sums of partial results are carried in f64.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tenon::cpu {

struct Fold {
  uint16_t operation;  // TN_OP_REDUCE_*
  uint8_t kind;
  bool wide;
};

// What a reduction over no elements gives, `count` lanes of it.
void fill_identity(const Fold& fold, void* lanes, int64_t count);
// One accumulator to a partial scalar, which takes 8 bytes.
void fold_scalar(const Fold& fold, const void* lanes, int64_t count, void* partial);
// An accumulator of some rows to one row of partial results.
void fold_columns(const Fold& fold, const void* lanes, int64_t rows, int64_t columns, void* partial);
// Partial scalars to the result's lane.
void combine_scalars(const Fold& fold, const void* partials, int64_t count, void* result);
// Rows of partial results to columns [first, last) of the result.
void combine_columns(const Fold& fold, const void* partials, int64_t rows, int64_t columns, int64_t first, int64_t last,
                     void* result);

}  // namespace tenon::cpu
