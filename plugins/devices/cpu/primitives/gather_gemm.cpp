// "tenon.gather_gemm/1": products of small matrices whose rows lie in tables. A task multiplies one pair of matrices
// after the other. Scalar products of rows, and sums of rows times numbers, read the rows where they lie, as a matrix
// of one row is; for other products the rows are brought together in the first-level cache. The product is that of
// gemm.cpp for each pair, so its bits are those of a gather and a product. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "bf16_product.h"
#include "panel_memory.h"
#include "prefetch.h"
#include "primitives.h"
#include "primitives/gemm.h"
#include "row_ids.h"

namespace tenon::cpu {

namespace {

constexpr int64_t kMostRows = 256;     // of a matrix
constexpr int64_t kMostBytes = 16384;  // of a matrix whose rows are brought together: two fit into a first-level cache
constexpr int64_t kMostWork = int64_t{1} << 20;  // multiplications of a pair of matrices, which is not cut into tasks

// A matrix as it is stored.
struct Matrix {
  int64_t rows, columns;
  [[nodiscard]] int64_t bytes(tn_dtype dtype) const { return rows * columns * tn_dtype_bytes(dtype); }
};
// Of A, 0, and of B, 1; the sides of the product are constant.
Matrix matrix_of(const tn_gemm& gemm, size_t which) {
  const int64_t m = gemm.m.offset, n = gemm.n.offset, k = gemm.k.offset;
  if (which == 0) return (gemm.flags & TN_TRANSPOSE_A) != 0 ? Matrix{k, m} : Matrix{m, k};
  return (gemm.flags & TN_TRANSPOSE_B) != 0 ? Matrix{n, k} : Matrix{k, n};
}

// A factor of the product: the rows of its matrices, one matrix after the other.
struct Factor {
  const uint8_t* from;      // the matrices, or the table
  int64_t rows, row_bytes;  // of a matrix as it is stored
  RowIds ids;               // of a table; ids.ids is null if `from` are the matrices

  [[nodiscard]] const uint8_t* row(int64_t i) const { return from + ids[i] * row_bytes; }
  // Lists the rows of matrix number `index` of a table, and prefetches those that come next.
  void list(int64_t index, const void** to) const {
    for (int64_t r = 0, i = index * rows; r < rows; ++r, ++i) {
      if (i + kAhead < ids.count) prefetch(row(i + kAhead), row_bytes);
      to[r] = row(i);
    }
  }
};

// Where a task finds the matrices of a factor.
class Matrices {
 public:
  // may_list: the product can read a list of rows. stage: kMostBytes, where rows are brought together.
  Matrices(const Factor& factor, bool may_list, uint8_t* stage)
      : factor_(factor), listed_(may_list && factor.ids.ids != nullptr), stage_(stage) {}

  [[nodiscard]] bool listed() const { return listed_; }
  [[nodiscard]] const void* const* list() const { return rows_; }
  // Returns matrix number `index`, unless it is listed.
  const uint8_t* at(int64_t index) {
    if (factor_.ids.ids == nullptr) return factor_.from + index * factor_.rows * factor_.row_bytes;
    factor_.list(index, rows_);
    if (listed_) return nullptr;
    if (factor_.rows == 1) return static_cast<const uint8_t*>(rows_[0]);
    for (int64_t r = 0; r < factor_.rows; ++r)
      std::memcpy(stage_ + r * factor_.row_bytes, rows_[r], static_cast<size_t>(factor_.row_bytes));
    return stage_;
  }

 private:
  const Factor& factor_;
  const bool listed_;
  const void* rows_[kMostRows];
  uint8_t* const stage_;
};

// A prepared call. If `swapped`, B is the first factor of `gemm` and A the second.
struct GatherGemm {
  tn_gemm gemm;
  bool swapped;
  Matrix matrices[2];     // A and B
  tn_gathered tables[2];  // of A and of B; size 0: no table
};

// One run. A task is `share` pairs of matrices.
struct Run {
  const Product* product;
  Factor a, b;
  int64_t share;
};

void multiply_pairs(void* argument, int64_t index, int32_t) {
  const Run& run = *static_cast<const Run*>(argument);
  Product pair = *run.product;
  pair.batch = 1;
  const bool ta = (pair.gemm->flags & TN_TRANSPOSE_A) != 0;
  const bool tb = (pair.gemm->flags & TN_TRANSPOSE_B) != 0;
  const PanelMemory memory;
  if (memory.data() == nullptr)
    return std::atomic_ref<bool>(run.product->starved).store(true, std::memory_order_relaxed);
  static_assert(2 * kMostBytes <= kPanelMemory);
  Matrices a(run.a, pair.n == 1 && !ta && run.a.rows == pair.m, memory.data());
  Matrices b(run.b, pair.m == 1 && pair.n > 1 && !tb, memory.data() + kMostBytes);
  pair.list = a.listed() ? a.list() : b.listed() ? b.list() : nullptr;
  const int64_t bytes = pair.m * pair.n * tn_dtype_bytes(pair.gemm->dtype);
  for (int64_t i = index * run.share; i < std::min((index + 1) * run.share, run.product->batch); ++i) {
    pair.a = a.at(i);
    pair.b = b.at(i);
    pair.c = run.product->c + i * bytes;
    multiply_rows(pair, 0, pair.m);
  }
  if (pair.starved) std::atomic_ref<bool>(run.product->starved).store(true, std::memory_order_relaxed);
}

// call inputs: A or its table, B or its table, their ids or null; output: C.
tn_status run(void* binding, const tn_execution* execution, const tn_call* given) {
  const auto& site = *static_cast<const GatherGemm*>(binding);
  const tn_errors* errors = execution->errors;
  const auto lacks = [&](size_t i) { return (given->inputs[2 + i] == nullptr) != (site.tables[i].size == 0); };
  if (given->inputs_count != 4 || given->outputs_count != 1 || lacks(0) || lacks(1))
    return tn_fail(errors, TN_MISUSE, nullptr, "a product of rows needs two factors, their ids and one output");
  if (given->requests[0] == TN_REQUEST_NONE) return TN_OK;
  const size_t a = site.swapped ? 1 : 0, b = 1 - a;
  const tn_tensor* const factors[] = {given->inputs[a], given->inputs[b]};
  tn_call call = *given;
  call.inputs = factors;
  Product product = {};
  if (const tn_status status = make_product(site.gemm, *execution, call, &product); status != TN_OK) return status;
  const auto factor = [&](size_t which) {
    const Matrix& matrix = site.matrices[which];
    const tn_gathered& table = site.tables[which];
    Factor made = {tn_data(given->inputs[which]), matrix.rows, matrix.columns * tn_dtype_bytes(site.gemm.dtype), {}};
    if (table.size != 0)
      made.ids = {tn_data(given->inputs[2 + which]), table.ids, product.batch * matrix.rows,
                  tn_dim_value(&table.height, execution->symbols)};
    return made;
  };
  Run run = {&product, factor(a), factor(b), 1};
  for (const Factor* each : {&run.a, &run.b})
    if (each->ids.ids != nullptr)
      if (const tn_status status = check_ids(*execution, each->ids); status != TN_OK) return status;
  run.share = std::max<int64_t>(1, kTaskWork / (product.m * product.n * product.k));
  execution->parallel->for_each(execution->parallel->self, (product.batch + run.share - 1) / run.share, &multiply_pairs,
                                &run);
  return check_done(errors, product);
}

void destroy(void* binding) { delete static_cast<GatherGemm*>(binding); }

// It pays for many small matrices of constant size: the rows of a single one are copied in less time than they are
// multiplied.
tn_status supports(void*, const tn_errors*, const tn_gather_gemm* both) {
  const tn_gemm& gemm = *both->gemm;
  constexpr int64_t kMostSide = int64_t{1} << 20;
  for (const tn_dim* side : {&gemm.m, &gemm.n, &gemm.k})
    if (side->symbol != TN_SYMBOL_NONE || side->offset < 1 || side->offset > kMostSide) return TN_UNSUPPORTED;
  const bool is_many = gemm.batch.symbol != TN_SYMBOL_NONE || gemm.batch.offset > 1;
  const bool is_small = gemm.m.offset * gemm.n.offset <= kMostWork / gemm.k.offset;
  const auto fits = [&](const tn_gathered* table, size_t which) {
    const Matrix matrix = matrix_of(gemm, which);
    return table == nullptr || (matrix.rows <= kMostRows && matrix.bytes(gemm.dtype) <= kMostBytes);
  };
  const bool pays = is_many && is_small && rounded_bytes(gemm) == 0 && fits(both->a, 0) && fits(both->b, 1);
  return pays ? TN_OK : TN_UNSUPPORTED;
}

tn_status prepare(void* device, const tn_services* services, const tn_errors* errors, const tn_gather_gemm* both,
                  tn_prepared* prepared) {
  if (const tn_status status = check_gemm(errors, *both->gemm); status != TN_OK) return status;
  for (const tn_gathered* table : {both->a, both->b})
    if (table != nullptr && table->ids != TN_I32 && table->ids != TN_I64)
      return tn_fail(errors, TN_UNSUPPORTED, "ids", "ids must be int32 or int64");
  if (supports(device, errors, both) != TN_OK)
    return tn_fail(errors, TN_UNSUPPORTED, nullptr, "the cpu reads rows of tables for products of small matrices only");
  auto* binding =
      new (std::nothrow) GatherGemm{*both->gemm, false, {matrix_of(*both->gemm, 0), matrix_of(*both->gemm, 1)}, {}};
  if (binding == nullptr) return tn_fail(errors, TN_OUT_OF_MEMORY, nullptr, "no memory for a product's binding");
  if (both->a != nullptr) binding->tables[0] = *both->a;
  if (both->b != nullptr) binding->tables[1] = *both->b;
  if (is_swapped(binding->gemm)) {
    swap_factors(&binding->gemm);
    binding->swapped = true;
  }
  prepared->traits = call_traits(services);
  prepared->binding = binding;
  prepared->workspace_bytes = 0;
  prepared->run = &run;
  prepared->destroy = &destroy;
  return TN_OK;
}

}  // namespace

const char gather_gemm_id[] = TN_GATHER_GEMM;
const tn_gather_gemm_table gather_gemm_table = {sizeof(tn_gather_gemm_table), 0, &supports, &prepare};

}  // namespace tenon::cpu
