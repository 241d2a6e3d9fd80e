// Row 4: a step of LeNet-5, Adam, batch 128. SPDX-License-Identifier: Apache-2.0
#include "../support/lenet.h"

int main(int argc, char** argv) {
  return bench::run(argc, argv, [](const bench::Arguments& arguments) {
    const int64_t batch = arguments.size(128, 16);
    const tenon::Host host = bench::host(arguments.threads);
    const tenon::Layer logits = bench::lenet(host, bench::data(host, "image", TN_F32, {28, 28, 1}));
    const tenon::Layer cost =
        host.layer("cross_entropy", {logits, bench::data(host, "label", TN_U8)}, {{"from_logits", true}}, "cost");
    const tenon::Parameters parameters = host.parameters({cost}, 1);
    const tenon::Machine machine = bench::machine(host, parameters, {cost}, batch, true, arguments.device);
    const tenon::Updater updater = host.updater("adam");
    const std::vector<float> images = bench::numbers(static_cast<size_t>(batch * 784), 1);
    const auto labels = bench::integers<uint8_t>(static_cast<size_t>(batch), 10, 2);
    bench::write(arguments.folder, parameters, bench::lenet_parameters());
    bench::write(arguments.folder, "images", images);
    bench::write(arguments.folder, "labels", labels);
    const auto step = [&] {
      machine.forward(
          {{"image", {TN_F32, {batch, 28, 28, 1}, images.data()}}, {"label", {TN_U8, {batch}, labels.data()}}});
      machine.backward();
      updater.update(machine);
    };
    bench::Result result = bench::steps(arguments, machine, 5, 20, 100, step);
    result.flops = 2.0 * static_cast<double>(batch) * (2 * bench::kLenetFirst + 3 * bench::kLenetRest);
    return result;
  });
}
