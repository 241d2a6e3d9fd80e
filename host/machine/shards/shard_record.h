// What is known of a shard whose values no machine has any more. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "core/error.h"
#include "host/machine/shards/shard.h"

namespace tenon::host {

using namespace core;

// The numbers that the last forward of a shard has measured. Its outputs lie in another process, or the next shard has
// overwritten them.
class ShardRecord final : public Shard {
 public:
  using MetricSums = std::vector<std::pair<LayerRef, std::vector<double>>>;

  // outputs: where they are, for messages: "lies in part in process 2".
  explicit ShardRecord(std::string outputs) : outputs_(std::move(outputs)) {}

  void set(int64_t samples, std::vector<double> costs, MetricSums metrics) {
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
    fail(TN_NOT_KEPT, SubjectName{name}, "the output of layer \"", name, "\" ", outputs_);
  }
  [[nodiscard]] ArrayView data_gradient(size_t) const override {
    fail(TN_NOT_KEPT, "the gradient of a data layer ", outputs_);
  }

  // Only shards with a machine of their own have carried states.
  [[nodiscard]] CarriedStates carried() const override { return {carried_samples_, {}}; }
  void set_carried(const CarriedStates& carried) override { carried_samples_ = carried.samples; }
  void reset_carried() override { carried_samples_ = 0; }

 private:
  std::string outputs_;
  int64_t samples_ = -1;
  int64_t carried_samples_ = 0;
  std::vector<double> costs_;
  MetricSums metrics_;
};

}  // namespace tenon::host
