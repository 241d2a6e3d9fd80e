// SPDX-License-Identifier: Apache-2.0
#include "host/update_calls.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"

namespace tenon {

namespace {

tn_tensor flat_tensor(FlatCall::Operand operand, const int64_t* shape, int32_t device_type) {
  tn_tensor tensor = {};
  tensor.size = sizeof tensor;
  tensor.alignment = 64;
  tensor.dl.data = operand.data;
  tensor.dl.device = {static_cast<DLDeviceType>(device_type), 0};
  tensor.dl.ndim = 1;
  tensor.dl.dtype = {static_cast<uint8_t>(tn_dtype_code(operand.dtype)),
                     static_cast<uint8_t>(tn_dtype_bits(operand.dtype)), 1};
  tensor.dl.shape = const_cast<int64_t*>(shape);
  return tensor;
}

std::vector<tn_dtype> types_of(const std::vector<FlatCall::Operand>& operands) {
  std::vector<tn_dtype> types;
  for (const FlatCall::Operand& operand : operands) types.push_back(operand.dtype);
  return types;
}

// The stretches of a machine's parameters that one call may cover: whole runs, or one tensor each.
std::vector<GradientRun> stretches_of(const Machine& machine, const std::vector<GradientRun>& runs, int32_t grain) {
  if (grain == TN_GRAIN_ELEMENT) return runs;
  std::vector<GradientRun> result;
  for (const GradientRun& run : runs)
    for (const size_t number : run.entries) {
      const ParameterEntry& entry = machine.set()->entries()[number];
      const uint64_t within = entry.offset - run.offset;
      GradientRun part = run;
      part.parameters = run.parameters + within;
      part.gradients = static_cast<const std::byte*>(run.gradients) + within * tn_dtype_bytes(run.gradient_dtype);
      part.offset = entry.offset;
      part.elements = entry.count;
      part.entries = {number};
      result.push_back(std::move(part));
    }
  return result;
}

}  // namespace

FlatCall::FlatCall(Device& device, ErrorSink& sink, const Program& program, int64_t elements,
                   const std::vector<Operand>& inputs, const std::vector<Operand>& outputs)
    : elements_(elements) {
  const auto* table = device.primitives<tn_pointwise_table>(TN_POINTWISE);
  if (table == nullptr) fail(TN_UNSUPPORTED, "device \"", device.kind(), "\" does not offer ", TN_POINTWISE);
  const std::vector<tn_dtype> input_types = types_of(inputs);
  const std::vector<tn_dtype> output_types = types_of(outputs);
  const tn_program view = program.view();
  tn_pointwise_site site = {};
  site.size = sizeof site;
  site.compute = TN_F32;
  site.program = &view;
  site.extents = program.extents.data();
  site.inputs = input_types.data();
  site.outputs = output_types.data();
  site.rows = tn_dim_constant(1);
  site.columns = tn_dim_constant(elements);
  prepared_.prepare(device.origin(), sink, table->prepare, device.instance(), device.services(), sink.get(), &site);

  const int32_t type = device.table().description->dlpack_type;
  const auto shape = [&](uint8_t extent) { return extent == TN_FULL ? &elements_ : &one_; };
  for (size_t i = 0; i < inputs.size(); ++i)
    tensors_.push_back(flat_tensor(inputs[i], shape(program.inputs[i].extent), type));
  for (size_t i = 0; i < outputs.size(); ++i)
    tensors_.push_back(flat_tensor(outputs[i], shape(program.output_extent(i)), type));
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (i < inputs.size())
      inputs_.push_back(&tensors_[i]);
    else
      outputs_.push_back(&tensors_[i]);
  }
  requests_.assign(outputs.size(), TN_REQUEST_WRITE);
  call_.size = sizeof call_;
  call_.inputs_count = static_cast<uint32_t>(inputs_.size());
  call_.outputs_count = static_cast<uint32_t>(outputs_.size());
  call_.inputs = inputs_.data();
  call_.outputs = outputs_.data();
  call_.requests = requests_.data();
}

UpdateCalls::UpdateCalls(Machine& machine, std::vector<GradientRun> runs, const UpdatePlan& plan,
                         const std::vector<SlabSlots>& slots, ErrorSink& sink)
    : runs_(std::move(runs)), scalars_(plan.scalars) {
  Device& device = *machine.device();
  const std::vector<GradientRun> parts = stretches_of(machine, runs_, plan.grain);
  const uint64_t scalars = parts.size() * scalars_.size();
  staged_.resize(kScalarsAt + scalars * sizeof(float));
  control_ = DeviceMemory(machine.device(), staged_.size() + runs_.size() * sizeof(float));
  auto* control = reinterpret_cast<Control*>(control_.data());
  float* scalar = device_scalars();
  for (const GradientRun& part : parts) {
    std::vector<FlatCall::Operand> changed{{TN_F32, part.parameters}};
    for (const Buffer& slot : slots[part.slab])
      changed.push_back({TN_F32, reinterpret_cast<float*>(slot.data()) + part.offset});
    std::vector<FlatCall::Operand> inputs = changed;
    inputs.insert(inputs.begin() + 1, {part.gradient_dtype, const_cast<void*>(part.gradients)});
    for (const int32_t which : scalars_) {
      inputs.push_back({TN_F32, which == kScalarClip ? &control->clip_factor : scalar});
      ++scalar;
    }
    stretches_.push_back(
        {std::make_unique<FlatCall>(device, sink, plan.program, static_cast<int64_t>(part.elements), inputs, changed),
         part.rate_multiplier, part.decay_multiplier});
  }
  if (plan.clip_norm > 0) add_clipping(device, sink, plan.clip_norm);

  uint64_t workspace = 0;
  for (const Stretch& stretch : stretches_) workspace = std::max(workspace, stretch.call->workspace_bytes());
  for (const auto& call : clipping_) workspace = std::max(workspace, call->workspace_bytes());
  workspace_ = DeviceMemory(machine.device(), workspace);
  for (const Stretch& stretch : stretches_) stretch.call->set_workspace(workspace_.data());
  for (const auto& call : clipping_) call->set_workspace(workspace_.data());
}

// A sum of squares for each run, then the factor from all of them. Nothing is read on the host.
void UpdateCalls::add_clipping(Device& device, ErrorSink& sink, double limit) {
  auto* sums = reinterpret_cast<float*>(control_.data() + staged_.size());
  const Program squares = sum_of_squares();
  for (size_t i = 0; i < runs_.size(); ++i)
    clipping_.push_back(std::make_unique<FlatCall>(
        device, sink, squares, static_cast<int64_t>(runs_[i].elements),
        std::vector<FlatCall::Operand>{{runs_[i].gradient_dtype, const_cast<void*>(runs_[i].gradients)}},
        std::vector<FlatCall::Operand>{{TN_F32, sums + i}}));
  auto* control = reinterpret_cast<Control*>(control_.data());
  clipping_.push_back(std::make_unique<FlatCall>(device, sink, clip_factor(limit), static_cast<int64_t>(runs_.size()),
                                                 std::vector<FlatCall::Operand>{{TN_F32, sums}},
                                                 std::vector<FlatCall::Operand>{{TN_F32, &control->clip_factor}}));
}

bool UpdateCalls::is_for(const std::vector<GradientRun>& runs) const {
  return std::equal(runs.begin(), runs.end(), runs_.begin(), runs_.end(),
                    [](const GradientRun& x, const GradientRun& y) {
                      return x.parameters == y.parameters && x.gradients == y.gradients && x.elements == y.elements &&
                             x.gradient_dtype == y.gradient_dtype && x.rate_multiplier == y.rate_multiplier &&
                             x.decay_multiplier == y.decay_multiplier;
                    });
}

void UpdateCalls::run(Machine& machine, double learning_rate, uint64_t step, ErrorSink& sink) {
  Device& device = *machine.device();
  auto* scalar = reinterpret_cast<float*>(staged_.data() + kScalarsAt);
  for (const Stretch& stretch : stretches_) {
    const double offered[4] = {learning_rate, static_cast<double>(step), stretch.rate_multiplier,
                               stretch.decay_multiplier};
    for (const int32_t which : scalars_)
      *scalar++ = which == kScalarClip ? 0.0F : static_cast<float>(offered[static_cast<size_t>(which)]);
  }
  device.copy(control_.data(), staged_.data(), staged_.size(), TN_COPY_TO_DEVICE);
  const auto* control = reinterpret_cast<const Control*>(control_.data());
  tn_execution execution = {};
  execution.size = sizeof execution;
  execution.device = device.instance();
  execution.symbols = control->symbols;
  execution.random = &control->random;
  execution.parallel = machine.parallel();
  execution.errors = sink.get();
  for (const auto& call : clipping_) call->run(execution, sink);
  for (const Stretch& stretch : stretches_) stretch.call->run(execution, sink);
}

}  // namespace tenon
