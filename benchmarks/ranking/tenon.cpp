// Row 6: a step of a ranking model: a table of 1,000,000 x 64, the sum over a bag of 20 log-uniform ids, fc 256, 128
// and 1000, batch 512. MODE is the updater: sgd, rowwise_adagrad, adam. SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "../support/bench.h"

namespace {

constexpr int64_t kBag = 20, kSize = 64, kClasses = 1000;
constexpr int kBatches = 8;  // that take turns

// Log-uniform, as words and items are spread.
std::vector<int64_t> draw_ids(int64_t count, int64_t rows) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(0, std::log(static_cast<double>(rows)));
  std::vector<int64_t> ids(static_cast<size_t>(count));
  for (int64_t& id : ids) id = std::min(rows - 1, static_cast<int64_t>(std::exp(uniform(random))) - 1);
  return ids;
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run(argc, argv, [](const bench::Arguments& arguments) {
    const int64_t rows = arguments.size(1'000'000, 2'000), samples = arguments.size(512, 64);
    const tenon::Host host = bench::host(arguments.threads);
    tenon::DataOptions bag;
    bag.name = "ids", bag.dtype = TN_I64, bag.storage = TN_RAGGED;
    const tenon::Layer table =
        host.layer("embedding", {host.data(bag)},
                   {{"vocabulary", rows}, {"size", kSize}, {"reduce", "sum"}, {"scale", 0.1}}, "table");
    const tenon::Layer first = host.layer("fc", {table}, {{"size", 256}, {"act", "relu"}}, "first");
    const tenon::Layer second = host.layer("fc", {first}, {{"size", 128}, {"act", "relu"}}, "second");
    const tenon::Layer logits = host.layer("fc", {second}, {{"size", kClasses}}, "logits");
    const tenon::Layer cost =
        host.layer("cross_entropy", {logits, bench::data(host, "label", TN_I64)}, {{"from_logits", true}}, "cost");
    const tenon::Parameters parameters = host.parameters({cost}, 1);
    tenon::MachineOptions options;
    options.max_samples = samples, options.max_rows = samples * kBag, options.training = true,
    options.device = arguments.device;
    const tenon::Machine machine = host.machine(parameters, {cost}, options);
    const tenon::Updater updater =
        host.updater(arguments.mode.empty() ? "sgd" : arguments.mode, {{"learning_rate", 0.01}});
    const std::vector<int64_t> ids = draw_ids(kBatches * samples * kBag, rows);
    const auto labels = bench::integers<int64_t>(static_cast<size_t>(kBatches * samples), kClasses, 2);
    std::vector<int64_t> offsets(static_cast<size_t>(samples) + 1);
    for (size_t i = 0; i < offsets.size(); ++i) offsets[i] = static_cast<int64_t>(i) * kBag;
    bench::write(
        arguments.folder, parameters,
        {"table.weight", "first.weight", "first.bias", "second.weight", "second.bias", "logits.weight", "logits.bias"});
    bench::write(arguments.folder, "ids", ids);
    bench::write(arguments.folder, "labels", labels);
    int64_t done = 0;
    const auto step = [&] {
      const int64_t begin = done++ % kBatches * samples;
      machine.forward(
          {{"ids", tenon::Array::sequences(TN_I64, {samples * kBag}, &ids[static_cast<size_t>(begin * kBag)], samples,
                                           offsets.data())},
           {"label", {TN_I64, {samples}, &labels[static_cast<size_t>(begin)]}}});
      machine.backward();
      updater.update(machine);
    };
    bench::Result result = bench::steps(arguments, machine, 8, 16, 200, step);
    result.flops = 6.0 * static_cast<double>(samples) * (64 * 256 + 256 * 128 + 128 * 1000);
    return result;
  });
}
