// SPDX-License-Identifier: Apache-2.0
#include "bf16_product.h"

#include <algorithm>

#include "bf16_pairs.h"
#include "gemm_tile.h"
#include "matrix_tile.h"

namespace tenon::cpu {

namespace {

constexpr int64_t kTaskNumbers = 65536;  // that a task rounds
constexpr int64_t kPair = sizeof(uint32_t);

// A list of matrices [count, rows, columns] that is rounded in pairs down the columns or along the rows.
struct Factor {
  const float* from;
  uint32_t* to;
  int64_t count, rows, columns;
  bool down;
  int64_t share;  // rows of a task, even

  [[nodiscard]] int64_t tasks() const { return (count * rows_of() + share - 1) / share; }
  // Rows of all matrices; each matrix has an even number of them if its pairs go down.
  [[nodiscard]] int64_t rows_of() const { return down ? 2 * pairs_of(rows) : rows; }
};

void round_rows(void* argument, int64_t index, int32_t) {
  const Factor& f = *static_cast<const Factor*>(argument);
  const PairKernels& kernels = pair_kernels(detect_isa());
  for (int64_t row = index * f.share, end = std::min(row + f.share, f.count * f.rows_of()); row < end;) {
    const int64_t matrix = row / f.rows_of(), first = row % f.rows_of();
    const int64_t last = std::min(f.rows_of(), first + end - row);
    const float* const from = f.from + (matrix * f.rows + first) * f.columns;
    if (f.down) {
      kernels.down(from, std::min(last, f.rows) - first, f.columns,
                   f.to + (matrix * pairs_of(f.rows) + first / 2) * f.columns);
    } else {
      kernels.along(from, last - first, f.columns, f.to + (matrix * f.rows + first) * pairs_of(f.columns));
    }
    row += last - first;
  }
}

void round_all(const tn_parallel& parallel, Factor factor) {
  factor.share = 2 * std::max<int64_t>(1, kTaskNumbers / 2 / std::max<int64_t>(factor.columns, 1));
  parallel.for_each(parallel.self, factor.tasks(), &round_rows, &factor);
}

int64_t panel() { return panel_columns(detect_isa(), false); }
int64_t whole_panels(int64_t columns) { return (columns + panel() - 1) / panel() * panel(); }

// Rounding of the factors for multiply_matrix_tile, A to [m, matrix_row] and B to panels.
struct MatrixFactors {
  MatrixPart a, b;
  uint32_t *to_a, *to_b;
  int64_t pairs, block;           // of k, and of a block of a sum
  int64_t a_share, b_share;       // rows of A of a task, and panels of B of one, of one block
  int64_t a_tasks, b_tasks_each;  // of A, and of a block of B
};

const float* element(const MatrixPart& part, int64_t row, int64_t column) {
  return part.from + (part.turned ? column * part.row + row : row * part.row + column);
}

void round_matrix_part(void* argument, int64_t index, int32_t) {
  const MatrixFactors& f = *static_cast<const MatrixFactors*>(argument);
  if (index < f.a_tasks) {
    MatrixPart part = f.a;
    const int64_t first = index * f.a_share;
    part.from = element(f.a, first, 0);
    part.rows = std::min(f.a_share, f.a.rows - first);
    return round_matrix_rows(part, f.to_a + first * matrix_row(f.pairs), matrix_row(f.pairs));
  }
  const int64_t task = index - f.a_tasks, l = task / f.b_tasks_each * f.block;
  const int64_t column = task % f.b_tasks_each * f.b_share * panel(), depth = std::min(f.block, f.pairs - l);
  MatrixPart part = f.b;
  part.from = element(f.b, 2 * l, column);
  part.rows = std::min(2 * depth, f.b.rows - 2 * l);
  part.columns = std::min(f.b_share * panel(), f.b.columns - column);
  round_matrix_panels(part, f.to_b + l * whole_panels(f.b.columns) + column * depth, depth * panel());
}

uint64_t matrix_bytes(int64_t m, int64_t n, int64_t k) {
  return static_cast<uint64_t>(kPair * (m * matrix_row(pairs_of(k)) + whole_panels(n) * pairs_of(k)));
}

void round_for_matrix_tiles(const tn_parallel& parallel, uint32_t* to, Product* product) {
  constexpr int64_t kLine = 64;  // rows of a turned matrix that share cache lines
  Product& p = *product;
  const bool ta = (p.gemm->flags & TN_TRANSPOSE_A) != 0, tb = (p.gemm->flags & TN_TRANSPOSE_B) != 0;
  MatrixFactors f = {};
  f.a = {reinterpret_cast<const float*>(p.a), ta ? p.m : p.k, p.m, p.k, ta};
  f.b = {reinterpret_cast<const float*>(p.b), tb ? p.k : p.n, p.k, p.n, tb};
  p.k = pairs_of(p.k);
  p.factors = Factors::kMatrixPairs;
  f.to_a = to;
  f.to_b = to + p.m * matrix_row(p.k);
  f.pairs = p.k;
  f.block = product_block(p);
  f.a_share = (std::max<int64_t>(1, kTaskNumbers / 2 / p.k) + kLine - 1) / kLine * kLine;
  f.b_share = std::max<int64_t>(1, kTaskNumbers / 2 / (f.block * panel()));
  f.a_tasks = (p.m + f.a_share - 1) / f.a_share;
  f.b_tasks_each = (whole_panels(p.n) / panel() + f.b_share - 1) / f.b_share;
  const int64_t blocks = (p.k + f.block - 1) / f.block;
  parallel.for_each(parallel.self, f.a_tasks + blocks * f.b_tasks_each, &round_matrix_part, &f);
  p.a = reinterpret_cast<const uint8_t*>(f.to_a);
  p.b = reinterpret_cast<const uint8_t*>(f.to_b);
  read_packed(&p);
}

// The parts of the workspace, in pairs: A, B, and B in panels.
struct Parts {
  int64_t a, b, panels;
};
Parts parts_of(int64_t batch, int64_t m, int64_t n, int64_t k) {
  return {batch * m * pairs_of(k), batch * n * pairs_of(k), batch == 1 ? whole_panels(n) * pairs_of(k) : 0};
}

}  // namespace

// There is one matrix, whatever the number of samples: bits must not depend on it.
bool takes_matrix_tiles(const tn_gemm& gemm) {
  if (gemm.precision != TN_PRECISION_BF16 || gemm.dtype != TN_F32) return false;
  return gemm.batch.symbol == TN_SYMBOL_NONE && tn_dim_value(&gemm.batch, nullptr) == 1 && has_matrix_tiles();
}

uint64_t rounded_bytes(const tn_gemm& gemm) {
  constexpr int64_t kMost = int64_t{1} << 20;  // of a side whose product with others is no overflow
  if (gemm.precision != TN_PRECISION_BF16 || gemm.dtype != TN_F32) return 0;
  const int64_t sizes[] = {gemm.batch.bound, gemm.m.bound, gemm.n.bound, gemm.k.bound};
  for (const int64_t size : sizes)
    if (size < 0 || size > kMost * kMost) return 0;
  const double most = 4.0 * static_cast<double>(std::max<int64_t>(gemm.batch.bound, 1)) *
                      static_cast<double>(std::max(gemm.m.bound, gemm.n.bound)) * static_cast<double>(gemm.k.bound);
  if (most > 1e15) return 0;
  if (takes_matrix_tiles(gemm)) return matrix_bytes(gemm.m.bound, gemm.n.bound, gemm.k.bound);
  const Parts parts = parts_of(gemm.batch.bound, gemm.m.bound, gemm.n.bound, gemm.k.bound);
  // A product with fewer matrices than the bound may be one whose B is packed.
  const int64_t panels = std::max(parts.panels, whole_panels(gemm.n.bound) * pairs_of(gemm.k.bound));
  return static_cast<uint64_t>(kPair * (parts.a + parts.b + panels));
}

void round_factors(const tn_execution& execution, uint8_t* workspace, Product* product) {
  Product& p = *product;
  if (rounded_bytes(*p.gemm) == 0 || p.batch == 0 || p.m == 0 || p.n <= 1 || p.k == 0) return;
  const bool ta = (p.gemm->flags & TN_TRANSPOSE_A) != 0, tb = (p.gemm->flags & TN_TRANSPOSE_B) != 0;
  if (ta && p.m == 1) return;
  if (takes_matrix_tiles(*p.gemm))
    return round_for_matrix_tiles(*execution.parallel, reinterpret_cast<uint32_t*>(workspace), product);
  const Parts parts = parts_of(p.batch, p.m, p.n, p.k);
  auto* const a = reinterpret_cast<uint32_t*>(workspace);
  uint32_t* const b = a + parts.a;
  const auto* const from_a = reinterpret_cast<const float*>(p.a);
  const auto* const from_b = reinterpret_cast<const float*>(p.b);
  const tn_parallel& parallel = *execution.parallel;
  round_all(parallel,
            ta ? Factor{from_a, a, p.batch, p.k, p.m, true, 0} : Factor{from_a, a, p.batch, p.m, p.k, false, 0});
  round_all(parallel,
            tb ? Factor{from_b, b, p.batch, p.n, p.k, false, 0} : Factor{from_b, b, p.batch, p.k, p.n, true, 0});
  p.k = pairs_of(p.k);
  p.a = reinterpret_cast<const uint8_t*>(a);
  p.b = reinterpret_cast<const uint8_t*>(b);
  p.factors = Factors::kPairs;
  if (parts.panels > 0)
    pack(execution, &p, b + parts.b);
  else
    use(Kernels::kOwn, &p);
}

}  // namespace tenon::cpu
