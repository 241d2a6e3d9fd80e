// "tenon.conv_epilogue/1": a convolution and a pointwise program over its rows, the places of all samples. A chunk of
// rows is some lines of a sample, or some samples, so that it is in the cache when the program reads it.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <exception>
#include <memory>

#include "conv/blocks.h"
#include "device.h"
#include "epilogue.h"
#include "primitives.h"

namespace tenon::cpu {

namespace {

constexpr int64_t kChunkBytes = 128 << 10;  // of the target: with the source, less than a second-level cache

// A prepared call.
struct ConvEpilogue {
  ConvPlan plan;
  Epilogue epilogue;
  int64_t line;  // rows of a line
};

// Returns the lines of a chunk: those of kChunkBytes; if these are samples, as few as give work for a few microseconds,
// else an equal part of a sample if there is one of about that size.
int64_t chunk_lines(const ConvPlan& plan) {
  constexpr double kWorthwhile = 1e6;  // multiplications
  const auto& axes = plan.layouts.front().phase.axes;
  const int64_t sample = axes[0].target * axes[1].target;
  int64_t most = std::max<int64_t>(1, kChunkBytes / (axes[2].target * plan.target_last * plan.element));
  for (const Layout& layout : plan.layouts)
    if (layout.bands > 1) most = std::min(most, layout.band * layout.phase.axes[1].step);
  if (most >= sample) {
    const auto samples = std::max(plan.together, static_cast<int64_t>(kWorthwhile / std::max(plan.work, 1.0)) + 1);
    return sample * std::min(most / sample, samples);
  }
  const int64_t parts = (sample + most - 1) / most;
  for (int64_t equal = parts; equal < 2 * parts; ++equal)
    if (sample % equal == 0) return sample / equal;
  return (sample + parts - 1) / parts;
}

tn_status supports(void*, const tn_errors*, const tn_conv_epilogue* epilogue) {
  const tn_conv& conv = *epilogue->conv;
  if (conv.samples.bound < 0 || conv.op == TN_CONV_WEIGHTS) return TN_UNSUPPORTED;
  // A program with statistics reads the convolution more often; its first pass does from the cache.
  return check_epilogue(*epilogue->site, epilogue->product, conv.dtype, Passes::kSeveral);
}

// What a run hands to make_rows.
struct Rows {
  ConvRun run;
  int64_t line;
  uint8_t* copies;  // by worker
};

// RowMaker::make.
void make_rows(const void* self, int64_t first, int64_t last, int32_t worker) {
  const Rows& rows = *static_cast<const Rows*>(self);
  const ConvPlan& plan = *rows.run.binding;
  compute_lines(rows.run, first / rows.line, last / rows.line,
                rows.copies + worker * plan.copy_elements * plan.element);
}

tn_status run(void* self, const tn_execution* execution, const tn_call* call) {
  auto& both = *static_cast<ConvEpilogue*>(self);
  const ConvPlan& plan = both.plan;
  if (const tn_status status = check_operands(both.epilogue, *execution, *call); status != TN_OK) return status;
  Rows rows = {{}, both.line, nullptr};
  if (const tn_status status = start_run(plan, *execution, *call, &rows.run); status != TN_OK) return status;
  rows.run.panels =
      static_cast<uint8_t*>(call->workspace) + lines(static_cast<int64_t>(workspace_bytes(*both.epilogue.program)));
  rows.copies = rows.run.panels + lines(plan.panel_elements * plan.element);
  if (rows.run.samples > 0) pack_weights(rows.run, *execution->parallel);
  return run_epilogue(both.epilogue, *execution, *call, {&make_rows, &rows});
}

void destroy(void* self) { delete static_cast<ConvEpilogue*>(self); }

tn_status prepare(void* device, const tn_services* services, const tn_errors* errors, const tn_conv_epilogue* given,
                  tn_prepared* prepared) {
  if (const tn_status status = check_conv(errors, *given->conv); status != TN_OK) return status;
  if (const tn_status status = supports(device, errors, given); status != TN_OK) return refuse_epilogue(errors, status);
  try {
    auto both = std::make_unique<ConvEpilogue>(ConvEpilogue{plan_conv(*given->conv), {}, 0});
    const ConvPlan& plan = both->plan;
    both->line = plan.layouts.front().phase.axes[2].target;
    const tn_status status = make_epilogue(caches_of(device), errors, *given->site, given->product,
                                           {chunk_lines(plan) * both->line, true}, &both->epilogue);
    if (status != TN_OK) return status;
    Binding program = *both->epilogue.program;
    program.workers = std::min(program.workers, static_cast<int32_t>(kConvTasks));
    prepared->workspace_bytes = static_cast<uint64_t>(lines(static_cast<int64_t>(workspace_bytes(program))) +
                                                      lines(plan.panel_elements * plan.element) +
                                                      plan.copy_elements * plan.element * program.workers);
    both->epilogue.program = std::make_shared<const Binding>(std::move(program));
    prepared->binding = both.release();
  } catch (const std::exception&) {
    return refuse_epilogue(errors, TN_OUT_OF_MEMORY);
  }
  prepared->traits = call_traits(services);
  prepared->run = &run;
  prepared->destroy = &destroy;
  return TN_OK;
}

}  // namespace

const char conv_epilogue_id[] = TN_CONV_EPILOGUE;
const tn_conv_epilogue_table conv_epilogue_table = {sizeof(tn_conv_epilogue_table), TN_OPSET, &supports, &prepare};

}  // namespace tenon::cpu
