// Step time of the main job's model (784-128-10, Adam, batch 128) without its reader. One run, one line of JSON;
// benchmarks/compare runs it beside the peer. SPDX-License-Identifier: Apache-2.0
//
//   bench_mlp THREADS FOLDER     FOLDER receives what the peer starts from: parameters and the minibatch
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <tenon/tenon.hpp>

#include "../limits.h"

namespace {

constexpr int64_t kBatch = 128;
constexpr int kWarmUp = 100;  // steps, after which the losses are compared
constexpr int kSteps = 1000;

void write(const std::string& path, const void* data, size_t bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
  if (!file.flush()) throw tenon::Error(TN_IO, "cannot write " + path);
}

class Model {
 public:
  explicit Model(int threads) : host_(tenon::HostOptions{threads, {}, nullptr, {}, TN_CHECK_OFF}) {
    tenon::DataOptions image;
    image.name = "image";
    image.dtype = TN_U8;
    image.shape = {784};
    image.scale = 1.0 / 255;
    tenon::DataOptions label;
    label.name = "label";
    label.dtype = TN_U8;
    const tenon::Layer labels = host_.data(label);
    const tenon::Layer hidden = host_.layer("fc", {host_.data(image)}, {{"size", 128}, {"act", "relu"}}, "hidden");
    const tenon::Layer logits = host_.layer("fc", {hidden}, {{"size", 10}}, "logits");
    const tenon::Layer cost = host_.layer("cross_entropy", {logits, labels}, {{"from_logits", true}}, "cost");
    tenon::MachineOptions options;
    options.max_samples = kBatch;
    options.training = true;
    parameters_ = host_.parameters({cost}, 1);
    machine_ = host_.machine(parameters_, {cost}, options);
    updater_ = host_.updater("adam");
    std::mt19937 random(1);
    for (uint8_t& value : images_) value = static_cast<uint8_t>(random() % 255 + 1);
    for (uint8_t& value : labels_) value = static_cast<uint8_t>(random() % 10);
  }

  void exchange(const std::string& folder) const {
    for (const char* name : {"hidden.weight", "hidden.bias", "logits.weight", "logits.bias"}) {
      const tenon::Array values = parameters_.get(name);
      write(folder + "/" + name, values.data, static_cast<size_t>(values.count()) * sizeof(float));
    }
    write(folder + "/images", images_.data(), images_.size());
    write(folder + "/labels", labels_.data(), labels_.size());
  }

  void steps(int count) const {
    const std::vector<tenon::Feed> feeds = {{"image", {TN_U8, {kBatch, 784}, images_.data()}},
                                            {"label", {TN_U8, {kBatch}, labels_.data()}}};
    for (int i = 0; i < count; ++i) {
      machine_.forward(feeds);
      machine_.backward();
      updater_.update(machine_);
    }
  }
  [[nodiscard]] double cost() const { return machine_.cost(); }

 private:
  tenon::Host host_;
  tenon::Parameters parameters_;
  tenon::Machine machine_;
  tenon::Updater updater_;
  std::vector<uint8_t> images_ = std::vector<uint8_t>(kBatch * 784);
  std::vector<uint8_t> labels_ = std::vector<uint8_t>(kBatch);
};

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3) return std::fprintf(stderr, "usage: bench_mlp THREADS FOLDER\n"), 64;
  const Model model(std::atoi(argv[1]));
  model.exchange(argv[2]);
  model.steps(kWarmUp);
  const double loss = model.cost();
  const double began = bench::now();
  model.steps(kSteps);
  const double seconds = (bench::now() - began) / kSteps;
  constexpr double kFlops = 2.0 * kBatch * (2 * 784 * 128 + 3 * 128 * 10);
  std::printf("{\"unit\": \"us/step\", \"value\": %.3f, \"loss\": %.9g, \"limit\": %.3f}\n", 1e6 * seconds, loss,
              1e6 * kFlops / bench::flops_per_core() / std::atoi(argv[1]));
  return 0;
} catch (const tenon::Error& error) {
  std::fprintf(stderr, "bench_mlp: %s\n", error.what());
  return 1;
}
