// Generators of sequences of ids. SPDX-License-Identifier: Apache-2.0
#include "core.h"

namespace tenon_python {

namespace {

using tenon::Generator;
using NamedValues = std::vector<std::pair<std::string, Values*>>;

struct Options {
  tenon::GenerateOptions given;
  nb::object sink;  // called with the lock
};

// Takes the options of tenon._run.generation, by their names in C.
Options options_from(const NamedValues& feeds, const nb::dict& from) {
  Options options;
  tenon::GenerateOptions& given = options.given;
  given.feeds = feeds_from(feeds);
  given.flags = TN_FORWARD_IGNORE_UNUSED;
  given.method = nb::cast<uint32_t>(from["method"]);
  given.begin_id = nb::cast<int64_t>(from["begin_id"]);
  given.end_id = nb::cast<int64_t>(from["end_id"]);
  given.max_length = nb::cast<int64_t>(from["max_length"]);
  given.results = nb::cast<int64_t>(from["results"]);
  given.beam_size = nb::cast<int64_t>(from["beam_size"]);
  given.length_penalty = nb::cast<double>(from["length_penalty"]);
  given.temperature = nb::cast<double>(from["temperature"]);
  given.top_k = nb::cast<int64_t>(from["top_k"]);
  given.top_p = nb::cast<double>(from["top_p"]);
  given.seed = nb::cast<uint64_t>(from["seed"]);
  given.streams = nb::cast<std::vector<int64_t>>(from["streams"]);
  options.sink = from["sink"];
  return options;
}

// Returns a list of (ids, score) for each sample.
nb::list generate(const Generator& generator, const NamedValues& feeds, const nb::dict& from) {
  Options options = options_from(feeds, from);
  if (!options.sink.is_none())
    options.given.sink = [&](int64_t sample, int64_t result, int64_t id) {
      const Entered entered;
      return nb::cast<bool>(options.sink(sample, result, id));
    };
  options.given.poll = [] {  // Ctrl-C and other signals end the call
    const Entered entered;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    return true;
  };
  const auto results = unlocked([&] { return generator.generate(options.given); });
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
