// Step time of the main job's model (784-128-10, Adam, batch 128) without its reader, at 1 and 2 threads, beside the
// machine's own limit: the same gemms alone on one core, probed in the same run. SPDX-License-Identifier: Apache-2.0
//
//   mlp [rounds]     prints medians over interleaved rounds, in microseconds per step
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <tenon/tenon.hpp>

namespace {

constexpr int64_t kBatch = 128;
constexpr int kSteps = 400;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

class Bench {
 public:
  explicit Bench(int threads) : host_(tenon::HostOptions{threads, {}, nullptr, {}}) {
    tenon::DataOptions image;
    image.name = "image";
    image.dtype = TN_U8;
    image.shape = {28, 28};
    image.scale = 1.0 / 255;
    tenon::DataOptions label;
    label.name = "label";
    label.dtype = TN_U8;
    const tenon::Layer labels = host_.data(label);
    const tenon::Layer hidden = host_.layer("fc", {host_.data(image)}, {{"size", 128}, {"act", "relu"}}, "hidden");
    const tenon::Layer logits = host_.layer("fc", {hidden}, {{"size", 10}}, "logits");
    const tenon::Layer cost = host_.layer("cross_entropy", {logits, labels}, {{"from_logits", true}}, "cost");
    const tenon::Layer accuracy = host_.layer("accuracy", {logits, labels}, {}, "accuracy");
    tenon::MachineOptions options;
    options.max_samples = kBatch;
    options.training = true;
    machine_ = host_.machine(host_.parameters({cost, accuracy}, 1), {cost, accuracy}, options);
    updater_ = host_.updater("adam");
    std::mt19937 random(1);
    for (uint8_t& value : images_) value = static_cast<uint8_t>(random() % 255 + 1);
    for (uint8_t& value : labels_) value = static_cast<uint8_t>(random() % 10);
  }

  // Seconds per step.
  double run() const {
    const std::vector<tenon::Feed> feeds = {{"image", {TN_U8, {kBatch, 28, 28}, images_.data()}},
                                            {"label", {TN_U8, {kBatch}, labels_.data()}}};
    const double began = now();
    for (int i = 0; i < kSteps; ++i) {
      machine_.forward(feeds);
      machine_.backward();
      updater_.update(machine_);
    }
    return (now() - began) / kSteps;
  }

 private:
  tenon::Host host_;
  tenon::Machine machine_;
  tenon::Updater updater_;
  std::vector<uint8_t> images_ = std::vector<uint8_t>(kBatch * 784);
  std::vector<uint8_t> labels_ = std::vector<uint8_t>(kBatch);
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Seconds that the arithmetic of a step takes one core at its peak of fused multiply-adds, measured here and now.
double arithmetic_limit() {
  constexpr double kFlops = 2.0 * kBatch * (2 * 784 * 128 + 3 * 128 * 10);
  constexpr int kLanes = 128;  // enough independent chains to hide the latency at any vector width
  constexpr int kRepeats = 2'000'000;
  float x[kLanes];
  for (int i = 0; i < kLanes; ++i) x[i] = 1.0F + static_cast<float>(i) * 1e-3F;
  const double began = now();
  for (int r = 0; r < kRepeats; ++r)
    for (int i = 0; i < kLanes; ++i) x[i] = x[i] * 0.999F + 0.001F;
  const double seconds = now() - began;
  float sum = 0;
  for (const float value : x) sum += value;
  if (sum == 0) return 0;  // keeps the loop alive
  return kFlops / (2.0 * kLanes * kRepeats / seconds);
}

}  // namespace

int main(int argc, char** argv) try {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 15;
  const Bench one(1);
  const Bench two(2);
  std::vector<double> one_times, two_times, limits;
  one.run();
  two.run();
  for (int i = 0; i < rounds; ++i) {
    one_times.push_back(one.run());
    two_times.push_back(two.run());
    limits.push_back(arithmetic_limit());
  }
  const double limit = median(limits);
  std::printf("step, 1 thread:  %7.1f us   (%.2f of the arithmetic limit of one core, %.1f us)\n",
              1e6 * median(one_times), limit / median(one_times), 1e6 * limit);
  std::printf("step, 2 threads: %7.1f us   (%.2f of the limit of two cores, %.1f us)\n", 1e6 * median(two_times),
              limit / 2 / median(two_times), 1e6 * limit / 2);
  return 0;
} catch (const tenon::Error& error) {
  std::fprintf(stderr, "mlp: %s\n", error.what());
  return 1;
}
