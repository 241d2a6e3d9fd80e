// Training loops of the application, in C++17: the state of updaters, updates of a part of the parameters, metrics over
// many minibatches. tenon_updater.h documents the calls. Include it beside <tenon/tenon.hpp>.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENON_TENON_UPDATER_HPP
#define TENON_TENON_UPDATER_HPP

#include <tenon/tenon_updater.h>

#include <cstdint>
#include <memory>
#include <string>
#include <tenon/tenon_base.hpp>
#include <tenon/tenon_model.hpp>
#include <utility>
#include <vector>

namespace tenon {
inline namespace v0 {

// What an updater keeps for a ParameterSet. Keeps both alive; copies are of the same state.
class UpdaterState {
 public:
  UpdaterState(Updater updater, Parameters parameters)
      : updater_(std::move(updater)), parameters_(std::move(parameters)) {}

  // JSON array of {state, parameter, shape, dtype}.
  [[nodiscard]] std::string describe() const {
    return detail::written([this](tn_write write, void* user, tn_error* error) {
      return tn_updater_states(host(), updater_.handle(), parameters_.handle(), write, user, error);
    });
  }
  // Borrowed until the next update, training or change of the state.
  [[nodiscard]] Array get(const std::string& state, const std::string& parameter) const {
    tn_array array = {};
    detail::checked(*parameters_.host_ref(), [&](tn_error* error) {
      return tn_updater_get_state(host(), updater_.handle(), parameters_.handle(), detail::c_text(state, "state"),
                                  detail::c_text(parameter, "parameter"), &array, error);
    });
    return detail::array_from(array);
  }
  void set(const std::string& state, const std::string& parameter, const Array& values) const {
    const tn_array array = detail::c_array(values);
    detail::checked([&](tn_error* error) {
      return tn_updater_set_state(host(), updater_.handle(), parameters_.handle(), detail::c_text(state, "state"),
                                  detail::c_text(parameter, "parameter"), &array, error);
    });
  }
  // The number of updates of the set by this updater.
  [[nodiscard]] uint64_t steps() const {
    uint64_t result = 0;
    detail::checked([&](tn_error* error) {
      return tn_updater_steps(host(), updater_.handle(), parameters_.handle(), &result, error);
    });
    return result;
  }
  void set_steps(uint64_t steps) const {
    detail::checked([&](tn_error* error) {
      return tn_updater_set_steps(host(), updater_.handle(), parameters_.handle(), steps, error);
    });
  }
  // With outputs the file is also a model of these.
  void save(const std::string& path, const Layers& outputs = {}) const {
    const std::vector<tn_layer> list = detail::handles(outputs);
    detail::checked(*parameters_.host_ref(), [&](tn_error* error) {
      return tn_updater_save(host(), updater_.handle(), parameters_.handle(), list.data(),
                             detail::count_of(list.size()), detail::c_text(path, "path"), error);
    });
  }
  // Also restores the number of updates of the set; leaves the values of the parameters.
  void load(const std::string& path) const {
    detail::checked(*parameters_.host_ref(), [&](tn_error* error) {
      return tn_updater_load(host(), updater_.handle(), parameters_.handle(), detail::c_text(path, "path"), error);
    });
  }

 private:
  [[nodiscard]] tn_host* host() const { return parameters_.host(); }
  Updater updater_;
  Parameters parameters_;
};

// The number of updates of a set by all updaters, on which random numbers inside models depend.
[[nodiscard]] inline uint64_t updates_of(const Parameters& parameters) {
  uint64_t result = 0;
  detail::checked(
      [&](tn_error* error) { return tn_parameters_updates(parameters.host(), parameters.handle(), &result, error); });
  return result;
}
inline void set_updates(const Parameters& parameters, uint64_t updates) {
  detail::checked([&](tn_error* error) {
    return tn_parameters_set_updates(parameters.host(), parameters.handle(), updates, error);
  });
}

// A part of a step: updates these parameters of the machine and what lies below their names. The step ends with an
// update of all others, updater.update(machine), or with commit(machine).
inline void update_parameters(const Updater& updater, const Machine& machine, const std::vector<std::string>& names) {
  std::vector<const char*> list;
  for (const std::string& name : names) list.push_back(detail::c_text(name, "names"));
  detail::checked(*updater.host_ref(), [&](tn_error* error) {
    return tn_updater_update_parameters(machine.host(), updater.handle(), machine.handle(), list.data(),
                                        detail::count_of(list.size()), error);
  });
}
// Ends a step without further updates.
inline void commit(const Machine& machine) {
  detail::checked([&](tn_error* error) { return tn_machine_commit(machine.host(), machine.handle(), error); });
}
struct ParameterValues {
  std::string name;
  Array values;  // in the shape of the parameter
};
// Writes values of parameters and ends the step, as one unit for those who read the set.
inline void commit(const Machine& machine, const std::vector<ParameterValues>& parameters) {
  std::vector<const char*> names;
  std::vector<tn_array> arrays;
  for (const ParameterValues& each : parameters) {
    names.push_back(detail::c_text(each.name, "names"));
    arrays.push_back(detail::c_array(each.values));
  }
  detail::checked([&](tn_error* error) {
    return tn_machine_commit_values(machine.host(), machine.handle(), names.data(), arrays.data(),
                                    detail::count_of(names.size()), error);
  });
}

// What an updater of the application gets for one step, as tn_rule_step documents it.
struct RuleStep {
  Machine machine;
  std::vector<std::string> names;  // of the parameters to update
  uint64_t number = 0;             // of this update, from 1
};
// One state of one parameter.
struct RuleState {
  std::string state, parameter;
  Array values;  // dense; a number has an empty shape
};
// An updater that the application implements, as tn_rule_options documents it. Exceptions of its functions are rethrown
// by the call that updates, saves or resumes.
class UpdateRule {
 public:
  UpdateRule() = default;
  virtual ~UpdateRule() = default;
  UpdateRule(const UpdateRule&) = delete;
  UpdateRule& operator=(const UpdateRule&) = delete;
  // Computes the values after a step and hands them over by commit(step.machine, values).
  virtual void update(const RuleStep& step) = 0;
  [[nodiscard]] virtual double learning_rate() const { return 0; }
  virtual void set_learning_rate(double /*rate*/) { throw Error(TN_UNSUPPORTED, "the updater has no learning rate"); }
  // For checkpoints. The values are borrowed until the next call.
  [[nodiscard]] virtual std::vector<RuleState> states() { return {}; }
  // The values are borrowed during the call.
  virtual void set_states(const std::vector<RuleState>& states) {
    if (!states.empty()) throw Error(TN_UNSUPPORTED, "the updater takes no states");
  }
};

namespace detail {

// The user pointer of a rule.
struct RuleUser {
  HostRef host;
  std::shared_ptr<UpdateRule> rule;

  static RuleUser& of(void* user) { return *static_cast<RuleUser*>(user); }
  // Runs `work` and stores its exception.
  template <typename Work>
  tn_status guarded(tn_error* error, Work work) const noexcept {
    try {
      work();
      return TN_OK;
    } catch (...) {
      return host->thrown.keep(error);
    }
  }
};

inline tn_status update_by_rule(void* user, const tn_rule_step* step, tn_error* error) {
  const RuleUser& to = RuleUser::of(user);
  return to.guarded(error, [&] {
    RuleStep copy;
    copy.machine = Machine(to.host);
    copy.machine.borrow(step->machine);
    copy.names.assign(step->names, step->names + step->names_count);
    copy.number = step->step;
    to.rule->update(copy);
  });
}

inline tn_status states_of_rule(void* user, tn_rule_states_sink sink, void* target, tn_error* error) {
  const RuleUser& to = RuleUser::of(user);
  return to.guarded(error, [&] {
    for (const RuleState& each : to.rule->states()) {
      const tn_rule_state state = {c_text(each.state, "state"), c_text(each.parameter, "parameter"),
                                   c_array(each.values)};
      sink(target, &state);
    }
  });
}

inline tn_status set_states_of_rule(void* user, const tn_rule_state* states, uint32_t count, tn_error* error) {
  const RuleUser& to = RuleUser::of(user);
  return to.guarded(error, [&] {
    std::vector<RuleState> list;
    for (uint32_t i = 0; i < count; ++i)
      list.push_back({states[i].state, states[i].parameter, array_from(states[i].values)});
    to.rule->set_states(list);
  });
}

}  // namespace detail

// Makes an updater of a rule, for one set. type: its name in messages and checkpoints. attributes: a JSON object of
// what must be equal in a training that resumes. The updater must not outlive what `rule` refers to.
[[nodiscard]] inline Updater updater_of(const Parameters& parameters, const std::string& type,
                                        std::shared_ptr<UpdateRule> rule, const std::string& attributes = "{}") {
  if (rule == nullptr) throw Error(TN_MISUSE, "the rule is null");
  const detail::HostRef& host = parameters.host_ref();
  auto user = std::make_unique<detail::RuleUser>(detail::RuleUser{host, std::move(rule)});
  tn_rule_options options = {};
  options.size = sizeof options;
  options.type = detail::c_text(type, "type");
  options.attributes = detail::c_text(attributes, "attributes");
  options.user = user.get();
  options.update = detail::update_by_rule;
  options.learning_rate = [](void* of) { return detail::RuleUser::of(of).rule->learning_rate(); };
  options.set_learning_rate = [](void* of, double rate, tn_error* error) {
    const detail::RuleUser& to = detail::RuleUser::of(of);
    return to.guarded(error, [&] { to.rule->set_learning_rate(rate); });
  };
  options.states = detail::states_of_rule;
  options.set_states = detail::set_states_of_rule;
  options.release = [](void* of) { delete &detail::RuleUser::of(of); };
  Updater result = detail::made<Updater>(
      host, [&](tn_updater* to, tn_error* error) { return tn_updater_create_from(host->host, &options, to, error); });
  user.release();  // NOLINT: the host has it
  return result;
}

// Cost and metrics of one machine, summed over minibatches.
class Metrics : public detail::Owned<tn_metrics, tn_metrics_release> {
 public:
  Metrics() = default;
  explicit Metrics(const Machine& machine) : Owned(machine.host_ref()) {
    make([&](tn_metrics* to) {
      detail::checked([&](tn_error* error) { return tn_metrics_create(host(), machine.handle(), to, error); });
    });
  }
  // Adds the last minibatch of the machine; once after each forward.
  void append(const Machine& machine) const {
    detail::checked([&](tn_error* error) { return tn_metrics_append(host(), handle(), machine.handle(), error); });
  }
  struct Values {
    double cost = 0;  // mean over samples
    int64_t samples = 0;
    std::vector<Metric> metrics;
    std::vector<Metric> costs = {};  // each of two or more, as in tn_machine_costs; else empty
  };
  // Over the minibatches so far.
  [[nodiscard]] Values read() const {
    Values result;
    detail::collect<void, const tn_metrics_values*>(
        [&](const tn_metrics_values* values) {
          result = {values->cost, values->samples, detail::metrics_from(values->metrics, values->metrics_count),
                    detail::costs_from(*values)};
        },
        [&](tn_metrics_sink sink, void* user, tn_error* error) {
          return tn_metrics_read(host(), handle(), sink, user, error);
        });
    return result;
  }
  // Adds the minibatches of other metrics with the same types and attributes.
  void merge(const Metrics& from) const {
    detail::checked([&](tn_error* error) { return tn_metrics_merge(host(), handle(), from.handle(), error); });
  }
  // Forgets the minibatches so far.
  void flush() const {
    detail::checked([this](tn_error* error) { return tn_metrics_flush(host(), handle(), error); });
  }
};

}  // namespace v0
}  // namespace tenon
#endif
