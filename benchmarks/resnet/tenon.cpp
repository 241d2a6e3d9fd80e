// Rows 5a and 5b: a step of a residual network on images of 32 x 32 x 3, SGD with momentum. Mode 20: ResNet-20 (16, 32,
// 64 filters, three blocks each, batch 128); 18: ResNet-18 (64, 128, 256, 512 filters, two blocks each, batch 32).
// SPDX-License-Identifier: Apache-2.0
#include "../support/bench.h"

namespace {

// The layers up to the last images.
struct Network {
  const tenon::Host& host;
  double stem_multiplications, multiplications;  // of one image, forward
  std::vector<std::string> names = {"stem"};     // of the convolutions
  tenon::Layer images;

  Network(const tenon::Host& on, bool large) : host(on) {
    const int64_t first = large ? 64 : 16;
    const int stages = large ? 4 : 3, blocks = large ? 2 : 3;
    multiplications = stem_multiplications = 32.0 * 32 * 27 * static_cast<double>(first);
    images = bench::data(host, "image", TN_F32, {32, 32, 3});
    images = host.layer("relu", {conv(images, first, 3, 1, "stem")});
    int64_t channels = first, size = 32;
    for (int stage = 0; stage < stages; ++stage)
      for (int block = 0; block < blocks; ++block) {
        const int64_t filters = first << stage, stride = stage > 0 && block == 0 ? 2 : 1;
        size /= stride;
        add_block("block" + std::to_string(stage) + std::to_string(block), channels, filters, stride, size);
        channels = filters;
      }
  }

 private:
  tenon::Layer conv(const tenon::Layer& from, int64_t filters, int64_t kernel, int64_t stride,
                    const std::string& name) const {
    const tenon::Layer made = host.layer(
        "conv", {from},
        {{"filters", filters}, {"kernel", kernel}, {"stride", stride}, {"padding", kernel / 2}, {"bias", false}},
        name + "_conv");
    return host.layer("batch_norm", {made}, {}, name + "_norm");
  }

  // size: of the sides of the block's results.
  void add_block(const std::string& name, int64_t channels, int64_t filters, int64_t stride, int64_t size) {
    const auto places = static_cast<double>(size * size), wide = static_cast<double>(filters);
    multiplications += places * 9 * wide * (static_cast<double>(channels) + wide);
    const tenon::Layer middle = host.layer("relu", {conv(images, filters, 3, stride, name + "a")});
    const tenon::Layer last = conv(middle, filters, 3, 1, name + "b");
    names.insert(names.end(), {name + "a", name + "b"});
    tenon::Layer shortcut = images;
    if (stride > 1) {
      shortcut = conv(images, filters, 1, stride, name + "s");
      names.push_back(name + "s");
      multiplications += places * static_cast<double>(channels) * wide;
    }
    images = host.layer("relu", {host.layer("add", {last, shortcut})});
  }
};

}  // namespace

int main(int argc, char** argv) {
  return bench::run(argc, argv, [](const bench::Arguments& arguments) {
    const bool large = arguments.mode == "18";
    const int64_t batch = large ? 32 : 128;
    const tenon::Host host = bench::host(arguments.threads);
    const Network network(host, large);
    const tenon::Layer mean = host.layer("pool", {network.images}, {{"kind", "average"}, {"whole", true}});
    const tenon::Layer logits = host.layer("fc", {mean}, {{"size", 10}}, "logits");
    const tenon::Layer cost =
        host.layer("cross_entropy", {logits, bench::data(host, "label", TN_U8)}, {{"from_logits", true}}, "cost");
    const tenon::Parameters parameters = host.parameters({cost}, 1);
    const tenon::Machine machine = bench::machine(host, parameters, {cost}, batch, true, arguments.device);
    const tenon::Updater updater = host.updater("sgd", {{"learning_rate", 0.01}, {"momentum", 0.9}});
    const std::vector<float> images = bench::numbers(static_cast<size_t>(batch) * 32 * 32 * 3, 1);
    const auto labels = bench::integers<uint8_t>(static_cast<size_t>(batch), 10, 2);
    std::vector<std::string> written = {"logits.weight", "logits.bias"};
    for (const std::string& name : network.names) written.push_back(name + "_conv.weight");
    bench::write(arguments.folder, parameters, written);
    bench::write(arguments.folder, "images", images);
    bench::write(arguments.folder, "labels", labels);
    const auto step = [&] {
      machine.forward(
          {{"image", {TN_F32, {batch, 32, 32, 3}, images.data()}}, {"label", {TN_U8, {batch}, labels.data()}}});
      machine.backward();
      updater.update(machine);
    };
    bench::Result result = bench::steps(arguments, machine, 3, 1, 5, step);
    // The gradients of the first convolution's images are not computed.
    result.flops = 2.0 * static_cast<double>(batch) * (3 * network.multiplications - network.stem_multiplications);
    return result;
  });
}
