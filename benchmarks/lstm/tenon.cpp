// Row 9: a step of a language model of two LSTM layers, 10,000 words, SGD: 20 texts of 35 words in layers of 650. Mode
// "ragged": 32 texts of 5 to 100 words in layers of 256; mode "scan": the same by scans of ordinary layers. Zaremba et
// al., "Recurrent neural network regularization", 2014. SPDX-License-Identifier: Apache-2.0
#include <tenon/tenon_scan.hpp>

#include "../support/bench.h"

namespace {

// An LSTM as a user writes it.
tenon::Layer scanned(const tenon::Host& host, const tenon::Layer& input, int64_t size, const std::string& name) {
  return tenon::scan({input},
                     [&](tenon::Step& step) {
                       const tenon::Layer h = step.memory({size}), c = step.memory({size});
                       const tenon::Layer gates = host.layer("fc", {step.input(0), h}, {{"size", 4 * size}}, name);
                       const tenon::Layer next = host.layer("lstm_step", {gates, c});
                       step.next(h, next);
                       step.next(c, next.output(1));
                       return tenon::Layers{next};
                     })
      .results[0];
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run(argc, argv, [](const bench::Arguments& arguments) {
    const bool scan = arguments.mode == "scan", ragged = scan || arguments.mode == "ragged";
    const int64_t size = arguments.size(ragged ? 256 : 650, 64), texts = arguments.size(ragged ? 32 : 20, 4);
    const int64_t vocabulary = arguments.size(10'000, 500);
    std::vector<int64_t> offsets = {0};
    std::mt19937 random(7);
    for (int64_t i = 0; i < texts; ++i)
      offsets.push_back(offsets.back() + (ragged ? 5 + static_cast<int64_t>(random() % 96) : 35));
    const int64_t rows = offsets.back();

    const tenon::Host host = bench::host(arguments.threads);
    const auto words = [&](const char* name) {
      tenon::DataOptions options;
      options.name = name, options.dtype = TN_I64, options.storage = TN_RAGGED, options.sequence = "text";
      return host.data(options);
    };
    tenon::Layer last = host.layer("embedding", {words("word")}, {{"vocabulary", vocabulary}, {"size", size}}, "table");
    for (const char* name : {"first", "second"})
      last = scan ? scanned(host, last, size, name) : host.layer("lstm", {last}, {{"size", size}}, name);
    last = host.layer("fc", {last}, {{"size", vocabulary}}, "logits");
    const tenon::Layer cost = host.layer("cross_entropy", {last, words("next")}, {{"from_logits", true}}, "cost");
    const tenon::Parameters parameters = host.parameters({cost}, 1);
    // Layers and scans begin alike, uniform in +-1 / sqrt(size).
    const char* const recurrent = scan ? ".weight_1" : ".recurrent_weight";
    uint32_t seed = 3;
    for (const std::string name : {"first", "second"})
      for (const std::string& parameter : {name + ".weight", name + recurrent}) {
        std::vector<float> values = bench::numbers(static_cast<size_t>(4 * size * size), seed++);
        for (float& value : values) value /= std::sqrt(static_cast<float>(size));
        parameters.set(parameter, {TN_F32, {size, 4 * size}, values.data()});
        bench::write(arguments.folder, parameter == name + ".weight" ? parameter : name + ".recurrent_weight", values);
      }
    tenon::MachineOptions options;
    options.max_samples = texts, options.max_rows = rows, options.training = true, options.device = arguments.device;
    const tenon::Machine machine = host.machine(parameters, {cost}, options);
    const tenon::Updater updater = host.updater("sgd", {{"learning_rate", 1.0}});
    const auto word = bench::integers<int64_t>(static_cast<size_t>(rows), static_cast<uint32_t>(vocabulary), 1);
    const auto next = bench::integers<int64_t>(static_cast<size_t>(rows), static_cast<uint32_t>(vocabulary), 2);
    bench::write(arguments.folder, parameters, {"table.weight", "logits.weight"});
    bench::write(arguments.folder, "offsets", offsets);
    bench::write(arguments.folder, "word", word);
    bench::write(arguments.folder, "next", next);
    const auto text = [&](const std::vector<int64_t>& ids) {
      return tenon::Array::sequences(TN_I64, {rows}, ids.data(), texts, offsets.data());
    };
    const auto step = [&] {
      machine.forward({{"word", text(word)}, {"next", text(next)}});
      machine.backward();
      updater.update(machine);
    };
    bench::Result result = bench::steps(arguments, machine, 3, 1, 5, step);
    // Products of a row: four gates from the input and from the state, in two layers, and the words; each once forward
    // and twice backward.
    result.flops =
        6.0 * static_cast<double>(rows) * static_cast<double>(size) * static_cast<double>(16 * size + vocabulary);
    return result;
  });
}
