// SPDX-License-Identifier: Apache-2.0
#include "host/training/program_updater.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/nearest.h"
#include "core/error.h"
#include "host/plugins/callback.h"
#include "host/plugins/error_sink.h"
#include "host/plugins/manifest.h"
#include "host/training/update_calls.h"

namespace tenon::host {

struct ProgramUpdater::ProgramState final : SetState {
  std::weak_ptr<ParameterSet> set;
  std::vector<SlabStates> slabs;  // one per slab of the set
  uint64_t step = 0, skipped = 0;
  UpdateCalls::Written written;                     // by the last step
  std::vector<std::unique_ptr<UpdateCalls>> calls;  // oldest first
};

// The state behind the callbacks of a plugin's record.
struct UpdateRecording {
  ProgramUpdater& updater;
  ErrorSink& errors;

  ErrorSink& sink() { return errors; }

  int32_t state(const tn_state* state) { return updater.declare(state); }
  void program(const tn_update* update) { updater.set_program(update); }
};

namespace {

// Refuses unknown attributes. Suggestions are the type's own attributes, then the host's options.
void check_names(const std::vector<Attribute>& declared, const Values& given) {
  std::vector<std::string> known;
  for (const Attribute& attribute : declared) known.push_back(attribute.name);
  for (std::string& name : UpdaterOptions::names()) known.push_back(std::move(name));
  for (const auto& [name, value] : given) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    if (name == "schedule")
      fail(TN_INVALID, SubjectName{name},
           "attribute \"schedule\": expected a table with the type and the attributes of a ",
           "schedule, such as { type = \"cosine\", steps = 1000 }, got ", shown(value));
    fail(TN_INVALID, SubjectName{name}, "unknown attribute \"", name, "\"", base::suggestion(name, known));
  }
}

}  // namespace

ProgramUpdater::ProgramUpdater(const UpdaterType& type, const Values& attributes) : type_(type), given_(attributes) {
  try {
    Values own = attributes;
    options_ = UpdaterOptions::take(own);
    check_names(type.description.attributes, own);
    attributes_ = resolve(type.description.attributes, own);
  } catch (const Error& error) {
    throw error.with_component("updater \"" + type.description.type + "\"");
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
  recorder->user = type.table.user;
  recorder->state = LentFunction<UpdateRecording, &UpdateRecording::state>();
  recorder->program = LentFunction<UpdateRecording, &UpdateRecording::program>();
  sink.check(call_plugin(type, sink.who(), {Tag::kSetup, "record"}, type.table.record, recorder.get()));
  if (!recorded_) throw Error(TN_PLUGIN_FAULT, sink.who() + " recorded no program", sink.who());
  if (options_.changes_gradient() || !declared_.empty())
    program_ = with_options(program_, options_, declared_.size(), scalars_);
}

// Appends a state that record declares and returns its number.
int32_t ProgramUpdater::declare(const tn_state* given) {
  const size_t number = declared_.size();
  if (given == nullptr || !TN_HAS(given, tn_state, initial))
    fail(TN_PLUGIN_FAULT, "state ", number, " is null or too short");
  if (given->name == nullptr || *given->name == '\0') fail(TN_PLUGIN_FAULT, "state ", number, " has no name");
  const std::string name = given->name;
  if (!is_word(name)) fail(TN_PLUGIN_FAULT, "state \"", name, "\": its name needs lower case letters, digits and _");
  const auto bad = [&](tn_status code, const auto&... parts) {
    fail(code, SubjectName{name}, "state \"", name, "\"", parts...);
  };
  if (recorded_) bad(TN_PLUGIN_FAULT, " after the program");
  for (const StateDeclaration& other : declared_)
    if (other.name == name) bad(TN_PLUGIN_FAULT, " is declared twice");
  if (given->extent == TN_SCALAR || given->extent > TN_FULL)
    bad(TN_UNSUPPORTED, " has extent ", int{given->extent}, "; expected TN_FULL (", int{TN_FULL}, "), TN_PER_ROW (",
        int{TN_PER_ROW}, ") or TN_PER_COLUMN (", int{TN_PER_COLUMN}, ")");
  if (given->dtype != TN_F32)
    bad(TN_UNSUPPORTED, " has type ", dtype_name(given->dtype), "; expected ", dtype_name(TN_F32));
  if (!std::isfinite(static_cast<float>(given->initial)))
    bad(TN_PLUGIN_FAULT, " begins with ", given->initial, ", which float32 does not hold");
  check_unused(given->reserved[0] | given->reserved[1] | given->reserved[2], "reserved member of a tn_state");
  check_unused(given->reserved2, "reserved member of a tn_state");
  declared_.push_back({name, given->initial, given->extent});
  return static_cast<int32_t>(number);
}

void ProgramUpdater::set_program(const tn_update* update) {
  const bool whole = update != nullptr && TN_HAS(update, tn_update, scalars_count);
  if (!whole || update->program == nullptr || (update->scalars_count > 0 && update->scalars == nullptr))
    fail(TN_PLUGIN_FAULT, "record's program is null or too short");
  if (recorded_) fail(TN_PLUGIN_FAULT, "record gives a second program");
  check_unused(update->reserved, "reserved member of a tn_update");
  program_ = Program::from(*update->program);
  scalars_.assign(update->scalars, update->scalars + update->scalars_count);
  grain_ = update->grain;
  check_program();
  recorded_ = true;
}

void ProgramUpdater::check_program() const {
  const size_t fulls = 2 + declared_.size();
  if (program_.inputs.size() != fulls + scalars_.size())
    fail(TN_PLUGIN_FAULT, "the program has ", program_.inputs.size(), " inputs; expected parameter, gradient, ",
         declared_.size(), " states and ", scalars_.size(), " scalars");
  if (program_.outputs.size() != 1 + declared_.size())
    fail(TN_PLUGIN_FAULT, "the program has ", program_.outputs.size(), " outputs; expected ", 1 + declared_.size());
  if (program_.draws()) fail(TN_UNSUPPORTED, "the program draws random numbers, which updaters are not given");
  const auto extent_of_input = [&](size_t i) -> uint8_t {
    if (i >= fulls) return TN_SCALAR;
    if (i < 2) return TN_FULL;
    return declared_[i - 2].extent;
  };
  const auto is_step = [&](size_t i) { return i >= fulls && scalars_[i - fulls] == TN_SCALAR_STEP; };
  for (size_t i = 0; i < program_.inputs.size(); ++i) {
    const uint8_t kind = program_.inputs[i].kind;
    const bool right_kind = kind == TN_FLOAT || (kind == TN_INT && is_step(i));
    if (!right_kind || program_.inputs[i].extent != extent_of_input(i))
      fail(TN_PLUGIN_FAULT, "program input ", i, " has the wrong extent or kind");
  }
  for (size_t i = 0; i < program_.outputs.size(); ++i)
    if (program_.output_extent(i) != extent_of_input(i == 0 ? 0 : i + 1))
      fail(TN_PLUGIN_FAULT, "program output ", i, " has the wrong extent");
  for (size_t i = 0; i < program_.outputs.size(); ++i) {
    const tn_program_output& output = program_.outputs[i];
    const tn_instruction& made = program_.instructions[static_cast<size_t>(output.value)];
    if (made.kind != TN_FLOAT || (output.dtype != TN_COMPUTE && output.dtype != TN_F32))
      fail(TN_UNSUPPORTED, "program output ", i, " is ", made.kind == TN_FLOAT ? dtype_name(output.dtype) : "no float",
           "; expected float32");
  }
  for (const int32_t scalar : scalars_)
    if (scalar < TN_SCALAR_LEARNING_RATE || scalar > TN_SCALAR_ROW_ELEMENTS)
      fail(TN_UNSUPPORTED, "the program reads scalar ", scalar, ", which this host does not offer");
  if (grain_ < TN_GRAIN_ELEMENT || grain_ > TN_GRAIN_MATRIX) fail(TN_PLUGIN_FAULT, "unknown grain ", grain_);
  check_grain();
}

// Checks that the program reads nothing beyond its grain.
void ProgramUpdater::check_grain() const {
  const auto has = [this](uint8_t extent) {
    return std::any_of(declared_.begin(), declared_.end(),
                       [=](const StateDeclaration& each) { return each.extent == extent; });
  };
  if (has(TN_PER_ROW) && grain_ != TN_GRAIN_ROW && grain_ != TN_GRAIN_MATRIX)
    fail(TN_PLUGIN_FAULT, "states per row need the grain of a row or of a matrix");
  if (has(TN_PER_COLUMN) && grain_ != TN_GRAIN_MATRIX)
    fail(TN_PLUGIN_FAULT, "states per column need the grain of a matrix");
  const bool reads_row = std::find(scalars_.begin(), scalars_.end(), TN_SCALAR_ROW_ELEMENTS) != scalars_.end();
  if (reads_row && grain_ == TN_GRAIN_ELEMENT)
    fail(TN_PLUGIN_FAULT, "a program that reads the length of a row needs the grain of a row");
  if (grain_ == TN_GRAIN_TENSOR || grain_ == TN_GRAIN_MATRIX) return;
  for (size_t i = 0; i < program_.instructions.size(); ++i) {
    const uint16_t op = program_.instructions[i].op;
    const bool reduces = tn_op_info(op).op_class == TN_CLASS_REDUCTION;
    const bool along_row = grain_ == TN_GRAIN_ROW && program_.extents[i] == TN_PER_ROW && op != TN_OP_ROW;
    if (reduces || program_.extents[i] == TN_PER_ROW || program_.extents[i] == TN_PER_COLUMN)
      if (!along_row)
        fail(TN_PLUGIN_FAULT,
             "a program with indices, or reductions beyond a row, needs the grain of a tensor or matrix");
  }
}

void check_steps(uint64_t steps) {
  if (steps > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    fail(TN_INVALID, SubjectName{"steps"}, "steps is ", steps, "; expected less than 2^63");
}

void check_learning_rate(double rate) {
  if (!std::isfinite(rate) || rate < 0)
    fail(TN_INVALID, SubjectName{"learning_rate"}, "learning_rate ", rate, " is not a number of at least 0");
}

void ProgramUpdater::set_learning_rate(double rate) {
  check_learning_rate(rate);
  learning_rate_ = rate;
}

// Returns null before the first update of the set.
const ProgramUpdater::ProgramState* ProgramUpdater::known(const std::shared_ptr<ParameterSet>& set) const {
  for (const auto& state : sets_)
    if (state->set.lock() == set) return state.get();
  return nullptr;
}

UpdateCalls::Written ProgramUpdater::written(const std::shared_ptr<ParameterSet>& set) const {
  const ProgramState* state = known(set);
  return state == nullptr ? UpdateCalls::Written{} : state->written;
}

double ProgramUpdater::scheduled_rate(const std::shared_ptr<ParameterSet>& set) const {
  const uint64_t rows = set->owned() == nullptr ? 0 : steps(set->owned());  // of a model of tables alone
  const uint64_t step = std::max<uint64_t>({steps(set), rows, 1});
  return learning_rate_ * options_.schedule.factor(step);
}

uint64_t ProgramUpdater::state_bytes(const ParameterSet& set) const {
  uint64_t bytes = 0;
  const StateLayout layout(set);
  for (size_t i = 0; i < set.slabs().size(); ++i)
    for (const StateDeclaration& each : declared_)
      if (!set.slabs()[i].buffer) bytes += sizeof(float) * layout.size(i, each.extent);
  return bytes;
}

uint64_t ProgramUpdater::workspace_bytes(const std::shared_ptr<ParameterSet>& set) const {
  uint64_t bytes = 0;
  if (const ProgramState* state = known(set))
    for (const auto& calls : state->calls) bytes += calls->workspace_bytes();
  return bytes;
}

ProgramUpdater::ProgramState& ProgramUpdater::state_for(const std::shared_ptr<ParameterSet>& set) {
  std::erase_if(sets_, [](const auto& state) { return state->set.expired(); });
  const auto found =
      std::find_if(sets_.begin(), sets_.end(), [&](const auto& state) { return state->set.lock() == set; });
  ProgramState* state = found == sets_.end() ? nullptr : found->get();
  std::shared_ptr<ProgramState> fresh;
  if (state == nullptr) {
    fresh = std::make_shared<ProgramState>();
    fresh->set = set;
    state = fresh.get();
  }
  add_slabs(*state, *set);
  if (fresh) sets_.push_back(std::move(fresh));
  return *state;
}

// Adds states for the slabs that the set has got since.
void ProgramUpdater::add_slabs(ProgramState& state, const ParameterSet& set) const {
  if (state.slabs.size() == set.slabs().size()) return;
  const StateLayout layout(set);
  while (state.slabs.size() < set.slabs().size()) {
    const size_t number = state.slabs.size();
    const ParameterSlab& slab = set.slabs()[number];
    SlabStates states;
    for (const StateDeclaration& each : declared_) {
      if (slab.buffer) break;
      const uint64_t floats = layout.size(number, each.extent);
      states.emplace_back(set.allocator(), floats * sizeof(float));
      std::fill_n(reinterpret_cast<float*>(states.back().data()), floats, static_cast<float>(each.initial));
    }
    state.slabs.push_back(std::move(states));
  }
}

nlohmann::json ProgramUpdater::describe() const {
  nlohmann::json attributes = nlohmann::json::object();
  for (const auto& [name, value] : given_) attributes[name] = to_json(value);
  for (size_t i = 0; i < attributes_.size(); ++i)
    attributes[type_.description.attributes[i].name] = to_json(attributes_[i]);
  return {{"type", type()},
          {"plugin", {{"id", type_.plugin}, {"version", type_.version}}},
          {"state_version", type_.description.state_version},
          {"attributes", attributes}};
}

// state: null for a list without values.
std::vector<Updater::StateValues> ProgramUpdater::views(ProgramState* state, const ParameterSet& set) const {
  std::vector<StateValues> result;
  const StateLayout layout(set);
  for (size_t i = 0; i < set.entries().size(); ++i) {
    const ParameterEntry& entry = set.entries()[i];
    if (entry.buffer || entry.table) continue;
    for (size_t number = 0; number < declared_.size(); ++number) {
      const uint8_t extent = declared_[number].extent;
      Home* const home = state == nullptr ? nullptr : &state->slabs[entry.slab][number];
      const Home::Part part = layout.part(set, i, extent);
      result.push_back({declared_[number].name, entry.name, StateLayout::shape(entry, extent),
                        home == nullptr ? nullptr : home->data() + part.offset, StateLayout::count(entry, extent),
                        TN_F32, home, part});
    }
  }
  return result;
}

std::vector<Updater::StateValues> ProgramUpdater::states(const std::shared_ptr<ParameterSet>& set) {
  std::vector<StateValues> states = views(&state_for(set), *set);
  for (const StateValues& each : states) each.bring_home();
  return states;
}

uint64_t ProgramUpdater::steps(const std::shared_ptr<ParameterSet>& set) const {
  const ProgramState* state = known(set);
  return state == nullptr ? 0 : state->step;
}

uint64_t ProgramUpdater::skipped(const std::shared_ptr<ParameterSet>& set) const {
  const ProgramState* state = known(set);
  return state == nullptr ? 0 : state->skipped;
}

void ProgramUpdater::set_steps(const std::shared_ptr<ParameterSet>& set, uint64_t steps) {
  check_steps(steps);
  state_for(set).step = steps;
}

std::shared_ptr<Updater::SetState> ProgramUpdater::read_states(const std::shared_ptr<ParameterSet>& set,
                                                               StateSource& source) const {
  auto state = std::make_shared<ProgramState>();
  state->set = set;
  add_slabs(*state, *set);
  for (const StateValues& each : views(state.get(), *set)) source.read(each);
  return state;
}

void ProgramUpdater::adopt(const std::shared_ptr<SetState>& states, uint64_t steps, double learning_rate) {
  check_steps(steps);
  set_learning_rate(learning_rate);
  const auto adopted = std::dynamic_pointer_cast<ProgramState>(states);
  const std::shared_ptr<ParameterSet> set = adopted->set.lock();
  adopted->step = steps;
  std::erase_if(sets_, [&](const auto& state) { return state->set.lock() == set; });
  sets_.push_back(adopted);
}

UpdateCalls& ProgramUpdater::calls_for(ProgramState& state, UpdateTarget& target, const UsedNames& used,
                                       ErrorSink& sink) {
  constexpr size_t kKept = 8;  // machines that alternate on one set, as in adversarial training
  for (const auto& calls : state.calls)
    if (calls->is_for(target, used)) return *calls;
  const UpdatePlan plan = {program_, scalars_, declared_, grain_, options_.clip_norm, target.skips_steps()};
  auto made = std::make_unique<UpdateCalls>(target, used, plan, state.slabs, sink);
  if (state.calls.size() == kKept) state.calls.erase(state.calls.begin());
  state.calls.push_back(std::move(made));
  return *state.calls.back();
}

void ProgramUpdater::check_tables(const std::vector<std::string>& tables) const {
  const auto refuse = [&](const auto&... why) {
    const std::string who = "updater \"" + type() + "\"";
    if (!tables.empty())
      fail(TN_UNSUPPORTED, ComponentName{who}, SubjectName{tables[0]}, "table \"", tables[0], "\" ", why...);
  };
  if (options_.clip_norm > 0)
    refuse(
        "has its rows with the processes of a team, over which clip_norm has no norm yet; put the tables into a group "
        "of an updater without clip_norm, in a job [[updater_group]]");
  if (grain_ == TN_GRAIN_TENSOR || grain_ == TN_GRAIN_MATRIX)
    refuse(
        "has its rows with the processes of a team, and this updater updates whole tensors; put the tables into a "
        "group of another updater, in a job [[updater_group]]");
}

void ProgramUpdater::update(StepGradients& gradients, const UsedNames& used) {
  update_target(gradients, used);
  UpdateTarget* const owned = gradients.owned();
  if (owned != nullptr && owned->has_tables(used)) update_target(*owned, used);
}

void ProgramUpdater::update_target(UpdateTarget& target, const UsedNames& used) {
  if (!target.exist()) return;
  ErrorSink sink("updater \"" + type() + "\"", type_.tags);
  ProgramState& state = state_for(target.set());
  UpdateCalls& calls = calls_for(state, target, used, sink);
  const uint64_t step = state.step + 1;
  if (calls.is_empty()) {
    if (target.has_tables(used)) state.step = step;
    return;
  }
  if (!calls.run(target, learning_rate_ * options_.schedule.factor(step), step, sink)) {
    ++state.skipped;
    return target.skip();
  }
  state.step = step;
  state.written = calls.written();
}

}  // namespace tenon::host
