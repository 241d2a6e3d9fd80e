// "tenon.gather/1": gathers rows of a table, sums gathered rows over segments, and adds rows into a table. All ids are
// checked before anything is written. Additions to an element are in the order of the ids, whatever the number of
// threads. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>

#include "prefetch.h"
#include "primitives.h"
#include "row_ids.h"
#include "segment_tasks.h"

namespace tenon::cpu {

namespace {

// A prepared call: the site, and the bytes of an element of site.dtype.
struct Gather {
  tn_gather site;
  int64_t element_bytes;
};

// One run, shared by its tasks. `from` and `to` are row-major with elements of gather->site.dtype:
//   gather:       from [height, width] -> to [count, width]
//   scatter_add:  from [count, width]  -> to [height, width]
//   gather_sum:   from [height, width] -> to [segments, width]
struct Run {
  const Gather* gather;
  int64_t height, width, count;
  const uint8_t* from;
  uint8_t* to;
  RowIds ids;                      // [count]
  bool add;                        // the request is ADD: adds to `to`
  const int64_t* offsets;          // [segments + 1] gather_sum only
  int64_t segments;                // gather_sum only
  int64_t tasks = 1;               // gather_sum only
  int64_t strips = 1, ranges = 1;  // scatter_add: a task is one column strip of one range of rows
};

constexpr int64_t kBytesPerTask = 65536;  // of gathered rows
constexpr int64_t kSumTasks = 32;         // at most, of gather_sum

// to[i] += from[i] for `count` elements of type T.
template <class T>
void add_row(uint8_t* to, const uint8_t* from, int64_t count) {
  T* sum = reinterpret_cast<T*>(to);
  const T* value = reinterpret_cast<const T*>(from);
  for (int64_t i = 0; i < count; ++i) sum[i] += value[i];
}

// Adds `bytes` bytes of float32 or float64 elements to `to`.
void add_bytes(tn_dtype dtype, uint8_t* to, const uint8_t* from, int64_t bytes) {
  if (dtype == TN_F32) {
    add_row<float>(to, from, bytes / 4);
  } else {
    add_row<double>(to, from, bytes / 8);
  }
}

// Rows of the output that a task of gather_rows writes.
int64_t rows_per_task(const Run& run) {
  return std::max<int64_t>(1, kBytesPerTask / std::max<int64_t>(1, run.width * run.gather->element_bytes));
}

// Task `index` of gather. table `from` [height, width], ids [count] -> rows_per_task rows of `to` [count, width]:
// to[i, :] = from[ids[i], :]. ADD is for float32 and float64, WRITE for every element type.
void gather_rows(void* argument, int64_t index, int32_t) {
  const Run& run = *static_cast<const Run*>(argument);
  const int64_t bytes = run.width * run.gather->element_bytes;
  const int64_t step = rows_per_task(run);
  const int64_t last = std::min((index + 1) * step, run.count);
  for (int64_t i = index * step; i < last; ++i) {
    if (i + kAhead < last) prefetch(run.from + run.ids[i + kAhead] * bytes, bytes);
    const uint8_t* from = run.from + run.ids[i] * bytes;
    if (run.add) {
      add_bytes(run.gather->site.dtype, run.to + i * bytes, from, bytes);
    } else {
      std::memcpy(run.to + i * bytes, from, static_cast<size_t>(bytes));
    }
  }
}

// to[column + c] = sum of from[ids[i], column + c] for i in [first, last), for each c in [0, columns), columns at most
// 32. `to` [width] is one row of the output. The sums are in registers if `columns` is a compile-time constant. ADD
// adds the finished sum, so that the bits of the sum do not depend on the request.
template <class T>
inline void sum_columns(const Run& run, int64_t first, int64_t last, int64_t column, int64_t columns, T* to) {
  constexpr int64_t kMost = 32;
  const auto row = [&](int64_t i) { return reinterpret_cast<const T*>(run.from) + run.ids[i] * run.width + column; };
  T sum[kMost] = {};
  if (first < last) std::copy_n(row(first), columns, sum);
  for (int64_t i = first + 1; i < last; ++i) {
    if (i + kAhead < run.count) prefetch(row(i + kAhead), columns * static_cast<int64_t>(sizeof(T)));
    const T* from = row(i);
    for (int64_t c = 0; c < columns; ++c) sum[c] += from[c];
  }
  for (int64_t c = 0; c < columns; ++c) to[column + c] = run.add ? to[column + c] + sum[c] : sum[c];
}

// to[segment, :] = sum of from[ids[i], :] for i in [offsets[segment], offsets[segment + 1]), in the order of i.
template <class T>
void sum_segment(const Run& run, int64_t segment) {
  constexpr int64_t kStrip = 32;
  T* to = reinterpret_cast<T*>(run.to) + segment * run.width;
  const int64_t first = run.offsets[segment], last = run.offsets[segment + 1];
  int64_t column = 0;
  for (; column + kStrip <= run.width; column += kStrip) sum_columns<T>(run, first, last, column, kStrip, to);
  if (column < run.width) sum_columns<T>(run, first, last, column, run.width - column, to);
}

// Task `index` of gather_sum. table `from` [height, width], ids [count], offsets int64 [segments + 1] -> the rows of
// `to` [segments, width] that belong to the task. float32 or float64.
void sum_segments(void* argument, int64_t index, int32_t) {
  const Run& run = *static_cast<const Run*>(argument);
  const SegmentRange range = segments_of_task(run.offsets, run.segments, run.tasks, index);
  for (int64_t segment = range.first; segment < range.last; ++segment)
    run.gather->site.dtype == TN_F64 ? sum_segment<double>(run, segment) : sum_segment<float>(run, segment);
}

// Rows or columns [first, last).
struct Part {
  int64_t first, last;
};
// Cuts [0, size) into `parts` ranges, whose lengths are multiples of `step` except at the end. Returns range `index`,
// which may be empty.
Part part_of(int64_t size, int64_t parts, int64_t index, int64_t step) {
  const int64_t length = ((size + parts - 1) / parts + step - 1) / step * step;
  return {std::min(index * length, size), std::min((index + 1) * length, size)};
}

// Task `index` of scatter_add. rows `from` [count, width], ids [count] -> one column strip of one range of rows of `to`
// [height, width]: to[ids[i], :] += from[i, :] in the order of i. WRITE zeroes that part of `to` first. float32 or
// float64. No two tasks write the same element.
void scatter_part(void* argument, int64_t index, int32_t) {
  const Run& run = *static_cast<const Run*>(argument);
  const int64_t element = run.gather->element_bytes;
  const int64_t row_bytes = run.width * element;
  const Part rows = part_of(run.height, run.ranges, index / run.strips, 1);
  const Part columns = part_of(run.width, run.strips, index % run.strips, 64 / element);  // whole cache lines
  const int64_t offset = columns.first * element;
  const int64_t bytes = (columns.last - columns.first) * element;
  if (bytes == 0) return;
  if (!run.add)
    for (int64_t r = rows.first; r < rows.last; ++r)
      std::memset(run.to + r * row_bytes + offset, 0, static_cast<size_t>(bytes));
  for (int64_t i = 0; i < run.count; ++i) {
    const int64_t id = run.ids[i];
    if (id < rows.first || id >= rows.last) continue;
    add_bytes(run.gather->site.dtype, run.to + id * row_bytes + offset, run.from + i * row_bytes + offset, bytes);
  }
}

tn_status run(void* binding, const tn_execution* execution, const tn_call* call) {
  const auto& gather = *static_cast<const Gather*>(binding);
  const tn_errors* errors = execution->errors;
  const bool sums = gather.site.op == TN_GATHER_SUM;
  const bool complete = call->inputs_count == (sums ? 3U : 2U) && call->outputs_count == 1 &&
                        std::none_of(call->inputs, call->inputs + call->inputs_count,
                                     [](const tn_tensor* input) { return input == nullptr; });
  if (!complete) return tn_fail(errors, TN_MISUSE, nullptr, "a gather call needs values, ids and one output");
  if (call->requests[0] == TN_REQUEST_NONE) return TN_OK;
  if (call->outputs[0] == nullptr) return tn_fail(errors, TN_MISUSE, "outputs", "a gather call without its output");
  const tn_parallel& parallel = *execution->parallel;
  Run run = {&gather,
             tn_dim_value(&gather.site.height, execution->symbols),
             tn_dim_value(&gather.site.width, execution->symbols),
             tn_dim_value(&gather.site.count, execution->symbols),
             tn_data(call->inputs[0]),
             tn_data(call->outputs[0]),
             {},
             call->requests[0] == TN_REQUEST_ADD,
             sums ? reinterpret_cast<const int64_t*>(tn_data(call->inputs[2])) : nullptr,
             sums ? tn_dim_value(&gather.site.segments, execution->symbols) : 0};
  run.ids = {tn_data(call->inputs[1]), gather.site.ids, run.count, run.height};
  if (run.add && gather.site.dtype != TN_F32 && gather.site.dtype != TN_F64)
    return tn_fail(errors, TN_UNSUPPORTED, "dtype", "the cpu adds gathered rows of float32 and float64 only");
  if (run.height < 0 || run.width < 0 || run.count < 0 || (sums && run.segments < 0))
    return tn_fail(errors, TN_MISUSE, nullptr, "a gather call of negative size");
  if (const tn_status status = check_ids(*execution, run.ids); status != TN_OK) return status;
  if (run.width == 0) return TN_OK;
  if (sums) {
    if (run.segments == 0) return TN_OK;
    if (run.offsets[run.segments] != run.count)
      return tn_fail(errors, TN_MISUSE, "offsets", "the segments have another number of ids than the call");
    run.tasks = std::clamp<int64_t>(run.count * run.width * gather.element_bytes / kBytesPerTask, 1, kSumTasks);
    parallel.for_each(parallel.self, run.tasks, &sum_segments, &run);
    return TN_OK;
  }
  if (gather.site.op == TN_GATHER_ROWS) {
    const int64_t step = rows_per_task(run);
    parallel.for_each(parallel.self, (run.count + step - 1) / step, &gather_rows, &run);
    return TN_OK;
  }
  // Column strips of at least 256 bytes, and ranges of rows if there are fewer strips than tasks. A small call is one
  // task, since every task reads all ids.
  constexpr int64_t kTasks = 16;
  const int64_t row_bytes = run.width * gather.element_bytes;
  run.strips = std::clamp<int64_t>(row_bytes / 256, 1, kTasks);
  const bool large = (run.count + run.height) * row_bytes > 4 * kBytesPerTask;
  if (large) run.ranges = std::clamp<int64_t>(kTasks / run.strips, 1, std::max<int64_t>(run.height, 1));
  if (!large) run.strips = 1;
  parallel.for_each(parallel.self, run.strips * run.ranges, &scatter_part, &run);
  return TN_OK;
}

void destroy(void* binding) { delete static_cast<Gather*>(binding); }

tn_status prepare(void*, const tn_services* services, const tn_errors* errors, const tn_gather* gather,
                  tn_prepared* prepared) {
  if (gather->ids != TN_I32 && gather->ids != TN_I64)
    return tn_fail(errors, TN_UNSUPPORTED, "ids", "ids must be int32 or int64");
  if (gather->op > TN_GATHER_SUM) return tn_fail(errors, TN_UNSUPPORTED, "op", "the cpu does not know this gather");
  if (gather->op != TN_GATHER_ROWS && gather->dtype != TN_F32 && gather->dtype != TN_F64)
    return tn_fail(errors, TN_UNSUPPORTED, "dtype", "the cpu adds rows of float32 and float64 only");
  const int64_t bytes = tn_dtype_bytes(gather->dtype);
  if (bytes == 0) return tn_fail(errors, TN_UNSUPPORTED, "dtype", "elements without a size cannot be gathered");
  auto* binding = new (std::nothrow) Gather{*gather, bytes};
  if (binding == nullptr) return tn_fail(errors, TN_OUT_OF_MEMORY, nullptr, "no memory for a gather binding");
  prepared->traits = call_traits(services);
  prepared->binding = binding;
  prepared->workspace_bytes = 0;
  prepared->run = &run;
  prepared->destroy = &destroy;
  return TN_OK;
}

}  // namespace

const char gather_id[] = TN_GATHER;
const tn_gather_table gather_table = {sizeof(tn_gather_table), 0, &prepare};

}  // namespace tenon::cpu
