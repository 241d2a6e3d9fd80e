// Machines, updaters and metrics, for loops of the user's own. SPDX-License-Identifier: Apache-2.0
#include "core.h"

namespace tenon_python {

namespace {

using tenon::Layer;
using tenon::Layers;
using tenon::Machine;
using tenon::Parameters;
using tenon::Updater;
using NamedValues = std::vector<std::pair<std::string, Values*>>;

Machine make_machine(const tenon::Host& host, const Parameters& parameters, const Layers& outputs, int64_t max_samples,
                     bool training, bool keep_all, uint32_t compute, const std::vector<std::string>& devices,
                     uint64_t seed, const std::vector<std::string>& immutable, bool data_gradients,
                     bool given_gradients, uint32_t shards) {
  tenon::MachineOptions options;
  options.max_samples = max_samples;
  options.training = training;
  options.keep_all = keep_all;
  options.compute = compute;
  options.devices = devices;
  options.shards = shards;
  options.seed = seed;
  options.immutable_parameters = immutable;
  options.flags = (data_gradients ? uint32_t{TN_MACHINE_DATA_GRADIENTS} : 0) |
                  (given_gradients ? uint32_t{TN_MACHINE_GIVEN_GRADIENTS} : 0);
  return unlocked([&] { return host.machine(parameters, outputs, options); });
}

void backward_from(const Machine& machine, const std::vector<std::pair<Layer, Values*>>& gradients) {
  std::vector<tenon::OutputGradient> list;
  for (const auto& [layer, values] : gradients) list.push_back({layer, values->array});
  unlocked([&] { tenon::backward_from(machine, list); });
}

nb::object sparse_gradient(const Machine& machine, const std::string& parameter) {
  const Machine::Rows rows = unlocked([&] { return machine.sparse_gradient(parameter); });
  return nb::make_tuple(python_array(rows.ids), python_array(rows.values));
}

nb::object dlpack(const Machine& machine, const Layer& layer, bool versioned) {
  if (versioned)
    return exported_capsule<DLManagedTensorVersioned>([&](auto** tensor, tn_error* error) {
      return tn_machine_dlpack_versioned(machine.host(), machine.handle(), layer.handle(), tensor, error);
    });
  return exported_capsule<DLManagedTensor>([&](auto** tensor, tn_error* error) {
    return tn_machine_dlpack(machine.host(), machine.handle(), layer.handle(), tensor, error);
  });
}

void bind_machines(nb::module_& module) {
  module.def("machine", make_machine, nb::arg("host"), nb::arg("parameters"), nb::arg("outputs"),
             nb::arg("max_samples"), nb::arg("training"), nb::arg("keep_all") = false,
             nb::arg("compute") = uint32_t{TN_F32}, nb::arg("devices") = std::vector<std::string>(),
             nb::arg("seed") = 0, nb::arg("immutable") = std::vector<std::string>(), nb::arg("data_gradients") = false,
             nb::arg("given_gradients") = false, nb::arg("shards") = 0);
  nb::class_<Machine>(module, "Machine")
      .def("forward",
           [](const Machine& machine, const NamedValues& feeds, bool ignore_unused) {
             const std::vector<tenon::Feed> list = feeds_from(feeds);
             unlocked([&] { tenon::forward(machine, list, ignore_unused ? TN_FORWARD_IGNORE_UNUSED : 0); });
           })
      .def("steps",
           [](const Machine& machine, const Updater& updater, const NamedValues& feeds, int64_t samples) {
             const std::vector<tenon::Feed> list = feeds_from(feeds);
             std::vector<double> costs;
             unlocked([&] { tenon::steps(machine, updater, list, samples, costs); });
             return costs;
           })
      .def("backward", [](const Machine& machine) { unlocked([&] { machine.backward(); }); })
      .def("backward_from", backward_from)
      .def("output", [](const Machine& machine,
                        const Layer& layer) { return python_array(unlocked([&] { return machine.output(layer); })); })
      .def("view",
           [](const Machine& machine, const Layer& layer) {
             const nb::object lease = nb::cast(unlocked([&] { return tenon::Lease(machine, layer); }));
             return python_array(nb::cast<const tenon::Lease&>(lease).values(), lease);
           })
      .def("dlpack", dlpack)
      .def("gradient",
           [](const Machine& machine, const std::string& name) {
             return python_array(unlocked([&] { return machine.gradient(name); }));
           })
      .def("sparse_gradient", sparse_gradient)
      .def("data_gradient",
           [](const Machine& machine, const std::string& name) {
             return python_array(unlocked([&] { return tenon::data_gradient(machine, name); }));
           })
      .def("set_gradient",
           [](const Machine& machine, const std::string& name, const Values& values) {
             unlocked([&] { tenon::set_gradient(machine, name, values.array); });
           })
      .def("cost", released(&Machine::cost))
      .def("costs", [](const Machine& machine) { return dict_of(unlocked([&] { return machine.costs(); })); })
      .def("metrics", [](const Machine& machine) { return dict_of(unlocked([&] { return machine.metrics(); })); })
      .def("plan", released(&Machine::plan))
      .def("reset_carried", released(&Machine::reset_carried))
      .def("commit", [](const Machine& machine, const NamedValues& parameters) {
        std::vector<tenon::ParameterValues> list;
        for (const auto& [name, values] : parameters) list.push_back({name, values->array});
        unlocked([&] { tenon::commit(machine, list); });
      });
}

// An updater written in Python, by tenon._run.rule.Rule.
class PythonRule final : public tenon::UpdateRule {
 public:
  explicit PythonRule(nb::object rule) : rule_(std::move(rule)) {}

  void update(const tenon::RuleStep& step) override {
    const Entered entered;
    rule_.get().attr("update")(nb::cast(step.machine), nb::cast(step.names));
  }
  [[nodiscard]] double learning_rate() const override {
    try {
      const Entered entered;
      return nb::cast<double>(rule_.get().attr("learning_rate")());
    } catch (const std::exception&) {  // an attribute that is no number
      return 0;
    }
  }
  void set_learning_rate(double rate) override {
    const Entered entered;
    rule_.get().attr("set_learning_rate")(rate);
  }
  [[nodiscard]] std::vector<tenon::RuleState> states() override {
    const Entered entered;
    std::vector<tenon::RuleState> result;
    lent_.emplace(rule_.get().attr("states")());
    for (const nb::handle each : lent_->get())
      result.push_back(
          {nb::cast<std::string>(each[0]), nb::cast<std::string>(each[1]), nb::cast<const Values&>(each[2]).array});
    return result;
  }
  void set_states(const std::vector<tenon::RuleState>& states) override {
    const Entered entered;
    nb::list list;
    for (const tenon::RuleState& each : states)
      list.append(nb::make_tuple(each.state, each.parameter, python_array(each.values)));
    rule_.get().attr("set_states")(list);
  }

 private:
  Held rule_;
  std::optional<Held> lent_;  // the states of the last call
};

void bind_updaters(nb::module_& module) {
  module.def("rule_updater",
             [](const Parameters& parameters, const std::string& type, const std::string& attributes, nb::object rule) {
               auto made = std::make_shared<PythonRule>(std::move(rule));
               return unlocked([&] { return tenon::updater_of(parameters, type, std::move(made), attributes); });
             });
  nb::class_<Updater>(module, "Updater")
      .def("update", [](const Updater& updater, const Machine& machine) { unlocked([&] { updater.update(machine); }); })
      .def("update_model", [](const Updater& updater, const Machine& machine,
                              const Layer& output) { unlocked([&] { updater.update(machine, output); }); })
      .def("update_parameters",
           [](const Updater& updater, const Machine& machine, const std::vector<std::string>& names) {
             unlocked([&] { tenon::update_parameters(updater, machine, names); });
           })
      .def("set_learning_rate", released(&Updater::set_learning_rate))
      .def("describe", [](const Updater& updater, const Parameters& set) {
        return unlocked([&] { return updater.describe(set); });
      });
  nb::class_<tenon::UpdaterState>(module, "UpdaterState")
      .def(nb::init<Updater, Parameters>())
      .def("describe", released(&tenon::UpdaterState::describe))
      .def("get",
           [](const tenon::UpdaterState& state, const std::string& name, const std::string& parameter) {
             return python_array(unlocked([&] { return state.get(name, parameter); }));
           })
      .def("set", [](const tenon::UpdaterState& state, const std::string& name, const std::string& parameter,
                     const Values& values) { unlocked([&] { state.set(name, parameter, values.array); }); })
      .def("steps", released(&tenon::UpdaterState::steps))
      .def("set_steps", released(&tenon::UpdaterState::set_steps))
      .def("save", released(&tenon::UpdaterState::save))
      .def("load", released(&tenon::UpdaterState::load));
}

void bind_metrics(nb::module_& module) {
  nb::class_<tenon::Metrics>(module, "Metrics")
      .def(nb::init<const Machine&>())
      .def("append", released(&tenon::Metrics::append))
      .def("read",
           [](const tenon::Metrics& metrics) {
             const tenon::Metrics::Values values = unlocked([&] { return metrics.read(); });
             return nb::make_tuple(values.cost, values.samples, dict_of(values.metrics), dict_of(values.costs));
           })
      .def("merge",
           [](const tenon::Metrics& metrics, const tenon::Metrics& from) { unlocked([&] { metrics.merge(from); }); })
      .def("flush", released(&tenon::Metrics::flush));
}

void bind_prediction(nb::module_& module) {
  nb::class_<tenon::Predictor>(module, "Predictor")
      .def(
          "__init__",
          [](tenon::Predictor* place, const Parameters& parameters, const Layers& outputs, int64_t max_samples,
             uint32_t machines) {
            tenon::PredictorOptions options;
            options.max_samples = max_samples;
            options.machines = machines;
            new (place) tenon::Predictor(unlocked([&] { return tenon::Predictor(parameters, outputs, options); }));
          },
          nb::arg("parameters"), nb::arg("outputs"), nb::arg("max_samples"), nb::arg("machines") = 0)
      .def("predict",
           [](const tenon::Predictor& predictor, const NamedValues& feeds) {
             const std::vector<tenon::Feed> list = feeds_from(feeds);
             nb::list result;
             unlocked([&] {
               predictor.predict(list, [&](const std::vector<tenon::Array>& outputs) {
                 const Entered entered;
                 result = python_arrays(outputs);
               });
             });
             return result;
           })
      .def("refresh", released(&tenon::Predictor::refresh));
}

}  // namespace

void bind_machine(nb::module_& module) {
  bind_machines(module);
  bind_updaters(module);
  bind_metrics(module);
  bind_prediction(module);
}

}  // namespace tenon_python
