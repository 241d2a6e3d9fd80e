// Row 13: the answer of 784-128-10 to one image. SPDX-License-Identifier: Apache-2.0
#include "../support/bench.h"

int main(int argc, char** argv) {
  return bench::run(argc, argv, [](const bench::Arguments& arguments) {
    const tenon::Host host = bench::host(arguments.threads);
    const tenon::Layer x = bench::data(host, "x", TN_F32, {784});
    const tenon::Layer hidden = host.layer("fc", {x}, {{"size", 128}, {"act", "relu"}}, "hidden");
    const tenon::Layer logits = host.layer("fc", {hidden}, {{"size", 10}}, "logits");
    const tenon::Parameters parameters = host.parameters({logits}, 1);
    const tenon::Machine machine = bench::machine(host, parameters, {logits}, 1, false);
    const std::vector<float> input = bench::numbers(784, 1);
    bench::write(arguments.folder, parameters, {"hidden.weight", "hidden.bias", "logits.weight", "logits.bias"});
    bench::write(arguments.folder, "x", input);
    const std::vector<tenon::Feed> feeds = {{"x", {TN_F32, {1, 784}, input.data()}}};
    const auto step = [&] { machine.forward(feeds); };
    bench::mean_seconds(1000, step);
    bench::Result result = bench::single_calls(50000, step);
    const auto* const answer = static_cast<const float*>(machine.output(logits).data);
    result.loss = static_cast<double>(answer[0]) - static_cast<double>(answer[1]);
    result.flops = 2.0 * (784 * 128 + 128 * 10);
    return result;
  });
}
