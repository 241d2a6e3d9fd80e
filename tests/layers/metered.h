// A metric on a host, for the tests of metrics. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <tenon/tenon.hpp>
#include <vector>

#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

using Values = std::map<std::string, double>;

struct Batch {
  std::vector<float> scores;
  std::vector<int64_t> labels;
};

// A metric over scores of `columns` numbers for each sample (0: shape [samples]) and labels, if it takes them. With
// `positions` each sample has so many rows of scores, and labels.
class Metered {
 public:
  Metered(const std::string& type, const Attributes& attributes, int64_t columns, bool labelled = true, int threads = 2,
          int64_t positions = 0)
      : host_({threads, {tenon_tests::plugin_folder()}, nullptr, {}}),
        columns_(columns),
        labelled_(labelled),
        positions_(positions) {
    DataOptions score, label;
    score.name = "score", score.dtype = TN_F32;
    if (columns > 0) score.shape = {columns};
    if (positions > 0) score.shape = {positions, columns}, label.shape = {positions};
    label.name = "label", label.dtype = TN_I64;
    Layers inputs{host_.data(score)};
    if (labelled) inputs.push_back(host_.data(label));
    metric_ = host_.layer(type, inputs, attributes, "metric");
    MachineOptions options;
    options.max_samples = 1000;
    options.training = false;
    machine_ = host_.machine(host_.parameters({metric_}, 1), {metric_}, options);
  }

  Values operator()(const Batch& batch) const {
    const int64_t width = std::max<int64_t>(columns_, 1);
    const int64_t samples = static_cast<int64_t>(batch.scores.size()) / width / std::max<int64_t>(positions_, 1);
    std::vector<int64_t> rows{samples};
    if (positions_ > 0) rows.push_back(positions_);
    std::vector<int64_t> shape = rows;
    if (columns_ > 0) shape.push_back(columns_);
    std::vector<Feed> feeds{{"score", {TN_F32, shape, batch.scores.data()}}};
    if (labelled_) feeds.push_back({"label", {TN_I64, rows, batch.labels.data()}});
    machine_.forward(feeds);
    Values values;
    for (const Metric& metric : machine_.metrics()) values[metric.name] = metric.value;
    return values;
  }

 private:
  Host host_;
  Layer metric_;
  Machine machine_;
  int64_t columns_;
  bool labelled_;
  int64_t positions_;
};

inline Batch draw(uint64_t seed, size_t samples, size_t columns, int64_t labels) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> score(0, 1);
  std::uniform_int_distribution<int64_t> label(0, labels - 1);
  Batch batch;
  for (size_t i = 0; i < samples * columns; ++i) batch.scores.push_back(score(random));
  for (size_t i = 0; i < samples; ++i) batch.labels.push_back(label(random));
  return batch;
}

}  // namespace tenon_tests
