// SPDX-License-Identifier: Apache-2.0
#include "host/updating.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "host/barrier.h"
#include "host/error_sink.h"
#include "host/update_calls.h"

namespace tenon {

struct Updater::State {
  std::weak_ptr<ParameterSet> set;
  std::vector<SlabSlots> slots;  // one per slab of the set
  uint64_t step = 0;
  std::vector<std::unique_ptr<UpdateCalls>> calls;  // most recent last
};

// What record writes into.
struct UpdateRecording {
  Updater& updater;
  ErrorSink& errors;

  ErrorSink& sink() { return errors; }

  static int32_t slot(void* self, const char* name, double initial) {
    int32_t index = -1;
    lent<UpdateRecording>(self, [&](UpdateRecording& recording) {
      if (name == nullptr) fail(TN_PLUGIN_FAULT, "a slot without a name");
      recording.updater.slots_.emplace_back(name, initial);
      index = static_cast<int32_t>(recording.updater.slots_.size() - 1);
    });
    return index;
  }

  static tn_status program(void* self, const tn_program* program, const int32_t* scalars, uint32_t count,
                           int32_t grain) {
    return lent<UpdateRecording>(self, [&](UpdateRecording& recording) {
      if (program == nullptr || (count > 0 && scalars == nullptr)) fail(TN_PLUGIN_FAULT, "record gave a null program");
      Updater& made = recording.updater;
      made.program_ = Program::from(*program);
      made.scalars_.assign(scalars, scalars + count);
      made.grain_ = grain;
      made.check_program();
      made.recorded_ = true;
    });
  }
};

namespace {

// An unknown attribute is named with what it may have meant, the host's own included.
void check_names(const std::vector<Attribute>& declared, const Values& given) {
  std::vector<std::string> known = UpdaterOptions::names();
  for (const Attribute& attribute : declared) known.push_back(attribute.name);
  for (const auto& [name, value] : given)
    if (std::find(known.begin(), known.end(), name) == known.end())
      fail(TN_INVALID, "unknown attribute \"", name, "\"", suggestion(name, known));
}

}  // namespace

Updater::Updater(const UpdaterType& type, const Values& attributes) : type_(type) {
  try {
    Values own = attributes;
    options_ = UpdaterOptions::take(own);
    check_names(type.description.attributes, own);
    attributes_ = resolve(type.description.attributes, own);
  } catch (const Error& error) {
    throw Error(error.code(), "updater \"" + type.description.type + "\": " + error.message());
  }
  for (size_t i = 0; i < attributes_.size(); ++i)
    if (type.description.attributes[i].name == "learning_rate")
      if (const auto* rate = std::get_if<double>(&attributes_[i])) learning_rate_ = *rate;
  const AttributesView view(type.description.attributes, attributes_);
  ErrorSink sink("updater \"" + this->type() + "\"", type.tags);
  UpdateRecording recording{*this, sink};
  const Loan<tn_update_recorder> recorder(type.tags, &recording, "recorder", sink.who());
  recorder->errors = sink.get();
  recorder->attributes = view.get();
  recorder->slot = &UpdateRecording::slot;
  recorder->program = &UpdateRecording::program;
  sink.check(call_plugin(type, sink.who(), {Tag::kSetup, "record"}, type.table.record, recorder.get()));
  if (!recorded_) fail(TN_PLUGIN_FAULT, "updater \"", this->type(), "\" recorded no program");
  if (options_.changes_gradient()) program_ = with_options(program_, options_, slots_.size(), scalars_);
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

double Updater::scheduled_rate(const std::shared_ptr<ParameterSet>& set) const {
  uint64_t step = 1;
  for (const auto& state : states_)
    if (state->set.lock() == set) step = std::max<uint64_t>(state->step, 1);
  return learning_rate_ * options_.schedule.factor(step);
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
      for (const auto& calls : state->calls) bytes += calls->workspace_bytes();
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

UpdateCalls& Updater::calls_for(State& state, Machine& machine, std::vector<GradientRun> runs, ErrorSink& sink) {
  constexpr size_t kKept = 8;  // machines that alternate on one set, as in adversarial training
  for (const auto& calls : state.calls)
    if (calls->is_for(runs)) return *calls;
  const UpdatePlan plan = {program_, scalars_, grain_, options_.clip_norm};
  auto made = std::make_unique<UpdateCalls>(machine, std::move(runs), plan, state.slots, sink);
  if (state.calls.size() == kKept) state.calls.erase(state.calls.begin());
  state.calls.push_back(std::move(made));
  return *state.calls.back();
}

void Updater::update(Machine& machine, const Topology* model) {
  if (!machine.has_gradients()) return;
  ErrorSink sink("updater \"" + type() + "\"", type_.tags);
  State& state = state_for(machine.set());
  std::vector<GradientRun> runs = machine.gradient_runs(model);
  if (!runs.empty()) {
    const uint64_t step = state.step + 1;
    UpdateCalls& calls = calls_for(state, machine, std::move(runs), sink);
    calls.run(machine, learning_rate_ * options_.schedule.factor(step), step, sink);
    state.step = step;
  }
  machine.commit(model);
}

}  // namespace tenon
