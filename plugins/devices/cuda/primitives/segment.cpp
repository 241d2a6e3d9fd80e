// Operations over the segments of ragged rows. SPDX-License-Identifier: Apache-2.0
#include <tenon/base.hpp>

#include "ids.h"
#include "order.h"
#include "prelude.h"
#include "sort.h"
#include "tables.h"

namespace tenon::cuda {

namespace {

// inputs: the value, offsets [segments + 1]. a.sizes: rows, segments, width; a.table: `by`.
constexpr const char* kSizesText = R"cuda(
#define OFFSETS ((const Int64*)a.inputs[1])
#define ROWS size_of(a.sizes[0], a.symbols)
#define SEGMENTS size_of(a.sizes[1], a.symbols)
#define WIDTH size_of(a.sizes[2], a.symbols)
__device__ E value_at(const Arguments& a, Int64 i) { return ((const E*)a.inputs[0])[i]; }
__device__ void check_rows(const Arguments& a) {
  if (blockIdx.x == 0 && threadIdx.x == 0 && SEGMENTS > 0 && OFFSETS[SEGMENTS] != ROWS) a.fault->code = 4;
}
)cuda";

// A thread computes an element of the output: `result(a, row, column, width)`, where the rows are segments if kCount is
// SEGMENTS.
constexpr const char* kElementsKernelText = R"cuda(
extern "C" __global__ void __launch_bounds__(256, 2) kernel0(const __grid_constant__ Arguments a) {
  if (a.fault->code != 0) return;
  const Int64 width = WIDTH, count = OUT_ROWS * width;
  for (Int64 e = blockIdx.x * 256LL + threadIdx.x; e < count; e += gridDim.x * 256LL) {
    const Int64 row = divide(e, width);
    put((O*)a.outputs[0] + e, result(a, row, e - row * width, width), a.requests[0]);
  }
  check_rows(a);
}
)cuda";

constexpr const char* kReduceText = R"cuda(
#define OUT_ROWS SEGMENTS
__device__ O result(const Arguments& a, Int64 segment, Int64 c, Int64 width) {
  const Range of = rows_of(OFFSETS, segment, ROWS);
  E all = 0;
  for (Int64 r = of.first; r < of.end; ++r) {
    const E value = value_at(a, r * width + c);
    all = r == of.first ? value : JOIN(all, value);
  }
  return all;
}
)cuda";
constexpr const char* kBroadcastText = R"cuda(
#define OUT_ROWS ROWS
__device__ O result(const Arguments& a, Int64 row, Int64 c, Int64 width) {
  return value_at(a, segment_of(OFFSETS, SEGMENTS, row) * width + c);
}
)cuda";
// `by` may be any int64, so its size is compared before it is added.
constexpr const char* kShiftText = R"cuda(
#define OUT_ROWS ROWS
__device__ O result(const Arguments& a, Int64 row, Int64 c, Int64 width) {
  const Range of = rows_of(OFFSETS, segment_of(OFFSETS, SEGMENTS, row), ROWS);
  const Int64 by = a.table[0];
  const bool inside = by < 0 ? by >= of.first - row : by < of.end - row;
  return inside ? value_at(a, (row + by) * width + c) : (O)0;
}
)cuda";
constexpr const char* kPositionText = R"cuda(
#define OUT_ROWS ROWS
__device__ O result(const Arguments& a, Int64 row, Int64, Int64) {
  return row - OFFSETS[segment_of(OFFSETS, SEGMENTS, row)];
}
)cuda";
constexpr const char* kLengthText = R"cuda(
#define OUT_ROWS SEGMENTS
__device__ O result(const Arguments& a, Int64 segment, Int64, Int64) { return OFFSETS[segment + 1] - OFFSETS[segment]; }
)cuda";
constexpr const char* kStartText = R"cuda(
#define OUT_ROWS SEGMENTS
__device__ O result(const Arguments& a, Int64 segment, Int64, Int64) { return OFFSETS[segment]; }
)cuda";

// All rows are sorted by segment, then by value.
constexpr const char* kRankItemsText = R"cuda(
struct Item { E value; int segment, at; };
__device__ Int64 sort_rows(const Arguments& a) { return 1; }
__device__ Int64 sort_columns(const Arguments& a) { return ROWS; }
__device__ Item item_of(const Arguments& a, Int64, Int64 i) {
  return {value_at(a, i), (int)segment_of(OFFSETS, SEGMENTS, i), (int)i};
}
__device__ bool before(const Item& a, const Item& b) {
  return a.segment != b.segment ? a.segment < b.segment : is_before<true>(a.value, b.value);
}
)cuda";
constexpr const char* kRankText = R"cuda(
extern "C" __global__ void __launch_bounds__(256, 2) kernel2(const __grid_constant__ Arguments a) {
  if (a.fault->code != 0) return;
  const Item* const items = sorted(a);
  for (Int64 j = blockIdx.x * 256LL + threadIdx.x; j < ROWS; j += gridDim.x * 256LL)
    ((O*)a.outputs[0])[items[j].at] = j - OFFSETS[items[j].segment];
  check_rows(a);
}
)cuda";

const char* text_of(int32_t op) {
  switch (op) {
    case TN_SEGMENT_SUM:
    case TN_SEGMENT_MAX:
      return kReduceText;
    case TN_SEGMENT_BROADCAST:
      return kBroadcastText;
    case TN_SEGMENT_SHIFT:
      return kShiftText;
    case TN_SEGMENT_POSITION:
      return kPositionText;
    case TN_SEGMENT_LENGTH:
      return kLengthText;
    case TN_SEGMENT_START:
      return kStartText;
    case TN_SEGMENT_RANK:
      return kRankText;
    default:
      throw tn::Failure(TN_UNSUPPORTED, "op", "CUDA does not know this operation over segments");
  }
}

bool takes_none(int32_t op) { return op == TN_SEGMENT_POSITION || op == TN_SEGMENT_LENGTH || op == TN_SEGMENT_START; }
bool copies(int32_t op) { return op == TN_SEGMENT_BROADCAST || op == TN_SEGMENT_SHIFT; }

// The type of an element of the value.
const char* element_of(const tn_segment& segment) {
  const bool floats = is_float(segment.dtype);
  if (!floats && !copies(segment.op) && !takes_none(segment.op))
    throw tn::Failure(TN_UNSUPPORTED, "dtype", "CUDA reduces and ranks float32 and float64 only");
  const char* const element = floats ? element_name(segment.dtype) : bits_name(segment.dtype);
  if (element == nullptr) throw tn::Failure(TN_UNSUPPORTED, "dtype", "elements without a size");
  return element;
}

}  // namespace

Kernels kernels_of(const tn_segment& segment) {
  const bool numbers = takes_none(segment.op) || segment.op == TN_SEGMENT_RANK;
  const std::string operation = text_of(segment.op), element = element_of(segment);
  Kernels kernels;
  kernels.text = "typedef " + element + " E;\ntypedef " + (numbers ? "Int64" : element) + " O;\n#define JOIN(a, b) " +
                 (segment.op == TN_SEGMENT_MAX ? "most(a, b)" : "(a) + (b)") + "\n" + kPutText + kSegmentsText +
                 kSizesText;
  kernels.sizes = {segment.rows, segment.segments, segment.width};
  kernels.inputs_count = 2;
  kernels.outputs_count = 1;
  kernels.optional = {takes_none(segment.op), false};
  kernels.adds = !numbers && is_float(segment.dtype);
  const int64_t rows = bound_of(segment.rows, "rows");
  if (segment.op == TN_SEGMENT_RANK) {
    kernels.text += std::string(kOrderText) + kRankItemsText + sort_text(0, 0) + operation;
    const int64_t step = add_sort(kernels, 0, 1, rows);
    kernels.launches.push_back({2, pieces(rows, kTile), step});
    return kernels;
  }
  kernels.text += operation + kElementsKernelText;
  if (segment.op == TN_SEGMENT_SHIFT) kernels.table = {segment.by};
  const int64_t most = std::max(rows, bound_of(segment.segments, "segments"));
  kernels.launches = {{0, pieces(product_of(most, bound_of(segment.width, "columns")), kTile)}};
  return kernels;
}

}  // namespace tenon::cuda
