// train, test and infer. SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core.h"
#include "training_options.h"

namespace tenon_python {

namespace {

using tenon::Event;
using tenon::TrainOptions;

// An event while its handler runs; stale afterwards.
struct LiveEvent {
  Event* event = nullptr;
  [[nodiscard]] Event& get() const {
    if (event == nullptr)
      throw tenon::Error(TN_MISUSE, "the event is over; its machine, stop() and learning rate belong to its handler");
    return *event;
  }
};

// Wraps a Python handler, or None. Signals such as Ctrl-C end the call at the next event. spoilt(pass, batch, cost) is
// called at the first minibatch whose cost is not finite.
tenon::EventHandler handler_from(const nb::object& handler, const nb::object& spoilt) {
  return [&handler, &spoilt, told = false](Event& event) mutable {
    const Entered entered;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (event.kind() == TN_END_ITERATION && !std::isfinite(event.cost()) && !told && !spoilt.is_none()) {
      told = true;
      spoilt(event.pass(), event.batch(), event.cost());
    }
    if (handler.is_none()) return;
    const nb::object live = nb::cast(LiveEvent{&event});
    const auto end = [&] { nb::cast<LiveEvent&>(live).event = nullptr; };
    try {
      handler(live);
    } catch (...) {
      end();
      throw;
    }
    end();
  };
}

TrainOptions options_from(const nb::dict& given) {
  TrainOptions options;
  read(given, &options);
  return options;
}

void train(const nb::dict& given, const nb::object& handler, const nb::object& spoilt) {
  TrainOptions options = options_from(given);
  options.handler = handler_from(handler, spoilt);
  unlocked([&] { tenon::train(options); });
}

nb::object test(const nb::dict& given) {
  TrainOptions options = options_from(given);
  const nb::object none = nb::none();
  options.handler = handler_from(none, none);
  const tenon::TestResult result = unlocked([&] { return tenon::test(options); });
  return nb::make_tuple(result.cost, result.samples, dict_of(result.metrics), result.seconds, dict_of(result.costs));
}

// sink(list of arrays) receives the outputs of each minibatch.
void infer(const nb::dict& given, const nb::object& sink) {
  const TrainOptions options = options_from(given);
  unlocked([&] {
    tenon::infer(options, [&](const std::vector<tenon::Array>& outputs) {
      const Entered entered;
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      sink(python_arrays(outputs));
      return true;
    });
  });
}

void bind_event(nb::module_& module) {
  nb::class_<LiveEvent>(module, "LiveEvent")
      .def("read",
           [](const LiveEvent& live) {
             const Event& event = live.get();
             nb::object best = nb::none();
             if (const auto measurement = event.best())
               best = nb::make_tuple(measurement->value, measurement->pass, measurement->batch);
             return nb::make_tuple(event.kind(), event.pass(), event.batch(), event.samples(), event.cost(),
                                   dict_of(event.metrics()), event.seconds(), event.learning_rate(),
                                   event.scheduled_rate(), event.checkpoint(), event.reason(), event.skipped(),
                                   dict_of(event.costs()), event.changes(), best, event.repeated(), event.torn());
           })
      .def("kind", [](const LiveEvent& live) { return live.get().kind(); })
      .def("machine", [](const LiveEvent& live) { return live.get().machine(); })
      .def("stop", [](const LiveEvent& live) { live.get().stop(); })
      .def("set_learning_rate", [](const LiveEvent& live, double rate) { live.get().set_learning_rate(rate); });
}

}  // namespace

void bind_training(nb::module_& module) {
  bind_event(module);
  nb::class_<tenon::Cancel>(module, "Cancel")
      .def("__init__", [](tenon::Cancel* place) { new (place) tenon::Cancel(tenon::Cancel::make()); })
      .def("request", &tenon::Cancel::request)
      .def("reset", &tenon::Cancel::reset)
      .def("is_requested", &tenon::Cancel::is_requested);
  module.def("train", train, nb::arg("options"), nb::arg("handler").none(), nb::arg("spoilt").none());
  module.def("test", test);
  module.def("infer", infer);
  const std::pair<const char*, int> constants[] = {
      {"BEGIN_TRAINING", TN_BEGIN_TRAINING},   {"END_TRAINING", TN_END_TRAINING},
      {"BEGIN_PASS", TN_BEGIN_PASS},           {"END_PASS", TN_END_PASS},
      {"BEGIN_ITERATION", TN_BEGIN_ITERATION}, {"END_ITERATION", TN_END_ITERATION},
      {"CHECKPOINT", TN_CHECKPOINT},           {"TEST", TN_TEST},
      {"START_FRESH", TN_START_FRESH},         {"START_RESUME_OR_FRESH", TN_START_RESUME_OR_FRESH}};
  for (const auto& [name, value] : constants) module.attr(name) = value;
}

}  // namespace tenon_python
