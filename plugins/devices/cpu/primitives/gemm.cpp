// "tenon.gemm/1". What a product gives for a row of A must not depend on the other rows, since these may be other
// samples: a model answers the same bits for a sample alone and in a batch. Therefore products with A [m, k], whose
// rows may be samples, run on the kernels of gemm_tile.cpp, for which the order of the sums follows from k alone; the
// tiles below, which also depend on m, change no bit. Vendors' libraries choose kernels by m (measured with OpenBLAS
// 0.3.21: docs/decisions.md). If A is transposed, [k, m], m is part of the shape of a sample, or k counts samples, as
// in the gradients of weights; a table chooses the kernels for these products (gemm_choice.h). A task of the host's
// threads is a tile of C; the tiles do not depend on the number of threads. SPDX-License-Identifier: Apache-2.0
#include "primitives/gemm.h"

#include <cblas.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "bf16_product.h"
#include "blas_buffers.h"
#include "blas_core.h"
#include "gemm_tile.h"
#include "matrix_tile.h"
#include "panel_memory.h"
#include "primitives.h"

namespace tenon::cpu {

namespace {

bool is_transposed(uint32_t flags, uint32_t which) { return (flags & which) != 0; }

}  // namespace

uint64_t factor_bytes(const tn_gemm& gemm) { return std::max(rounded_bytes(gemm), packing_bytes(gemm)); }

void read_factors(const tn_execution& execution, uint8_t* workspace, Product* product) {
  round_factors(execution, workspace, product);
  if (product->factors == Factors::kNumbers) pack_if_worthwhile(execution, workspace, product);
}

void use(Kernels kernels, Product* product) {
  Product& p = *product;
  p.kernels = kernels;
  p.tiles = choose_tiles(kernels, p.m, p.n, p.k);
}

void read_packed(Product* product) {
  Product& p = *product;
  const int64_t panel = panel_columns(detect_isa(), p.gemm->dtype == TN_F64);
  p.packed_columns = (p.n + panel - 1) / panel * panel;
  p.kernels = Kernels::kOwn;
  if (p.m > 0) p.tiles = own_tiles(p.m, p.n, p.k, (31 + panel) / panel * panel, packed_rows());
}

void read_packed_factors(const tn_execution& execution, uint8_t* workspace, Product* product) {
  if (product->m == 0) return;
  if (is_rounded(*product->gemm)) round_rows(execution, workspace, product);
  read_packed(product);
}

int64_t number_block(const tn_gemm& gemm, int64_t k) {
  return sum_block(k, gemm.dtype == TN_F64 ? kSumBlock<double> : kSumBlock<float>);
}
int64_t product_block(const Product& p) {
  return p.factors == Factors::kMatrixPairs ? sum_block(p.k, kMatrixBlock, kMatrixStep) : number_block(*p.gemm, p.k);
}

namespace {

// Records that a tile was left out. Several tasks may call it at once.
void starve(const Product& run) { std::atomic_ref<bool>(run.starved).store(true, std::memory_order_relaxed); }

// One tile of one batch, on the kernels of gemm_tile.cpp: C[row : row + rows, column : column + columns].
void multiply_rowwise(const Product& run, int64_t batch, int64_t row, int64_t column, int64_t rows, int64_t columns) {
  const bool is_matrix = run.factors == Factors::kMatrixPairs;
  const bool ta = !is_matrix && is_transposed(run.gemm->flags, TN_TRANSPOSE_A);
  const bool tb = is_transposed(run.gemm->flags, TN_TRANSPOSE_B);
  const int64_t element = tn_dtype_bytes(run.gemm->dtype);
  const bool one = run.n == 1;
  GemmTile tile = {};
  const int64_t a_row = is_matrix ? matrix_row(run.k) : ta ? 1 : run.k;
  tile.a = run.a + (batch * run.m * run.k + row * a_row) * element;
  tile.b = run.b + (batch * run.k * run.n + (tb ? column * run.k : column)) * element;
  tile.c = run.c + (batch * run.m * run.n + row * run.n + column) * element;
  tile.rows = rows;
  tile.columns = columns;
  tile.depth = run.k;
  tile.a_row = a_row;
  tile.a_step = ta ? run.m : 1;
  tile.b_step = tb || one ? 1 : run.n;
  tile.b_column = tb ? run.k : 1;
  tile.c_row = run.n;
  tile.alpha = run.gemm->alpha;
  tile.add = run.add;
  tile.block = product_block(run);
  if (run.packed_columns > 0) {
    tile.b = run.b;
    tile.packed_columns = run.packed_columns;
    tile.first = column;
  }
  if (run.packed_rows > 0) {
    tile.a = run.a;
    tile.packed_rows = run.packed_rows;
    tile.first_row = row;
  }
  const Isa isa = detect_isa();
  if (is_matrix) return multiply_matrix_tile(tile);
  if (run.list != nullptr) {
    tile.list = one ? run.list + row : run.list;
    tile.first = column;
    return (one ? tile_kernel(isa, run.gemm->dtype == TN_F64, true)
                : list_kernel(isa, run.gemm->dtype == TN_F64))(tile);
  }
  const bool copies = !one && run.packed_columns == 0 && may_copy(tile);
  const PanelMemory memory(copies);
  if (copies && memory.data() == nullptr) return starve(run);
  tile.panels = memory.data();
  (run.factors == Factors::kPairs ? pairs_kernel(isa) : tile_kernel(isa, run.gemm->dtype == TN_F64, one))(tile);
}

// The same by OpenBLAS, where A is [k, m]. The offsets a, b and c are in elements.
void multiply_transposed(const Product& run, int64_t batch, int64_t row, int64_t column, int64_t rows,
                         int64_t columns) {
  const bool tb = is_transposed(run.gemm->flags, TN_TRANSPOSE_B);
  const int64_t a = batch * run.m * run.k + row;
  const int64_t b = batch * run.k * run.n + (tb ? column * run.k : column);
  const int64_t c = batch * run.m * run.n + row * run.n + column;
  const auto op_b = tb ? CblasTrans : CblasNoTrans;
  const auto m = static_cast<blasint>(rows);
  const auto n = static_cast<blasint>(columns);
  const auto k = static_cast<blasint>(run.k);
  const auto lda = static_cast<blasint>(run.m);
  const auto ldb = static_cast<blasint>(tb ? run.k : run.n);
  const auto ldc = static_cast<blasint>(run.n);
  const BlasCall permit;
  if (!permit) return starve(run);
  if (run.gemm->dtype == TN_F32) {
    const auto* pa = reinterpret_cast<const float*>(run.a);
    const auto* pb = reinterpret_cast<const float*>(run.b);
    cblas_sgemm(CblasRowMajor, CblasTrans, op_b, m, n, k, static_cast<float>(run.gemm->alpha), pa + a, lda, pb + b, ldb,
                run.add ? 1.0F : 0.0F, reinterpret_cast<float*>(run.c) + c, ldc);
  } else {
    const auto* pa = reinterpret_cast<const double*>(run.a);
    const auto* pb = reinterpret_cast<const double*>(run.b);
    cblas_dgemm(CblasRowMajor, CblasTrans, op_b, m, n, k, run.gemm->alpha, pa + a, lda, pb + b, ldb,
                run.add ? 1.0 : 0.0, reinterpret_cast<double*>(run.c) + c, ldc);
  }
}

// Elements [first, last) of C if A is [k, m] and m or n is 1: a matrix-vector product, which needs no packing. With m =
// 1 the matrix is B and C is [n]; with n = 1 the matrix is A and C is [m].
void multiply_vector(const Product& run, int64_t batch, int64_t first, int64_t last) {
  const bool is_row = run.m == 1;
  const uint32_t flag = is_row ? TN_TRANSPOSE_B : TN_TRANSPOSE_A;
  const bool along = is_transposed(run.gemm->flags, flag) ? !is_row : is_row;  // the stored matrix is [k, length]
  const int64_t length = is_row ? run.n : run.m;
  const int64_t element = tn_dtype_bytes(run.gemm->dtype);
  const uint8_t* matrix =
      (is_row ? run.b : run.a) + (batch * length * run.k + (along ? first : first * run.k)) * element;
  const uint8_t* vector = (is_row ? run.a : run.b) + batch * run.k * element;
  uint8_t* to = run.c + (batch * length + first) * element;
  // With beta = 0 BLAS may multiply old values of C by 0, which gives NaN for NaN.
  if (!run.add) std::memset(to, 0, static_cast<size_t>((last - first) * element));
  const auto op = along ? CblasTrans : CblasNoTrans;
  const auto rows = static_cast<blasint>(along ? run.k : last - first);
  const auto columns = static_cast<blasint>(along ? last - first : run.k);
  const auto ld = static_cast<blasint>(along ? length : run.k);
  const BlasCall permit;
  if (!permit) return starve(run);
  if (run.gemm->dtype == TN_F32) {
    cblas_sgemv(CblasRowMajor, op, rows, columns, static_cast<float>(run.gemm->alpha),
                reinterpret_cast<const float*>(matrix), ld, reinterpret_cast<const float*>(vector), 1, 1.0F,
                reinterpret_cast<float*>(to), 1);
  } else {
    cblas_dgemv(CblasRowMajor, op, rows, columns, run.gemm->alpha, reinterpret_cast<const double*>(matrix), ld,
                reinterpret_cast<const double*>(vector), 1, 1.0, reinterpret_cast<double*>(to), 1);
  }
}

void multiply(const Product& p, int64_t batch, int64_t row, int64_t column, int64_t rows, int64_t columns) {
  if (p.kernels == Kernels::kOwn) return multiply_rowwise(p, batch, row, column, rows, columns);
  if (p.m == 1) return multiply_vector(p, batch, column, column + columns);
  if (p.n == 1) return multiply_vector(p, batch, row, row + rows);
  multiply_transposed(p, batch, row, column, rows, columns);
}

// A call. Tile number `index` is counted by batch, then row of tiles, then column of tiles. A task is `share` tiles.
struct Run {
  const Product* product;
  int64_t row_tiles, column_tiles, count, share;
};

// Task `index`: computes its tiles.
void run_tiles(void* argument, int64_t index, int32_t) {
  const Run& run = *static_cast<const Run*>(argument);
  const Product& p = *run.product;
  for (int64_t i = index * run.share; i < std::min((index + 1) * run.share, run.count); ++i) {
    const int64_t column = i % run.column_tiles * p.tiles.columns;
    const int64_t row = i / run.column_tiles % run.row_tiles * p.tiles.rows;
    const int64_t batch = i / run.column_tiles / run.row_tiles;
    multiply(p, batch, row, column, std::min(p.tiles.rows, p.m - row), std::min(p.tiles.columns, p.n - column));
  }
}

// Sets rows [first, last) of C [batch * m, n] to 0, unless the request is ADD.
void fill_zero(const Product& p, int64_t first, int64_t last) {
  const int64_t row_bytes = p.n * tn_dtype_bytes(p.gemm->dtype);
  if (!p.add) std::memset(p.c + first * row_bytes, 0, static_cast<size_t>((last - first) * row_bytes));
}

}  // namespace

void multiply_rows(const Product& p, int64_t first, int64_t last) {
  if (p.k == 0) return fill_zero(p, first, last);  // an empty sum is 0
  while (first < last) {
    const int64_t batch = first / p.m, row = first % p.m;
    const int64_t end = std::min(p.m, row + last - first);
    first += end - row;
    for (int64_t r = row; r < end; r += p.tiles.rows)
      for (int64_t c = 0; c < p.n; c += p.tiles.columns)
        multiply(p, batch, r, c, std::min(p.tiles.rows, end - r), std::min(p.tiles.columns, p.n - c));
  }
}

tn_status multiply_all(const tn_execution& execution, const Product& p) {
  if (p.batch == 0 || p.m == 0 || p.n == 0) return TN_OK;
  if (p.k == 0) {
    fill_zero(p, 0, p.batch * p.m);
    return TN_OK;
  }
  Run run = {&p, 0, 0, 0, 0};
  run.row_tiles = (p.m + p.tiles.rows - 1) / p.tiles.rows;
  run.column_tiles = (p.n + p.tiles.columns - 1) / p.tiles.columns;
  run.count = p.batch * run.row_tiles * run.column_tiles;
  const double work = static_cast<double>(p.tiles.rows) * static_cast<double>(p.tiles.columns) *
                      static_cast<double>(p.k);  // multiplications of a tile
  run.share = std::max<int64_t>(1, static_cast<int64_t>(kTaskWork / work));
  const int64_t tasks = (run.count + run.share - 1) / run.share;
  if (tasks == 1) {
    run_tiles(&run, 0, 0);
  } else {
    execution.parallel->for_each(execution.parallel->self, tasks, &run_tiles, &run);
  }
  return check_done(execution.errors, p);
}

tn_status make_product(const tn_gemm& gemm, const tn_execution& execution, const tn_call& call, Product* product) {
  const tn_errors* errors = execution.errors;
  if (call.inputs[0] == nullptr || call.inputs[1] == nullptr)
    return tn_fail(errors, TN_MISUSE, nullptr, "a product needs two inputs and one output");
  if (call.outputs[0] == nullptr) return tn_fail(errors, TN_MISUSE, "outputs", "a product without its output");
  Product& p = *product;
  p = {&gemm,
       tn_dim_value(&gemm.batch, execution.symbols),
       tn_dim_value(&gemm.m, execution.symbols),
       tn_dim_value(&gemm.n, execution.symbols),
       tn_dim_value(&gemm.k, execution.symbols),
       Kernels::kOwn,
       {0, 0},
       call.requests[0] == TN_REQUEST_ADD,
       tn_data(call.inputs[0]),
       tn_data(call.inputs[1]),
       tn_data(call.outputs[0])};
  if (p.batch < 0 || p.m < 0 || p.n < 0 || p.k < 0)
    return tn_fail(errors, TN_MISUSE, nullptr, "a product of negative size");
  constexpr int64_t kMost = std::numeric_limits<blasint>::max();
  if (std::max({p.m, p.n, p.k}) > kMost)
    return tn_fail(errors, TN_UNSUPPORTED, nullptr, "a product with a side of more than 2^31 - 1");
  if (p.m > 0 && p.n > 0 && p.k > 0) use(choose_kernels(p.m, p.n, p.k, gemm.flags), &p);
  return TN_OK;
}

tn_status check_done(const tn_errors* errors, const Product& product) {
  if (!product.starved) return TN_OK;
  return tn_fail(errors, TN_OUT_OF_MEMORY, nullptr, "no memory to pack the matrices of a product");
}

tn_status check_gemm(const tn_errors* errors, const tn_gemm& gemm) {
  if (gemm.dtype != TN_F32 && gemm.dtype != TN_F64)
    return tn_fail(errors, TN_UNSUPPORTED, "dtype", "the cpu multiplies matrices of float32 and float64 only");
  if ((gemm.flags & ~uint32_t{TN_TRANSPOSE_A | TN_TRANSPOSE_B}) != 0)
    return tn_fail(errors, TN_UNSUPPORTED, "flags", "the cpu does not offer this form of a product");
  if (gemm.precision > TN_PRECISION_TF32)
    return tn_fail(errors, TN_UNSUPPORTED, "precision", "the cpu does not offer products of this precision");
  return TN_OK;
}

namespace {

tn_status run(void* binding, const tn_execution* execution, const tn_call* call) {
  if (call->inputs_count != 2 || call->outputs_count != 1)
    return tn_fail(execution->errors, TN_MISUSE, nullptr, "a product needs two inputs and one output");
  if (call->requests[0] == TN_REQUEST_NONE) return TN_OK;
  Product product = {};
  if (const tn_status status = make_product(*static_cast<const tn_gemm*>(binding), *execution, *call, &product);
      status != TN_OK)
    return status;
  read_factors(*execution, static_cast<uint8_t*>(call->workspace), &product);
  return multiply_all(*execution, product);
}

// Of a product that is bound the other way round.
tn_status run_swapped(void* binding, const tn_execution* execution, const tn_call* call) {
  if (call->inputs_count != 2)
    return tn_fail(execution->errors, TN_MISUSE, nullptr, "a product needs two inputs and one output");
  const tn_tensor* const inputs[] = {call->inputs[1], call->inputs[0]};
  tn_call swapped = *call;
  swapped.inputs = inputs;
  return run(binding, execution, &swapped);
}

void destroy(void* binding) { delete static_cast<tn_gemm*>(binding); }

tn_status prepare(void*, const tn_services* services, const tn_errors* errors, const tn_gemm* gemm,
                  tn_prepared* prepared) {
  if (const tn_status status = check_gemm(errors, *gemm); status != TN_OK) return status;
  if (is_row_of_products(*gemm)) {
    tn_gemm swapped = *gemm;
    swap_factors(&swapped);
    return bind_gemm(services, errors, swapped, &run_swapped, prepared);
  }
  const tn_status status = bind_gemm(services, errors, *gemm, &run, prepared);
  if (status == TN_OK) prepared->workspace_bytes = factor_bytes(*gemm);
  return status;
}

}  // namespace

bool is_row_of_products(const tn_gemm& gemm) {
  const bool one = gemm.m.symbol == TN_SYMBOL_NONE && tn_dim_value(&gemm.m, nullptr) == 1;
  return one && is_transposed(gemm.flags, TN_TRANSPOSE_B) && !is_transposed(gemm.flags, TN_TRANSPOSE_A);
}

void swap_factors(tn_gemm* gemm) {
  std::swap(gemm->m, gemm->n);
  gemm->flags = 0;
}

tn_status bind_gemm(const tn_services* services, const tn_errors* errors, const tn_gemm& gemm,
                    tn_status (*run)(void* binding, const tn_execution* execution, const tn_call* call),
                    tn_prepared* prepared) {
  auto* const binding = new (std::nothrow) tn_gemm(gemm);
  if (binding == nullptr) return tn_fail(errors, TN_OUT_OF_MEMORY, nullptr, "no memory for a product's binding");
  prepared->traits = tn_any_alignment(services);
  prepared->binding = binding;
  prepared->workspace_bytes = 0;
  prepared->run = run;
  prepared->destroy = &destroy;
  return TN_OK;
}

const char gemm_id[] = TN_GEMM;
const tn_gemm_table gemm_table = {sizeof(tn_gemm_table), 0, &prepare};

}  // namespace tenon::cpu
