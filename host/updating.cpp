// SPDX-License-Identifier: Apache-2.0
#include "host/updating.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "host/barrier.h"
#include "host/error_sink.h"

namespace tenon {

namespace {

constexpr size_t kMaxScalars = 16;

tn_tensor flat_tensor(tn_dtype dtype, void* data, const int64_t* shape, int32_t device_type) {
  tn_tensor tensor = {};
  tensor.size = sizeof tensor;
  tensor.alignment = 64;
  tensor.dl.data = data;
  tensor.dl.device = {static_cast<DLDeviceType>(device_type), 0};
  tensor.dl.ndim = 1;
  tensor.dl.dtype = {static_cast<uint8_t>(tn_dtype_code(dtype)), static_cast<uint8_t>(tn_dtype_bits(dtype)), 1};
  tensor.dl.shape = const_cast<int64_t*>(shape);
  return tensor;
}

}  // namespace

// One slab's worth of slots: slot number -> memory in the layout of the slab. Empty for slabs of buffers.
using SlabSlots = std::vector<Buffer>;

// The prepared calls for one machine.
struct Updater::Binding {
  struct Stretch {
    Prepared prepared;
    float scalars[kMaxScalars];
    double rate_multiplier = 1, decay_multiplier = 1;
    int64_t elements = 0;
    int64_t one = 1;
    std::vector<tn_tensor> tensors;  // inputs, then outputs
    std::vector<const tn_tensor*> inputs;
    std::vector<tn_tensor*> outputs;
    std::vector<uint8_t> requests;
    tn_call call = {};

    void connect(const GradientRun& run, const Program& program, const SlabSlots& slots, int32_t device_type);
  };
  std::vector<GradientRun> runs;  // what it was made for
  std::vector<std::unique_ptr<Stretch>> stretches;
  DeviceMemory workspace;

  Binding(Machine& machine, const Program& program, int32_t grain, const std::vector<SlabSlots>& slots,
          ErrorSink& sink);
};

struct Updater::State {
  std::weak_ptr<ParameterSet> set;
  std::vector<SlabSlots> slots;  // one per slab of the set
  uint64_t step = 0;
  std::vector<std::unique_ptr<Binding>> bindings;  // most recent last
};

// What record writes into.
struct UpdateRecording {
  Updater& updater;
  ErrorSink sink;

  explicit UpdateRecording(Updater& made) : updater(made), sink("updater \"" + made.type() + "\"") {}

  static int32_t slot(void* self, const char* name, double initial) {
    auto& recording = *static_cast<UpdateRecording*>(self);
    const tn_status status = guarded(recording.sink, [&] {
      if (name == nullptr) fail(TN_PLUGIN_FAULT, "a slot without a name");
      recording.updater.slots_.emplace_back(name, initial);
    });
    return status == TN_OK ? static_cast<int32_t>(recording.updater.slots_.size() - 1) : -1;
  }

  static tn_status program(void* self, const tn_program* program, const int32_t* scalars, uint32_t count,
                           int32_t grain) {
    auto& recording = *static_cast<UpdateRecording*>(self);
    return guarded(recording.sink, [&] {
      if (program == nullptr || (count > 0 && scalars == nullptr)) fail(TN_PLUGIN_FAULT, "record gave a null program");
      Updater& updater = recording.updater;
      updater.program_ = Program::from(*program);
      updater.scalars_.assign(scalars, scalars + count);
      updater.grain_ = grain;
      updater.check_program();
      updater.recorded_ = true;
    });
  }
};

Updater::Updater(const UpdaterType& type, const Values& attributes) : type_(type) {
  try {
    attributes_ = resolve(type.description.attributes, attributes);
  } catch (const Error& error) {
    throw Error(error.code(), "updater \"" + type.description.type + "\": " + error.message());
  }
  for (size_t i = 0; i < attributes_.size(); ++i)
    if (type.description.attributes[i].name == "learning_rate")
      if (const auto* rate = std::get_if<double>(&attributes_[i])) learning_rate_ = *rate;
  const AttributesView view(type.description.attributes, attributes_);
  UpdateRecording recording(*this);
  tn_update_recorder recorder = {};
  recorder.size = sizeof recorder;
  recorder.self = &recording;
  recorder.errors = recording.sink.get();
  recorder.attributes = view.get();
  recorder.slot = &UpdateRecording::slot;
  recorder.program = &UpdateRecording::program;
  recording.sink.check(type.table.record(&recorder));
  if (!recorded_) fail(TN_PLUGIN_FAULT, "updater \"", this->type(), "\" recorded no program");
}

Updater::~Updater() = default;

void Updater::check_program() const {
  const size_t fulls = 2 + slots_.size();
  if (program_.inputs.size() != fulls + scalars_.size())
    fail(TN_PLUGIN_FAULT, "the program has ", program_.inputs.size(), " inputs; expected parameter, gradient, ",
         slots_.size(), " slots and ", scalars_.size(), " scalars");
  if (program_.outputs.size() != 1 + slots_.size())
    fail(TN_PLUGIN_FAULT, "the program has ", program_.outputs.size(), " outputs; expected ", 1 + slots_.size());
  if (program_.draws()) fail(TN_UNSUPPORTED, "the program draws random numbers, which updaters are not given");
  if (scalars_.size() > kMaxScalars) fail(TN_PLUGIN_FAULT, "the program reads ", scalars_.size(), " scalars");
  for (size_t i = 0; i < program_.inputs.size(); ++i)
    if (program_.inputs[i].kind != TN_FLOAT || program_.inputs[i].extent != (i < fulls ? TN_FULL : TN_SCALAR))
      fail(TN_PLUGIN_FAULT, "program input ", i, " has the wrong extent or kind");
  for (size_t i = 0; i < program_.outputs.size(); ++i)
    if (program_.output_extent(i) != TN_FULL) fail(TN_PLUGIN_FAULT, "program output ", i, " is not FULL");
  for (const int32_t scalar : scalars_)
    if (scalar < TN_SCALAR_LEARNING_RATE || scalar > TN_SCALAR_DECAY_MULTIPLIER)
      fail(TN_UNSUPPORTED, "the program reads scalar ", scalar, ", which this host does not offer");
  if (grain_ < TN_GRAIN_ELEMENT || grain_ > TN_GRAIN_TENSOR) fail(TN_PLUGIN_FAULT, "unknown grain ", grain_);
  const bool whole = std::any_of(program_.extents.begin(), program_.extents.end(),
                                 [](uint8_t extent) { return extent == TN_PER_ROW || extent == TN_PER_COLUMN; }) ||
                     std::any_of(program_.instructions.begin(), program_.instructions.end(),
                                 [](const tn_instruction& in) { return in.op >= TN_OP_REDUCE_SUM; });
  if (whole && grain_ != TN_GRAIN_TENSOR)
    fail(TN_PLUGIN_FAULT, "a program with indices or reductions needs the grain of a tensor");
}

void Updater::set_learning_rate(double rate) {
  if (!std::isfinite(rate) || rate < 0) fail(TN_INVALID, "learning_rate ", rate, " is not a number of at least 0");
  learning_rate_ = rate;
}

uint64_t Updater::slot_bytes(const ParameterSet& set) const {
  uint64_t bytes = 0;
  for (const ParameterSlab& slab : set.slabs())
    if (!slab.buffer) bytes += slab.padded_elements * sizeof(float) * slots_.size();
  return bytes;
}

uint64_t Updater::workspace_bytes(const std::shared_ptr<ParameterSet>& set) const {
  uint64_t bytes = 0;
  for (const auto& state : states_)
    if (state->set.lock() == set)
      for (const auto& binding : state->bindings) bytes += binding->workspace.size();
  return bytes;
}

Updater::State& Updater::state_for(const std::shared_ptr<ParameterSet>& set) {
  std::erase_if(states_, [](const auto& state) { return state->set.expired(); });
  const auto found =
      std::find_if(states_.begin(), states_.end(), [&](const auto& state) { return state->set.lock() == set; });
  State* state = found == states_.end() ? nullptr : found->get();
  std::unique_ptr<State> fresh;
  if (state == nullptr) {
    fresh = std::make_unique<State>();
    fresh->set = set;
    state = fresh.get();
  }
  while (state->slots.size() < set->slabs().size()) {  // slabs that were added since
    const ParameterSlab& slab = set->slabs()[state->slots.size()];
    SlabSlots buffers;
    for (const auto& [name, initial] : slots_) {
      if (slab.buffer) break;
      buffers.emplace_back(set->allocator(), slab.padded_elements * sizeof(float));
      std::fill_n(reinterpret_cast<float*>(buffers.back().data()), slab.padded_elements, static_cast<float>(initial));
    }
    state->slots.push_back(std::move(buffers));
  }
  if (fresh) states_.push_back(std::move(fresh));
  return *state;
}

namespace {

bool same_runs(const std::vector<GradientRun>& a, const std::vector<GradientRun>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const GradientRun& x, const GradientRun& y) {
    return x.parameters == y.parameters && x.gradients == y.gradients && x.elements == y.elements &&
           x.gradient_dtype == y.gradient_dtype && x.rate_multiplier == y.rate_multiplier &&
           x.decay_multiplier == y.decay_multiplier;
  });
}

// The stretches of a machine's parameters that one call may cover: whole runs, or one tensor each.
std::vector<GradientRun> stretches_of(const Machine& machine, int32_t grain) {
  if (grain == TN_GRAIN_ELEMENT) return machine.gradient_runs();
  std::vector<GradientRun> result;
  for (const GradientRun& run : machine.gradient_runs())
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

// Prepares one call per stretch; in place: outputs are the memory of the inputs.
Updater::Binding::Binding(Machine& machine, const Program& program, int32_t grain, const std::vector<SlabSlots>& slots,
                          ErrorSink& sink)
    : runs(machine.gradient_runs()) {
  Device& device = *machine.device();
  const auto* table = device.primitives<tn_pointwise_table>(TN_POINTWISE);
  if (table == nullptr) fail(TN_UNSUPPORTED, "device \"", device.kind(), "\" does not offer ", TN_POINTWISE);
  uint64_t workspace_bytes = 0;
  for (const GradientRun& run : stretches_of(machine, grain)) {
    auto made = std::make_unique<Stretch>();
    made->elements = static_cast<int64_t>(run.elements);
    made->rate_multiplier = run.rate_multiplier;
    made->decay_multiplier = run.decay_multiplier;
    std::vector<tn_dtype> inputs(program.inputs.size(), TN_F32);
    inputs[1] = run.gradient_dtype;
    const std::vector<tn_dtype> outputs(program.outputs.size(), TN_F32);
    const tn_program view = program.view();
    tn_pointwise_site site = {};
    site.size = sizeof site;
    site.compute = TN_F32;
    site.program = &view;
    site.extents = program.extents.data();
    site.inputs = inputs.data();
    site.outputs = outputs.data();
    site.rows = tn_dim_constant(1);
    site.columns = tn_dim_constant(made->elements);
    sink.check(table->prepare(device.instance(), device.services(), sink.get(), &site, made->prepared.get()));
    workspace_bytes = std::max(workspace_bytes, made->prepared.get()->workspace_bytes);
    made->connect(run, program, slots[run.slab], device.table().description->dlpack_type);
    stretches.push_back(std::move(made));
  }
  workspace = DeviceMemory(machine.device(), workspace_bytes);
  for (auto& stretch : stretches) stretch->call.workspace = workspace.data();
}

void Updater::Binding::Stretch::connect(const GradientRun& run, const Program& program, const SlabSlots& slots,
                                        int32_t device_type) {
  const auto add = [&](tn_dtype dtype, void* data, const int64_t* shape) {
    tensors.push_back(flat_tensor(dtype, data, shape, device_type));
  };
  const auto add_slots = [&] {
    for (const Buffer& slot : slots) add(TN_F32, reinterpret_cast<float*>(slot.data()) + run.offset, &elements);
  };
  add(TN_F32, run.parameters, &elements);
  add(run.gradient_dtype, const_cast<void*>(run.gradients), &elements);
  add_slots();
  for (size_t i = tensors.size(); i < program.inputs.size(); ++i) add(TN_F32, &scalars[i - 2 - slots.size()], &one);
  add(TN_F32, run.parameters, &elements);
  add_slots();
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (i < program.inputs.size())
      inputs.push_back(&tensors[i]);
    else
      outputs.push_back(&tensors[i]);
  }
  requests.assign(outputs.size(), TN_REQUEST_WRITE);
  call.size = sizeof call;
  call.inputs_count = static_cast<uint32_t>(inputs.size());
  call.outputs_count = static_cast<uint32_t>(outputs.size());
  call.inputs = inputs.data();
  call.outputs = outputs.data();
  call.requests = requests.data();
}

Updater::Binding& Updater::binding_for(State& state, Machine& machine, ErrorSink& sink) {
  constexpr size_t kKept = 8;  // machines that alternate on one set, as in adversarial training
  for (const auto& binding : state.bindings)
    if (same_runs(binding->runs, machine.gradient_runs())) return *binding;
  auto made = std::make_unique<Binding>(machine, program_, grain_, state.slots, sink);
  if (state.bindings.size() == kKept) state.bindings.erase(state.bindings.begin());
  state.bindings.push_back(std::move(made));
  return *state.bindings.back();
}

void Updater::update(Machine& machine) {
  if (!machine.has_gradients()) return;
  ErrorSink sink("updater \"" + type() + "\"");
  State& state = state_for(machine.set());
  const Binding& binding = binding_for(state, machine, sink);
  const int64_t symbols[2] = {0, 0};
  const tn_random random = {};
  tn_execution execution = {};
  execution.size = sizeof execution;
  execution.device = machine.device()->instance();
  execution.symbols = symbols;
  execution.random = &random;
  execution.parallel = machine.parallel();
  execution.errors = sink.get();
  const auto step = static_cast<double>(state.step + 1);
  for (const auto& stretch : binding.stretches) {
    const double offered[4] = {learning_rate_, step, stretch->rate_multiplier, stretch->decay_multiplier};
    for (size_t i = 0; i < scalars_.size(); ++i)
      stretch->scalars[i] = static_cast<float>(offered[static_cast<size_t>(scalars_[i])]);
    const tn_prepared& prepared = *stretch->prepared;
    sink.check(prepared.run(prepared.binding, &execution, &stretch->call));
  }
  ++state.step;
  machine.commit();
}

}  // namespace tenon
