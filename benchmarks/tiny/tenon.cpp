// Row 3: a training step of 16-32-32-2, batch 1, SGD, as three calls or, in the mode "steps", as one of 50 in a call.
// SPDX-License-Identifier: Apache-2.0
#include <tenon/tenon_machine.hpp>

#include "../support/bench.h"

int main(int argc, char** argv) {
  return bench::run(argc, argv, [](const bench::Arguments& arguments) {
    const tenon::Host host = bench::host(arguments.threads);
    const tenon::Layer x = bench::data(host, "x", TN_F32, {16});
    const tenon::Layer first = host.layer("fc", {x}, {{"size", 32}, {"act", "relu"}}, "first");
    const tenon::Layer second = host.layer("fc", {first}, {{"size", 32}, {"act", "relu"}}, "second");
    const tenon::Layer logits = host.layer("fc", {second}, {{"size", 2}}, "logits");
    const tenon::Layer cost =
        host.layer("cross_entropy", {logits, bench::data(host, "label", TN_I64)}, {{"from_logits", true}}, "cost");
    const tenon::Parameters parameters = host.parameters({cost}, 1);
    const tenon::Machine machine = bench::machine(host, parameters, {cost}, 1, true, arguments.device);
    const tenon::Updater updater = host.updater("sgd", {{"learning_rate", 0.01}});
    const std::vector<float> input = bench::numbers(16, 1);
    const int64_t label = 1;
    bench::write(arguments.folder, parameters,
                 {"first.weight", "first.bias", "second.weight", "second.bias", "logits.weight", "logits.bias"});
    bench::write(arguments.folder, "x", input);
    constexpr int kSteps = 50;  // in a call
    const std::vector<tenon::Feed> feeds = {{"x", {TN_F32, {1, 16}, input.data()}}, {"label", {TN_I64, {1}, &label}}};
    const auto step = [&] {
      machine.forward(feeds);
      machine.backward();
      updater.update(machine);
    };
    std::vector<float> inputs;
    for (int i = 0; i < kSteps; ++i) inputs.insert(inputs.end(), input.begin(), input.end());
    const std::vector<int64_t> labels(kSteps, label);
    std::vector<double> costs;
    const auto steps = [&](int64_t count) {
      costs.clear();
      tenon::steps(machine, updater,
                   {{"x", {TN_F32, {count, 16}, inputs.data()}}, {"label", {TN_I64, {count}, labels.data()}}}, 1,
                   costs);
    };
    bench::Result result;
    if (arguments.mode == "steps") {
      steps(10);
      result.loss = costs.back();
      bench::mean_seconds(20, [&] { steps(kSteps); });
      result.seconds = bench::mean_seconds(1000, [&] { steps(kSteps); }) / kSteps;
    } else {
      result = bench::steps(arguments, machine, 10, 1000, 50000, step);
    }
    result.flops = 2.0 * (2 * 16 * 32 + 3 * 32 * 32 + 3 * 32 * 2);
    return result;
  });
}
