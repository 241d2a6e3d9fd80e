// Row-sparse gradients: sums of contributions to rows. SPDX-License-Identifier: Apache-2.0
#include <tenon/base.hpp>

#include "ids.h"
#include "sort.h"
#include "tables.h"

namespace tenon::cuda {

namespace {

// a.sizes: height, width; then count and segments of each part. a.table: for each part whether its ids are of 64 bits.
// a.inputs: values, ids, offsets of each part. a.buffers: the sorted contributions (two buffers); the first wrong ids
// of each part [parts, kMostParts]; `held` and `place`, ints [contributions]; the number of new rows.
//
// The contributions of all parts, in their order, are sorted by id. The first of each id stands for its row. Rows of
// the output that have an id keep their place; the others get places in the order of first occurrence.
constexpr const char* kItemsText = R"cuda(
#define HEIGHT size_of(a.sizes[0], a.symbols)
#define WIDTH size_of(a.sizes[1], a.symbols)
__device__ Int64 count_of(const Arguments& a, Int64 part) { return size_of(a.sizes[2 + 2 * part], a.symbols); }
__device__ Int64 contributions(const Arguments& a) {
  Int64 count = 0;
  for (int p = 0; p < kParts; ++p) count += count_of(a, p);
  return count;
}
// The rows that the output has before the call.
__device__ Int64 rows_before(const Arguments& a) { return a.requests[0] == 2 ? *a.rows.count : 0; }

// A contribution: number `i` of a part.
struct Source { int part; Int64 i; };
__device__ Source source_of(const Arguments& a, Int64 at) {
  Source source = {0, at};
  while (source.part + 1 < kParts && source.i >= count_of(a, source.part)) source.i -= count_of(a, source.part++);
  return source;
}
__device__ const E* values_of(const Arguments& a, Int64 at, Int64 width) {
  const Source source = source_of(a, at);
  const Int64* const offsets = (const Int64*)a.inputs[3 * source.part + 2];
  const Int64 segments = size_of(a.sizes[3 + 2 * source.part], a.symbols);
  const Int64 row = offsets == nullptr ? source.i : segment_of(offsets, segments, source.i);
  return (const E*)a.inputs[3 * source.part] + row * width;
}

struct Item { Int64 id; int at; };
__device__ Int64 sort_rows(const Arguments& a) { return 1; }
__device__ Int64 sort_columns(const Arguments& a) { return contributions(a); }
__device__ Item item_of(const Arguments& a, Int64, Int64 i) {
  const Source source = source_of(a, i);
  return {id_at(a.inputs[3 * source.part + 1], a.table[source.part] != 0, source.i), (int)i};
}
__device__ bool before(const Item& a, const Item& b) { return a.id < b.id; }

// Step p: part number p.
extern "C" __global__ void __launch_bounds__(256, 2) kernel2(const __grid_constant__ Arguments a) {
  if (a.fault->code != 0) return;
  const Int64 p = a.step;
  check_ids(a.inputs[3 * p + 1], a.table[p] != 0, count_of(a, p), HEIGHT, (Int64*)a.buffers[2] + 512 * p);
}
extern "C" __global__ void __launch_bounds__(256, 2) kernel3(const __grid_constant__ Arguments a) {
  if (a.fault->code != 0) return;
  const Int64 p = a.step;
  report_ids(a.inputs[3 * p + 1], a.table[p] != 0, count_of(a, p), HEIGHT, (const Int64*)a.buffers[2] + 512 * p,
             (const Int64*)a.inputs[3 * p + 2], size_of(a.sizes[3 + 2 * p], a.symbols), a.fault);
}
)cuda";

constexpr const char* kPlacesText = R"cuda(
#define HELD ((int*)a.buffers[3])
#define PLACE ((int*)a.buffers[4])
#define NEW_ROWS ((Int64*)a.buffers[5])
__device__ bool is_first(const Item* items, Int64 j) { return j == 0 || items[j - 1].id != items[j].id; }

// held [contributions] in sorted order: the row of the output that has the id, or -1.
extern "C" __global__ void __launch_bounds__(256, 2) kernel4(const __grid_constant__ Arguments a) {
  if (a.fault->code != 0) return;
  const Int64 count = contributions(a);
  for (Int64 j = blockIdx.x * 256LL + threadIdx.x; j < count; j += gridDim.x * 256LL) HELD[j] = -1;
}
extern "C" __global__ void __launch_bounds__(256, 2) kernel5(const __grid_constant__ Arguments a) {
  if (a.fault->code != 0) return;
  const Item* const items = sorted(a);
  const Int64 rows = rows_before(a), count = contributions(a);
  for (Int64 row = blockIdx.x * 256LL + threadIdx.x; row < rows; row += gridDim.x * 256LL) {
    const Int64 id = a.rows.ids[row];
    Int64 low = 0, high = count;
    while (low < high) {
      const Int64 middle = (low + high) / 2;
      if (items[middle].id < id) low = middle + 1;
      else high = middle;
    }
    if (low < count && items[low].id == id) HELD[low] = (int)row;
  }
}
// place [contributions] in their order: 1 for the first of a new row, else 0.
extern "C" __global__ void __launch_bounds__(256, 2) kernel6(const __grid_constant__ Arguments a) {
  if (a.fault->code != 0) return;
  const Item* const items = sorted(a);
  const Int64 count = contributions(a);
  for (Int64 j = blockIdx.x * 256LL + threadIdx.x; j < count; j += gridDim.x * 256LL)
    PLACE[items[j].at] = is_first(items, j) && HELD[j] < 0 ? 1 : 0;
}
// By one block: place becomes the number of new rows before each contribution.
extern "C" __global__ void __launch_bounds__(256, 2) kernel7(const __grid_constant__ Arguments a) {
  if (a.fault->code != 0) return;
  __shared__ int sums[2][256];
  const Int64 count = contributions(a);
  int before_tile = 0;
  for (Int64 start = 0; start < count; start += 1024) {
    int own[4], sum = 0;
    for (int k = 0; k < 4; ++k) {
      const Int64 i = start + threadIdx.x * 4 + k;
      own[k] = i < count ? PLACE[i] : 0;
      sum += own[k];
    }
    int from = 0;
    __syncthreads();
    sums[0][threadIdx.x] = sum;
    for (int width = 1; width < 256; width *= 2, from = 1 - from) {
      __syncthreads();
      sums[1 - from][threadIdx.x] = sums[from][threadIdx.x] + (threadIdx.x >= width ? sums[from][threadIdx.x - width] : 0);
    }
    __syncthreads();
    int next = before_tile + sums[from][threadIdx.x] - sum;
    for (int k = 0; k < 4; ++k) {
      const Int64 i = start + threadIdx.x * 4 + k;
      if (i < count) PLACE[i] = next;
      next += own[k];
    }
    before_tile += sums[from][255];
  }
  if (threadIdx.x != 0) return;
  *NEW_ROWS = before_tile;
  if (rows_before(a) + before_tile > a.rows.capacity) a.fault->code = 2;
}
)cuda";

constexpr const char* kSumText = R"cuda(
extern "C" __global__ void __launch_bounds__(256, 2) kernel8(const __grid_constant__ Arguments a) {
  if (a.fault->code != 0) return;
  const Item* const items = sorted(a);
  const Int64 count = contributions(a), rows = rows_before(a), width = WIDTH;
  for (Int64 first = blockIdx.x * 8LL + threadIdx.x / 32; first < count; first += gridDim.x * 8LL) {
    if (!is_first(items, first)) continue;
    const Int64 id = items[first].id;
    const bool held = HELD[first] >= 0;
    const Int64 row = held ? HELD[first] : rows + PLACE[items[first].at];
    if (!held && threadIdx.x % 32 == 0) a.rows.ids[row] = id;
    for (Int64 c = threadIdx.x % 32; c < width; c += 32) {
      E* const to = (E*)a.outputs[0] + row * width + c;
      E sum = held ? *to : 0;
      for (Int64 j = first; j < count && items[j].id == id; ++j) {
        const E value = values_of(a, items[j].at, width)[c];
        sum = j == first && !held ? value : sum + value;
      }
      *to = sum;
    }
  }
}
extern "C" __global__ void __launch_bounds__(256, 2) kernel9(const __grid_constant__ Arguments a) {
  if (a.fault->code != 0) return;
  if (threadIdx.x == 0) *a.rows.count = rows_before(a) + *NEW_ROWS;
}
)cuda";

}  // namespace

Kernels kernels_of(const tn_coalesce& coalesce) {
  if (!is_float(coalesce.dtype))
    throw tn::Failure(TN_UNSUPPORTED, "dtype", "CUDA adds rows of float32 and float64 only");
  const auto parts = static_cast<int64_t>(coalesce.parts_count);
  Kernels kernels;
  kernels.text = std::string("typedef ") + element_name(coalesce.dtype) +
                 " E;\nconstexpr int kParts = " + std::to_string(parts) + ";\n" + kSegmentsText + kIdsText +
                 kItemsText + sort_text(0, 0) + kPlacesText + kSumText;
  kernels.sizes = {coalesce.height, coalesce.width};
  kernels.inputs_count = 3 * coalesce.parts_count;
  kernels.outputs_count = 1;
  kernels.rows = static_cast<int32_t>(kernels.inputs_count);
  int64_t most = 0;
  for (int64_t p = 0; p < parts; ++p) {
    const tn_coalesce_part& part = *coalesce.parts[p];
    if (part.ids != TN_I32 && part.ids != TN_I64)
      throw tn::Failure(TN_UNSUPPORTED, "ids", "ids must be int32 or int64");
    const int64_t count = bound_of(part.count, "ids");
    if (count > kMostItems || (most += count) > kMostItems)
      throw tn::Failure(TN_UNSUPPORTED, "ids", "more than 2^31 ids in one minibatch");
    kernels.sizes.push_back(part.count);
    kernels.sizes.push_back(part.segments);
    kernels.table.push_back(part.ids == TN_I64 ? 1 : 0);
    for (const bool may_be_absent : {false, false, part.has_offsets == 0}) kernels.optional.push_back(may_be_absent);
    kernels.launches.push_back({2, pieces(count, kTile, kMostParts), p});
    kernels.launches.push_back({3, 1, p});
  }
  const int64_t step = add_sort(kernels, 0, 1, most);
  kernels.buffers.push_back(static_cast<uint64_t>(parts) * kMostParts * sizeof(int64_t));
  for (int k = 0; k < 2; ++k) kernels.buffers.push_back(static_cast<uint64_t>(most) * sizeof(int32_t));
  kernels.buffers.push_back(sizeof(int64_t));
  for (size_t kernel = 4; kernel <= 6; ++kernel) kernels.launches.push_back({kernel, pieces(most, kThreads), step});
  kernels.launches.push_back({7, 1});
  kernels.launches.push_back({8, pieces(most, kThreads / 32), step});
  kernels.launches.push_back({9, 1});
  return kernels;
}

}  // namespace tenon::cuda
