// A stable sort of rows of items, as text of kernels and their launches. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/kernels.h"

namespace tenon::cuda {

constexpr int64_t kSortTile = 1024;  // items that a block sorts in shared memory
constexpr uint64_t kMostItemBytes = 16;

// Kernels `kernel<first>` sort items in tiles, `kernel<first + 1>` merge runs. They follow the definitions of
//   struct Item                                          at most kMostItemBytes
//   Int64 sort_rows(const Arguments& a), sort_columns    the number of rows, and of items in each
//   Item item_of(const Arguments& a, Int64 row, Int64 i)
//   bool before(const Item& a, const Item& b)            a strict order; items that are equal in it keep their order
// and use a.buffers[buffer] and a.buffers[buffer + 1], items [rows, columns]. After the launches a kernel whose step is
// that of the next launch finds the sorted items by sorted(a).
[[nodiscard]] std::string sort_text(size_t first, size_t buffer);

// Appends the two buffers and the launches to `kernels`. Returns the step for the kernels that read the sorted items.
// Throws tn::Failure if there are too many items.
int64_t add_sort(Kernels& kernels, size_t first, int64_t rows, int64_t columns);

}  // namespace tenon::cuda
