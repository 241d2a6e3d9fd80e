// Row 4: a step of LeNet-5, Adam, batch 128. SPDX-License-Identifier: Apache-2.0
#include "../support/lenet.h"

int main(int argc, char** argv) {
  return bench::run(argc, argv, [](const bench::Arguments& arguments) {
    constexpr int64_t kBatch = 128;
    const tenon::Host host = bench::host(arguments.threads);
    const tenon::Layer logits = bench::lenet(host, bench::data(host, "image", TN_F32, {28, 28, 1}));
    const tenon::Layer cost =
        host.layer("cross_entropy", {logits, bench::data(host, "label", TN_U8)}, {{"from_logits", true}}, "cost");
    const tenon::Parameters parameters = host.parameters({cost}, 1);
    const tenon::Machine machine = bench::machine(host, parameters, {cost}, kBatch, true, arguments.device);
    const tenon::Updater updater = host.updater("adam");
    const std::vector<float> images = bench::numbers(kBatch * 784, 1);
    const auto labels = bench::integers<uint8_t>(kBatch, 10, 2);
    bench::write(arguments.folder, parameters, bench::lenet_parameters());
    bench::write(arguments.folder, "images", images);
    bench::write(arguments.folder, "labels", labels);
    const auto step = [&] {
      machine.forward(
          {{"image", {TN_F32, {kBatch, 28, 28, 1}, images.data()}}, {"label", {TN_U8, {kBatch}, labels.data()}}});
      machine.backward();
      updater.update(machine);
    };
    bench::Result result = bench::steps(arguments, machine, 5, 20, 100, step);
    result.flops = 2.0 * kBatch * (2 * bench::kLenetFirst + 3 * bench::kLenetRest);
    return result;
  });
}
