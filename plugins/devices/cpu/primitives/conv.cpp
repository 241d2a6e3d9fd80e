// "tenon.conv/1": convolutions without a copy of their patches. The weights are copied to panels once for each call. A
// block is a band of positions of one sample; what it reads of the source is copied between zeros if it reaches over
// the edges. The blocks, and the order of the sums, follow from the shape of a sample; a fixed number of tasks takes
// them. The gradients of weights are summed in a fixed number of parts, and these in their order.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>

#include "conv/blocks.h"
#include "primitives.h"

namespace tenon::cpu {

namespace {

struct Run : ConvRun {
  uint8_t* copies;   // of the source, by task
  uint8_t* partial;  // [parts, weights]
  uint8_t* vectors;  // if ConvPlan::planes: [parts, weights, lanes]
  int64_t tasks;
  int64_t parts, splits;  // of the sums of weights, and of the filters of each
};

int64_t vectors_elements(const ConvPlan& plan) {
  return plan.planes ? plan.weights_elements * plan.parts * plan.by_planes->lanes : 0;
}

// Phase 0 copies the weights, phase 1 computes the blocks.
void run_task(void* argument, int32_t phase, int64_t index, int32_t) {
  const Run& run = *static_cast<const Run*>(argument);
  const ConvPlan& b = *run.binding;
  if (phase == 0) return pack_weights(run, index);
  uint8_t* const copy = run.copies + index * b.copy_elements * b.element;
  for (int64_t i = index, all = blocks_of(run); i < all; i += run.tasks) compute_block(run, block_at(run, i), copy);
}

// Task `index` of the sums of weights: some blocks, and some of the filters.
void sum_part(const Run& run, int64_t index) {
  const ConvPlan& b = *run.binding;
  const int64_t part = index / run.splits, split = index % run.splits;
  const int64_t all = blocks_of(run);
  uint8_t* const sums = run.partial + part * b.weights_elements * b.element;
  uint8_t* const copy = run.copies + index * b.copy_elements * b.element;
  // Filters [first, last) of each group.
  const int64_t first = b.outer * split / run.splits, last = b.outer * (split + 1) / run.splits;
  const int64_t filter = b.kernel_size * b.inner;
  const auto add_blocks = [&](uint8_t* to) {
    for (int64_t i = all * part / run.parts; i < all * (part + 1) / run.parts; ++i)
      sum_block(run, block_at(run, i), copy, to, first, last);
  };
  if (b.planes) {
    const int64_t lanes = b.by_planes->lanes, weights = (last - first) * filter;
    uint8_t* const vectors = run.vectors + part * b.weights_elements * lanes * b.element;
    uint8_t* const own = vectors + first * filter * lanes * b.element;
    std::memset(own, 0, static_cast<size_t>(weights * lanes * b.element));
    add_blocks(vectors);
    return b.by_planes->fold(own, weights, sums + first * filter * b.element);
  }
  if (b.each) {
    std::memset(sums, 0, static_cast<size_t>(b.weights_elements * b.element));
  } else {
    for (int64_t g = 0; g < b.conv.groups; ++g)
      std::memset(sums + (g * b.outer + first) * filter * b.element, 0,
                  static_cast<size_t>((last - first) * filter * b.element));
  }
  add_blocks(sums);
}

constexpr int64_t kSumPiece = 4096;  // elements of weights that a task sums

template <class T>
void sum_parts(const Run& run, int64_t piece) {
  const ConvPlan& b = *run.binding;
  auto* const to = reinterpret_cast<T*>(run.weights);
  const auto* const parts = reinterpret_cast<const T*>(run.partial);
  for (int64_t i = piece * kSumPiece; i < std::min((piece + 1) * kSumPiece, b.weights_elements); ++i) {
    // Sums by channel are [kernel, channels].
    const int64_t at = b.each ? i % b.kernel_size * b.source_last + i / b.kernel_size : i;
    T sum = parts[at];
    for (int64_t p = 1; p < run.parts; ++p) sum += parts[p * b.weights_elements + at];
    to[i] = run.add ? to[i] + sum : sum;
  }
}

void weights_task(void* argument, int32_t phase, int64_t index, int32_t) {
  const Run& run = *static_cast<const Run*>(argument);
  if (phase == 0) return sum_part(run, index);
  return run.binding->conv.dtype == TN_F64 ? sum_parts<double>(run, index) : sum_parts<float>(run, index);
}

tn_status run(void* self, const tn_execution* execution, const tn_call* call) {
  const ConvPlan& b = *static_cast<const ConvPlan*>(self);
  if (call->inputs_count != 2 || call->outputs_count != 1)
    return tn_fail(execution->errors, TN_MISUSE, nullptr, "a convolution needs two inputs and one output");
  if (call->requests[0] == TN_REQUEST_NONE) return TN_OK;
  Run run = {};
  if (const tn_status status = start_run(b, *execution, *call, &run); status != TN_OK) return status;
  auto* memory = static_cast<uint8_t*>(call->workspace);
  const auto take = [&](int64_t elements) {
    uint8_t* const start = memory;
    memory += lines(elements * b.element);
    return start;
  };
  run.panels = take(b.panel_elements);
  run.copies = take(b.copy_elements * kConvTasks);
  run.partial = take(b.weights_elements * b.parts);
  run.vectors = take(vectors_elements(b));
  const bool small = is_small(b, run.samples);
  const tn_parallel* const parallel = execution->parallel;
  if (b.conv.op == TN_CONV_WEIGHTS) {
    run.parts = std::clamp<int64_t>(blocks_of(run), 1, b.parts);
    run.splits = b.each ? 1 : std::clamp<int64_t>(kSumParts / run.parts, 1, b.outer);
    const int64_t sizes[2] = {run.parts * run.splits, (b.weights_elements + kSumPiece - 1) / kSumPiece};
    if (!small) {
      parallel->phases(parallel->self, 2, sizes, &weights_task, &run);
      return TN_OK;
    }
    for (int32_t phase = 0; phase < 2; ++phase)
      for (int64_t i = 0; i < sizes[phase]; ++i) weights_task(&run, phase, i, 0);
    return TN_OK;
  }
  run.tasks = std::min(kConvTasks, blocks_of(run));
  if (run.tasks == 0) return TN_OK;
  const int64_t sizes[2] = {pieces_of(b), run.tasks};
  if (!small) {
    parallel->phases(parallel->self, 2, sizes, &run_task, &run);
    return TN_OK;
  }
  for (int32_t phase = 0; phase < 2; ++phase)
    for (int64_t i = 0; i < sizes[phase]; ++i) run_task(&run, phase, i, 0);
  return TN_OK;
}

void destroy(void* self) { delete static_cast<ConvPlan*>(self); }

tn_status prepare(void*, const tn_services* services, const tn_errors* errors, const tn_conv* conv,
                  tn_prepared* prepared) {
  if (const tn_status status = check_conv(errors, *conv); status != TN_OK) return status;
  try {
    auto binding = std::make_unique<ConvPlan>(plan_conv(*conv));
    const ConvPlan& b = *binding;
    prepared->workspace_bytes =
        static_cast<uint64_t>(lines(b.panel_elements * b.element) + lines(b.copy_elements * kConvTasks * b.element) +
                              lines(b.weights_elements * b.parts * b.element) + lines(vectors_elements(b) * b.element));
    prepared->binding = binding.release();
  } catch (const std::exception&) {
    return tn_fail(errors, TN_OUT_OF_MEMORY, nullptr, "no memory for a convolution's binding");
  }
  prepared->traits = call_traits(services);
  prepared->run = &run;
  prepared->destroy = &destroy;
  return TN_OK;
}

}  // namespace

const char conv_id[] = TN_CONV;
const tn_conv_table conv_table = {sizeof(tn_conv_table), 0, &prepare};

}  // namespace tenon::cpu
