// SPDX-License-Identifier: Apache-2.0
#include "sort.h"

#include <string>
#include <tenon/base.hpp>

namespace tenon::cuda {

namespace {

constexpr const char* kMergeText = R"cuda(
// The place of item i after each two neighbouring sorted runs of `width` items [n] became one sorted run.
__device__ Int64 merged_place(const Item* items, Int64 i, Int64 width, Int64 n) {
  const Int64 base = i / (2 * width) * (2 * width);
  const Int64 middle = base + width < n ? base + width : n, end = base + 2 * width < n ? base + 2 * width : n;
  const bool left = i < middle;
  const Item item = items[i];
  // The items of the other run that come before this one; equal ones of the left run do.
  const Int64 first = left ? middle : base;
  Int64 low = first, high = left ? end : middle;
  while (low < high) {
    const Int64 at = (low + high) / 2;
    if (left ? before(items[at], item) : !before(item, items[at])) low = at + 1;
    else high = at;
  }
  return (left ? i : base + i - middle) + low - first;
}
)cuda";

// @K: number of the kernel; @N: of the next; @A, @B: the buffers.
constexpr const char* kKernelsText = R"cuda(
__device__ const Item* sorted(const Arguments& a) { return (const Item*)(a.step % 2 == 0 ? a.buffers[@A] : a.buffers[@B]); }

extern "C" __global__ void __launch_bounds__(256, 2) kernel@K(const __grid_constant__ Arguments a) {
  if (a.fault->code != 0) return;
  __shared__ __align__(16) unsigned char memory[2][1024 * sizeof(Item)];
  const Int64 rows = sort_rows(a), columns = sort_columns(a), tiles = (columns + 1023) / 1024, blocks = rows * tiles;
  for (Int64 block = blockIdx.x; block < blocks; block += gridDim.x) {
    const Int64 row = divide(block, tiles), start = (block - row * tiles) * 1024;
    const int n = columns - start < 1024 ? (int)(columns - start) : 1024;
    Item* from = (Item*)memory[0];
    Item* to = (Item*)memory[1];
    // A thread reads and writes the same elements here as at the end of the tile before.
    for (int i = threadIdx.x; i < n; i += 256) from[i] = item_of(a, row, start + i);
    for (int width = 1; width < n; width *= 2) {
      __syncthreads();
      for (int i = threadIdx.x; i < n; i += 256) to[merged_place(from, i, width, n)] = from[i];
      Item* const other = from;
      from = to;
      to = other;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += 256) ((Item*)a.buffers[@A])[row * columns + start + i] = from[i];
  }
}

// Step s makes runs of 2^s * 2048 items.
extern "C" __global__ void __launch_bounds__(256, 2) kernel@N(const __grid_constant__ Arguments a) {
  if (a.fault->code != 0) return;
  const Int64 columns = sort_columns(a), count = sort_rows(a) * columns;
  const Item* const from = sorted(a);
  Item* const to = (Item*)(a.step % 2 == 0 ? a.buffers[@B] : a.buffers[@A]);
  for (Int64 i = blockIdx.x * 256LL + threadIdx.x; i < count; i += gridDim.x * 256LL) {
    const Int64 start = divide(i, columns) * columns;
    to[start + merged_place(from + start, i - start, 1024LL << a.step, columns)] = from[i];
  }
}
)cuda";

}  // namespace

std::string sort_text(size_t first, size_t buffer) {
  std::string text = kKernelsText;
  const auto put = [&](const std::string& mark, size_t number) {
    for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark))
      text.replace(at, mark.size(), std::to_string(number));
  };
  put("@K", first);
  put("@N", first + 1);
  put("@A", buffer);
  put("@B", buffer + 1);
  return kMergeText + text;
}

int64_t add_sort(Kernels& kernels, size_t first, int64_t rows, int64_t columns) {
  const int64_t count = product_of(rows, columns);
  if (count > kMostItems)
    throw tn::Failure(TN_UNSUPPORTED, "", "CUDA sorts less than 2^31 items at once, not " + std::to_string(count));
  for (int k = 0; k < 2; ++k) kernels.buffers.push_back(static_cast<uint64_t>(count) * kMostItemBytes);
  kernels.launches.push_back({first, pieces(product_of(rows, pieces(columns, kSortTile)), 1)});
  int64_t step = 0;
  for (int64_t width = kSortTile; width < columns; width *= 2)
    kernels.launches.push_back({first + 1, pieces(count, kThreads), step++});
  return step;
}

}  // namespace tenon::cuda
