// Row 12: a shuffled pass over the 60,000 images of Fashion-MNIST in minibatches of 128 that hold bytes.
// SPDX-License-Identifier: Apache-2.0
#include "../support/bench.h"

int main(int argc, char** argv) {
  return bench::run(argc, argv, [](const bench::Arguments& arguments) {
    const std::string folder = "/usr/share/datasets/fashion-mnist/train-";
    const tenon::Host host = bench::host(arguments.threads);
    const tenon::Reader reader =
        host.reader(
                "idx",
                {{"files", std::vector<std::string>{folder + "images-idx3-ubyte.gz", folder + "labels-idx1-ubyte.gz"}},
                 {"names", std::vector<std::string>{"image", "label"}}})
            .shuffle(1)
            .batch(128);
    bench::Result result;
    const auto pass = [&] {
      double sum = 0;
      while (true) {
        const std::vector<tenon::Array> slots = reader.next();
        if (slots.empty()) return sum;
        sum += static_cast<const uint8_t*>(slots[0].data)[300];
      }
    };
    pass();
    result.seconds = bench::mean_seconds(5, pass);
    return result;
  });
}
