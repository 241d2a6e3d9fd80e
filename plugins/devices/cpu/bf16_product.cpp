// SPDX-License-Identifier: Apache-2.0
#include "bf16_product.h"

#include <algorithm>

#include "bf16_pairs.h"
#include "gemm_tile.h"

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

int64_t whole_panels(int64_t columns) {
  const int64_t panel = panel_columns(detect_isa(), false);
  return (columns + panel - 1) / panel * panel;
}

// The parts of the workspace, in pairs: A, B, and B in panels.
struct Parts {
  int64_t a, b, panels;
};
Parts parts_of(int64_t batch, int64_t m, int64_t n, int64_t k) {
  return {batch * m * pairs_of(k), batch * n * pairs_of(k), batch == 1 ? whole_panels(n) * pairs_of(k) : 0};
}

}  // namespace

uint64_t rounded_bytes(const tn_gemm& gemm) {
  constexpr int64_t kMost = int64_t{1} << 20;  // of a side whose product with others is no overflow
  if (gemm.precision != TN_PRECISION_BF16 || gemm.dtype != TN_F32) return 0;
  const int64_t sizes[] = {gemm.batch.bound, gemm.m.bound, gemm.n.bound, gemm.k.bound};
  for (const int64_t size : sizes)
    if (size < 0 || size > kMost * kMost) return 0;
  const double most = 4.0 * static_cast<double>(std::max<int64_t>(gemm.batch.bound, 1)) *
                      static_cast<double>(std::max(gemm.m.bound, gemm.n.bound)) * static_cast<double>(gemm.k.bound);
  if (most > 1e15) return 0;
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
  p.pairs = true;
  if (parts.panels > 0)
    pack(execution, &p, b + parts.b);
  else
    use(Kernels::kOwn, &p);
}

}  // namespace tenon::cpu
