// Row 7: skip-gram with negative sampling, vectors of 100, 70,000 words: a step over 1,024 pairs with 5 negatives each,
// SGD. Words are Zipf-like; negatives are drawn beforehand, so that every side computes the same.
// Mikolov et al., "Distributed Representations of Words and Phrases", 2013. SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "../support/bench.h"

int main(int argc, char** argv) {
  return bench::run(argc, argv, [](const bench::Arguments& arguments) {
    constexpr int64_t kSize = 100, kBatch = 1024, kTargets = 6;
    const int64_t vocabulary = arguments.size(70'000, 2'000);
    constexpr int kBatches = 16;  // that take turns
    const tenon::Host host = bench::host(arguments.threads);
    const tenon::Attributes table = {{"vocabulary", vocabulary}, {"size", kSize}, {"scale", 0.1}};
    const tenon::Layer centre = host.layer("embedding", {bench::data(host, "centre", TN_I64, {1})}, table, "centres");
    const tenon::Layer target =
        host.layer("embedding", {bench::data(host, "target", TN_I64, {kTargets})}, table, "targets");
    const tenon::Layer score = host.layer("matmul", {centre, target}, {{"transpose_b", true}}, "score");
    const auto part = [&](int64_t start, int64_t length) {
      return host.layer("slice", {score}, {{"axis", 2}, {"start", start}, {"length", length}});
    };
    const tenon::Layers costs = {host.layer("should_be_true", {part(0, 1)}, {}, "near"),
                                 host.layer("should_be_false", {part(1, kTargets - 1)}, {}, "far")};
    const tenon::Parameters parameters = host.parameters(costs, 1);
    const tenon::Machine machine = bench::machine(host, parameters, costs, kBatch, true);
    const tenon::Updater updater = host.updater("sgd", {{"learning_rate", 3.0}});  // 0.1 would move the loss too little
    std::mt19937_64 random(1);
    std::uniform_real_distribution<double> uniform(0, std::log(static_cast<double>(vocabulary)));
    const auto words = [&](size_t count) {
      std::vector<int64_t> ids(count);
      for (int64_t& id : ids) id = std::min(vocabulary - 1, static_cast<int64_t>(std::exp(uniform(random))) - 1);
      return ids;
    };
    const std::vector<int64_t> centres = words(kBatches * kBatch), targets = words(kBatches * kBatch * kTargets);
    bench::write(arguments.folder, parameters, {"centres.weight", "targets.weight"});
    bench::write(arguments.folder, "centres", centres);
    bench::write(arguments.folder, "targets", targets);
    size_t done = 0;
    const auto step = [&] {
      const size_t batch = done++ % kBatches;
      machine.forward({{"centre", {TN_I64, {kBatch, 1}, &centres[batch * kBatch]}},
                       {"target", {TN_I64, {kBatch, kTargets}, &targets[batch * kBatch * kTargets]}}});
      machine.backward();
      updater.update(machine);
    };
    bench::Result result = bench::steps(arguments, machine, 16, 16, 100, step);
    result.flops = 6.0 * kBatch * kTargets * kSize;
    return result;
  });
}
