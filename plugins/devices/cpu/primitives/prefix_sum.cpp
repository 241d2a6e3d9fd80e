// "tenon.prefix_sum/1": the sums of the elements of rows up to each element. A task is a range of rows; float32 is
// added in float64, so that the errors of long rows do not grow.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <new>

#include "primitives.h"

namespace tenon::cpu {

namespace {

// One run, shared by its tasks. from and to are [rows, columns].
struct Run {
  const tn_prefix_sum* site;
  int64_t rows, columns;
  const uint8_t* from;
  uint8_t* to;
  bool add;  // the request is ADD
  int64_t rows_per_task;
};

constexpr int64_t kElementsPerTask = 16384;

template <class T>
void sum_rows(const Run& run, int64_t first, int64_t last) {
  const bool exclusive = (run.site->flags & TN_SUM_EXCLUSIVE) != 0;
  const bool reverse = (run.site->flags & TN_SUM_REVERSE) != 0;
  const int64_t step = reverse ? -1 : 1;
  for (int64_t row = first; row < last; ++row) {
    const int64_t begin = row * run.columns + (reverse ? run.columns - 1 : 0);
    const T* from = reinterpret_cast<const T*>(run.from) + begin;
    T* to = reinterpret_cast<T*>(run.to) + begin;
    double sum = 0;
    for (int64_t i = 0; i < run.columns; ++i) {
      const double before = sum;
      sum += static_cast<double>(from[i * step]);
      const T result = static_cast<T>(exclusive ? before : sum);
      to[i * step] = run.add ? to[i * step] + result : result;
    }
  }
}

void run_task(void* argument, int64_t index, int32_t) {
  const Run& run = *static_cast<const Run*>(argument);
  const int64_t first = index * run.rows_per_task;
  const int64_t last = std::min(first + run.rows_per_task, run.rows);
  if (run.site->dtype == TN_F64)
    sum_rows<double>(run, first, last);
  else
    sum_rows<float>(run, first, last);
}

tn_status run(void* binding, const tn_execution* execution, const tn_call* call) {
  const auto& site = *static_cast<const tn_prefix_sum*>(binding);
  const tn_errors* errors = execution->errors;
  if (call->inputs_count != 1 || call->outputs_count != 1 || call->inputs[0] == nullptr)
    return tn_fail(errors, TN_MISUSE, nullptr, "a prefix_sum call needs its values and one output");
  if (call->requests[0] == TN_REQUEST_NONE) return TN_OK;
  if (call->outputs[0] == nullptr) return tn_fail(errors, TN_MISUSE, "outputs", "a prefix_sum call without its output");
  Run run = {&site,
             tn_dim_value(&site.rows, execution->symbols),
             tn_dim_value(&site.columns, execution->symbols),
             tn_data(call->inputs[0]),
             tn_data(call->outputs[0]),
             call->requests[0] == TN_REQUEST_ADD,
             1};
  if (run.rows < 0 || run.columns < 0) return tn_fail(errors, TN_MISUSE, nullptr, "a prefix_sum call of negative size");
  if (run.rows == 0 || run.columns == 0) return TN_OK;
  run.rows_per_task = std::max<int64_t>(kElementsPerTask / run.columns, 1);
  const int64_t tasks = (run.rows + run.rows_per_task - 1) / run.rows_per_task;
  execution->parallel->for_each(execution->parallel->self, tasks, &run_task, &run);
  return TN_OK;
}

void destroy(void* binding) { delete static_cast<tn_prefix_sum*>(binding); }

tn_status prepare(void*, const tn_services* services, const tn_errors* errors, const tn_prefix_sum* prefix_sum,
                  tn_prepared* prepared) {
  if (prefix_sum->dtype != TN_F32 && prefix_sum->dtype != TN_F64)
    return tn_fail(errors, TN_UNSUPPORTED, "dtype", "the cpu sums float32 and float64 only");
  if ((prefix_sum->flags & ~uint32_t{TN_SUM_EXCLUSIVE | TN_SUM_REVERSE}) != 0)
    return tn_fail(errors, TN_UNSUPPORTED, "flags", "the cpu does not know this sum");
  auto* binding = new (std::nothrow) tn_prefix_sum(*prefix_sum);
  if (binding == nullptr) return tn_fail(errors, TN_OUT_OF_MEMORY, nullptr, "no memory for a prefix_sum binding");
  prepared->binding = binding;
  prepared->traits = call_traits(services);
  prepared->run = &run;
  prepared->destroy = &destroy;
  return TN_OK;
}

}  // namespace

const char prefix_sum_id[] = TN_PREFIX_SUM;
const tn_prefix_sum_table prefix_sum_table = {sizeof(tn_prefix_sum_table), 0, &prepare};

}  // namespace tenon::cpu
