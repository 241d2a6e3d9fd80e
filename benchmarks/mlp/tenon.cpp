// Row 1: a step of the main job's model, 784-128-10, Adam, batch 128, without its reader.
// SPDX-License-Identifier: Apache-2.0
#include "../support/bench.h"

int main(int argc, char** argv) {
  return bench::run(argc, argv, [](const bench::Arguments& arguments) {
    const int64_t batch = arguments.size(128, 32);
    const tenon::Host host = bench::host(arguments.threads);
    tenon::DataOptions image;
    image.name = "image", image.dtype = TN_U8, image.shape = {784}, image.scale = 1.0 / 255;
    const tenon::Layer hidden = host.layer("fc", {host.data(image)}, {{"size", 128}, {"act", "relu"}}, "hidden");
    const tenon::Layer logits = host.layer("fc", {hidden}, {{"size", 10}}, "logits");
    const tenon::Layer cost =
        host.layer("cross_entropy", {logits, bench::data(host, "label", TN_U8)}, {{"from_logits", true}}, "cost");
    const tenon::Parameters parameters = host.parameters({cost}, 1);
    const tenon::Machine machine = bench::machine(host, parameters, {cost}, batch, true, arguments.device);
    const tenon::Updater updater = host.updater("adam");
    std::vector<uint8_t> images = bench::integers<uint8_t>(static_cast<size_t>(batch * 784), 255, 1);
    for (uint8_t& pixel : images) ++pixel;
    const auto labels = bench::integers<uint8_t>(static_cast<size_t>(batch), 10, 2);
    bench::write(arguments.folder, parameters, {"hidden.weight", "hidden.bias", "logits.weight", "logits.bias"});
    bench::write(arguments.folder, "images", images);
    bench::write(arguments.folder, "labels", labels);
    const auto step = [&] {
      machine.forward({{"image", {TN_U8, {batch, 784}, images.data()}}, {"label", {TN_U8, {batch}, labels.data()}}});
      machine.backward();
      updater.update(machine);
    };
    bench::Result result = bench::steps(arguments, machine, 10, 100, 1000, step);
    result.flops = 2.0 * static_cast<double>(batch) * (2 * 784 * 128 + 3 * 128 * 10);
    return result;
  });
}
