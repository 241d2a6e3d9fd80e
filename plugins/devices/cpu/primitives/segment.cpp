// "tenon.segment/1": sums, maxima, copies, positions and ranks over consecutive segments of rows. A task is a range of
// segments with about as many rows as every other task. Within a segment the work is in the order of the rows.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <new>

#include "primitives.h"
#include "segment_tasks.h"

namespace tenon::cpu {

namespace {

// A prepared call: the site, and the bytes of an element of site.dtype.
struct Segments {
  tn_segment site;
  int64_t element_bytes;
};

// One run, shared by its tasks. `from` and `to` are row-major with elements of site->site.dtype, except int64 results:
//   SUM, MAX:       from [rows, width]     -> to [segments, width]
//   BROADCAST:      from [segments, width] -> to [rows, width]
//   SHIFT:          from [rows, width]     -> to [rows, width]
//   POSITION:       no value               -> to int64 [rows]
//   LENGTH, START:  no value               -> to int64 [segments]
//   RANK:           from [rows]            -> to int64 [rows]
struct Run {
  const Segments* site;
  int64_t rows, segments, width;
  const uint8_t* from;  // null if the operation takes no value
  uint8_t* to;
  const int64_t* offsets;  // [segments + 1]
  int64_t* scratch;        // [rows] RANK only
  bool add;                // the request is ADD: adds to `to`
  int64_t tasks;

  [[nodiscard]] int64_t row_bytes() const { return width * site->element_bytes; }
};

constexpr int64_t kTasks = 16;
constexpr int64_t kBytesPerTask = 32768;

// to[i] += from[i], and to[i] = max(to[i], from[i]), for `count` elements. The maximum is NaN if either value is NaN.
template <class T>
void add_row(T* to, const T* from, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] += from[i];
}
template <class T>
void max_row(T* to, const T* from, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = from[i] > to[i] || std::isnan(from[i]) ? from[i] : to[i];
}

// SUM or MAX of one segment: rows [first, last) of `from` [rows, width] -> to [width], 0 for an empty segment.
template <class T>
void reduce(const Run& run, int64_t segment, T* to) {
  const T* from = reinterpret_cast<const T*>(run.from);
  const int64_t first = run.offsets[segment];
  const int64_t last = run.offsets[segment + 1];
  const bool sum = run.site->site.op == TN_SEGMENT_SUM;
  if (first == last) {
    if (!run.add) std::fill_n(to, run.width, T{0});
    return;
  }
  if (!run.add) {
    std::copy_n(from + first * run.width, run.width, to);
    for (int64_t row = first + 1; row < last; ++row)
      sum ? add_row(to, from + row * run.width, run.width) : max_row(to, from + row * run.width, run.width);
    return;
  }
  // Each element is reduced before it is added, so that its bits are those of WRITE.
  for (int64_t column = 0; column < run.width; ++column) {
    T value = from[first * run.width + column];
    for (int64_t row = first + 1; row < last; ++row) {
      const T next = from[row * run.width + column];
      value = sum ? value + next : (next > value || std::isnan(next) ? next : value);
    }
    to[column] += value;
  }
}

// to [width] = from [width], or += with ADD.
template <class T>
void add_or_copy(const Run& run, uint8_t* to, const uint8_t* from) {
  if (run.add)
    add_row(reinterpret_cast<T*>(to), reinterpret_cast<const T*>(from), run.width);
  else
    std::memcpy(to, from, static_cast<size_t>(run.row_bytes()));
}
// The same by the element type of the site. A copy moves bytes, so the type matters for ADD alone, which is float32 or
// float64.
void put_row(const Run& run, uint8_t* to, const uint8_t* from) {
  if (run.site->site.dtype == TN_F64)
    add_or_copy<double>(run, to, from);
  else
    add_or_copy<float>(run, to, from);
}

// SUM, MAX: from [rows, width] -> row `segment` of to [segments, width].
void reduce_task(const Run& run, int64_t segment) {
  uint8_t* to = run.to + segment * run.row_bytes();
  if (run.site->site.dtype == TN_F64)
    reduce(run, segment, reinterpret_cast<double*>(to));
  else
    reduce(run, segment, reinterpret_cast<float*>(to));
}

// BROADCAST: to[row, :] = from[segment, :] for each row of the segment; from [segments, width], to [rows, width].
void spread_task(const Run& run, int64_t segment) {
  const uint8_t* from = run.from + segment * run.row_bytes();
  for (int64_t row = run.offsets[segment]; row < run.offsets[segment + 1]; ++row)
    put_row(run, run.to + row * run.row_bytes(), from);
}

// SHIFT: to[row, :] = from[row + by, :] if that row is in the segment, else 0; from and to are [rows, width]. `by` is
// clamped to the length of the segment, so that row + by does not overflow.
void shift_task(const Run& run, int64_t segment) {
  const int64_t first = run.offsets[segment];
  const int64_t last = run.offsets[segment + 1];
  const int64_t by = std::clamp(run.site->site.by, first - last, last - first);
  for (int64_t row = first; row < last; ++row) {
    uint8_t* to = run.to + row * run.row_bytes();
    if (row + by >= first && row + by < last)
      put_row(run, to, run.from + (row + by) * run.row_bytes());
    else if (!run.add)
      std::memset(to, 0, static_cast<size_t>(run.row_bytes()));
  }
}

// LENGTH: to[segment] = rows of the segment. START: to[segment] = its first row. POSITION: to[row] = row - first row.
// int64, WRITE only.
void number_task(const Run& run, int64_t segment) {
  auto* to = reinterpret_cast<int64_t*>(run.to);
  const int64_t first = run.offsets[segment];
  const int64_t last = run.offsets[segment + 1];
  if (run.site->site.op == TN_SEGMENT_LENGTH) {
    to[segment] = last - first;
  } else if (run.site->site.op == TN_SEGMENT_START) {
    to[segment] = first;
  } else {
    for (int64_t row = first; row < last; ++row) to[row] = row - first;
  }
}

// RANK: from [rows] -> to int64 [rows]: to[row] = place of the row, from 0, in its segment sorted from the largest
// value, equal values in the order of their rows, NaN last. scratch [rows] holds the sorted row numbers.
template <class T>
void rank(const Run& run, int64_t segment) {
  const T* value = reinterpret_cast<const T*>(run.from);
  const int64_t first = run.offsets[segment];
  const int64_t last = run.offsets[segment + 1];
  for (int64_t row = first; row < last; ++row) run.scratch[row] = row;
  std::sort(run.scratch + first, run.scratch + last, [&](int64_t a, int64_t b) {
    const bool no_a = std::isnan(value[a]);
    const bool no_b = std::isnan(value[b]);
    if (no_a || no_b) return no_a == no_b ? a < b : no_b;
    return value[a] > value[b] || (value[a] == value[b] && a < b);
  });
  auto* to = reinterpret_cast<int64_t*>(run.to);
  for (int64_t row = first; row < last; ++row) to[run.scratch[row]] = row - first;
}
void rank_task(const Run& run, int64_t segment) {
  if (run.site->site.dtype == TN_F64)
    rank<double>(run, segment);
  else
    rank<float>(run, segment);
}

using SegmentTask = void (*)(const Run& run, int64_t segment);
SegmentTask task_of(int32_t op) {
  switch (op) {
    case TN_SEGMENT_SUM:
    case TN_SEGMENT_MAX:
      return &reduce_task;
    case TN_SEGMENT_BROADCAST:
      return &spread_task;
    case TN_SEGMENT_SHIFT:
      return &shift_task;
    case TN_SEGMENT_RANK:
      return &rank_task;
    default:
      return &number_task;
  }
}

// Whether the operation has no value.
bool takes_none(int32_t op) { return op == TN_SEGMENT_POSITION || op == TN_SEGMENT_LENGTH || op == TN_SEGMENT_START; }
// Whether the operation only copies rows, which works for every element type.
bool copies(int32_t op) { return op == TN_SEGMENT_BROADCAST || op == TN_SEGMENT_SHIFT; }

void run_task(void* argument, int64_t index, int32_t) {
  const Run& run = *static_cast<const Run*>(argument);
  const SegmentTask task = task_of(run.site->site.op);
  const SegmentRange range = segments_of_task(run.offsets, run.segments, run.tasks, index);
  for (int64_t segment = range.first; segment < range.last; ++segment) task(run, segment);
}

tn_status run(void* binding, const tn_execution* execution, const tn_call* call) {
  const auto& site = *static_cast<const Segments*>(binding);
  const tn_errors* errors = execution->errors;
  const bool none = takes_none(site.site.op);
  if (call->inputs_count != 2 || call->outputs_count != 1 || (call->inputs[0] == nullptr) != none ||
      call->inputs[1] == nullptr)
    return tn_fail(errors, TN_MISUSE, nullptr, "a segment call needs its value, offsets and one output");
  if (call->requests[0] == TN_REQUEST_NONE) return TN_OK;
  if (call->outputs[0] == nullptr) return tn_fail(errors, TN_MISUSE, "outputs", "a segment call without its output");
  Run run = {&site,
             tn_dim_value(&site.site.rows, execution->symbols),
             tn_dim_value(&site.site.segments, execution->symbols),
             tn_dim_value(&site.site.width, execution->symbols),
             none ? nullptr : tn_data(call->inputs[0]),
             tn_data(call->outputs[0]),
             reinterpret_cast<const int64_t*>(tn_data(call->inputs[1])),
             static_cast<int64_t*>(call->workspace),
             call->requests[0] == TN_REQUEST_ADD,
             1};
  const bool floats = site.site.dtype == TN_F32 || site.site.dtype == TN_F64;
  if (run.add && (!floats || none || site.site.op == TN_SEGMENT_RANK))
    return tn_fail(errors, TN_UNSUPPORTED, "dtype", "the cpu adds results of float32 and float64 only");
  if (run.rows < 0 || run.segments < 0 || run.width < 0)
    return tn_fail(errors, TN_MISUSE, nullptr, "a segment call of negative size");
  if (run.segments == 0) return TN_OK;
  if (run.offsets[run.segments] != run.rows)
    return tn_fail(errors, TN_MISUSE, "offsets", "the segments have another number of rows than the call");
  const int64_t bytes = (run.rows + run.segments) * run.row_bytes();
  run.tasks = std::clamp<int64_t>(bytes / kBytesPerTask, 1, kTasks);
  execution->parallel->for_each(execution->parallel->self, run.tasks, &run_task, &run);
  return TN_OK;
}

void destroy(void* binding) { delete static_cast<Segments*>(binding); }

tn_status prepare(void*, const tn_services* services, const tn_errors* errors, const tn_segment* segment,
                  tn_prepared* prepared) {
  if (segment->op < TN_SEGMENT_SUM || segment->op > TN_SEGMENT_RANK)
    return tn_fail(errors, TN_UNSUPPORTED, "op", "the cpu does not know this operation over segments");
  const bool floats = segment->dtype == TN_F32 || segment->dtype == TN_F64;
  if (!floats && !copies(segment->op) && !takes_none(segment->op))
    return tn_fail(errors, TN_UNSUPPORTED, "dtype", "the cpu reduces and ranks float32 and float64 only");
  const int64_t bytes = tn_dtype_bytes(segment->dtype);
  if (bytes == 0) return tn_fail(errors, TN_UNSUPPORTED, "dtype", "elements without a size");
  if (segment->rows.bound < 0) return tn_fail(errors, TN_INVALID, "rows", "the rows have no bound");
  auto* binding = new (std::nothrow) Segments{*segment, bytes};
  if (binding == nullptr) return tn_fail(errors, TN_OUT_OF_MEMORY, nullptr, "no memory for a segment binding");
  prepared->binding = binding;
  prepared->workspace_bytes =
      segment->op == TN_SEGMENT_RANK ? static_cast<uint64_t>(segment->rows.bound) * sizeof(int64_t) : 0;
  prepared->traits = call_traits(services);
  prepared->run = &run;
  prepared->destroy = &destroy;
  return TN_OK;
}

}  // namespace

const char segment_id[] = TN_SEGMENT;
const tn_segment_table segment_table = {sizeof(tn_segment_table), 0, &prepare};

}  // namespace tenon::cpu
