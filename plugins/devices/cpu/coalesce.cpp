// "tenon.row_sparse/1", coalesce: sums contributions to rows of a table into one TN_ROW_SPARSE tensor. The calling
// thread numbers the distinct ids through a hash table, in order of first occurrence. The sums, nearly all of the work,
// are divided among tasks by rows; each row is summed in the order of its contributions.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

#include "row_ids.h"
#include "rows_update.h"

namespace tenon::cpu {

namespace {

// A prepared call. `parts` replaces site.parts, which is borrowed until prepare returns.
struct Coalesce {
  tn_coalesce site;
  std::vector<tn_coalesce_part> parts;
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
  uint32_t* starts = nullptr;         // [rows + 1] sources[starts[u]] to sources[starts[u + 1] - 1] belong to row u
  int64_t* targets = nullptr;         // [rows] row of `to` for row u; ~target if the output held that row before
  const uint8_t** list = nullptr;     // [count] values of contribution n, [width] each
  const uint8_t** sources = nullptr;  // [count] the pointers of `list`, sorted by row
  uint8_t* to = nullptr;              // [capacity, width] values of the output
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
uint64_t lay_out(uint8_t* memory, int64_t count, Run* run) {
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

// Appends the contributions of one part. inputs: values, ids [count], offsets int64 [segments + 1] or null. Without
// offsets the values are [count, width] and row i belongs to ids[i]. With offsets they are [segments, width], and row s
// belongs to ids[i] for i in [offsets[s], offsets[s + 1]).
tn_status add_part(Run& run, const tn_execution& execution, const tn_coalesce_part& part,
                   const tn_tensor* const* inputs) {
  if (inputs[0] == nullptr || inputs[1] == nullptr || (inputs[2] != nullptr) != (part.has_offsets != 0))
    return tn_fail(execution.errors, TN_MISUSE, nullptr, "a coalesce call without its values, ids or offsets");
  const uint8_t* values = tn_data(inputs[0]);
  const int64_t count = tn_dim_value(&part.count, execution.symbols);
  const RowIds ids = {tn_data(inputs[1]), part.ids, count, run.height};
  const auto* offsets = inputs[2] == nullptr ? nullptr : reinterpret_cast<const int64_t*>(tn_data(inputs[2]));
  if (offsets != nullptr && offsets[tn_dim_value(&part.segments, execution.symbols)] != count)
    return tn_fail(execution.errors, TN_MISUSE, "offsets",
                   "the segments of a coalesce call have another number of ids than the call");
  int64_t segment = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t id = ids[i];
    if (!ids.has(id)) return report_wrong_id(execution.errors, ids, i);
    while (offsets != nullptr && i >= offsets[segment + 1]) ++segment;
    add_contribution(run, id, values + (offsets == nullptr ? i : segment) * run.row_bytes());
  }
  return TN_OK;
}

// Sorts the contributions by row, in their order within a row, into `sources` and `starts` (a counting sort).
void sort_by_row(Run& run) {
  std::fill_n(run.starts, run.rows + 1, 0U);
  for (int64_t n = 0; n < run.count; ++n) ++run.starts[run.row_of[n] + 1];
  for (int64_t u = 0; u < run.rows; ++u) run.starts[u + 1] += run.starts[u];
  for (int64_t n = 0; n < run.count; ++n) run.sources[run.starts[run.row_of[n]]++] = run.list[n];
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

// to[target, :] = sum of the contributions [width] of row u, in their order. A row that the output held before is added
// to.
template <class T>
void sum_row(const Run& run, int64_t u) {
  const int64_t target = run.targets[u];
  T* to = reinterpret_cast<T*>(run.to) + (target < 0 ? ~target : target) * run.width;
  uint32_t n = run.starts[u];
  if (target >= 0) std::memcpy(to, run.sources[n++], static_cast<size_t>(run.row_bytes()));
  for (; n < run.starts[u + 1]; ++n) {
    const T* from = reinterpret_cast<const T*>(run.sources[n]);
    for (int64_t i = 0; i < run.width; ++i) to[i] += from[i];
  }
}

// Task `index`: sums a range of rows with about count / tasks contributions.
void sum_task(void* argument, int64_t index, int32_t) {
  const Run& run = *static_cast<const Run*>(argument);
  const auto cut = [&](int64_t task) {
    const auto share = static_cast<uint32_t>(run.count / run.tasks * task + std::min(run.count % run.tasks, task));
    return std::lower_bound(run.starts, run.starts + run.rows, share) - run.starts;
  };
  const int64_t last = index + 1 == run.tasks ? run.rows : cut(index + 1);
  for (int64_t u = index == 0 ? 0 : cut(index); u < last; ++u)
    run.wide ? sum_row<double>(run, u) : sum_row<float>(run, u);
}

// inputs, for each part: values, ids, offsets or null (add_part); output: a TN_ROW_SPARSE tensor with count, ids
// [capacity] and values [capacity, width]. WRITE replaces its rows, ADD adds to them and appends new ones.
tn_status run(void* binding, const tn_execution* execution, const tn_call* call) {
  const auto& site = *static_cast<const Coalesce*>(binding);
  const tn_errors* errors = execution->errors;
  if (call->inputs_count != 3 * site.parts.size() || call->outputs_count != 1)
    return tn_fail(errors, TN_MISUSE, nullptr, "a coalesce call with another number of operands");
  if (call->requests[0] == TN_REQUEST_NONE) return TN_OK;
  if (call->outputs[0] == nullptr || call->outputs[0]->storage != TN_ROW_SPARSE || call->outputs[0]->part == nullptr)
    return tn_fail(errors, TN_MISUSE, "outputs", "a coalesce call without its rows");
  Run run = {tn_dim_value(&site.site.width, execution->symbols), tn_dim_value(&site.site.height, execution->symbols),
             site.site.dtype == TN_F64};
  int64_t count = 0;
  bool negative = run.width < 0;
  for (const tn_coalesce_part& part : site.parts) {
    const int64_t of_part = tn_dim_value(&part.count, execution->symbols);
    negative = negative || of_part < 0;
    count += of_part;
  }
  if (negative || count > site.most)
    return tn_fail(errors, TN_MISUSE, nullptr, "a coalesce call of another size than it was prepared for");
  lay_out(static_cast<uint8_t*>(call->workspace), site.most, &run);
  run.mask = table_entries(count) - 1;
  std::memset(run.table, 0, (run.mask + 1) * sizeof(uint32_t));
  for (size_t i = 0; i < site.parts.size(); ++i)
    if (const tn_status status = add_part(run, *execution, site.parts[i], call->inputs + 3 * i); status != TN_OK)
      return status;
  sort_by_row(run);
  // The output's count and ids are written here; tn_row_sparse has them const for its readers.
  const auto& rows = *static_cast<const tn_row_sparse*>(call->outputs[0]->part);
  auto* const rows_count = const_cast<int64_t*>(rows.count);
  const int64_t before = call->requests[0] == TN_REQUEST_ADD ? *rows_count : 0;
  const int64_t after = place_rows(run, before, const_cast<int64_t*>(rows.ids), rows.capacity);
  if (after < 0) return tn_fail(errors, TN_MISUSE, "outputs", "the rows do not fit");
  run.to = tn_data(call->outputs[0]);
  run.tasks = std::clamp<int64_t>(run.count * run.row_bytes() / kBytesPerTask, 1, kTasks);
  if (run.width > 0) execution->parallel->for_each(execution->parallel->self, run.tasks, &sum_task, &run);
  *rows_count = after;
  return TN_OK;
}

void destroy(void* binding) { delete static_cast<Coalesce*>(binding); }

}  // namespace

tn_status prepare_coalesce(void*, const tn_services*, const tn_errors* errors, const tn_coalesce* coalesce,
                           tn_prepared* prepared) try {
  if (coalesce->dtype != TN_F32 && coalesce->dtype != TN_F64)
    return tn_fail(errors, TN_UNSUPPORTED, "dtype", "the cpu adds rows of float32 and float64 only");
  auto binding = std::make_unique<Coalesce>();
  binding->site = *coalesce;
  for (uint32_t i = 0; i < coalesce->parts_count; ++i) {
    const tn_coalesce_part& part = *coalesce->parts[i];
    if (part.ids != TN_I32 && part.ids != TN_I64)
      return tn_fail(errors, TN_UNSUPPORTED, "ids", "ids must be int32 or int64");
    if (part.count.bound < 0 || __builtin_add_overflow(binding->most, part.count.bound, &binding->most))
      return tn_fail(errors, TN_INVALID, "ids", "the number of ids has no bound");
    binding->parts.push_back(part);
  }
  if (binding->most > INT32_MAX) return tn_fail(errors, TN_UNSUPPORTED, "ids", "more than 2^31 ids in one minibatch");
  Run run = {};
  prepared->workspace_bytes = lay_out(nullptr, binding->most, &run);
  prepared->run = &tenon::cpu::run;
  prepared->destroy = &destroy;
  prepared->binding = binding.release();
  return TN_OK;
} catch (const std::bad_alloc&) {
  return tn_fail(errors, TN_OUT_OF_MEMORY, nullptr, "no memory for a coalesce binding");
}

}  // namespace tenon::cpu
