// Generators of sequences of ids. SPDX-License-Identifier: Apache-2.0
#include "core.h"
#include "generate_options.h"

namespace tenon_python {

namespace {

using tenon::Generator;
using NamedValues = std::vector<std::pair<std::string, Values*>>;

// Returns a list of (ids, score) for each sample. from: the options of tenon._run.generation, by their names in C.
nb::list generate(const Generator& generator, const NamedValues& feeds, const nb::dict& from) {
  tenon::GenerateOptions options;
  read(from, &options);
  options.feeds = feeds_from(feeds);
  options.flags = TN_FORWARD_IGNORE_UNUSED;
  const nb::object sink = from["sink"];  // called with the lock
  if (!sink.is_none())
    options.sink = [&](int64_t sample, int64_t result, int64_t id) {
      const Entered entered;
      return nb::cast<bool>(sink(sample, result, id));
    };
  options.poll = [] {  // Ctrl-C and other signals end the call
    const Entered entered;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    return true;
  };
  const auto results = unlocked([&] { return generator.generate(options); });
  nb::list samples;
  for (const std::vector<tenon::Generation>& sample : results) {
    nb::list list;
    for (const tenon::Generation& each : sample) {
      const auto count = static_cast<int64_t>(each.ids.size());
      list.append(nb::make_tuple(python_array({TN_I64, {count}, each.ids.data()}), each.score));
    }
    samples.append(list);
  }
  return samples;
}

}  // namespace

void bind_generation(nb::module_& module) {
  module.attr("GENERATE_GREEDY") = static_cast<int>(TN_GENERATE_GREEDY);
  module.attr("GENERATE_SAMPLE") = static_cast<int>(TN_GENERATE_SAMPLE);
  module.attr("GENERATE_BEAM") = static_cast<int>(TN_GENERATE_BEAM);
  nb::class_<Generator>(module, "Generator")
      .def("__init__",
           [](Generator* place, const tenon::Parameters& parameters, const tenon::Layer& scores, const std::string& ids,
              bool from_logits, int64_t max_samples, bool wide) {
             tenon::GeneratorOptions options;
             options.from_logits = from_logits, options.max_samples = max_samples;
             options.compute = wide ? TN_F64 : TN_F32;
             new (place) Generator(unlocked([&] { return Generator(parameters, scores, ids, options); }));
           })
      .def("generate", generate);
}

}  // namespace tenon_python
