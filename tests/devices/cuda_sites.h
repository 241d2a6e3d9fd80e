// Calls of every primitive of the device "cuda" but pointwise programs, for tests of their kernels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "plugins/devices/cuda/blas/rounding.h"
#include "plugins/devices/cuda/tables.h"
#include "tests/support/symbols.h"

namespace tenon_tests {

struct CudaCall {
  std::string name;
  tenon::cuda::Kernels kernels;
};

// One call for each text that a primitive can have, up to element types and ranks; the rounding of factors where the
// plugin has it, which is where the header of cublasLt is.
inline std::vector<CudaCall> cuda_calls() {
  const tn_dim many = bounded_symbol(TN_SYMBOL_SAMPLES, 100000), width = tn_dim_constant(64);
  std::vector<CudaCall> calls;
  for (const tn_dtype dtype : {TN_F32, TN_F64}) {
    const auto add = [&](const std::string& name, const auto& site) {
      calls.push_back({name + (dtype == TN_F32 ? " f32" : " f64"), tenon::cuda::kernels_of(site)});
    };
    for (uint32_t flags = 0; flags < 4; ++flags)
      add("gemm " + std::to_string(flags),
          tn_gemm{sizeof(tn_gemm), dtype, tn_dim_constant(1), many, width, width, flags, 0, 1});
    for (const uint32_t op : {TN_GATHER_ROWS, TN_SCATTER_ADD, TN_GATHER_SUM})
      add("gather " + std::to_string(op),
          tn_gather{sizeof(tn_gather), dtype, op == TN_GATHER_ROWS ? TN_I32 : TN_I64, op, many, width, many, many});
    for (int32_t op = TN_SEGMENT_SUM; op <= TN_SEGMENT_RANK; ++op)
      add("segment " + std::to_string(op),
          tn_segment{sizeof(tn_segment), op,
                     op >= TN_SEGMENT_POSITION && op <= TN_SEGMENT_START ? tn_dtype{TN_I64} : dtype, 0, 1, many, many,
                     width});
    for (const uint32_t flags : {0U, uint32_t{TN_SORT_DESCENDING}})
      add("argsort " + std::to_string(flags),
          tn_argsort{sizeof(tn_argsort), dtype, flags, 0, tn_dim_constant(4), many, many});
    for (uint32_t flags = 0; flags < 4; ++flags)
      add("prefix sum " + std::to_string(flags), tn_prefix_sum{sizeof(tn_prefix_sum), dtype, flags, 0, many, width});
    tn_window window = {sizeof window, 2, {28, 28}, {5, 5}, {2, 1}, {1, 2}, {1, 2}, {2, 1}};
    const tn_dim samples = bounded_symbol(TN_SYMBOL_SAMPLES, 64);
    for (int32_t op = TN_CONV_RESULTS; op <= TN_CONV_WEIGHTS; ++op)
      add("conv " + std::to_string(op), tn_conv{sizeof(tn_conv), dtype, op, 0, samples, 6, 16, 2, &window});
    for (int32_t op = TN_POOL_SUM; op <= TN_POOL_TAKE; ++op)
      add("pool " + std::to_string(op), tn_pool{sizeof(tn_pool), dtype, op, 0, samples, 6, &window});
    for (uint32_t flags = 0; flags < 4; ++flags) {
      const tn_resize resize = {sizeof resize, 2, {8, 8}, {9, 9}, {0.9, 0.9}, {}, flags, 0};
      add("resize " + std::to_string(flags), tn_resize_site{sizeof(tn_resize_site), dtype, samples, 6, &resize});
    }
    const tn_dim shape[] = {many, width, width, width};
    const int64_t starts[] = {0, 0, 0, 0};
    const int32_t axes[] = {0, 2, 1, 3};
    const tn_move_part part = {sizeof part, 0, shape, shape, starts, starts, axes};
    const tn_move_part* const parts[] = {&part};
    for (int32_t rank = 3; rank <= 4; ++rank)
      add("move " + std::to_string(rank), tn_move{sizeof(tn_move), dtype, rank, 1, shape, parts, 1, 0});
    const tn_coalesce_part ids = {sizeof ids, TN_I64, many, 0, 0, many};
    const tn_coalesce_part* const lists[] = {&ids, &ids};
    for (uint32_t count = 0; count <= 2; ++count)
      add("coalesce " + std::to_string(count),
          tn_coalesce{sizeof(tn_coalesce), dtype, tn_dim_constant(1000), width, count, 0, lists});
  }
#if __has_include(<cublasLt.h>)
  calls.push_back({"rounding", tenon::cuda::rounding_kernels({sizeof(tn_gemm), TN_F32, tn_dim_constant(1), many, width,
                                                              width, 0, TN_PRECISION_BF16, 1})});
#endif
  return calls;
}

}  // namespace tenon_tests
