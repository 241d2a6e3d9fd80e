// Prefix sums along rows. SPDX-License-Identifier: Apache-2.0
#include <tenon/base.hpp>

#include "prelude.h"
#include "tables.h"

namespace tenon::cuda {

namespace {

// inputs: values [rows, columns]; outputs: the same shape. a.sizes: rows, columns. A block takes a row, 1024 elements
// at a time, in the order in which they are added; a thread has four that follow one another. Sums are fp64.
constexpr const char* kText = R"cuda(
// The sum of the values of the threads before this one; *all: of all threads.
__device__ double before_thread(double v, double* all) {
  __shared__ double warp[8];
  const int lane = threadIdx.x % 32;
  double sum = v;
  for (int step = 1; step < 32; step *= 2) {
    const double other = __shfl_up_sync(0xffffffffu, sum, step);
    if (lane >= step) sum += other;
  }
  const double own = __shfl_up_sync(0xffffffffu, sum, 1);
  __syncthreads();  // `warp` of an earlier call was read by all
  if (lane == 31) warp[threadIdx.x / 32] = sum;
  __syncthreads();
  double first = 0;
  for (int k = 0; k < threadIdx.x / 32; ++k) first += warp[k];
  *all = 0;
  for (int k = 0; k < 8; ++k) *all += warp[k];
  return lane == 0 ? first : first + own;
}

extern "C" __global__ void __launch_bounds__(256, 2) kernel0(const __grid_constant__ Arguments a) {
  if (a.fault->code != 0) return;
  const Int64 rows = size_of(a.sizes[0], a.symbols), columns = size_of(a.sizes[1], a.symbols);
  for (Int64 row = blockIdx.x; row < rows; row += gridDim.x) {
    const E* const from = (const E*)a.inputs[0] + row * columns;
    E* const to = (E*)a.outputs[0] + row * columns;
    double carry = 0;
    for (Int64 start = 0; start < columns; start += 1024) {
      double own[4], sum = 0;
      for (int k = 0; k < 4; ++k) {
        const Int64 place = start + threadIdx.x * 4 + k;
        own[k] = place < columns ? (double)from[kReverse ? columns - 1 - place : place] : 0.0;
        sum += own[k];
      }
      double all;
      double until = carry + before_thread(sum, &all);
      for (int k = 0; k < 4; ++k) {
        const Int64 place = start + threadIdx.x * 4 + k;
        const double next = until + own[k];
        if (place < columns)
          put(to + (kReverse ? columns - 1 - place : place), (E)(kExclusive ? until : next), a.requests[0]);
        until = next;
      }
      carry += all;
    }
  }
}
)cuda";

}  // namespace

Kernels kernels_of(const tn_prefix_sum& prefix_sum) {
  if (!is_float(prefix_sum.dtype)) throw tn::Failure(TN_UNSUPPORTED, "dtype", "CUDA sums float32 and float64 only");
  if ((prefix_sum.flags & ~uint32_t{TN_SUM_EXCLUSIVE | TN_SUM_REVERSE}) != 0)
    throw tn::Failure(TN_UNSUPPORTED, "flags", "CUDA does not know this prefix sum");
  const auto flag = [&](uint32_t bit) { return (prefix_sum.flags & bit) != 0 ? "true" : "false"; };
  Kernels kernels;
  kernels.text = std::string("typedef ") + element_name(prefix_sum.dtype) +
                 " E;\nconstexpr bool kExclusive = " + flag(TN_SUM_EXCLUSIVE) + ", kReverse = " + flag(TN_SUM_REVERSE) +
                 ";\n" + kPutText + kText;
  kernels.sizes = {prefix_sum.rows, prefix_sum.columns};
  kernels.inputs_count = 1;
  kernels.outputs_count = 1;
  kernels.launches = {{0, pieces(bound_of(prefix_sum.rows, "rows"), 1)}};
  return kernels;
}

}  // namespace tenon::cuda
