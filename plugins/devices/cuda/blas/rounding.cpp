// SPDX-License-Identifier: Apache-2.0
#include "rounding.h"

namespace tenon::cuda {

namespace {

// a.sizes: batch, m, n, k.
constexpr const char* kText = R"cuda(
extern "C" __global__ void __launch_bounds__(256, 2) kernel0(const __grid_constant__ Arguments a) {
  if (a.fault->code != 0) return;
  const Int64 batch = size_of(a.sizes[0], a.symbols), m = size_of(a.sizes[1], a.symbols);
  const Int64 n = size_of(a.sizes[2], a.symbols), k = size_of(a.sizes[3], a.symbols);
  const Int64 first = batch * m * k, all = first + batch * k * n;
  for (Int64 e = blockIdx.x * 256LL + threadIdx.x; e < all; e += gridDim.x * 256LL) {
    const int of = e < first ? 0 : 1;
    const Int64 at = of == 0 ? e : e - first;
    ((Brain*)a.outputs[of])[at] = encode_brain(((const float*)a.inputs[of])[at]);
  }
}
)cuda";

}  // namespace

Kernels rounding_kernels(const tn_gemm& gemm) {
  Kernels kernels;
  kernels.text = kText;
  kernels.sizes = {gemm.batch, gemm.m, gemm.n, gemm.k};
  kernels.inputs_count = kernels.outputs_count = 2;
  const int64_t both = bound_of(gemm.m, "rows") + bound_of(gemm.n, "columns");
  const int64_t deep = product_of(bound_of(gemm.batch, "products"), bound_of(gemm.k, "terms"));
  kernels.launches = {{0, pieces(product_of(both, deep), kTile)}};
  return kernels;
}

}  // namespace tenon::cuda
