// Row 3: the answer of 16-32-32-2 to one sample. SPDX-License-Identifier: Apache-2.0
#include "../support/bench.h"

int main(int argc, char** argv) {
  return bench::run(argc, argv, [](const bench::Arguments& arguments) {
    const tenon::Host host = bench::host(arguments.threads);
    const tenon::Layer x = bench::data(host, "x", TN_F32, {16});
    const tenon::Layer first = host.layer("fc", {x}, {{"size", 32}, {"act", "relu"}}, "first");
    const tenon::Layer second = host.layer("fc", {first}, {{"size", 32}, {"act", "relu"}}, "second");
    const tenon::Layer logits = host.layer("fc", {second}, {{"size", 2}}, "logits");
    const tenon::Parameters parameters = host.parameters({logits}, 1);
    const tenon::Machine machine = bench::machine(host, parameters, {logits}, 1, false);
    const std::vector<float> input = bench::numbers(16, 1);
    bench::write(arguments.folder, parameters,
                 {"first.weight", "first.bias", "second.weight", "second.bias", "logits.weight", "logits.bias"});
    bench::write(arguments.folder, "x", input);
    const std::vector<tenon::Feed> feeds = {{"x", {TN_F32, {1, 16}, input.data()}}};
    const auto step = [&] { machine.forward(feeds); };
    if (arguments.calls > 0) return bench::count_calls(arguments, step);
    bench::mean_seconds(1000, step);
    bench::Result result = bench::single_calls(50000, step);
    const auto* const answer = static_cast<const float*>(machine.output(logits).data);
    result.loss = static_cast<double>(answer[0]) - static_cast<double>(answer[1]);
    result.seconds = bench::mean_seconds(50000, step);
    result.flops = 2.0 * (16 * 32 + 32 * 32 + 32 * 2);
    return result;
  });
}
