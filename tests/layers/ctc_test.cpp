// Label sequences without an alignment: the cost against a sum over all paths, decoding and edit distance against plain
// code. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <tenon/tenon_machine.hpp>

#include "tests/layers/layers_on_a_host.h"
#include "tests/support/layer_check.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using Numbers = std::vector<double>;
using Ids = std::vector<int64_t>;

// The labels that a path of classes stands for.
Ids collapsed(const Ids& path, int64_t blank) {
  Ids labels;
  for (size_t i = 0; i < path.size(); ++i)
    if (path[i] != blank && (i == 0 || path[i] != path[i - 1])) labels.push_back(path[i]);
  return labels;
}

// The logarithm of the sum of the exponentials.
double log_sum(const Numbers& values) {
  if (values.empty()) return -HUGE_VAL;
  const double most = *std::max_element(values.begin(), values.end());
  double sum = 0;
  for (const double value : values) sum += std::exp(value - most);
  return most + std::log(sum);
}

// -log of the probability of the labels, summed over all paths of classes through `rows` rows.
double cost(const double* scores, size_t rows, size_t classes, const Ids& labels, int64_t blank) {
  Numbers norms, fitting;
  for (size_t t = 0; t < rows; ++t) norms.push_back(log_sum({scores + t * classes, scores + (t + 1) * classes}));
  Ids path(rows, 0);
  for (bool more = true; more;) {
    if (collapsed(path, blank) == labels) {
      fitting.push_back(0);
      for (size_t t = 0; t < rows; ++t) fitting.back() += scores[t * classes + static_cast<size_t>(path[t])] - norms[t];
    }
    more = false;
    for (size_t t = 0; t < rows && !more; ++t) {
      path[t] = (path[t] + 1) % static_cast<int64_t>(classes);
      more = path[t] != 0;
    }
  }
  return -log_sum(fitting);
}

LayerCase ctc_case(int64_t labels, bool weighted) {
  LayerCase layer;
  layer.type = "ctc";
  layer.attributes = {{"blank", labels}, {"zero_infinity", true}};
  layer.cost = true;
  layer.inputs = {{{labels + 1}}, {{}, labels}};
  layer.inputs[0].sequence = "frames";
  layer.inputs[1].sequence = "labels";
  if (weighted) layer.inputs.push_back({{}, 0, 0.5, 2});
  for (CheckedInput& input : layer.inputs) input.limited = weighted;
  layer.samples = {1, 2, 7};
  layer.formula = [=](const FormulaArguments& of) {
    Numbers costs;
    for (size_t s = 0; s < static_cast<size_t>(of.samples); ++s) {
      const auto range = [&](size_t input) {
        const std::vector<int64_t>& ends = of.offsets[input][0];
        return std::pair{static_cast<size_t>(ends[s]), static_cast<size_t>(ends[s + 1])};
      };
      const auto [first, last] = range(0);
      const auto [begin, end] = range(1);
      const auto classes = static_cast<size_t>(labels) + 1;
      const double found = cost(of.inputs[0].data() + first * classes, last - first, classes,
                                Ids(of.inputs[1].data() + begin, of.inputs[1].data() + end), labels);
      costs.push_back(std::isinf(found) ? 0 : found * (weighted ? of.inputs[2][s] : 1));
    }
    return costs;
  };
  layer.rounded = [=](const FormulaArguments& of) {
    Numbers sizes;
    for (size_t s = 0; s < static_cast<size_t>(of.samples); ++s)
      sizes.push_back(10 * (weighted ? std::abs(of.inputs[2][s]) : 1));
    return sizes;
  };
  layer.gradient_rounded = 4;
  return layer;
}

TEST(Ctc, Cost) {
  EXPECT_GT(check_layer(ctc_case(2, false)), 0);
  EXPECT_GT(check_layer(ctc_case(1, false)), 0);
}
TEST(Ctc, WeightedCost) { EXPECT_GT(check_layer(ctc_case(2, true)), 0); }

class CtcOnAHost : public LayersOnAHost {
 protected:
  [[nodiscard]] Layer named(const std::string& name, std::vector<int64_t> shape, tn_dtype dtype) const {
    DataOptions options;
    options.name = name, options.dtype = dtype, options.shape = std::move(shape), options.storage = TN_RAGGED;
    return host_.data(options);
  }
  // The values of the metric of sequences of ids.
  using Lists = std::vector<Ids>;
  [[nodiscard]] std::map<std::string, double> distances(const Lists& found, const Lists& right, bool normalized,
                                                        tn_dtype dtype = TN_I64) const;

  const Layer scores_ = named("scores", {4}, TN_F32), labels_ = named("labels", {}, TN_I64);
};

template <typename T>
std::pair<std::vector<T>, Ids> joined(const std::vector<Ids>& lists) {
  std::pair<std::vector<T>, Ids> made{{}, {0}};
  for (const Ids& list : lists) {
    for (const int64_t id : list) made.first.push_back(static_cast<T>(id));
    made.second.push_back(static_cast<int64_t>(made.first.size()));
  }
  return made;
}

// Rows that fit exactly, one too few, none, and labels that are empty; blank 0.
TEST_F(CtcOnAHost, LabelsThatDoNotFit) {
  const Layer cost_layer = host_.layer("ctc", {scores_, labels_}, {}, "cost");
  MachineOptions options;
  options.max_samples = 6, options.training = true, options.flags = TN_MACHINE_DATA_GRADIENTS;
  const Machine machine = host_.machine(host_.parameters({cost_layer}, 1), {cost_layer}, options);
  const Ids rows = {0, 3, 5, 5, 7, 7, 8}, ends = {0, 2, 4, 5, 5, 5, 6}, labels = {2, 2, 2, 2, 1, 3};
  const std::vector<float> scores(8 * 4, 0.5F);  // each class has probability 1/4
  machine.forward({{"scores", Array::sequences(TN_F32, {8, 4}, scores.data(), 6, rows.data())},
                   {"labels", Array::sequences(TN_I64, {6}, labels.data(), 6, ends.data())}});
  machine.backward();
  const auto* costs = static_cast<const float*>(machine.output(cost_layer).data);
  const double four = std::log(4.0);
  const Numbers expected = {3 * four, INFINITY, INFINITY, 2 * four, 0, four};
  for (size_t s = 0; s < 6; ++s) {
    if (std::isinf(expected[s]))
      EXPECT_EQ(costs[s], INFINITY) << s;
    else
      EXPECT_NEAR(costs[s], expected[s], 1e-6) << s;
  }
  const auto* gradient = static_cast<const float*>(data_gradient(machine, "scores").data);
  for (int64_t i = 0; i < 8 * 4; ++i) {
    const int64_t row = i / 4, k = i % 4;
    const bool counts = row < 3 || row > 4;  // the second sequence has no gradient
    const Ids right = {2, 0, 2, -1, -1, 0, 0, 3};
    EXPECT_NEAR(gradient[i], counts ? (0.25 - (right[static_cast<size_t>(row)] == k ? 1 : 0)) / 6 : 0, 1e-6) << i;
  }
}

TEST_F(CtcOnAHost, SequencesOfWeightZeroDoNotCount) {
  const Layer cost_layer = host_.layer("ctc", {scores_, labels_, data("weight", {})}, {}, "cost");
  MachineOptions options;
  options.max_samples = 2, options.training = true, options.flags = TN_MACHINE_DATA_GRADIENTS;
  const Machine machine = host_.machine(host_.parameters({cost_layer}, 1), {cost_layer}, options);
  const Ids rows = {0, 1, 2}, ends = {0, 1, 2}, labels = {1, 1};
  const float scores[] = {0, 0, 0, 0, NAN, NAN, NAN, NAN}, weights[] = {3, 0};
  machine.forward({{"scores", Array::sequences(TN_F32, {2, 4}, scores, 2, rows.data())},
                   {"labels", Array::sequences(TN_I64, {2}, labels.data(), 2, ends.data())},
                   {"weight", {TN_F32, {2}, weights}}});
  machine.backward();
  EXPECT_NEAR(machine.cost(), 3 * std::log(4.0) / 2, 1e-6);
  const auto* gradient = static_cast<const float*>(data_gradient(machine, "scores").data);
  for (int64_t i = 0; i < 8; ++i) EXPECT_NEAR(gradient[i], i > 3 ? 0 : i == 1 ? -9.0 / 8 : 3.0 / 8, 1e-6) << i;
}

// Scores so far apart that products of probabilities are 0 in fp64; hundreds of rows.
TEST_F(CtcOnAHost, LongSequencesOfFarScores) {
  const Layer cost_layer = host_.layer("ctc", {scores_, labels_}, {}, "cost");
  MachineOptions options;
  options.max_samples = 1, options.training = true, options.flags = TN_MACHINE_DATA_GRADIENTS;
  const Machine machine = host_.machine(host_.parameters({cost_layer}, 1), {cost_layer}, options);
  constexpr int64_t kRows = 600;
  const Ids offsets = {0, kRows}, ends = {0, kRows / 2}, labels = [] {
    Ids made(kRows / 2);
    for (size_t i = 0; i < made.size(); ++i) made[i] = 1 + static_cast<int64_t>(i % 3);
    return made;
  }();
  std::vector<float> scores(kRows * 4, 0.0F);
  for (int64_t t = 0; t < kRows; ++t) scores[static_cast<size_t>(t * 4)] = 100;  // the blank, at every row
  machine.forward({{"scores", Array::sequences(TN_F32, {kRows, 4}, scores.data(), 1, offsets.data())},
                   {"labels", Array::sequences(TN_I64, {kRows / 2}, labels.data(), 1, ends.data())}});
  machine.backward();
  // A path has 300 labels of probability exp(-100) and 300 rows of the blank: any 300 of the 600 rows have the labels.
  const double paths = std::lgamma(kRows + 1.0) - 2 * std::lgamma(kRows / 2 + 1.0);
  EXPECT_NEAR(machine.cost(), 100.0 * kRows / 2 - paths, 0.05);
  const auto* gradient = static_cast<const float*>(data_gradient(machine, "scores").data);
  double blanks = 0;
  for (int64_t t = 0; t < kRows; ++t) {
    blanks += 1 - static_cast<double>(gradient[t * 4]);  // the share of blanks among the paths
    EXPECT_NEAR(gradient[t * 4] + gradient[t * 4 + 1] + gradient[t * 4 + 2] + gradient[t * 4 + 3], 0, 1e-5) << t;
  }
  EXPECT_NEAR(blanks, kRows / 2, 1e-2);
}

TEST_F(CtcOnAHost, Mistakes) {
  EXPECT_THAT(mistake("ctc", {data("dense", {4}), labels_}), testing::HasSubstr("must be sequences (ragged)"));
  EXPECT_THAT(mistake("ctc", {scores_, data("label", {}, TN_I64)}), testing::HasSubstr("label: must be sequences"));
  EXPECT_THAT(mistake("ctc", {scores_, labels_}, {{"blank", 4}}), testing::HasSubstr("expected below 4"));
  EXPECT_THAT(mistake("ctc_decoding", {scores_}, {{"blank", 4}}), testing::HasSubstr("expected below 4"));
  const Layer cost_layer = host_.layer("ctc", {scores_, labels_}, {}, "cost");
  const Machine machine = host_.machine(host_.parameters({cost_layer}, 1), {cost_layer}, {});
  const std::vector<float> scores(8, 0.0F);
  const Ids rows = {0, 2}, ends = {0, 2}, blank = {1, 0};
  try {
    machine.forward({{"scores", Array::sequences(TN_F32, {2, 4}, scores.data(), 1, rows.data())},
                     {"labels", Array::sequences(TN_I64, {2}, blank.data(), 1, ends.data())}});
    ADD_FAILURE() << "a blank among the labels";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("row 1: expected a class from 0 to 3 but 0, the blank; got 0"));
  }
}

// ---- decoding

TEST_F(CtcOnAHost, Decoding) {
  MachineOptions options;
  options.max_samples = 40;
  std::mt19937_64 random(5);
  std::vector<Ids> expected;
  Ids offsets = {0};
  std::vector<float> scores;
  for (int s = 0; s < 40; ++s) {
    Ids path(random() % 9);
    for (int64_t& best : path) {
      best = static_cast<int64_t>(random() % 4);
      for (int64_t k = 0; k < 4; ++k) scores.push_back(k < best ? 0.5F : k == best ? 2.0F : k % 2 == 0 ? 2.0F : 1.0F);
    }
    offsets.push_back(offsets.back() + static_cast<int64_t>(path.size()));
    expected.push_back(collapsed(path, 1));
  }
  const auto [labels, ends] = joined<int64_t>(expected);
  for (const int threads : {1, 3}) {
    const Host host({threads, {plugin_folder()}, nullptr, {}});
    DataOptions data;
    data.name = "scores", data.shape = {4}, data.storage = TN_RAGGED;
    const Layer best = host.layer("ctc_decoding", {host.data(data)}, {{"blank", 1}}, "found");
    const Machine machine = host.machine(host.parameters({best}, 1), {best}, options);
    machine.forward({{"scores", Array::sequences(TN_F32, {offsets.back(), 4}, scores.data(), 40, offsets.data())}});
    const Array made = machine.output(best);
    EXPECT_EQ((Ids{static_cast<const int64_t*>(made.data), static_cast<const int64_t*>(made.data) + made.count()}),
              labels);
    EXPECT_EQ((Ids{made.offsets[0], made.offsets[0] + 41}), ends);
  }
}

// ---- edit distance

// The fewest edits, by trying all of them.
int64_t edits(const Ids& a, const Ids& b) {
  if (a.empty() || b.empty()) return static_cast<int64_t>(a.size() + b.size());
  const Ids shorter(a.begin() + 1, a.end()), other(b.begin() + 1, b.end());
  if (a[0] == b[0]) return edits(shorter, other);
  return 1 + std::min({edits(shorter, other), edits(shorter, b), edits(a, other)});
}

std::map<std::string, double> CtcOnAHost::distances(const Lists& found, const Lists& right, bool normalized,
                                                    tn_dtype dtype) const {
  const Layer metric =
      host_.layer("edit_distance", {named("ids", {}, dtype), labels_}, {{"normalized", normalized}}, "metric");
  MachineOptions options;
  options.max_samples = 60;
  const Machine machine = host_.machine(host_.parameters({metric}, 1), {metric}, options);
  const auto [ids, begins] = joined<int64_t>(found);
  const auto [narrow, same] = joined<uint8_t>(found);
  const auto [labels, ends] = joined<int64_t>(right);
  const auto count = static_cast<int64_t>(found.size());
  const void* const data = dtype == TN_U8 ? static_cast<const void*>(narrow.data()) : ids.data();
  machine.forward({{"ids", Array::sequences(dtype, {begins.back()}, data, count, begins.data())},
                   {"labels", Array::sequences(TN_I64, {ends.back()}, labels.data(), count, ends.data())}});
  std::map<std::string, double> values;
  for (const Metric& each : machine.metrics()) values[each.name] = each.value;
  return values;
}

TEST_F(CtcOnAHost, EditDistance) {
  std::mt19937_64 random(11);
  Lists found, right;
  double sum = 0, shares = 0, labels = 0, wrong = 0;
  constexpr int kCount = 51;
  for (int s = 0; s < kCount; ++s) {
    Ids a(random() % 6), b(random() % 6);
    for (Ids* list : {&a, &b})
      for (int64_t& id : *list) id = static_cast<int64_t>(random() % 3);
    if (s % 4 == 0) a = b;
    const auto distance = static_cast<double>(edits(a, b)), length = static_cast<double>(b.size());
    sum += distance, labels += length, wrong += distance > 0 ? 1 : 0;
    shares += distance / std::max(1.0, length);
    found.push_back(a), right.push_back(b);
  }
  for (const tn_dtype dtype : {TN_I64, TN_U8})
    for (const bool normalized : {false, true}) {
      const auto values = distances(found, right, normalized, dtype);
      EXPECT_NEAR(values.at("edit_distance"), (normalized ? shares : sum) / kCount, 1e-12);
      EXPECT_NEAR(values.at("error_rate"), sum / labels, 1e-12);
      EXPECT_NEAR(values.at("wrong_sequences"), wrong / kCount, 1e-12);
    }
  for (const auto& [name, value] : distances({}, {}, false)) EXPECT_EQ(value, 0) << name;
  EXPECT_EQ(distances({{1, 2}}, {{}}, true).at("edit_distance"), 2);
  EXPECT_EQ(distances({{1, 2}}, {{}}, true).at("error_rate"), 0);
  EXPECT_THAT(mistake("edit_distance", {named("ids", {}, TN_I64), data("label", {}, TN_I64)}),
              testing::HasSubstr("must be sequences (ragged)"));
}

// Of what ctc_decoding finds, whose rows a kernel counts.
TEST_F(CtcOnAHost, EditDistanceOfDecodedLabels) {
  const Layer found = host_.layer("ctc_decoding", {scores_}, {});
  const Layer metric = host_.layer("edit_distance", {found, labels_}, {}, "metric");
  const Machine machine = host_.machine(host_.parameters({metric}, 1), {metric}, {});
  std::vector<float> scores(5 * 4, 0.0F);
  for (const auto& [row, best] : {std::pair{0, 1}, {1, 1}, {2, 0}, {3, 1}, {4, 3}})
    scores[static_cast<size_t>(row * 4 + best)] = 1;
  const Ids rows = {0, 5}, ends = {0, 2}, labels = {1, 3};
  machine.forward({{"scores", Array::sequences(TN_F32, {5, 4}, scores.data(), 1, rows.data())},
                   {"labels", Array::sequences(TN_I64, {2}, labels.data(), 1, ends.data())}});
  EXPECT_EQ(machine.metrics().at(0).value, 1);  // 1 1 3 against 1 3
}

}  // namespace

}  // namespace tenon_tests
