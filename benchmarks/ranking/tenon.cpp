// Step time of a ranking model: a table of 64 numbers for each id, the sum over a bag of 20 ids, fc 256, 128 and 1000,
// softmax cross entropy, batch 512 (row 6 of the targets). One run, one line of JSON; benchmarks/compare runs it beside
// the peer. SPDX-License-Identifier: Apache-2.0
//
//   bench_ranking THREADS FOLDER [UPDATER] [ROWS]     UPDATER: sgd (else rowwise_adagrad, adagrad, adam); ROWS: of the
//   table, 1000000 unless said. FOLDER receives what the peer starts from.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <tenon/tenon.hpp>

#include "../limits.h"

namespace {

constexpr int64_t kBatch = 512, kBag = 20, kSize = 64, kClasses = 1000;
constexpr int kBatches = 8;  // that take turns
constexpr int kWarmUp = 24;  // steps, after which the losses are compared
constexpr int kSteps = 200;

void write(const std::string& path, const void* data, size_t bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
  if (!file.flush()) throw tenon::Error(TN_IO, "cannot write " + path);
}

class Model {
 public:
  Model(int threads, const std::string& updater, int64_t rows)
      : rows_(rows), host_(tenon::HostOptions{threads, {}, nullptr, {}, TN_CHECK_OFF}) {
    tenon::DataOptions ids;
    ids.name = "ids";
    ids.dtype = TN_I64;
    ids.storage = TN_RAGGED;
    tenon::DataOptions label;
    label.name = "label";
    label.dtype = TN_I64;
    const tenon::Layer bag =
        host_.layer("embedding", {host_.data(ids)},
                    {{"vocabulary", rows}, {"size", kSize}, {"reduce", "sum"}, {"scale", 0.1}}, "table");
    const tenon::Layer first = host_.layer("fc", {bag}, {{"size", 256}, {"act", "relu"}}, "first");
    const tenon::Layer second = host_.layer("fc", {first}, {{"size", 128}, {"act", "relu"}}, "second");
    const tenon::Layer logits = host_.layer("fc", {second}, {{"size", kClasses}}, "logits");
    const tenon::Layer cost =
        host_.layer("cross_entropy", {logits, host_.data(label)}, {{"from_logits", true}}, "cost");
    tenon::MachineOptions options;
    options.max_samples = kBatch;
    options.max_rows = kBatch * kBag;
    options.training = true;
    parameters_ = host_.parameters({cost}, 1);
    machine_ = host_.machine(parameters_, {cost}, options);
    updater_ = host_.updater(updater, {{"learning_rate", 0.01}});
    draw();
  }

  void exchange(const std::string& folder) const {
    for (const char* name : {"table.weight", "first.weight", "first.bias", "second.weight", "second.bias",
                             "logits.weight", "logits.bias"}) {
      const tenon::Array values = parameters_.get(name);
      write(folder + "/" + name, values.data, static_cast<size_t>(values.count()) * sizeof(float));
    }
    write(folder + "/ids", ids_.data(), ids_.size() * sizeof(int64_t));
    write(folder + "/labels", labels_.data(), labels_.size() * sizeof(int64_t));
  }

  void steps(int count) {
    for (int i = 0; i < count; ++i, ++step_) {
      const auto batch = static_cast<size_t>(step_ % kBatches);
      machine_.forward({{"ids", tenon::Array::sequences(TN_I64, {kBatch * kBag}, &ids_[batch * kBatch * kBag], kBatch,
                                                        offsets_.data())},
                        {"label", {TN_I64, {kBatch}, &labels_[batch * kBatch]}}});
      machine_.backward();
      updater_.update(machine_);
    }
  }
  [[nodiscard]] double cost() const { return machine_.cost(); }

 private:
  // Log-uniform ids, as words and items are spread.
  void draw() {
    std::mt19937_64 random(1);
    std::uniform_real_distribution<double> uniform(0, 1);
    for (int64_t& id : ids_)
      id = std::min(rows_ - 1,
                    static_cast<int64_t>(std::exp(uniform(random) * std::log(static_cast<double>(rows_)))) - 1);
    for (int64_t& label : labels_) label = static_cast<int64_t>(random() % kClasses);
    for (size_t i = 0; i < offsets_.size(); ++i) offsets_[i] = static_cast<int64_t>(i) * kBag;
  }

  int64_t rows_;
  tenon::Host host_;
  tenon::Parameters parameters_;
  tenon::Machine machine_;
  tenon::Updater updater_;
  int64_t step_ = 0;
  std::vector<int64_t> ids_ = std::vector<int64_t>(kBatches * kBatch * kBag);
  std::vector<int64_t> labels_ = std::vector<int64_t>(kBatches * kBatch);
  std::vector<int64_t> offsets_ = std::vector<int64_t>(kBatch + 1);
};

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3 || argc > 5) return std::fprintf(stderr, "usage: bench_ranking THREADS FOLDER [UPDATER] [ROWS]\n"), 64;
  Model model(std::atoi(argv[1]), argc > 3 ? argv[3] : "sgd", argc > 4 ? std::atoll(argv[4]) : 1000000);
  model.exchange(argv[2]);
  model.steps(kWarmUp);
  const double loss = model.cost();
  const double began = bench::now();
  model.steps(kSteps);
  const double seconds = (bench::now() - began) / kSteps;
  constexpr double kFlops = 6.0 * kBatch * (64 * 256 + 256 * 128 + 128 * 1000);
  std::printf("{\"unit\": \"us/step\", \"value\": %.3f, \"loss\": %.9g, \"limit\": %.3f}\n", 1e6 * seconds, loss,
              1e6 * kFlops / bench::flops_per_core() / std::atoi(argv[1]));
  return 0;
} catch (const tenon::Error& error) {
  std::fprintf(stderr, "bench_ranking: %s\n", error.what());
  return 1;
}
