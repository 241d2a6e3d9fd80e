// Rows of a table by ids: gather, sums of gathered rows, and their derivative. SPDX-License-Identifier: Apache-2.0
#include <tenon/base.hpp>

#include "ids.h"
#include "prelude.h"
#include "sort.h"
#include "tables.h"

namespace tenon::cuda {

namespace {

// a.sizes: height, width, count, segments. a.buffers[0]: the first wrong ids. `wide`: whether ids are of 64 bits.
constexpr const char* kCheckText = R"cuda(
#define HEIGHT size_of(a.sizes[0], a.symbols)
#define WIDTH size_of(a.sizes[1], a.symbols)
#define COUNT size_of(a.sizes[2], a.symbols)
#define SEGMENTS size_of(a.sizes[3], a.symbols)
extern "C" __global__ void __launch_bounds__(256, 2) kernel0(const __grid_constant__ Arguments a) {
  if (a.fault->code != 0) return;
  check_ids(a.inputs[1], wide, COUNT, HEIGHT, (Int64*)a.buffers[0]);
}
extern "C" __global__ void __launch_bounds__(256, 2) kernel1(const __grid_constant__ Arguments a) {
  if (a.fault->code != 0) return;
  report_ids(a.inputs[1], wide, COUNT, HEIGHT, (const Int64*)a.buffers[0], OFFSETS, SEGMENTS, a.fault);
}
)cuda";

// inputs: table, ids; outputs: [count, width].
constexpr const char* kGatherText = R"cuda(
extern "C" __global__ void __launch_bounds__(256, 2) kernel2(const __grid_constant__ Arguments a) {
  if (a.fault->code != 0) return;
  const Int64 width = WIDTH, count = COUNT * width;
  for (Int64 e = blockIdx.x * 256LL + threadIdx.x; e < count; e += gridDim.x * 256LL) {
    const Int64 i = divide(e, width), at = id_at(a.inputs[1], wide, i) * width + e - i * width;
    put((E*)a.outputs[0] + e, ((const E*)a.inputs[0])[at], a.requests[0]);
  }
}
)cuda";

// inputs: table, ids, offsets; outputs: [segments, width].
constexpr const char* kSumText = R"cuda(
extern "C" __global__ void __launch_bounds__(256, 2) kernel2(const __grid_constant__ Arguments a) {
  if (a.fault->code != 0) return;
  const Int64 width = WIDTH, count = SEGMENTS * width, ids = COUNT;
  for (Int64 e = blockIdx.x * 256LL + threadIdx.x; e < count; e += gridDim.x * 256LL) {
    const Int64 s = divide(e, width), c = e - s * width;
    const Range of = rows_of(OFFSETS, s, ids);
    E sum = 0;
    for (Int64 i = of.first; i < of.end; ++i) {
      const E value = ((const E*)a.inputs[0])[id_at(a.inputs[1], wide, i) * width + c];
      sum = i == of.first ? value : sum + value;
    }
    put((E*)a.outputs[0] + e, sum, a.requests[0]);
  }
}
)cuda";

// inputs: rows [count, width], ids; outputs: [height, width]. The ids are sorted, so that one warp adds all rows of an
// id, in their order.
constexpr const char* kScatterItemsText = R"cuda(
struct Item { Int64 id; int at; };
__device__ Int64 sort_rows(const Arguments& a) { return 1; }
__device__ Int64 sort_columns(const Arguments& a) { return COUNT; }
__device__ Item item_of(const Arguments& a, Int64, Int64 i) { return {id_at(a.inputs[1], wide, i), (int)i}; }
__device__ bool before(const Item& a, const Item& b) { return a.id < b.id; }
)cuda";
constexpr const char* kScatterText = R"cuda(
extern "C" __global__ void __launch_bounds__(256, 2) kernel4(const __grid_constant__ Arguments a) {
  if (a.fault->code != 0 || a.requests[0] == 2) return;
  const Int64 count = HEIGHT * WIDTH;
  for (Int64 e = blockIdx.x * 256LL + threadIdx.x; e < count; e += gridDim.x * 256LL) ((E*)a.outputs[0])[e] = 0;
}
extern "C" __global__ void __launch_bounds__(256, 2) kernel5(const __grid_constant__ Arguments a) {
  if (a.fault->code != 0) return;
  const Int64 width = WIDTH, count = COUNT;
  const Item* const items = sorted(a);
  for (Int64 first = blockIdx.x * 8LL + threadIdx.x / 32; first < count; first += gridDim.x * 8LL) {
    const Int64 id = items[first].id;
    if (first > 0 && items[first - 1].id == id) continue;
    for (Int64 c = threadIdx.x % 32; c < width; c += 32) {
      E* const to = (E*)a.outputs[0] + id * width + c;
      E sum = *to;
      for (Int64 j = first; j < count && items[j].id == id; ++j)
        sum += ((const E*)a.inputs[0])[items[j].at * width + c];
      *to = sum;
    }
  }
}
)cuda";

const char* element_of(const tn_gather& gather) {
  const bool adds = is_float(gather.dtype);
  if (gather.op != TN_GATHER_ROWS && !adds)
    throw tn::Failure(TN_UNSUPPORTED, "dtype", "CUDA adds rows of float32 and float64 only");
  const char* const element = adds ? element_name(gather.dtype) : bits_name(gather.dtype);
  if (element == nullptr) throw tn::Failure(TN_UNSUPPORTED, "dtype", "elements without a size cannot be gathered");
  return element;
}

}  // namespace

Kernels kernels_of(const tn_gather& gather) {
  if (gather.ids != TN_I32 && gather.ids != TN_I64)
    throw tn::Failure(TN_UNSUPPORTED, "ids", "ids must be int32 or int64");
  if (gather.op > TN_GATHER_SUM) throw tn::Failure(TN_UNSUPPORTED, "op", "CUDA does not know this gather");
  const bool sums = gather.op == TN_GATHER_SUM;
  Kernels kernels;
  kernels.text = std::string("typedef ") + element_of(gather) +
                 " E;\nconstexpr bool wide = " + (gather.ids == TN_I64 ? "true" : "false") + ";\n#define OFFSETS " +
                 (sums ? "((const Int64*)a.inputs[2])" : "((const Int64*)nullptr)") + "\n" + kSegmentsText + kIdsText +
                 kPutText + kCheckText;
  kernels.sizes = {gather.height, gather.width, gather.count, sums ? gather.segments : tn_dim_constant(0)};
  kernels.inputs_count = sums ? 3 : 2;
  kernels.outputs_count = 1;
  kernels.adds = is_float(gather.dtype);
  kernels.buffers = {kMostParts * sizeof(int64_t)};
  const int64_t width = bound_of(gather.width, "columns"), count = bound_of(gather.count, "ids");
  kernels.launches = {{0, pieces(count, kTile, kMostParts)}, {1, 1}};
  if (gather.op == TN_SCATTER_ADD) {
    kernels.text += kScatterItemsText + sort_text(2, 1) + kScatterText;
    const int64_t step = add_sort(kernels, 2, 1, count);
    kernels.launches.push_back({4, pieces(product_of(bound_of(gather.height, "rows"), width), kTile)});
    kernels.launches.push_back({5, pieces(count, kThreads / 32), step});
  } else {
    kernels.text += sums ? kSumText : kGatherText;
    const int64_t rows = sums ? bound_of(gather.segments, "segments") : count;
    kernels.launches.push_back({2, pieces(product_of(rows, width), kTile)});
  }
  return kernels;
}

}  // namespace tenon::cuda
