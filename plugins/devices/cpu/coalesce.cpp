// Coalesce of "tenon.row_sparse/1" and "tenon.coalesce_products/1": sums contributions to rows of a table into one
// TN_ROW_SPARSE tensor. Contributions are pointers to rows, and what these are multiplied by. The calling thread
// numbers the distinct ids through a hash table, in order of first occurrence. The sums, nearly all of the work, are
// divided among tasks by rows; each row is summed in the order of its contributions.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "call_traits.h"
#include "prefetch.h"
#include "row_ids.h"
#include "row_sums.h"
#include "rows_update.h"

namespace tenon::cpu {

namespace {

struct Part {
  tn_product_part site;
  tn_gathered values = {};  // size 0: the values are no table
};

// A prepared call.
struct Coalesce {
  tn_dtype dtype;
  tn_dim height, width;
  bool products;  // of "tenon.coalesce_products/1", whose parts have five inputs instead of three
  std::vector<Part> parts = {};
  int64_t most = 0;  // contributions of all parts at their bounds
};

// One run. Contribution n in [0, count) is one id with one row of values, counted over all parts. Row u in [0, rows) is
// the u-th distinct id, in order of first occurrence.
struct Run {
  int64_t width, height;
  bool wide;  // float64
  int64_t count = 0, rows = 0;
  uint64_t mask = 0;
  uint32_t* table = nullptr;          // [mask + 1] hash table of the ids: 1 + u; 0 if free
  int64_t* ids = nullptr;             // [rows] id of row u
  uint32_t* row_of = nullptr;         // [count] row u of contribution n
  uint32_t* starts = nullptr;         // [rows + 1] of RowSums
  int64_t* targets = nullptr;         // [rows] of RowSums; negative if the output held that row before
  const uint8_t** list = nullptr;     // [count] values of contribution n, [width] each
  const uint8_t** sources = nullptr;  // [count] the pointers of `list`, sorted by row
  RowFactor* factors = nullptr;       // [count] of contribution n; products only
  RowFactor* sorted = nullptr;        // [count] the same, sorted by row
  RowSums sums = {};
  RowSumKernel kernel = nullptr;
  int64_t tasks = 1;

  [[nodiscard]] int64_t row_bytes() const { return width * (wide ? 8 : 4); }
};

constexpr int64_t kTasks = 16;            // at most
constexpr int64_t kBytesPerTask = 32768;  // of contributions
constexpr uint32_t kLine = 64;            // bytes of a cache line

// Rounds up to whole cache lines.
uint64_t lines(uint64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

// Entries of the hash table for `count` ids: a power of two, at most half of them used.
uint64_t table_entries(int64_t count) {
  uint64_t entries = 16;
  while (entries < 2 * static_cast<uint64_t>(count)) entries *= 2;
  return entries;
}

// Points the arrays of *run into the workspace `memory` and returns the bytes that `count` contributions need. memory
// null: only returns the bytes.
uint64_t lay_out(uint8_t* memory, int64_t count, bool products, Run* run) {
  const auto n = static_cast<uint64_t>(count);
  uint64_t used = 0;
  const auto take = [&](auto*& pointer, uint64_t entries) {
    using Entry = std::remove_reference_t<decltype(*pointer)>;
    if (memory != nullptr) pointer = reinterpret_cast<Entry*>(memory + used);
    used += lines(entries * sizeof(Entry));
  };
  take(run->table, table_entries(count));
  take(run->ids, n);
  take(run->row_of, n);
  take(run->starts, n + 1);
  take(run->targets, n);
  take(run->list, n);
  take(run->sources, n);
  if (products) {
    take(run->factors, n);
    take(run->sorted, n);
  }
  return used;
}

// Multiplicative hashing with 2^64 / golden ratio. The lowest 20 bits of the product, which depend on few bits of the
// id, are dropped.
uint64_t hash(int64_t id) { return (static_cast<uint64_t>(id) * 0x9E3779B97F4A7C15U) >> 20U; }

// Returns the place of `id` in the hash table, or the free place where it belongs (linear probing).
uint64_t find(const Run& run, int64_t id) {
  uint64_t place = hash(id) & run.mask;
  while (run.table[place] != 0 && run.ids[run.table[place] - 1] != id) place = (place + 1) & run.mask;
  return place;
}

// Appends the contribution values [width] to row `id` of the table.
void add_contribution(Run& run, int64_t id, const uint8_t* values) {
  const uint64_t place = find(run, id);
  if (run.table[place] == 0) {
    run.ids[run.rows++] = id;
    run.table[place] = static_cast<uint32_t>(run.rows);
  }
  run.row_of[run.count] = run.table[place] - 1;
  run.list[run.count++] = values;
}

// Returns number i of the weights of a part.
double weight(const void* weights, bool wide, int64_t i) {
  return wide ? static_cast<const double*>(weights)[i] : static_cast<double>(static_cast<const float*>(weights)[i]);
}

// Appends the contributions of one part. inputs as of "tenon.coalesce_products/1", those of a coalesce are the first
// three.
tn_status add_part(Run& run, const tn_execution& execution, const Part& part, const tn_tensor* const* inputs,
                   bool products) {
  const tn_product_part& site = part.site;
  const tn_tensor* const weighting = products ? inputs[3] : nullptr;
  const tn_tensor* const from = products ? inputs[4] : nullptr;
  if (inputs[0] == nullptr || inputs[1] == nullptr || (inputs[2] != nullptr) != (site.has_offsets != 0) ||
      (weighting != nullptr) != (site.has_weights != 0) || (from != nullptr) != (part.values.size != 0))
    return tn_fail(execution.errors, TN_MISUSE, nullptr, "a coalesce call without its values, ids or offsets");
  const uint8_t* const values = tn_data(inputs[0]);
  const int64_t count = tn_dim_value(&site.count, execution.symbols);
  const int64_t segments = tn_dim_value(&site.segments, execution.symbols);
  const RowIds ids = {tn_data(inputs[1]), site.ids, count, run.height};
  RowIds rows;
  if (from != nullptr)
    rows = {tn_data(from), part.values.ids, segments, tn_dim_value(&part.values.height, execution.symbols)};
  const auto* const offsets = inputs[2] == nullptr ? nullptr : reinterpret_cast<const int64_t*>(tn_data(inputs[2]));
  const void* const weights = weighting == nullptr ? nullptr : tn_data(weighting);
  const int64_t each = segments > 0 ? count / segments : 0;  // ids of a segment without offsets
  if ((offsets == nullptr ? each * segments : offsets[segments]) != count)
    return tn_fail(execution.errors, TN_MISUSE, "offsets",
                   "the segments of a coalesce call have another number of ids than the call");
  for (int64_t s = 0, i = 0; s < segments; ++s) {
    const int64_t end = offsets == nullptr ? i + each : offsets[s + 1];
    if (end < i || end > count || (offsets != nullptr && offsets[s] != i))
      return tn_fail(execution.errors, TN_MISUSE, "offsets",
                     "the offsets of a coalesce call do not rise from 0 to the number of its ids");
    if (from != nullptr && !rows.has(rows[s])) return report_wrong_id(execution.errors, rows, s);
    const uint8_t* const row = values + (from == nullptr ? s : rows[s]) * run.row_bytes();
    for (; i < end; ++i) {
      if (!ids.has(ids[i])) return report_wrong_id(execution.errors, ids, i);
      if (i + kAhead < count) __builtin_prefetch(run.table + (hash(ids[i + kAhead]) & run.mask));
      add_contribution(run, ids[i], row);
    }
  }
  if (!products) return TN_OK;
  RowFactor* const factors = run.factors + run.count - count;
  for (int64_t i = 0; i < count; ++i)
    factors[i] = weights == nullptr ? RowFactor{1, 1} : RowFactor{weight(weights, run.wide, i), site.alpha};
  return TN_OK;
}

// Sorts the contributions by row, in their order within a row, into `sources`, `sorted` and `starts` (a counting
// sort).
void sort_by_row(Run& run) {
  std::fill_n(run.starts, run.rows + 1, 0U);
  for (int64_t n = 0; n < run.count; ++n) ++run.starts[run.row_of[n] + 1];
  for (int64_t u = 0; u < run.rows; ++u) run.starts[u + 1] += run.starts[u];
  for (int64_t n = 0; n < run.count; ++n) {
    const uint32_t place = run.starts[run.row_of[n]]++;
    run.sources[place] = run.list[n];
    if (run.factors != nullptr) run.sorted[place] = run.factors[n];
  }
  // The loop moved starts[u] to the end of row u, which is the start of row u + 1.
  for (int64_t u = run.rows; u > 0; --u) run.starts[u] = run.starts[u - 1];
  run.starts[0] = 0;
}

// Sets `targets`. Rows whose id is among the output's ids [0, before) keep their place; the others are appended to ids
// [capacity]. Returns the number of rows in the output then, or -1 if they do not fit.
int64_t place_rows(Run& run, int64_t before, int64_t* ids, int64_t capacity) {
  constexpr int64_t kNew = INT64_MIN;
  std::fill_n(run.targets, run.rows, kNew);
  int64_t next = before;
  for (int64_t place = 0; place < before; ++place)
    if (const uint32_t row = run.table[find(run, ids[place])]; row != 0) run.targets[row - 1] = ~place;
  for (int64_t u = 0; u < run.rows; ++u) {
    if (run.targets[u] != kNew) continue;
    if (next == capacity) return -1;
    ids[next] = run.ids[u];
    run.targets[u] = next++;
  }
  return next;
}

// Task `index`: sums a range of rows with about count / tasks contributions.
void sum_task(void* argument, int64_t index, int32_t) {
  const Run& run = *static_cast<const Run*>(argument);
  const auto cut = [&](int64_t task) {
    const auto share = static_cast<uint32_t>(run.count / run.tasks * task + std::min(run.count % run.tasks, task));
    return std::lower_bound(run.starts, run.starts + run.rows, share) - run.starts;
  };
  const int64_t last = index + 1 == run.tasks ? run.rows : cut(index + 1);
  run.kernel(run.sums, index == 0 ? 0 : cut(index), last);
}

// inputs, for each part: those of add_part; output: a TN_ROW_SPARSE tensor with count, ids
// [capacity] and values [capacity, width]. WRITE replaces its rows, ADD adds to them and appends new ones.
tn_status run(void* binding, const tn_execution* execution, const tn_call* call) {
  const auto& site = *static_cast<const Coalesce*>(binding);
  const tn_errors* errors = execution->errors;
  const size_t stride = site.products ? 5 : 3;  // inputs of a part
  if (call->inputs_count != stride * site.parts.size() || call->outputs_count != 1)
    return tn_fail(errors, TN_MISUSE, nullptr, "a coalesce call with another number of operands");
  if (call->requests[0] == TN_REQUEST_NONE) return TN_OK;
  if (call->outputs[0] == nullptr || call->outputs[0]->storage != TN_ROW_SPARSE || call->outputs[0]->part == nullptr)
    return tn_fail(errors, TN_MISUSE, "outputs", "a coalesce call without its rows");
  Run run = {tn_dim_value(&site.width, execution->symbols), tn_dim_value(&site.height, execution->symbols),
             site.dtype == TN_F64};
  int64_t count = 0;
  bool negative = run.width < 0;
  for (const Part& part : site.parts) {
    const int64_t of_part = tn_dim_value(&part.site.count, execution->symbols);
    negative = negative || of_part < 0;
    count += of_part;
  }
  if (negative || count > site.most)
    return tn_fail(errors, TN_MISUSE, nullptr, "a coalesce call of another size than it was prepared for");
  lay_out(static_cast<uint8_t*>(call->workspace), site.most, site.products, &run);
  run.mask = table_entries(count) - 1;
  std::memset(run.table, 0, (run.mask + 1) * sizeof(uint32_t));
  for (size_t i = 0; i < site.parts.size(); ++i)
    if (const tn_status status = add_part(run, *execution, site.parts[i], call->inputs + stride * i, site.products);
        status != TN_OK)
      return status;
  sort_by_row(run);
  // The output's count and ids are written here; tn_row_sparse has them const for its readers.
  const auto& rows = *static_cast<const tn_row_sparse*>(call->outputs[0]->part);
  auto* const rows_count = const_cast<int64_t*>(rows.count);
  const int64_t before = call->requests[0] == TN_REQUEST_ADD ? *rows_count : 0;
  const int64_t after = place_rows(run, before, const_cast<int64_t*>(rows.ids), rows.capacity);
  if (after < 0) return tn_fail(errors, TN_MISUSE, "outputs", "the rows do not fit");
  run.sums = {run.width, run.count, run.starts, run.targets, run.sources, run.sorted, tn_data(call->outputs[0])};
  run.kernel = row_sum_kernel(detect_isa(), run.wide, site.products);
  run.tasks = std::clamp<int64_t>(run.count * run.row_bytes() / kBytesPerTask, 1, kTasks);
  if (run.width > 0) execution->parallel->for_each(execution->parallel->self, run.tasks, &sum_task, &run);
  *rows_count = after;
  return TN_OK;
}

void destroy(void* binding) { delete static_cast<Coalesce*>(binding); }

// Adds a part to a binding.
tn_status add(const tn_errors* errors, const tn_product_part& part, Coalesce& to) {
  if (part.ids != TN_I32 && part.ids != TN_I64)
    return tn_fail(errors, TN_UNSUPPORTED, "ids", "ids must be int32 or int64");
  if (part.values != nullptr && part.values->ids != TN_I32 && part.values->ids != TN_I64)
    return tn_fail(errors, TN_UNSUPPORTED, "ids", "ids must be int32 or int64");
  if (part.count.bound < 0 || __builtin_add_overflow(to.most, part.count.bound, &to.most))
    return tn_fail(errors, TN_INVALID, "ids", "the number of ids has no bound");
  to.parts.push_back({part, part.values == nullptr ? tn_gathered{} : *part.values});
  return TN_OK;
}

tn_status finish(const tn_services* services, const tn_errors* errors, std::unique_ptr<Coalesce> binding,
                 tn_prepared* prepared) {
  if (binding->dtype != TN_F32 && binding->dtype != TN_F64)
    return tn_fail(errors, TN_UNSUPPORTED, "dtype", "the cpu adds rows of float32 and float64 only");
  if (binding->most > INT32_MAX) return tn_fail(errors, TN_UNSUPPORTED, "ids", "more than 2^31 ids in one minibatch");
  Run run = {};
  prepared->workspace_bytes = lay_out(nullptr, binding->most, binding->products, &run);
  prepared->traits = portable_trait(services);
  prepared->run = &tenon::cpu::run;
  prepared->destroy = &destroy;
  prepared->binding = binding.release();
  return TN_OK;
}

tn_status no_memory(const tn_errors* errors) {
  return tn_fail(errors, TN_OUT_OF_MEMORY, nullptr, "no memory for a coalesce binding");
}

}  // namespace

tn_status prepare_coalesce(void*, const tn_services* services, const tn_errors* errors, const tn_coalesce* coalesce,
                           tn_prepared* prepared) try {
  auto binding = std::make_unique<Coalesce>(Coalesce{coalesce->dtype, coalesce->height, coalesce->width, false});
  for (uint32_t i = 0; i < coalesce->parts_count; ++i) {
    const tn_coalesce_part& part = *coalesce->parts[i];
    const tn_product_part plain = {
        sizeof plain,     part.ids, part.count, part.has_offsets != 0 ? part.segments : part.count,
        part.has_offsets, 0,        1,          nullptr};
    if (const tn_status status = add(errors, plain, *binding); status != TN_OK) return status;
  }
  return finish(services, errors, std::move(binding), prepared);
} catch (const std::bad_alloc&) {
  return no_memory(errors);
}

tn_status prepare_coalesce_products(void*, const tn_services* services, const tn_errors* errors,
                                    const tn_coalesce_products* coalesce, tn_prepared* prepared) try {
  auto binding = std::make_unique<Coalesce>(Coalesce{coalesce->dtype, coalesce->height, coalesce->width, true});
  for (uint32_t i = 0; i < coalesce->parts_count; ++i)
    if (const tn_status status = add(errors, *coalesce->parts[i], *binding); status != TN_OK) return status;
  return finish(services, errors, std::move(binding), prepared);
} catch (const std::bad_alloc&) {
  return no_memory(errors);
}

}  // namespace tenon::cpu
