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

void round_part(void* argument, int64_t index, int32_t) {
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
  parallel.for_each(parallel.self, factor.tasks(), &round_part, &factor);
}

int64_t panel() { return panel_columns(detect_isa(), false); }
int64_t whole_panels(int64_t columns) { return (columns + panel() - 1) / panel() * panel(); }

// Rounding of A for matrix instructions, to [m, matrix_row], and of B, to panels.
struct MatrixRows {
  MatrixPart part;
  uint32_t* to;
  int64_t share;  // rows of a task
};
struct MatrixPanels {
  MatrixPart part;
  uint32_t* to;
  int64_t block;         // pairs of a block of a sum
  int64_t share, tasks;  // panels of a task, and tasks of a block
};

const float* element(const MatrixPart& part, int64_t row, int64_t column) {
  return part.from + (part.turned ? column * part.row + row : row * part.row + column);
}

void round_matrix_rows_part(void* argument, int64_t index, int32_t) {
  const MatrixRows& all = *static_cast<const MatrixRows*>(argument);
  const int64_t first = index * all.share, step = matrix_row(pairs_of(all.part.columns));
  MatrixPart part = all.part;
  part.from = element(part, first, 0);
  part.rows = std::min(all.share, part.rows - first);
  round_matrix_rows(part, all.to + first * step, step);
}

void round_matrix_panels_part(void* argument, int64_t index, int32_t) {
  const MatrixPanels& all = *static_cast<const MatrixPanels*>(argument);
  const int64_t l = index / all.tasks * all.block, column = index % all.tasks * all.share * panel();
  MatrixPart part = all.part;
  part.from = element(part, 2 * l, column);
  part.rows = std::min(2 * all.block, part.rows - 2 * l);
  part.columns = std::min(all.share * panel(), part.columns - column);
  const int64_t depth = pairs_of(part.rows);
  round_matrix_panels(part, all.to + l * whole_panels(all.part.columns) + column * depth, depth * panel());
}

bool is_turned(const tn_gemm& gemm, uint32_t flag) { return (gemm.flags & flag) != 0; }

// Pairs of a rounded A, in all matrices.
int64_t pairs_of_rows(const tn_gemm& gemm, int64_t batch, int64_t m, int64_t k) {
  return batch * m * (takes_matrix_tiles(gemm) ? matrix_row(pairs_of(k)) : pairs_of(k));
}

}  // namespace

bool is_rounded(const tn_gemm& gemm) { return gemm.precision == TN_PRECISION_BF16 && gemm.dtype == TN_F32; }

// There is one matrix, whatever the number of samples: bits must not depend on it.
bool takes_matrix_tiles(const tn_gemm& gemm) {
  const bool one = gemm.batch.symbol == TN_SYMBOL_NONE && tn_dim_value(&gemm.batch, nullptr) == 1;
  return is_rounded(gemm) && one && has_matrix_tiles();
}

uint64_t rounded_panels_bytes(int64_t n, int64_t k) {
  return static_cast<uint64_t>(kPair * whole_panels(n) * pairs_of(k));
}

uint64_t rounding_bytes(const tn_gemm& gemm, int64_t n, int64_t k) {
  return takes_matrix_tiles(gemm) ? 0 : static_cast<uint64_t>(kPair * n * pairs_of(k));
}

uint64_t rounded_rows_bytes(const tn_gemm& gemm) {
  constexpr uint64_t kLine = 64;
  if (!is_rounded(gemm)) return 0;
  const int64_t pairs = pairs_of_rows(gemm, gemm.batch.bound, gemm.m.bound, gemm.k.bound);
  return (static_cast<uint64_t>(kPair * pairs) + kLine - 1) / kLine * kLine;
}

uint64_t rounded_bytes(const tn_gemm& gemm) {
  constexpr int64_t kMost = int64_t{1} << 20;  // of a side whose product with others is no overflow
  if (!is_rounded(gemm)) return 0;
  const int64_t sizes[] = {gemm.batch.bound, gemm.m.bound, gemm.n.bound, gemm.k.bound};
  for (const int64_t size : sizes)
    if (size < 0 || size > kMost * kMost) return 0;
  const double most = 4.0 * static_cast<double>(std::max<int64_t>(gemm.batch.bound, 1)) *
                      static_cast<double>(std::max(gemm.m.bound, gemm.n.bound)) * static_cast<double>(gemm.k.bound);
  if (most > 1e15) return 0;
  // A product with fewer matrices than the bound may be one whose B is packed.
  return rounded_rows_bytes(gemm) + rounded_panels_bytes(gemm.n.bound, gemm.k.bound) +
         static_cast<uint64_t>(std::max<int64_t>(gemm.batch.bound, 1)) *
             rounding_bytes(gemm, gemm.n.bound, gemm.k.bound);
}

void round_panels(const tn_execution& execution, const tn_gemm& gemm, int64_t n, int64_t k, const void* from,
                  uint8_t* workspace, void* to) {
  const tn_parallel& parallel = *execution.parallel;
  const bool tb = is_turned(gemm, TN_TRANSPOSE_B);
  const auto* const numbers = static_cast<const float*>(from);
  if (takes_matrix_tiles(gemm)) {
    MatrixPanels panels = {{numbers, tb ? k : n, k, n, tb}, static_cast<uint32_t*>(to), 0, 0, 0};
    panels.block = sum_block(pairs_of(k), kMatrixBlock, kMatrixStep);
    panels.share = std::max<int64_t>(1, kTaskNumbers / 2 / (panels.block * panel()));
    panels.tasks = (whole_panels(n) / panel() + panels.share - 1) / panels.share;
    const int64_t blocks = (pairs_of(k) + panels.block - 1) / panels.block;
    return parallel.for_each(parallel.self, blocks * panels.tasks, &round_matrix_panels_part, &panels);
  }
  auto* const pairs = reinterpret_cast<uint32_t*>(workspace);
  round_all(parallel, tb ? Factor{numbers, pairs, 1, n, k, false, 0} : Factor{numbers, pairs, 1, k, n, true, 0});
  pack_matrix(execution, gemm, n, pairs_of(k), number_block(gemm, pairs_of(k)), pairs, to);
}

void round_rows(const tn_execution& execution, uint8_t* workspace, Product* product) {
  constexpr int64_t kLine = 64;  // rows of a turned matrix that share cache lines
  Product& p = *product;
  const tn_parallel& parallel = *execution.parallel;
  const bool ta = is_turned(*p.gemm, TN_TRANSPOSE_A), is_matrix = takes_matrix_tiles(*p.gemm);
  const auto* const numbers = reinterpret_cast<const float*>(p.a);
  auto* const to = reinterpret_cast<uint32_t*>(workspace);
  if (is_matrix) {
    MatrixRows rows = {{numbers, ta ? p.m : p.k, p.m, p.k, ta}, to, 0};
    rows.share = (std::max<int64_t>(1, kTaskNumbers / p.k) + kLine - 1) / kLine * kLine;
    parallel.for_each(parallel.self, (p.m + rows.share - 1) / rows.share, &round_matrix_rows_part, &rows);
  } else {
    round_all(parallel,
              ta ? Factor{numbers, to, p.batch, p.k, p.m, true, 0} : Factor{numbers, to, p.batch, p.m, p.k, false, 0});
  }
  p.a = workspace;
  p.k = pairs_of(p.k);
  p.factors = is_matrix ? Factors::kMatrixPairs : Factors::kPairs;
}

void round_factors(const tn_execution& execution, uint8_t* workspace, Product* product) {
  Product& p = *product;
  if (rounded_bytes(*p.gemm) == 0 || p.batch == 0 || p.m == 0 || p.n <= 1 || p.k == 0) return;
  if (is_turned(*p.gemm, TN_TRANSPOSE_A) && p.m == 1) return;
  uint8_t* const b = workspace + rounded_rows_bytes(*p.gemm);
  const auto* const numbers = reinterpret_cast<const float*>(p.b);
  if (p.batch == 1) {
    round_panels(execution, *p.gemm, p.n, p.k, numbers, b + rounded_panels_bytes(p.n, p.k), b);
  } else {
    auto* const to = reinterpret_cast<uint32_t*>(b);
    round_all(*execution.parallel, is_turned(*p.gemm, TN_TRANSPOSE_B)
                                       ? Factor{numbers, to, p.batch, p.n, p.k, false, 0}
                                       : Factor{numbers, to, p.batch, p.k, p.n, true, 0});
  }
  round_rows(execution, workspace, product);
  p.b = b;
  if (p.batch == 1)
    read_packed(product);
  else
    cut(product);
}

}  // namespace tenon::cpu
