// Training loops of the application, in C++17: the state of updaters, updates of a part of the parameters, metrics over
// many minibatches. tenon_updater.h documents the calls. Include it beside <tenon/tenon.hpp>.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENON_TENON_UPDATER_HPP
#define TENON_TENON_UPDATER_HPP

#include <tenon/tenon_updater.h>

#include <cstdint>
#include <exception>
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
    detail::checked([&](tn_error* error) {
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
    detail::checked([&](tn_error* error) {
      return tn_updater_save(host(), updater_.handle(), parameters_.handle(), list.data(),
                             detail::count_of(list.size()), detail::c_text(path, "path"), error);
    });
  }
  // Also restores the number of updates of the set; leaves the values of the parameters.
  void load(const std::string& path) const {
    detail::checked([&](tn_error* error) {
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
  detail::checked([&](tn_error* error) {
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
    struct Target {
      Values values;
      std::exception_ptr failure;  // out of memory; must not pass through C
    } target;
    const tn_metrics_sink sink = [](void* user, const tn_metrics_values* values) {
      auto& to = *static_cast<Target*>(user);
      try {
        to.values = {values->cost, values->samples, detail::metrics_from(values->metrics, values->metrics_count),
                     detail::costs_from(*values)};
      } catch (...) {
        to.failure = std::current_exception();
      }
    };
    detail::checked([&](tn_error* error) { return tn_metrics_read(host(), handle(), sink, &target, error); });
    if (target.failure) std::rethrow_exception(target.failure);
    return std::move(target.values);
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
