// Products of matrices by a kernel of its own: a reference for every GPU. SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <tenon/base.hpp>

#include "prelude.h"
#include "tables.h"
#include "tile.h"

namespace tenon::cuda {

namespace {

// a.sizes: batch, m, n, k; a.table: the bits of alpha. A block computes 64 x 64 elements, a thread 4 x 4, over 16 of k
// at a time. Each element is one sum in the order of k, whatever the sizes; what lies outside of the matrices counts as
// 0.
constexpr const char* kText = R"cuda(
extern "C" __global__ void __launch_bounds__(256, 2) kernel0(const __grid_constant__ Arguments a) {
  if (a.fault->code != 0) return;
  __shared__ Tile left, right;
  const Int64 batch = size_of(a.sizes[0], a.symbols), m = size_of(a.sizes[1], a.symbols);
  const Int64 n = size_of(a.sizes[2], a.symbols), depth = size_of(a.sizes[3], a.symbols);
  const Int64 down = (m + 63) / 64, across = (n + 63) / 64, blocks = batch * down * across;
  const F alpha = (F)__longlong_as_double(a.table[0]);
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  for (Int64 block = blockIdx.x; block < blocks; block += gridDim.x) {
    const Int64 line = divide(block, across), b = divide(line, down);
    const Int64 row = (line - b * down) * 64, column = (block - line * across) * 64;
    const F* const from_a = (const F*)a.inputs[0] + b * m * depth;
    const F* const from_b = (const F*)a.inputs[1] + b * depth * n;
    F sum[4][4] = {};
    for (Int64 start = 0; start < depth; start += 16) {
      __syncthreads();  // the tiles before were read by all
      for (int e = threadIdx.x; e < 1024; e += 256) {
        // Neighbouring threads read neighbouring elements.
        const int ak = kTransposeA ? e / 64 : e % 16, ai = kTransposeA ? e % 64 : e / 16;
        const Int64 k = start + ak, i = row + ai;
        left[ak][ai] = k < depth && i < m ? from_a[kTransposeA ? k * m + i : i * depth + k] : F(0);
        const int bk = kTransposeB ? e % 16 : e / 64, bj = kTransposeB ? e / 16 : e % 64;
        const Int64 l = start + bk, j = column + bj;
        right[bk][bj] = l < depth && j < n ? from_b[kTransposeB ? j * depth + l : l * n + j] : F(0);
      }
      __syncthreads();
      add_terms(sum, left, right);
    }
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 4; ++j) {
        const Int64 r = row + y + 16 * i, c = column + x + 16 * j;
        if (r < m && c < n) put((F*)a.outputs[0] + (b * m + r) * n + c, alpha * sum[i][j], a.requests[0]);
      }
  }
}
)cuda";

}  // namespace

Kernels kernels_of(const tn_gemm& gemm) {
  if (!is_float(gemm.dtype)) throw tn::Failure(TN_UNSUPPORTED, "dtype", "CUDA multiplies float32 and float64 only");
  if ((gemm.flags & ~uint32_t{TN_TRANSPOSE_A | TN_TRANSPOSE_B}) != 0)
    throw tn::Failure(TN_UNSUPPORTED, "flags", "CUDA does not know this form of a product");
  if (gemm.precision > TN_PRECISION_TF32)
    throw tn::Failure(TN_UNSUPPORTED, "precision", "CUDA does not offer products of this precision");
  const auto flag = [&](uint32_t bit) { return (gemm.flags & bit) != 0 ? "true" : "false"; };
  int64_t alpha = 0;
  std::memcpy(&alpha, &gemm.alpha, sizeof alpha);
  Kernels kernels;
  kernels.compute = gemm.dtype;
  kernels.text = std::string("constexpr bool kTransposeA = ") + flag(TN_TRANSPOSE_A) +
                 ", kTransposeB = " + flag(TN_TRANSPOSE_B) + ";\n" + kPutText + kTileText + kText;
  kernels.sizes = {gemm.batch, gemm.m, gemm.n, gemm.k};
  kernels.table = {alpha};
  kernels.inputs_count = 2;
  kernels.outputs_count = 1;
  const int64_t tiles = product_of(pieces(bound_of(gemm.m, "rows"), 64), pieces(bound_of(gemm.n, "columns"), 64));
  kernels.launches = {{0, pieces(product_of(bound_of(gemm.batch, "products"), tiles), 1)}};
  return kernels;
}

}  // namespace tenon::cuda
