// "tenon.gemm/1". What a product gives for a row of A must not depend on the other rows, since these may be other
// samples: a model answers the same bits for a sample alone and in a batch. Nor may it depend on the processor. So the
// order of the sums of an element follows from k alone (gemm_tile.cpp); the tiles below, which depend on the sizes and
// on the number of threads, change no bit. A task of the host's threads is a tile of C.
// SPDX-License-Identifier: Apache-2.0
#include "primitives/gemm.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "bf16_product.h"
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

void cut(Product* product) {
  // A row of a transposed A takes no cache that the next one needs, and each tile copies its columns of B.
  constexpr int64_t kVector = 32, kRows = 128, kTurnedRows = 512;
  Product& p = *product;
  const int64_t most_rows = is_transposed(p.gemm->flags, TN_TRANSPOSE_A) ? kTurnedRows : kRows;
  p.tiles = choose_tiles(p.m, p.n, p.k, kVector, p.workers, most_rows);
}

void read_packed(Product* product) {
  Product& p = *product;
  const int64_t panel = panel_columns(detect_isa(), p.gemm->dtype == TN_F64);
  p.packed_columns = (p.n + panel - 1) / panel * panel;
  if (p.m > 0) p.tiles = choose_tiles(p.m, p.n, p.k, (31 + panel) / panel * panel, p.workers, packed_rows());
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

// One tile of one batch: C[row : row + rows, column : column + columns].
void multiply_tile(const Product& run, int64_t batch, int64_t row, int64_t column, int64_t rows, int64_t columns) {
  const bool is_matrix = run.factors == Factors::kMatrixPairs;
  const bool ta = !is_matrix && is_transposed(run.gemm->flags, TN_TRANSPOSE_A);
  const bool tb = is_transposed(run.gemm->flags, TN_TRANSPOSE_B);
  const int64_t element = tn_dtype_bytes(run.gemm->dtype);
  const bool one = run.n == 1 && !ta;
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
    multiply_tile(p, batch, row, column, std::min(p.tiles.rows, p.m - row), std::min(p.tiles.columns, p.n - column));
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
        multiply_tile(p, batch, r, c, std::min(p.tiles.rows, end - r), std::min(p.tiles.columns, p.n - c));
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
       execution.parallel->workers,
       {0, 0},
       call.requests[0] == TN_REQUEST_ADD,
       tn_data(call.inputs[0]),
       tn_data(call.inputs[1]),
       tn_data(call.outputs[0])};
  if (p.batch < 0 || p.m < 0 || p.n < 0 || p.k < 0)
    return tn_fail(errors, TN_MISUSE, nullptr, "a product of negative size");
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (std::max({p.m, p.n, p.k}) > kMost)
    return tn_fail(errors, TN_UNSUPPORTED, nullptr, "a product with a side of more than 2^31 - 1");
  if (p.m > 0 && p.n > 0 && p.k > 0) cut(&p);
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
  tn_gemm product = *gemm;
  const bool swapped = is_swapped(product);
  if (swapped) swap_factors(&product);
  const tn_status status = bind_gemm(services, errors, product, swapped ? &run_swapped : &run, prepared);
  if (status == TN_OK) prepared->workspace_bytes = factor_bytes(product);
  return status;
}

}  // namespace

bool is_one(const tn_dim& side) { return side.symbol == TN_SYMBOL_NONE && tn_dim_value(&side, nullptr) == 1; }

bool is_swapped(const tn_gemm& gemm) {
  return is_transposed(gemm.flags, TN_TRANSPOSE_B) ? is_one(gemm.m)
                                                   : is_transposed(gemm.flags, TN_TRANSPOSE_A) && is_one(gemm.n);
}

void swap_factors(tn_gemm* gemm) {
  std::swap(gemm->m, gemm->n);
  gemm->flags = 0;
  gemm->precision = TN_PRECISION_FULL;
}

uint32_t product_traits(const tn_services* services, const tn_gemm& gemm) {
  // AMX and vdpbf16ps have sums of their own.
  return call_traits(services) & ~(is_rounded(gemm) ? uint32_t{TN_TRAIT_PORTABLE} : 0U);
}

tn_status bind_gemm(const tn_services* services, const tn_errors* errors, const tn_gemm& gemm,
                    tn_status (*run)(void* binding, const tn_execution* execution, const tn_call* call),
                    tn_prepared* prepared) {
  auto* const binding = new (std::nothrow) tn_gemm(gemm);
  if (binding == nullptr) return tn_fail(errors, TN_OUT_OF_MEMORY, nullptr, "no memory for a product's binding");
  prepared->traits = product_traits(services, gemm);
  prepared->binding = binding;
  prepared->workspace_bytes = 0;
  prepared->run = run;
  prepared->destroy = &destroy;
  return TN_OK;
}

const char gemm_id[] = TN_GEMM;
const tn_gemm_table gemm_table = {sizeof(tn_gemm_table), 0, &prepare};

}  // namespace tenon::cpu
