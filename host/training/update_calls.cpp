// SPDX-License-Identifier: Apache-2.0
#include "host/training/update_calls.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/alignment.h"
#include "core/error.h"
#include "core/floating_point_mode.h"

namespace tenon::host {

namespace {

// Returns the stretches of parameters that one call each may update: whole runs, or single tensors.
std::vector<GradientRun> stretches_of(const UpdateTarget& gradients, const std::vector<GradientRun>& runs,
                                      int32_t grain) {
  if (grain == TN_GRAIN_ELEMENT) return runs;
  std::vector<GradientRun> result;
  for (const GradientRun& run : runs)
    for (const size_t number : run.entries) {
      const ParameterEntry& entry = gradients.set()->entries()[number];
      const uint64_t within = entry.offset - run.offset;
      GradientRun part = run;
      part.gradients = static_cast<const std::byte*>(run.gradients) + tn_dtype_storage(run.gradient_dtype, within);
      part.offset = entry.offset;
      part.elements = entry.count;
      part.entries = {number};
      result.push_back(std::move(part));
    }
  return result;
}

}  // namespace

std::vector<int64_t> StateLayout::shape(const ParameterEntry& entry, uint8_t extent) {
  if (extent == TN_PER_ROW) return {rows(entry)};
  if (extent == TN_FULL) {
    std::vector<int64_t> dimensions = entry.shape;
    if (!dimensions.empty()) dimensions[0] = rows(entry);
    return dimensions;
  }
  return {entry.shape.empty() ? entry.shape.begin() : entry.shape.begin() + 1, entry.shape.end()};
}

uint64_t StateLayout::count(const ParameterEntry& entry, uint8_t extent) {
  uint64_t result = 1;
  for (const int64_t each : shape(entry, extent)) result *= static_cast<uint64_t>(each);
  return result;
}

Home::Part StateLayout::part(const ParameterSet& set, size_t number, uint8_t extent) const {
  return {offset(number, extent) * sizeof(float), count(set.entries()[number], extent) * sizeof(float)};
}

StateLayout::StateLayout(const ParameterSet& set) {
  for (const uint8_t extent : {TN_PER_ROW, TN_PER_COLUMN}) {
    sizes_[extent].resize(set.slabs().size());
    for (const ParameterEntry& entry : set.entries()) {
      offsets_[extent].push_back(sizes_[extent][entry.slab]);
      sizes_[extent][entry.slab] += padded_elements(count(entry, extent));
    }
  }
  for (const ParameterEntry& entry : set.entries()) offsets_[TN_FULL].push_back(entry.offset);
  for (const ParameterSlab& slab : set.slabs()) sizes_[TN_FULL].push_back(slab.padded_elements);
}

UpdateCalls::UpdateCalls(UpdateTarget& gradients, const UsedNames& used, const UpdatePlan& plan,
                         std::vector<SlabStates>& states, ErrorSink& sink)
    : memory_id_(gradients.memory_id()),
      used_(used),
      runs_(gradients.runs(used)),
      sparse_(gradients.row_sparse(used)),
      layout_(*gradients.set()),
      skips_(plan.skips) {
  const SharedObjects::Stream stream(gradients.device()->shared(), &gradients.access());
  for (size_t i = 0; i < plan.scalars.size(); ++i) {
    const tn_program_input& input = plan.program.inputs[2 + plan.states.size() + i];
    scalars_.push_back({plan.scalars[i], input.kind == TN_INT ? TN_I64 : TN_F32});
  }
  for (const StateDeclaration& state : plan.states) {
    ++states_[state.extent];
  }
  for (const GradientRun& run : runs_) {
    dense_bytes_ += states_[TN_FULL] * run.elements * sizeof(float);
    for (const size_t entry : run.entries)
      for (const uint8_t extent : {TN_PER_ROW, TN_PER_COLUMN})
        dense_bytes_ += states_[extent] * StateLayout::count(gradients.set()->entries()[entry], extent) * sizeof(float);
  }
  lay_out(stretches_of(gradients, runs_, plan.grain).size() + sparse_.size());
  control_ = DeviceMemory(gradients.device(), sums_at_ + (runs_.size() + sparse_.size()) * sizeof(float));
  add_dense(gradients, plan, states, sink);
  for (const SparseGradient* gradient : sparse_) add_sparse(gradients, *gradient, plan, states, sink);
  if (plan.clip_norm > 0 || plan.skips) add_sums(*gradients.device(), sink);
  if (plan.clip_norm > 0) add_clipping(*gradients.device(), sink, plan.clip_norm);
  std::vector<OperandCall*> calls;
  for (const Stretch& stretch : stretches_) calls.push_back(stretch.call.get());
  for (const auto& call : sums_) calls.push_back(call.get());
  if (clipping_ != nullptr) calls.push_back(clipping_.get());
  workspace_ = shared_workspace(gradients.device(), calls);
  host_sizes_ = std::any_of(calls.begin(), calls.end(), [](OperandCall* call) { return call->reads_host_sizes(); });
}

void UpdateCalls::lay_out(size_t stretches) {
  scalars_at_ = kSymbolsAt + whole_lines((TN_SYMBOL_FIRST_RAGGED + sparse_.size()) * sizeof(int64_t));
  sums_at_ = scalars_at_ + whole_lines(stretches * scalars_.size() * kScalarBytes);
  staged_.resize(sums_at_);
}

// Returns the inputs followed by the stretch's scalars.
std::vector<OperandCall::Operand> UpdateCalls::with_scalars(std::vector<OperandCall::Operand> inputs) {
  std::byte* const scalars = control_.data() + scalars_at_;
  for (const Scalar& scalar : scalars_) {
    void* const own = scalars + next_scalar_ * kScalarBytes;
    inputs.push_back({scalar.dtype, scalar.which == kScalarClip ? &control()->clip_factor : own});
    ++next_scalar_;
  }
  return inputs;
}

std::vector<OperandCall::Operand> UpdateCalls::changed_by(UpdateTarget& gradients, const UpdatePlan& plan,
                                                          std::vector<SlabStates>& states,
                                                          const std::vector<size_t>& entries) {
  ParameterSet& set = *gradients.set();
  const size_t slab = set.entries()[entries[0]].slab;
  std::vector<OperandCall::Operand> operands;
  const auto add = [&](Home& home, const auto& part_of) {  // a run of elements begins with its first entry
    const Residence residence(home, gradients.access());
    operands.push_back({TN_F32, residence.data() + part_of(entries[0]).offset});
    for (const size_t entry : entries) changed_.push_back({residence, part_of(entry)});
  };
  add(set.home(set.entries()[entries[0]]), [&](size_t entry) { return ParameterSet::part(set.entries()[entry]); });
  for (size_t i = 0; i < plan.states.size(); ++i)
    add(states[slab][i], [&](size_t entry) { return layout_.part(set, entry, plan.states[i].extent); });
  return operands;
}

void UpdateCalls::add_dense(UpdateTarget& gradients, const UpdatePlan& plan, std::vector<SlabStates>& states,
                            ErrorSink& sink) {
  for (const GradientRun& part : stretches_of(gradients, runs_, plan.grain)) {
    const std::vector<OperandCall::Operand> changed = changed_by(gradients, plan, states, part.entries);
    std::vector<OperandCall::Operand> inputs = changed;
    inputs.insert(inputs.begin() + 1, {part.gradient_dtype, const_cast<void*>(part.gradients)});
    const auto elements = static_cast<int64_t>(part.elements);
    const int64_t height = StateLayout::rows(gradients.set()->entries()[part.entries[0]]);
    const int64_t row_elements = height == 0 ? 0 : elements / height;
    const bool by_row = plan.grain == TN_GRAIN_ROW || plan.grain == TN_GRAIN_MATRIX;
    const Dim rows = tn_dim_constant(by_row ? height : 1);
    const Dim columns = tn_dim_constant(by_row ? row_elements : elements);
    stretches_.push_back({OperandCall::over_grid(*gradients.device(), sink, plan.program, TN_F32, rows, columns,
                                                 with_scalars(std::move(inputs)), changed),
                          part.multipliers, static_cast<double>(row_elements)});
  }
}

void UpdateCalls::add_sparse(UpdateTarget& gradients, const SparseGradient& gradient, const UpdatePlan& plan,
                             std::vector<SlabStates>& states, ErrorSink& sink) {
  const ParameterEntry& entry = gradients.set()->entries()[gradient.entry()];
  if (plan.grain == TN_GRAIN_TENSOR || plan.grain == TN_GRAIN_MATRIX)
    fail(TN_UNSUPPORTED, sink.who(), " updates whole tensors, and the gradient of parameter \"", entry.name,
         "\" is of rows; set \"param.<suffix>.sparse\" of its layers to false");
  const std::vector<OperandCall::Operand> changed = changed_by(gradients, plan, states, {gradient.entry()});
  std::vector<OperandCall::Operand> inputs = changed;
  inputs.insert(inputs.begin() + 1, {gradient.dtype(), gradient.values(), &gradient.rows()});
  stretches_.push_back({OperandCall::over_rows(*gradients.device(), sink, plan.program, gradient.capacity(),
                                               gradient.width(), with_scalars(std::move(inputs)), changed),
                        entry.multipliers, static_cast<double>(gradient.width())});
}

// Adds a call for the sum of squares of each run and each row-sparse gradient, whose number of rows is a symbol.
void UpdateCalls::add_sums(Device& device, ErrorSink& sink) {
  auto* sums = reinterpret_cast<float*>(control_.data() + sums_at_);
  const Program squares = sum_of_squares();
  const auto add = [&](const Dim& rows, const Dim& columns, tn_dtype dtype, void* gradient) {
    sums_.push_back(OperandCall::over_grid(device, sink, squares, TN_F32, rows, columns, {{dtype, gradient}},
                                           {{TN_F32, sums + sums_.size()}}));
  };
  for (const GradientRun& run : runs_)
    add(tn_dim_constant(1), tn_dim_constant(static_cast<int64_t>(run.elements)), run.gradient_dtype,
        const_cast<void*>(run.gradients));
  for (size_t i = 0; i < sparse_.size(); ++i) {
    const SparseGradient& gradient = *sparse_[i];
    Dim rows = tn_dim_symbol(TN_SYMBOL_FIRST_RAGGED + static_cast<int32_t>(i));
    rows.bound = gradient.capacity();
    add(rows, tn_dim_constant(gradient.width()), gradient.dtype(), gradient.values());
  }
}

// Adds a call for the clipping factor, of which the host reads nothing.
void UpdateCalls::add_clipping(Device& device, ErrorSink& sink, double limit) {
  clipping_ = OperandCall::over_grid(device, sink, clip_factor(limit), TN_F32, tn_dim_constant(1),
                                     tn_dim_constant(static_cast<int64_t>(sums_.size())),
                                     {{TN_F32, control_.data() + sums_at_}}, {{TN_F32, &control()->clip_factor}});
}

// Whether all sums of squares are finite, as those of finite gradients are up to some 1e19.
bool UpdateCalls::is_finite(HostAccess& access) const {
  const auto* const sums =
      static_cast<const float*>(access.view(control_.data() + sums_at_, sums_.size() * sizeof(float)));
  return std::all_of(sums, sums + sums_.size(), [](float sum) { return std::isfinite(sum); });
}

bool UpdateCalls::run(UpdateTarget& gradients, double learning_rate, uint64_t step, ErrorSink& sink) {
  HostAccess& access = gradients.access();
  std::byte* at = staged_.data() + scalars_at_;
  for (const Stretch& stretch : stretches_) {
    const double offered[] = {learning_rate, static_cast<double>(step), stretch.multipliers.rate(),
                              stretch.multipliers.decay(), stretch.row_elements};
    for (const Scalar& scalar : scalars_) {
      const double value = scalar.which == kScalarClip ? 0 : offered[static_cast<size_t>(scalar.which)];
      const auto real = static_cast<float>(value);
      const auto count = static_cast<int64_t>(step);  // the step is the only integer
      if (scalar.dtype == TN_I64)
        std::memcpy(at, &count, sizeof count);
      else
        std::memcpy(at, &real, sizeof real);
      at += kScalarBytes;
    }
  }
  for (const Changed& each : changed_) each.residence.bring(each.part);
  auto* const host_symbols = reinterpret_cast<int64_t*>(staged_.data() + kSymbolsAt);
  if (host_sizes_)
    for (size_t i = 0; i < sparse_.size(); ++i) host_symbols[TN_SYMBOL_FIRST_RAGGED + i] = sparse_[i]->count();
  access.write(control_.data(), staged_.data(), staged_.size());
  auto* symbols = reinterpret_cast<int64_t*>(control_.data() + kSymbolsAt);
  for (size_t i = 0; i < sparse_.size(); ++i)
    access.move(symbols + TN_SYMBOL_FIRST_RAGGED + i, sparse_[i]->rows().count, sizeof(int64_t));
  tn_execution execution = {};
  execution.size = sizeof execution;
  execution.device = gradients.device()->instance();
  execution.stream = access.stream();
  execution.symbols = symbols;
  execution.host_symbols = host_symbols;
  execution.random = &control()->random;
  execution.parallel = gradients.parallel();
  execution.errors = sink.get();
  const int64_t* rows = nullptr;
  const FloatingPointMode mode;  // also of what a kernel computes outside of parallel regions
  try {
    for (const auto& call : sums_) call->run(execution, sink);
    if (skips_ && !is_finite(access)) return false;
    // Before a parameter changes, since it may need memory.
    rows =
        static_cast<const int64_t*>(access.fetch(symbols + TN_SYMBOL_FIRST_RAGGED, sparse_.size() * sizeof(int64_t)));
    if (clipping_ != nullptr) clipping_->run(execution, sink);
    for (const Changed& each : changed_) each.residence.changed(each.part);  // a part of it, if a call fails
    for (const Stretch& stretch : stretches_) stretch.call->run(execution, sink);
  } catch (...) {
    access.finish();
    throw;
  }
  access.wait(sink.who());
  count_written(rows);
  return true;
}

void UpdateCalls::count_written(const int64_t* rows) {
  written_ = {};
  written_.bytes = dense_bytes_;
  for (size_t i = 0; i < sparse_.size(); ++i) {
    const auto count = static_cast<uint64_t>(rows[i]);
    written_.rows += count;
    written_.bytes +=
        count * (states_[TN_FULL] * static_cast<uint64_t>(sparse_[i]->width()) + states_[TN_PER_ROW]) * sizeof(float);
  }
}

}  // namespace tenon::host
