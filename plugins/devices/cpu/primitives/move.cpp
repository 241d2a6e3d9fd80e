// "tenon.move/1": copies boxes of tensors into one tensor. A box is a nest of loops in the order of the output's
// dimensions. Adjacent loops that are contiguous in both tensors are merged, so that a concat along the last axis is
// one copy for each row.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <vector>

#include "primitives.h"

namespace tenon::cpu {

namespace {

// A copy of a tn_move_part: the box of input number `input` that goes to the output. All lists are [rank].
struct Part {
  uint32_t input;
  std::vector<tn_dim> from, box;              // shapes of the input and of the box, by dimension of the input
  std::vector<int64_t> from_start, to_start;  // first index, by dimension of the input and of the output
  std::vector<int32_t> axes;                  // the output's dimension of each dimension of the input
};

struct Binding {
  tn_dtype dtype;
  size_t rank;
  bool fill;               // the boxes do not cover the output: WRITE sets it to 0 first
  std::vector<tn_dim> to;  // [rank] shape of the output
  std::vector<Part> parts;
  uint32_t inputs_count;
};

// `count` iterations; `from` and `to` are the strides of input and output, in elements.
struct Loop {
  int64_t count, from, to;
};

// The loops of one box, outermost first: loops [depth]. No loop has one iteration, unless it is the only one.
struct Nest {
  std::array<Loop, TN_MAX_RANK> loops;
  size_t depth = 0;
  int64_t from = 0, to = 0;  // offsets of the first element in input and output, in elements

  [[nodiscard]] int64_t elements() const {
    int64_t n = 1;
    for (size_t i = 0; i < depth; ++i) n *= loops[i].count;
    return n;
  }
};

int64_t value(const tn_dim& dim, const int64_t* symbols) { return tn_dim_value(&dim, symbols); }

bool any_negative(const std::vector<tn_dim>& dims, const int64_t* symbols) {
  return std::any_of(dims.begin(), dims.end(), [&](const tn_dim& dim) { return value(dim, symbols) < 0; });
}

// Writes the row-major strides of a tensor, in elements, to steps [rank].
void set_steps(const std::vector<tn_dim>& dims, const int64_t* symbols, int64_t* steps) {
  int64_t step = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    steps[i] = step;
    step *= value(dims[i], symbols);
  }
}

// Returns the loops of a part for the current sizes.
Nest nest_of(const Binding& binding, const Part& part, const int64_t* symbols) {
  int64_t from[TN_MAX_RANK], to[TN_MAX_RANK];
  set_steps(part.from, symbols, from);
  set_steps(binding.to, symbols, to);
  std::array<Loop, TN_MAX_RANK> all = {};
  Nest nest;
  for (size_t i = 0; i < binding.rank; ++i) {
    const auto axis = static_cast<size_t>(part.axes[i]);
    all[axis] = {value(part.box[i], symbols), from[i], to[axis]};
    nest.from += part.from_start[i] * from[i];
    nest.to += part.to_start[axis] * to[axis];
  }
  for (size_t i = 0; i < binding.rank; ++i) {
    const Loop& loop = all[i];
    if (loop.count == 1) continue;
    Loop* outer = nest.depth == 0 ? nullptr : &nest.loops[nest.depth - 1];
    if (outer != nullptr && outer->from == loop.count * loop.from && outer->to == loop.count * loop.to)
      *outer = {outer->count * loop.count, loop.from, loop.to};
    else
      nest.loops[nest.depth++] = loop;
  }
  if (nest.depth == 0) nest.loops[nest.depth++] = {1, 1, 1};
  return nest;
}

// to[i * loop.to] = from[i * loop.from] for i in [0, loop.count); kAdd: +=. T is float or double for kAdd, else an
// unsigned integer of the element's size.
template <class T, bool kAdd>
void run_line(const Loop& loop, const T* from, T* to) {
  for (int64_t i = 0; i < loop.count; ++i) {
    if constexpr (kAdd) {
      to[i * loop.to] += from[i * loop.from];
    } else {
      to[i * loop.to] = from[i * loop.from];
    }
  }
}

// The two innermost loops, in squares of 32 x 32 elements: if one tensor is read or written across its rows, as in a
// transpose, the cache lines of a square stay in the cache.
template <class T, bool kAdd>
void run_plane(const Loop& outer, const Loop& inner, const T* from, T* to) {
  constexpr int64_t kSide = 32;
  for (int64_t i = 0; i < outer.count; i += kSide)
    for (int64_t j = 0; j < inner.count; j += kSide)
      for (int64_t k = i; k < std::min(i + kSide, outer.count); ++k)
        run_line<T, kAdd>({std::min(kSide, inner.count - j), inner.from, inner.to},
                          from + k * outer.from + j * inner.from, to + k * outer.to + j * inner.to);
}

// All loops of a box, outermost first; `from` and `to` point at its first element.
template <class T, bool kAdd>
void run_loops(const Loop* loops, size_t depth, const T* from, T* to) {
  if (depth == 1) {
    if (!kAdd && loops->from == 1 && loops->to == 1)
      std::memcpy(to, from, static_cast<size_t>(loops->count) * sizeof(T));
    else
      run_line<T, kAdd>(*loops, from, to);
    return;
  }
  if (depth == 2 && loops[1].from != 1) return run_plane<T, kAdd>(loops[0], loops[1], from, to);
  for (int64_t i = 0; i < loops->count; ++i)
    run_loops<T, kAdd>(loops + 1, depth - 1, from + i * loops->from, to + i * loops->to);
}

// One box; `from` and `to` are the first bytes of input and output.
template <class T, bool kAdd>
void run_typed(const Nest& nest, const void* from, void* to) {
  run_loops<T, kAdd>(nest.loops.data(), nest.depth, static_cast<const T*>(from) + nest.from,
                     static_cast<T*>(to) + nest.to);
}

using Runner = void (*)(const Nest& nest, const void* from, void* to);

// Returns null if elements of that type cannot be copied (add: added).
Runner runner(tn_dtype dtype, bool add) {
  if (add) return dtype == TN_F32 ? &run_typed<float, true> : dtype == TN_F64 ? &run_typed<double, true> : nullptr;
  switch (tn_dtype_bytes(dtype)) {
    case 1:
      return &run_typed<uint8_t, false>;
    case 2:
      return &run_typed<uint16_t, false>;
    case 4:
      return &run_typed<uint32_t, false>;
    case 8:
      return &run_typed<uint64_t, false>;
    default:
      return nullptr;
  }
}

// The tasks of one box: its outermost loop cut into `tasks` pieces.
struct Task {
  const Nest* nest;
  Runner runner;
  const void* from;
  void* to;
  int64_t tasks;
};

void run_task(void* argument, int64_t index, int32_t) {
  const Task& task = *static_cast<const Task*>(argument);
  const Loop& whole = task.nest->loops[0];
  const int64_t first = whole.count * index / task.tasks;
  Nest nest = *task.nest;
  nest.loops[0].count = whole.count * (index + 1) / task.tasks - first;
  nest.from += first * whole.from;
  nest.to += first * whole.to;
  task.runner(nest, task.from, task.to);
}

tn_status run(void* self, const tn_execution* execution, const tn_call* call) {
  constexpr int64_t kTaskElements = 32768;  // of a box, moved by a task
  const Binding& binding = *static_cast<const Binding*>(self);
  if (call->inputs_count != binding.inputs_count || call->outputs_count != 1)
    return tn_fail(execution->errors, TN_MISUSE, nullptr, "a move with another number of operands");
  if (call->requests[0] == TN_REQUEST_NONE) return TN_OK;
  if (call->outputs[0] == nullptr) return tn_fail(execution->errors, TN_MISUSE, "outputs", "a move without its output");
  const bool add = call->requests[0] == TN_REQUEST_ADD;
  const Runner copy = runner(binding.dtype, add);
  if (copy == nullptr)
    return tn_fail(execution->errors, TN_UNSUPPORTED, "dtype", "the cpu adds boxes of float32 and float64 only");
  if (any_negative(binding.to, execution->symbols))
    return tn_fail(execution->errors, TN_MISUSE, nullptr, "a move of negative size");
  uint8_t* const to = tn_data(call->outputs[0]);
  if (binding.fill && !add) {
    uint64_t bytes = tn_dtype_bytes(binding.dtype);
    for (const tn_dim& dim : binding.to) bytes *= static_cast<uint64_t>(value(dim, execution->symbols));
    if (bytes > 0) std::memset(to, 0, bytes);
  }
  const tn_parallel& parallel = *execution->parallel;
  for (const Part& part : binding.parts) {
    if (call->inputs[part.input] == nullptr)
      return tn_fail(execution->errors, TN_MISUSE, "inputs", "a move without one of its inputs");
    if (any_negative(part.box, execution->symbols))
      return tn_fail(execution->errors, TN_MISUSE, nullptr, "a move of negative size");
    const Nest nest = nest_of(binding, part, execution->symbols);
    if (nest.elements() == 0) continue;
    const int64_t tasks = std::min((nest.elements() + kTaskElements - 1) / kTaskElements, nest.loops[0].count);
    Task task = {&nest, copy, tn_data(call->inputs[part.input]), to, tasks};
    if (tasks == 1)
      run_task(&task, 0, 0);
    else
      parallel.for_each(parallel.self, tasks, &run_task, &task);
  }
  return TN_OK;
}

void destroy(void* binding) { delete static_cast<Binding*>(binding); }

std::unique_ptr<Binding> bind(const tn_move& move) {
  const auto rank = static_cast<size_t>(move.rank);
  auto binding = std::make_unique<Binding>();
  binding->dtype = move.dtype;
  binding->rank = rank;
  binding->fill = move.fill != 0;
  binding->to.assign(move.to, move.to + rank);
  binding->inputs_count = 0;
  for (uint32_t i = 0; i < move.parts_count; ++i) {
    const tn_move_part& part = *move.parts[i];
    binding->parts.push_back({part.input,
                              {part.from, part.from + rank},
                              {part.box, part.box + rank},
                              {part.from_start, part.from_start + rank},
                              {part.to_start, part.to_start + rank},
                              {part.axes, part.axes + rank}});
    binding->inputs_count = std::max(binding->inputs_count, part.input + 1);
  }
  return binding;
}

tn_status prepare(void*, const tn_services* services, const tn_errors* errors, const tn_move* move,
                  tn_prepared* prepared) {
  if (runner(move->dtype, false) == nullptr)
    return tn_fail(errors, TN_UNSUPPORTED, "dtype", "the cpu moves elements of 1, 2, 4 and 8 bytes only");
  if (move->rank < 0 || move->rank > TN_MAX_RANK)
    return tn_fail(errors, TN_INVALID, "rank", "the rank of a move is not from 0 to 8");
  try {
    prepared->binding = bind(*move).release();
  } catch (const std::exception&) {
    return tn_fail(errors, TN_OUT_OF_MEMORY, nullptr, "no memory for the binding of a move");
  }
  prepared->traits = call_traits(services);
  prepared->workspace_bytes = 0;
  prepared->run = &run;
  prepared->destroy = &destroy;
  return TN_OK;
}

}  // namespace

const char move_id[] = TN_MOVE;
const tn_move_table move_table = {sizeof(tn_move_table), 0, &prepare};

}  // namespace tenon::cpu
