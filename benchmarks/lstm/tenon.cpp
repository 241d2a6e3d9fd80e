// Row 9: a step of a language model of two LSTM layers, 10,000 words, SGD: 20 texts of 35 words in layers of 650. Mode
// "ragged": 32 texts of 5 to 100 words in layers of 256. Zaremba et al., "Recurrent neural network regularization",
// 2014. SPDX-License-Identifier: Apache-2.0
#include "../support/bench.h"

int main(int argc, char** argv) {
  return bench::run(argc, argv, [](const bench::Arguments& arguments) {
    const bool ragged = arguments.mode == "ragged";
    const int64_t size = ragged ? 256 : 650, texts = ragged ? 32 : 20;
    constexpr int64_t kWords = 10'000;
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
    tenon::Layer last = host.layer("embedding", {words("word")}, {{"vocabulary", kWords}, {"size", size}}, "table");
    for (const char* name : {"first", "second"}) last = host.layer("lstm", {last}, {{"size", size}}, name);
    last = host.layer("fc", {last}, {{"size", kWords}}, "logits");
    const tenon::Layer cost = host.layer("cross_entropy", {last, words("next")}, {{"from_logits", true}}, "cost");
    const tenon::Parameters parameters = host.parameters({cost}, 1);
    tenon::MachineOptions options;
    options.max_samples = texts, options.max_rows = rows, options.training = true;
    const tenon::Machine machine = host.machine(parameters, {cost}, options);
    const tenon::Updater updater = host.updater("sgd", {{"learning_rate", 1.0}});
    const auto word = bench::integers<int64_t>(static_cast<size_t>(rows), kWords, 1);
    const auto next = bench::integers<int64_t>(static_cast<size_t>(rows), kWords, 2);
    bench::write(arguments.folder, parameters,
                 {"table.weight", "first.weight", "first.recurrent_weight", "second.weight", "second.recurrent_weight",
                  "logits.weight"});
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
    bench::Result result = bench::steps(machine, 3, 1, 5, step);
    // Products of a row: four gates from the input and from the state, in two layers, and the words; each once forward
    // and twice backward.
    result.flops =
        6.0 * static_cast<double>(rows) * static_cast<double>(size) * static_cast<double>(16 * size + kWords);
    return result;
  });
}
