// A shard that another process computes. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "core/error.h"
#include "host/machine/shards/shard.h"

namespace tenon::host {

using namespace core;

// What this process knows of it: the numbers of the last forward. Its outputs lie in the other process.
class RemoteShard final : public Shard {
 public:
  explicit RemoteShard(int64_t process) : process_(process) {}

  // metrics: the sums of each.
  void set(int64_t samples, std::vector<double> costs, std::vector<std::pair<LayerRef, std::vector<double>>> metrics) {
    samples_ = carried_samples_ = samples;
    costs_ = std::move(costs);
    metrics_ = std::move(metrics);
  }
  void drop() { samples_ = -1; }

  [[nodiscard]] int64_t samples() const override { return samples_; }
  [[nodiscard]] double cost() const override {
    double sum = 0;
    for (const double cost : costs_) sum += cost;
    return sum;
  }
  [[nodiscard]] std::vector<double> costs() const override { return costs_; }
  [[nodiscard]] std::vector<double> metric_state(const LayerRef& metric) const override {
    for (const auto& [layer, state] : metrics_)
      if (layer == metric) return state;
    fail(TN_NOT_FOUND, "the machine has no metric \"", metric->name, "\"");
  }
  [[nodiscard]] ArrayView output(const LayerOutput& output) const override {
    const std::string name = output_name(output);
    fail(TN_NOT_KEPT, SubjectName{name}, "the output of layer \"", name, "\" lies in part in process ", process_);
  }
  [[nodiscard]] ArrayView data_gradient(size_t) const override {
    fail(TN_NOT_KEPT, "the gradient of a data layer lies in part in process ", process_);
  }

  // Machines with carried states are of one process.
  [[nodiscard]] CarriedStates carried() const override { return {carried_samples_, {}}; }
  void set_carried(const CarriedStates& carried) override { carried_samples_ = carried.samples; }
  void reset_carried() override { carried_samples_ = 0; }

 private:
  int64_t process_;
  int64_t samples_ = -1;
  int64_t carried_samples_ = 0;
  std::vector<double> costs_;
  std::vector<std::pair<LayerRef, std::vector<double>>> metrics_;
};

}  // namespace tenon::host
