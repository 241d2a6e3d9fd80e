// Products with a transposed A [k, m], mostly gradients of weights, where the table says that OpenBLAS is faster than
// the device cpu. A task of the host's threads is a tile of C; the tiles do not depend on the number of threads, so
// that neither do the bits. They depend on the class of the processor, on the tiles and on the version of OpenBLAS.
// SPDX-License-Identifier: Apache-2.0
#include "products.h"

#include <cblas.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>

#include "buffers.h"
#include "choice.h"

namespace tenon::openblas {

namespace {

struct Product : Sizes, Operands {
  const tn_gemm& gemm;
  Tiles tiles;
  int64_t row_tiles, column_tiles;
  std::atomic<bool> starved{false};  // a tile was left out for lack of memory
};

template <class T>
void multiply_tile(const Product& p, int64_t batch, int64_t row, int64_t column) {
  const bool tb = (p.gemm.flags & TN_TRANSPOSE_B) != 0;
  const T* const a = reinterpret_cast<const T*>(p.a) + batch * p.m * p.k + row;
  const T* const b = reinterpret_cast<const T*>(p.b) + batch * p.k * p.n + (tb ? column * p.k : column);
  T* const c = reinterpret_cast<T*>(p.c) + batch * p.m * p.n + row * p.n + column;
  const auto size = [](int64_t side) { return static_cast<blasint>(side); };
  const auto m = size(std::min(p.tiles.rows, p.m - row)), n = size(std::min(p.tiles.columns, p.n - column));
  const auto op_b = tb ? CblasTrans : CblasNoTrans;
  const auto alpha = static_cast<T>(p.gemm.alpha);
  const T beta = p.add ? 1 : 0;
  const auto multiply = [&](auto gemm) {
    gemm(CblasRowMajor, CblasTrans, op_b, m, n, size(p.k), alpha, a, size(p.m), b, size(tb ? p.k : p.n), beta, c,
         size(p.n));
  };
  if constexpr (sizeof(T) == 4)
    multiply(&cblas_sgemm);
  else
    multiply(&cblas_dgemm);
}

// Tile number `index`, counted by batch, then row of tiles, then column of tiles.
void run_tile(void* argument, int64_t index, int32_t) {
  auto& p = *static_cast<Product*>(argument);
  const BlasCall permit;
  if (!permit) return p.starved.store(true, std::memory_order_relaxed);
  const int64_t column = index % p.column_tiles * p.tiles.columns;
  const int64_t row = index / p.column_tiles % p.row_tiles * p.tiles.rows;
  const int64_t batch = index / p.column_tiles / p.row_tiles;
  if (p.gemm.dtype == TN_F32)
    multiply_tile<float>(p, batch, row, column);
  else
    multiply_tile<double>(p, batch, row, column);
}

// Kernels that the sizes of a run choose; a product of the size of the bounds has others than kOwn.
Kernels kernels_of(const tn_gemm& gemm, const Sizes& sizes) {
  const Kernels chosen = choose_kernels(sizes.m, sizes.n, sizes.k, gemm.flags);
  return chosen == Kernels::kOwn ? Kernels::kPacked : chosen;
}

tn_status run(void* binding, const tn_execution* execution, const tn_call* call) {
  const tn_gemm& gemm = *static_cast<const tn_gemm*>(binding);
  if (call->inputs_count != 2 || call->outputs_count != 1 || call->inputs[0] == nullptr || call->inputs[1] == nullptr ||
      call->outputs[0] == nullptr)
    return tn_fail(execution->errors, TN_MISUSE, nullptr, "a product needs two inputs and one output");
  if (call->requests[0] == TN_REQUEST_NONE) return TN_OK;
  const auto side = [&](const tn_dim& dim) { return tn_dim_value(&dim, execution->symbols); };
  const Sizes sizes = {side(gemm.batch), side(gemm.m), side(gemm.n), side(gemm.k)};
  const Operands operands = {tn_data(call->inputs[0]), tn_data(call->inputs[1]), tn_data(call->outputs[0]),
                             call->requests[0] == TN_REQUEST_ADD};
  if (sizes.batch < 0 || sizes.m < 0 || sizes.n < 0 || sizes.k < 0)
    return tn_fail(execution->errors, TN_MISUSE, nullptr, "a product of negative size");
  if (std::max({sizes.m, sizes.n, sizes.k}) > std::numeric_limits<blasint>::max())
    return tn_fail(execution->errors, TN_UNSUPPORTED, nullptr, "a product with a side of more than 2^31 - 1");
  if (sizes.batch == 0 || sizes.m == 0 || sizes.n == 0) return TN_OK;
  if (sizes.k > 0) return multiply(gemm, kernels_of(gemm, sizes), sizes, operands, *execution);
  const int64_t bytes = sizes.batch * sizes.m * sizes.n * tn_dtype_bytes(gemm.dtype);  // an empty sum is 0
  if (!operands.add) std::memset(operands.c, 0, static_cast<size_t>(bytes));
  return TN_OK;
}

void destroy(void* binding) { delete static_cast<tn_gemm*>(binding); }

// Takes a product that the table gives to OpenBLAS at the bounds of its sizes.
tn_status prepare(void*, const tn_services* services, const tn_errors* errors, const tn_gemm* gemm,
                  tn_prepared* prepared) {
  const int64_t m = gemm->m.bound, n = gemm->n.bound, k = gemm->k.bound;
  const bool is_offered = (gemm->dtype == TN_F32 || gemm->dtype == TN_F64) &&
                          (gemm->flags & ~uint32_t{TN_TRANSPOSE_A | TN_TRANSPOSE_B}) == 0 &&
                          gemm->precision == TN_PRECISION_FULL;
  if (!is_offered || m < 1 || n < 1 || k < 1 || choose_kernels(m, n, k, gemm->flags) == Kernels::kOwn)
    return TN_UNSUPPORTED;
  auto* const binding = new (std::nothrow) tn_gemm(*gemm);
  if (binding == nullptr) return tn_fail(errors, TN_OUT_OF_MEMORY, nullptr, "no memory for a product's binding");
  prepared->traits = tn_any_alignment(services);
  prepared->binding = binding;
  prepared->workspace_bytes = 0;
  prepared->run = &run;
  prepared->destroy = &destroy;
  return TN_OK;
}

}  // namespace

tn_status multiply(const tn_gemm& gemm, Kernels kernels, const Sizes& sizes, const Operands& operands,
                   const tn_execution& execution) {
  Product p = {sizes, operands, gemm, choose_tiles(kernels, sizes.m, sizes.n, sizes.k), 0, 0};
  p.row_tiles = (p.m + p.tiles.rows - 1) / p.tiles.rows;
  p.column_tiles = (p.n + p.tiles.columns - 1) / p.tiles.columns;
  execution.parallel->for_each(execution.parallel->self, p.batch * p.row_tiles * p.column_tiles, &run_tile, &p);
  if (!p.starved) return TN_OK;
  return tn_fail(execution.errors, TN_OUT_OF_MEMORY, nullptr, "no memory to pack the matrices of a product");
}

const tn_gemm_table gemm_table = {sizeof(tn_gemm_table), 0, &prepare};

}  // namespace tenon::openblas
