// SPDX-License-Identifier: Apache-2.0
#include "host/api/rule_updater.h"

#include <algorithm>
#include <cmath>
#include <exception>

#include "core/bounded_json.h"
#include "core/files/model_file.h"
#include "host/api/api.h"

namespace tenon::host {

// States as an application has them: owned copies, and views of these.
struct RuleUpdater::Copies final : Updater::SetState {
  std::vector<std::vector<std::byte>> bytes;
  std::vector<StateValues> states;
  std::weak_ptr<ParameterSet> set;

  StateValues& add(StateValues state) {
    bytes.emplace_back(state.bytes());
    state.values = bytes.back().data();
    return states.emplace_back(std::move(state));
  }
};

namespace {

// Whether all gradients of these parameters are finite numbers.
bool are_finite(StepGradients& gradients, const std::set<std::string>& names) {
  return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    const ArrayView gradient = gradients.gradient(name);
    std::vector<std::byte> bytes(element_bytes(gradient));
    copy_elements(gradient, bytes.data());
    const auto count = static_cast<int64_t>(bytes.size() / tn_dtype_bytes(gradient.dtype));
    return find_not_finite(gradient.dtype, bytes.data(), count) < 0;
  });
}

// Marks the gradients while a rule runs.
class RuleScope : base::NotCopied {
 public:
  RuleScope(StepGradients& gradients, StepGradients::Rule& rule) : gradients_(gradients) { gradients.set_rule(&rule); }
  ~RuleScope() { gradients_.set_rule(nullptr); }

 private:
  StepGradients& gradients_;
};

std::string text_of(const char* text, const char* otherwise) { return text == nullptr ? otherwise : text; }

}  // namespace

RuleUpdater::RuleUpdater(const tn_rule_options& options)
    : options_(options),
      type_(api::string(options.type, "options.type")),
      who_("updater \"" + type_ + "\" of the application"),
      attributes_(bounded_json(text_of(options.attributes, "{}"))),
      user_(options.user, options.release) {
  if (type_.empty()) fail(TN_INVALID, SubjectName{"options.type"}, "options.type is empty");
  if (!attributes_.is_object())
    fail(TN_INVALID, SubjectName{"options.attributes"}, "options.attributes: expected a JSON object");
  api::required(options.update, "options.update");
}

void RuleUpdater::take(const std::shared_ptr<ParameterSet>& set) {
  if (is_of(set)) return;
  if (!set_.expired())
    fail(TN_MISUSE, ComponentName{who_}, who_, " updates one set of parameters; make another updater for this one");
  set_ = set;
  steps_ = skipped_ = 0;
}

void RuleUpdater::check_tables(const std::vector<std::string>& tables) const {
  if (!tables.empty())
    fail(TN_UNSUPPORTED, ComponentName{who_}, SubjectName{tables[0]}, "table \"", tables[0],
         "\" has its rows with the processes of a team, which call no updater of an application; put the tables into a "
         "group with an updater of a plugin");
}

void RuleUpdater::prepare_with(const Lend& lend, StepGradients& gradients, const UsedNames& used) {
  rule_ = {};
  skips_ = false;
  if (!gradients.exist()) return;
  take(gradients.set());
  for (const std::string& name : gradients.trained())
    if (used.contains(name) && !gradients.updated().contains(name)) rule_.names.insert(name);
  if (rule_.names.empty()) return;
  skips_ = gradients.skips_steps() && !are_finite(gradients, rule_.names);
  if (skips_) return;
  if (gradients.rule() != nullptr || !lend)
    fail(TN_MISUSE, ComponentName{who_}, who_, " cannot be used here: it calls the application for each step");
  std::vector<const char*> names;
  for (const ParameterEntry& entry : gradients.set()->entries())
    if (rule_.names.contains(entry.name)) names.push_back(entry.name.c_str());
  const RuleScope scope(gradients, rule_);
  lend([&](tn_machine machine) {
    const tn_rule_step step = {sizeof step, static_cast<uint32_t>(names.size()), names.data(), machine, steps_ + 1};
    api::call_application(who_, [&](tn_error* error) { return options_.update(user_.get(), &step, error); });
  });
}

void RuleUpdater::update(StepGradients& gradients, const UsedNames& /*used*/) {
  if (!gradients.exist() || rule_.names.empty()) return;
  if (skips_) {
    ++skipped_;
    return gradients.skip();
  }
  ParameterSet& set = *gradients.set();
  for (const auto& [name, bytes] : rule_.values) {
    const ParameterEntry& entry = set.find(name);
    set.set(name, {entry.dtype, entry.shape, bytes.data()});
  }
  ++steps_;
}

double RuleUpdater::learning_rate() const {
  if (options_.learning_rate == nullptr) return 0;
  const double rate = options_.learning_rate(user_.get());
  return std::isfinite(rate) ? rate : 0;
}

void RuleUpdater::require_learning_rate(double rate) const {
  check_learning_rate(rate);
  if (options_.set_learning_rate == nullptr)
    fail(TN_UNSUPPORTED, ComponentName{who_}, SubjectName{"learning_rate"}, who_, " has no learning rate to set");
}

void RuleUpdater::set_learning_rate(double rate) {
  if (rate == learning_rate()) return;
  require_learning_rate(rate);
  api::call_application(who_, [&](tn_error* error) { return options_.set_learning_rate(user_.get(), rate, error); });
}

std::shared_ptr<RuleUpdater::Copies> RuleUpdater::copies(const ParameterSet& set) const {
  struct Target {
    const RuleUpdater& updater;
    const ParameterSet& set;
    std::shared_ptr<Copies> copies;
    std::exception_ptr failure;  // must not pass through the application

    void add(const tn_rule_state* request) {
      const tn_rule_state& state = api::required(request, "state");
      const std::string name = api::string(state.state, "state.state");
      const std::string parameter = api::string(state.parameter, "state.parameter");
      std::string what = "state \"" + name + "\" of parameter \"" + parameter + "\"";
      if (name.empty() || name.find('/') != std::string::npos)
        fail(TN_INVALID, SubjectName{name}, what, ": the name of a state has letters, and no \"/\"");
      static_cast<void>(set.find(parameter));
      const ArrayView view = api::view(
          state.values, [&] { return what; }, name);
      if (view.storage != TN_DENSE || element_type_name(view.dtype).empty())
        fail(TN_UNSUPPORTED, SubjectName{name}, what, ": expected a dense array of numbers");
      for (const StateValues& other : copies->states)
        if (other.state == name && other.parameter == parameter)
          fail(TN_INVALID, SubjectName{name}, what, " is given twice");
      const uint64_t count = element_bytes(view) / tn_dtype_bytes(view.dtype);
      const StateValues& kept = copies->add({name, parameter, view.shape, nullptr, count, view.dtype});
      if (count > 0) copy_elements(view, static_cast<std::byte*>(kept.values));
    }
  } target{*this, set, std::make_shared<Copies>(), nullptr};
  if (options_.states == nullptr) return target.copies;
  const tn_rule_states_sink sink = [](void* user, const tn_rule_state* state) {
    auto& to = *static_cast<Target*>(user);
    if (to.failure) return;
    try {
      to.add(state);
    } catch (...) {
      to.failure = std::current_exception();
    }
  };
  api::call_application(who_, [&](tn_error* error) { return options_.states(user_.get(), sink, &target, error); });
  if (target.failure) {
    try {
      std::rethrow_exception(target.failure);
    } catch (const Error& error) {
      throw error.with_component(who_);
    }
  }
  return target.copies;
}

uint64_t RuleUpdater::state_bytes(const ParameterSet& set) const {
  uint64_t bytes = 0;
  if (set_.lock().get() == &set)
    for (const StateValues& state : copies(set)->states) bytes += state.bytes();
  return bytes;
}

std::vector<Updater::StateValues> RuleUpdater::states(const std::shared_ptr<ParameterSet>& set) {
  take(set);
  lent_ = copies(*set);
  return lent_->states;
}

void RuleUpdater::set_steps(const std::shared_ptr<ParameterSet>& set, uint64_t steps) {
  check_steps(steps);
  take(set);
  steps_ = steps;
}

std::shared_ptr<Updater::SetState> RuleUpdater::read_states(const std::shared_ptr<ParameterSet>& set,
                                                            StateSource& source) const {
  auto read = std::make_shared<Copies>();
  read->set = set;
  for (const StateValues& state : source.states()) {
    if (state.dtype == TN_COMPUTE)
      fail(TN_BAD_DATA, SubjectName{state.state}, "state \"", state.state, "\" of parameter \"", state.parameter,
           "\" is of an unknown type");
    source.read(read->add(state));
  }
  if (!read->states.empty() && options_.set_states == nullptr)
    fail(TN_UNSUPPORTED, ComponentName{who_}, who_, " takes no stored states: options.set_states is null");
  return read;
}

void RuleUpdater::adopt(const std::shared_ptr<SetState>& states, uint64_t steps, double learning_rate) {
  check_steps(steps);
  const auto adopted = std::dynamic_pointer_cast<Copies>(states);
  if (learning_rate != this->learning_rate()) require_learning_rate(learning_rate);
  take(adopted->set.lock());
  if (options_.set_states != nullptr) {
    std::vector<tn_rule_state> list;
    for (const StateValues& state : adopted->states)
      list.push_back(
          {state.state.c_str(), state.parameter.c_str(), api::array({state.dtype, state.shape, state.values})});
    api::call_application(who_, [&](tn_error* error) {
      return options_.set_states(user_.get(), list.data(), static_cast<uint32_t>(list.size()), error);
    });
  }
  set_learning_rate(learning_rate);
  steps_ = steps;
}

}  // namespace tenon::host
