// The metrics r2, correlation, mean_average_precision and multi_label against fp64 formulas, in one minibatch and in
// several.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>

#include "tests/layers/metered.h"

namespace tenon_tests {

namespace {

// Two columns of numbers, the prediction and the label.
struct Pairs {
  std::vector<float> x, y;
};

Pairs draw_pairs(double mean, double spread, size_t samples) {
  std::mt19937_64 random(static_cast<uint64_t>(samples) + 17);
  std::normal_distribution<double> normal;
  Pairs pairs;
  for (size_t i = 0; i < samples; ++i) {
    const double label = mean + spread * normal(random);
    pairs.y.push_back(static_cast<float>(label));
    pairs.x.push_back(static_cast<float>(label + spread / 2 * normal(random)));
  }
  return pairs;
}

// The values of a metric over all samples, in minibatches of `size`.
Values measured(const std::string& type, const std::vector<float>& x, const std::vector<float>& y, int64_t columns,
                int64_t size, const Attributes& attributes = {}) {
  const Host host({2, {tenon_tests::plugin_folder()}, nullptr, {}});
  const std::vector<int64_t> shape = columns > 0 ? std::vector<int64_t>{columns} : std::vector<int64_t>{};
  const size_t width = columns > 0 ? static_cast<size_t>(columns) : 1;
  Layers inputs;
  Schema schema;
  for (const char* name : {"x", "y"}) {
    DataOptions data;
    data.name = name, data.shape = shape;
    inputs.push_back(host.data(data));
    schema.push_back({name, TN_F32, shape});
  }
  TrainOptions options;
  options.outputs = {host.layer(type, inputs, attributes, "metric")};
  options.parameters = host.parameters(options.outputs, 1);
  size_t next = 0;
  options.reader = host.reader(schema,
                               [&](Sample& sample) {
                                 if (next * width == x.size()) return false;
                                 const auto row = [&](const std::vector<float>& of) {
                                   const auto first = of.begin() + static_cast<std::ptrdiff_t>(next * width);
                                   return std::vector<float>(first, first + static_cast<std::ptrdiff_t>(width));
                                 };
                                 sample.set("x", row(x)), sample.set("y", row(y));
                                 ++next;
                                 return true;
                               })
                       .batch(size);
  Values values;
  for (const Metric& metric : tenon::test(options).metrics) values[metric.name] = metric.value;
  return values;
}

double mean_of(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value);
  return sum / static_cast<double>(values.size());
}
double product_of(const std::vector<float>& a, const std::vector<float>& b) {
  const double ma = mean_of(a), mb = mean_of(b);
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (static_cast<double>(a[i]) - ma) * (static_cast<double>(b[i]) - mb);
  return sum;
}

// A mean far above the spread does not cancel, nor does the number of minibatches matter.
TEST(Agreement, IsThatOfTheFormulas) {
  for (const auto& [mean, spread] : {std::pair{0.0, 1.0}, {5.0, 0.01}, {1e6, 100.0}, {-3e7, 3000.0}})
    for (const int64_t columns : {0, 5})
      for (const int64_t size : {500, 37, 1}) {
        const Pairs pairs = draw_pairs(mean, spread, 500);
        double errors = 0;
        for (size_t i = 0; i < 500; ++i)
          errors += std::pow(static_cast<double>(pairs.x[i]) - static_cast<double>(pairs.y[i]), 2);
        const double r2 = 1 - errors / product_of(pairs.y, pairs.y);
        const double correlation =
            product_of(pairs.x, pairs.y) / std::sqrt(product_of(pairs.x, pairs.x) * product_of(pairs.y, pairs.y));
        const std::string where = std::to_string(mean) + ", minibatches of " + std::to_string(size);
        EXPECT_NEAR(measured("r2", pairs.x, pairs.y, columns, size).at("r2"), r2, 2e-6) << where;
        EXPECT_NEAR(measured("correlation", pairs.x, pairs.y, columns, size).at("correlation"), correlation, 2e-6)
            << where;
      }
}

TEST(Agreement, OfConstantsAndOfNothing) {
  const std::vector<float> same(100, 7.3F), other(100, 7.5F), none;
  const Pairs pairs = draw_pairs(0, 1, 100);
  for (const int64_t size : {100, 9}) {
    EXPECT_EQ(measured("r2", same, same, 0, size).at("r2"), 1);
    EXPECT_EQ(measured("r2", other, same, 0, size).at("r2"), 0);
    EXPECT_EQ(measured("correlation", pairs.x, same, 0, size).at("correlation"), 0);
    EXPECT_EQ(measured("r2", pairs.y, pairs.y, 0, size).at("r2"), 1);
    EXPECT_NEAR(measured("correlation", pairs.y, pairs.y, 0, size).at("correlation"), 1, 1e-6);
  }
  for (const char* type : {"r2", "correlation"}) {
    EXPECT_TRUE(std::isnan(measured(type, {1, NAN, 3}, {1, 2, 3}, 0, 3).at(type)));
    EXPECT_TRUE(std::isnan(measured(type, {1, 2, 3}, {1, 2, NAN}, 0, 2).at(type)));
  }
  EXPECT_EQ(Metered("r2", {}, 0)({}).at("r2"), 0);
  EXPECT_EQ(Metered("correlation", {}, 0)({}).at("correlation"), 0);
}

// The average precision of one class, with the samples of a bin together.
double average_precision(const std::vector<int>& bins, const std::vector<bool>& real) {
  const std::set<int, std::greater<>> places(bins.begin(), bins.end());
  double right = 0, all = 0, sum = 0, whole = 0;
  for (const bool each : real) whole += each ? 1 : 0;
  for (const int place : places) {
    double here = 0;
    for (size_t i = 0; i < bins.size(); ++i) {
      all += bins[i] == place ? 1 : 0;
      here += bins[i] == place && real[i] ? 1 : 0;
    }
    right += here;
    sum += here * right / all;
  }
  return sum / whole;
}

TEST(MeanAveragePrecision, IsThatOfTheOrderOfScores) {
  constexpr int64_t kClasses = 4;
  std::mt19937_64 random(3);
  std::vector<float> scores, labels;
  std::vector<std::vector<int>> bins(kClasses);
  std::vector<std::vector<bool>> real(kClasses);
  for (size_t i = 0; i < 200; ++i)
    for (size_t k = 0; k < kClasses; ++k) {
      const int bin = static_cast<int>(random() % 64);
      scores.push_back((static_cast<float>(bin) + 0.5F) / 64);
      labels.push_back(k < 3 && random() % 4 == 0 ? 1.0F : 0.0F);  // the last class has no true sample
      bins[k].push_back(bin), real[k].push_back(labels.back() > 0);
    }
  double mean = 0;
  for (size_t k = 0; k < 3; ++k) mean += average_precision(bins[k], real[k]) / 3;
  for (const int64_t size : {200, 11})
    EXPECT_NEAR(
        measured("mean_average_precision", scores, labels, kClasses, size, {{"bins", 64}}).at("mean_average_precision"),
        mean, 1e-9);
  const auto of = [](const std::vector<float>& x, const std::vector<float>& y) {
    return measured("mean_average_precision", x, y, 1, 10).at("mean_average_precision");
  };
  EXPECT_EQ(of({0.9F, 0.8F, 0.1F}, {1, 1, 0}), 1);
  const auto of_scores = [](const std::vector<float>& x, const std::vector<float>& y) {
    return measured("mean_average_precision", x, y, 1, 10, {{"high", 2.0}}).at("mean_average_precision");
  };
  EXPECT_EQ(of_scores({NAN, 0.8F, 7}, {1, 0, 0}), 1.0 / 3);  // NaN is last, 7 in the last bin
  EXPECT_EQ(of({0.9F, 0.8F}, {0, 0}), 0);
}

TEST(MultiLabel, CountsByHand) {
  const std::vector<float> scores = {0.9F, 0.1F, 0.6F, 0.2F, 0.8F, 0.4F, 0.7F, 0.6F, 0.1F, 0.3F, 0.2F, 0.5F};
  const std::vector<float> labels = {1, 0, 1, 0, 1, 1, 1, 0, 0, 0, 0, 0};
  const Values values = measured("multi_label", scores, labels, 3, 4);
  EXPECT_EQ(values.size(), 4u);
  EXPECT_EQ(values.at("subset_accuracy"), 0.5);  // the first and the last sample
  EXPECT_NEAR(values.at("hamming_loss"), 2.0 / 12, 1e-15);
  EXPECT_NEAR(values.at("micro_f1"), 2 * 4.0 / (5 + 5), 1e-15);
  EXPECT_NEAR(values.at("macro_f1"), (1 + 2.0 / 3 + 2.0 / 3) / 3, 1e-15);
  const Values strict = measured("multi_label", scores, labels, 3, 4, {{"threshold", 0.95}});  // names no label
  EXPECT_EQ(strict, (Values{{"subset_accuracy", 0.25}, {"hamming_loss", 5.0 / 12}, {"micro_f1", 0}, {"macro_f1", 0}}));
  EXPECT_EQ(measured("multi_label", {NAN, 0.9F}, {1, 1}, 2, 1).at("hamming_loss"), 0.5) << "NaN names nothing";
}

TEST(MultiLabel, IsThatOfTheFormulas) {
  constexpr size_t kSamples = 211, kLabels = 5;
  std::mt19937_64 random(9);
  std::vector<float> scores, labels;
  double right[kLabels] = {}, named[kLabels] = {}, real[kLabels] = {}, exact = 0, wrong = 0;
  for (size_t i = 0; i < kSamples; ++i) {
    bool all = true;
    for (size_t k = 0; k < kLabels; ++k) {
      const bool has = k != 4 && random() % 3 == 0, calls = random() % 5 == 0 ? !has : has;
      scores.push_back(calls ? 1.5F : -0.5F);
      labels.push_back(has ? 1.0F : 0.0F);
      right[k] += has && calls ? 1 : 0, named[k] += calls ? 1 : 0, real[k] += has ? 1 : 0;
      wrong += has != calls ? 1 : 0;
      all = all && has == calls;
    }
    exact += all ? 1 : 0;
  }
  double sums[3] = {}, macro = 0;
  for (size_t k = 0; k < kLabels; ++k) {
    sums[0] += right[k], sums[1] += named[k], sums[2] += real[k];
    macro += 2 * right[k] / (named[k] + real[k]) / kLabels;
  }
  const Attributes logits = {{"threshold", 0.0}};
  const Values values = measured("multi_label", scores, labels, kLabels, kSamples, logits);
  EXPECT_NEAR(values.at("subset_accuracy"), exact / kSamples, 1e-15);
  EXPECT_NEAR(values.at("hamming_loss"), wrong / kSamples / kLabels, 1e-15);
  EXPECT_NEAR(values.at("micro_f1"), 2 * sums[0] / (sums[1] + sums[2]), 1e-15);
  EXPECT_NEAR(values.at("macro_f1"), macro, 1e-15);
  for (const int64_t size : {1, 7, 100})
    EXPECT_EQ(measured("multi_label", scores, labels, kLabels, size, logits), values);
}

TEST(MultiLabel, RefusesOtherShapes) {
  const Host host({1, {tenon_tests::plugin_folder()}, nullptr, {}});
  const auto data = [&](const char* name, const std::vector<int64_t>& shape) {
    DataOptions options;
    options.name = name, options.shape = shape;
    return host.data(options);
  };
  const Layer x = data("x", {3}), y = data("y", {4}), wide = data("wide", {1025}), flat = data("flat", {});
  EXPECT_THROW((void)host.layer("multi_label", {x, y}, {}, "bad"), Error);
  EXPECT_THROW((void)host.layer("multi_label", {wide, wide}, {}, "bad"), Error);
  EXPECT_THROW((void)host.layer("multi_label", {flat, flat}, {}, "bad"), Error);
}

}  // namespace
}  // namespace tenon_tests
