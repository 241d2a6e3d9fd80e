// "tenon.argsort/1": the positions of the elements of rows in sorted order. Each row is sorted on its own, in the
// memory of its positions; a task is a range of rows.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <new>
#include <numeric>

#include "primitives.h"

namespace tenon::cpu {

namespace {

// One run, shared by its tasks.
struct Run {
  const tn_argsort* site;
  int64_t rows, columns, count;
  const uint8_t* from;  // [rows, columns]
  int64_t* to;          // [rows, count]
  int64_t rows_per_task;
};

constexpr int64_t kElementsPerTask = 4096;

// Whether element a of a row comes before element b: a total order of the positions, with NaN last.
template <class T, bool kDescending>
struct Before {
  const T* value;

  bool operator()(int64_t a, int64_t b) const {
    const T x = value[a], y = value[b];
    if (kDescending ? x > y : x < y) return true;
    if (kDescending ? y > x : y < x) return false;
    if (x == y) return a < b;
    const bool no_x = std::isnan(x), no_y = std::isnan(y);
    return no_x == no_y ? a < b : no_y;
  }
};

// to [count]: the first positions of one row of `columns` elements. While it runs, `to` is a heap whose top comes last.
template <class Order>
void sort_row(const Order& before, int64_t columns, int64_t* to, int64_t count) {
  std::iota(to, to + count, int64_t{0});
  if (count == columns) return std::sort(to, to + count, before);
  if (count == 1) {
    for (int64_t i = 1; i < columns; ++i)
      if (before(i, to[0])) to[0] = i;
    return;
  }
  std::make_heap(to, to + count, before);
  for (int64_t i = count; i < columns; ++i) {
    if (!before(i, to[0])) continue;
    std::pop_heap(to, to + count, before);
    to[count - 1] = i;
    std::push_heap(to, to + count, before);
  }
  std::sort_heap(to, to + count, before);
}

template <class T>
void sort_rows(const Run& run, int64_t first, int64_t last) {
  for (int64_t row = first; row < last; ++row) {
    const T* from = reinterpret_cast<const T*>(run.from) + row * run.columns;
    int64_t* to = run.to + row * run.count;
    if ((run.site->flags & TN_SORT_DESCENDING) != 0)
      sort_row(Before<T, true>{from}, run.columns, to, run.count);
    else
      sort_row(Before<T, false>{from}, run.columns, to, run.count);
  }
}

void run_task(void* argument, int64_t index, int32_t) {
  const Run& run = *static_cast<const Run*>(argument);
  const int64_t first = index * run.rows_per_task;
  const int64_t last = std::min(first + run.rows_per_task, run.rows);
  if (run.site->dtype == TN_F64)
    sort_rows<double>(run, first, last);
  else
    sort_rows<float>(run, first, last);
}

tn_status run(void* binding, const tn_execution* execution, const tn_call* call) {
  const auto& site = *static_cast<const tn_argsort*>(binding);
  const tn_errors* errors = execution->errors;
  if (call->inputs_count != 1 || call->outputs_count != 1 || call->inputs[0] == nullptr)
    return tn_fail(errors, TN_MISUSE, nullptr, "an argsort call needs its values and one output");
  if (call->requests[0] == TN_REQUEST_NONE) return TN_OK;
  if (call->outputs[0] == nullptr) return tn_fail(errors, TN_MISUSE, "outputs", "an argsort call without its output");
  if (call->requests[0] != TN_REQUEST_WRITE) return tn_fail(errors, TN_UNSUPPORTED, "requests", "positions do not add");
  Run run = {&site,
             tn_dim_value(&site.rows, execution->symbols),
             tn_dim_value(&site.columns, execution->symbols),
             tn_dim_value(&site.count, execution->symbols),
             tn_data(call->inputs[0]),
             reinterpret_cast<int64_t*>(tn_data(call->outputs[0])),
             1};
  if (run.rows < 0 || run.count < 0 || run.count > run.columns)
    return tn_fail(errors, TN_MISUSE, nullptr, "an argsort call of negative size, or of more positions than elements");
  if (run.rows == 0 || run.count == 0) return TN_OK;
  run.rows_per_task = std::max<int64_t>(kElementsPerTask / run.columns, 1);
  const int64_t tasks = (run.rows + run.rows_per_task - 1) / run.rows_per_task;
  execution->parallel->for_each(execution->parallel->self, tasks, &run_task, &run);
  return TN_OK;
}

void destroy(void* binding) { delete static_cast<tn_argsort*>(binding); }

tn_status prepare(void*, const tn_services* services, const tn_errors* errors, const tn_argsort* argsort,
                  tn_prepared* prepared) {
  if (argsort->dtype != TN_F32 && argsort->dtype != TN_F64)
    return tn_fail(errors, TN_UNSUPPORTED, "dtype", "the cpu sorts float32 and float64 only");
  if ((argsort->flags & ~uint32_t{TN_SORT_DESCENDING}) != 0)
    return tn_fail(errors, TN_UNSUPPORTED, "flags", "the cpu does not know this order");
  auto* binding = new (std::nothrow) tn_argsort(*argsort);
  if (binding == nullptr) return tn_fail(errors, TN_OUT_OF_MEMORY, nullptr, "no memory for an argsort binding");
  prepared->binding = binding;
  prepared->traits = call_traits(services);
  prepared->run = &run;
  prepared->destroy = &destroy;
  return TN_OK;
}

}  // namespace

const char argsort_id[] = TN_ARGSORT;
const tn_argsort_table argsort_table = {sizeof(tn_argsort_table), 0, &prepare};

}  // namespace tenon::cpu
