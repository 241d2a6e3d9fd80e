// Row 2: a step of 1024-4096-4096-1000, momentum 0.9, batch 1024. Modes "bf16" and "tf32": with products in bfloat16
// or TensorFloat-32.
// SPDX-License-Identifier: Apache-2.0
#include "../support/bench.h"

int main(int argc, char** argv) {
  return bench::run(argc, argv, [](const bench::Arguments& arguments) {
    constexpr int64_t kBatch = 1024;
    const tenon::Host host = bench::host(arguments.threads);
    const tenon::Layer x = bench::data(host, "x", TN_F32, {1024});
    const tenon::Layer first = host.layer("fc", {x}, {{"size", 4096}, {"act", "relu"}}, "first");
    const tenon::Layer second = host.layer("fc", {first}, {{"size", 4096}, {"act", "relu"}}, "second");
    const tenon::Layer logits = host.layer("fc", {second}, {{"size", 1000}}, "logits");
    const tenon::Layer cost =
        host.layer("cross_entropy", {logits, bench::data(host, "label", TN_I64)}, {{"from_logits", true}}, "cost");
    const tenon::Parameters parameters = host.parameters({cost}, 1);
    const tn_dtype compute = arguments.mode == "bf16" ? TN_BF16 : arguments.mode == "tf32" ? TN_TF32 : TN_F32;
    const tenon::Machine machine = bench::machine(host, parameters, {cost}, kBatch, true, arguments.device, compute);
    const tenon::Updater updater = host.updater("sgd", {{"learning_rate", 0.01}, {"momentum", 0.9}});
    const std::vector<float> inputs = bench::numbers(kBatch * 1024, 1);
    const auto labels = bench::integers<int64_t>(kBatch, 1000, 2);
    bench::write(arguments.folder, parameters,
                 {"first.weight", "first.bias", "second.weight", "second.bias", "logits.weight", "logits.bias"});
    bench::write(arguments.folder, "x", inputs);
    bench::write(arguments.folder, "labels", labels);
    const auto step = [&] {
      machine.forward({{"x", {TN_F32, {kBatch, 1024}, inputs.data()}}, {"label", {TN_I64, {kBatch}, labels.data()}}});
      machine.backward();
      updater.update(machine);
    };
    bench::Result result = bench::steps(arguments, machine, 3, 0, 3, step);
    (compute == TN_BF16 ? result.bf16_flops : result.flops) =
        2.0 * kBatch * (2 * 1024 * 4096 + 3 * 4096 * 4096 + 3 * 4096 * 1000);
    return result;
  });
}
