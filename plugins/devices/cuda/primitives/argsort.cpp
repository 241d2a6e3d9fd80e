// Positions of the elements of rows in sorted order. SPDX-License-Identifier: Apache-2.0
#include <tenon/base.hpp>

#include "order.h"
#include "sort.h"
#include "tables.h"

namespace tenon::cuda {

namespace {

// inputs: values [rows, columns]; outputs: int64 [rows, count]. a.sizes: rows, columns, count.
constexpr const char* kItemsText = R"cuda(
struct Item { E value; int at; };
__device__ Int64 sort_rows(const Arguments& a) { return size_of(a.sizes[0], a.symbols); }
__device__ Int64 sort_columns(const Arguments& a) { return size_of(a.sizes[1], a.symbols); }
__device__ Item item_of(const Arguments& a, Int64 row, Int64 i) {
  return {((const E*)a.inputs[0])[row * sort_columns(a) + i], (int)i};
}
__device__ bool before(const Item& a, const Item& b) { return is_before<kDescending>(a.value, b.value); }
)cuda";
constexpr const char* kPositionsText = R"cuda(
extern "C" __global__ void __launch_bounds__(256, 2) kernel2(const __grid_constant__ Arguments a) {
  if (a.fault->code != 0) return;
  const Int64 columns = sort_columns(a), each = size_of(a.sizes[2], a.symbols), count = sort_rows(a) * each;
  const Item* const items = sorted(a);
  for (Int64 e = blockIdx.x * 256LL + threadIdx.x; e < count; e += gridDim.x * 256LL) {
    const Int64 row = divide(e, each);
    ((Int64*)a.outputs[0])[e] = items[row * columns + e - row * each].at;
  }
}
)cuda";

}  // namespace

Kernels kernels_of(const tn_argsort& argsort) {
  if (!is_float(argsort.dtype)) throw tn::Failure(TN_UNSUPPORTED, "dtype", "CUDA sorts float32 and float64 only");
  if ((argsort.flags & ~uint32_t{TN_SORT_DESCENDING}) != 0)
    throw tn::Failure(TN_UNSUPPORTED, "flags", "CUDA does not know this order");
  Kernels kernels;
  kernels.text = std::string("typedef ") + element_name(argsort.dtype) +
                 " E;\nconstexpr bool kDescending = " + (argsort.flags != 0 ? "true" : "false") + ";\n" + kOrderText +
                 kItemsText + sort_text(0, 0) + kPositionsText;
  kernels.sizes = {argsort.rows, argsort.columns, argsort.count};
  kernels.inputs_count = 1;
  kernels.outputs_count = 1;
  kernels.adds = false;
  const int64_t rows = bound_of(argsort.rows, "rows"), columns = bound_of(argsort.columns, "columns");
  const int64_t step = add_sort(kernels, 0, rows, columns);
  kernels.launches.push_back({2, pieces(product_of(rows, bound_of(argsort.count, "positions")), kTile), step});
  return kernels;
}

}  // namespace tenon::cuda
