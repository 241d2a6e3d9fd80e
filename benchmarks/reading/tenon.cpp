// What the reader adds to the main job's step: the same training from a reader (Fashion-MNIST, shuffled, batch 128) and
// from minibatches that lie in memory already, as many as a pass has. One line of JSON: microseconds for a step of
// each, median of rounds that take turns, and of
// the ratio of each round. SPDX-License-Identifier: Apache-2.0
//
//   bench_reading THREADS [PREFETCH]     PREFETCH: minibatches read ahead, 2 unless said; 0: none
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <tenon/tenon.hpp>
#include <vector>

#include "../limits.h"

namespace {

constexpr int64_t kBatch = 128, kImages = 60000;
constexpr int kRounds = 15, kPasses = 2;
constexpr int64_t kSteps = kPasses * ((kImages + kBatch - 1) / kBatch);

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

tenon::Reader reader(const tenon::Host& host, int64_t prefetch) {
  const std::string folder = "/usr/share/datasets/fashion-mnist/train-";
  tenon::Reader batches = host.reader("idx", {{"files", std::vector<std::string>{folder + "images-idx3-ubyte.gz",
                                                                                 folder + "labels-idx1-ubyte.gz"}},
                                              {"names", std::vector<std::string>{"image", "label"}}})
                              .shuffle(1)
                              .batch(kBatch);
  return prefetch > 0 ? std::move(batches).buffered(prefetch) : std::move(batches);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2 || argc > 3) return std::fprintf(stderr, "usage: bench_reading THREADS [PREFETCH]\n"), 64;
  const tenon::Host host(tenon::HostOptions{std::atoi(argv[1]), {}, nullptr, {}, TN_CHECK_OFF});
  tenon::DataOptions image;
  image.name = "image", image.dtype = TN_U8, image.shape = {28, 28}, image.scale = 1.0 / 255;
  tenon::DataOptions label;
  label.name = "label", label.dtype = TN_U8;
  const tenon::Layer hidden = host.layer("fc", {host.data(image)}, {{"size", 128}, {"act", "relu"}}, "hidden");
  const tenon::Layer score = host.layer("fc", {hidden}, {{"size", 10}}, "score");
  const tenon::Layer labels = host.data(label);
  tenon::TrainOptions options;
  options.outputs = {host.layer("cross_entropy", {score, labels}, {{"from_logits", true}}, "cost")};
  options.parameters = host.parameters(options.outputs, 1);
  options.updater = host.updater("adam");
  options.passes = kPasses;
  options.reader = reader(host, argc > 2 ? std::atoll(argv[2]) : 2);
  const std::vector<uint8_t> pixels(kImages * 784, 40), numbers(kImages, 3);
  tenon::MachineOptions wanted;
  wanted.max_samples = kBatch, wanted.training = true;
  const tenon::Machine machine = host.machine(options.parameters, options.outputs, wanted);
  std::vector<double> with, without, ratios;
  for (int round = 0; round < kRounds; ++round) {
    double began = bench::now();
    tenon::train(options);
    with.push_back((bench::now() - began) / kSteps);
    began = bench::now();
    for (int64_t step = 0; step < kSteps; ++step) {
      machine.forward(
          {{"image", {TN_U8, {kBatch, 28, 28}, pixels.data()}}, {"label", {TN_U8, {kBatch}, numbers.data()}}});
      machine.backward();
      options.updater.update(machine);
    }
    without.push_back((bench::now() - began) / kSteps);
    ratios.push_back(with.back() / without.back());
  }
  std::printf("{\"unit\": \"us/step\", \"with_reader\": %.2f, \"without\": %.2f, \"ratio\": %.3f}\n",
              1e6 * median(with), 1e6 * median(without), median(ratios));
  return 0;
} catch (const tenon::Error& error) {
  std::fprintf(stderr, "bench_reading: %s\n", error.what());
  return 1;
}
