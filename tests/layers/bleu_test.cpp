// BLEU, against counts of runs in maps. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <tenon/tenon_machine.hpp>
#include <tenon/tenon_sample.hpp>

#include "tests/layers/layers_on_a_host.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using Ids = std::vector<int64_t>;
using Lists = std::vector<Ids>;
using Values = std::map<std::string, double>;

std::map<Ids, int64_t> runs_of(const Ids& ids, size_t n) {
  std::map<Ids, int64_t> counts;
  for (size_t i = 0; i + n <= ids.size(); ++i) ++counts[Ids(&ids[i], &ids[i] + n)];
  return counts;
}

// The definition of Papineni et al., 2002, section 2.3, with one label for each sequence.
Values expected(const Lists& found, const Lists& right, size_t order, bool smooth) {
  double ids = 0, labels = 0, logarithms = 0;
  for (const Ids& each : found) ids += static_cast<double>(each.size());
  for (const Ids& each : right) labels += static_cast<double>(each.size());
  Values values;
  for (size_t n = 1; n <= order; ++n) {
    double matches = smooth && n > 1 ? 1 : 0, all = matches;
    for (size_t s = 0; s < found.size(); ++s) {
      std::map<Ids, int64_t> of_label = runs_of(right[s], n);
      for (const auto& [run, count] : runs_of(found[s], n)) {
        all += static_cast<double>(count);
        matches += static_cast<double>(std::min(count, of_label[run]));
      }
    }
    const double precision = all > 0 ? matches / all : 0;
    values["precision_" + std::to_string(n)] = precision;
    logarithms += std::log(precision);
  }
  values["brevity_penalty"] = ids == 0 ? 0 : ids > labels ? 1 : std::exp(1 - labels / ids);
  values["bleu"] = values["brevity_penalty"] * std::exp(logarithms / static_cast<double>(order));
  return values;
}

// Sequences of ids in two slots.
struct Pairs {
  Lists found, right;
  [[nodiscard]] int64_t size() const { return static_cast<int64_t>(found.size()); }
  void read(int64_t index, Sample& sample) const {
    sample.set("found", found[static_cast<size_t>(index)]);
    sample.set("right", right[static_cast<size_t>(index)]);
  }
};

class Bleu : public LayersOnAHost {
 protected:
  // The values of a pass over minibatches of `batch` pairs.
  [[nodiscard]] Values measure(const Lists& found, const Lists& right, const Attributes& attributes = {},
                               int64_t batch = 100, int threads = 2, tn_dtype dtype = TN_I64) const {
    const Host host({threads, {plugin_folder()}, nullptr, {}});
    Layers inputs;
    for (const char* name : {"found", "right"}) {
      DataOptions options;
      options.name = name, options.dtype = dtype, options.storage = TN_RAGGED;
      inputs.push_back(host.data(options));
    }
    TrainOptions options;
    options.outputs = {host.layer("bleu", inputs, attributes, "metric")};
    options.parameters = host.parameters(options.outputs, 1);
    const Schema schema = {{"found", dtype, {}, -1, TN_RAGGED}, {"right", dtype, {}, -1, TN_RAGGED}};
    options.reader = host.reader(schema, Pairs{found, right}).batch(batch);
    Values values;
    for (const Metric& each : test(options).metrics) values[each.name.substr(each.name.find('.') + 1)] = each.value;
    return values;
  }
  void expect(const Lists& found, const Lists& right, size_t order, bool smooth, int64_t batch, int threads,
              tn_dtype dtype = TN_I64) const {
    const Values got =
        measure(found, right, {{"order", static_cast<int64_t>(order)}, {"smooth", smooth}}, batch, threads, dtype);
    const Values wanted = expected(found, right, order, smooth);
    ASSERT_EQ(got.size(), wanted.size());
    for (const auto& [name, value] : wanted) EXPECT_NEAR(got.at(name), value, 1e-12) << name << " of order " << order;
  }
};

TEST_F(Bleu, OfDrawnSequences) {
  std::mt19937_64 random(3);
  Lists found, right;
  for (int s = 0; s < 60; ++s) {
    Ids a(random() % 12);
    for (int64_t& id : a) id = static_cast<int64_t>(random() % 4);
    Ids b = a;
    for (int64_t& id : b)
      if (random() % 6 == 0) id = static_cast<int64_t>(random() % 4);
    b.resize(random() % 4 == 0 ? random() % 14 : b.size(), 1);
    found.push_back(a), right.push_back(b);
  }
  EXPECT_GT(expected(found, right, 4, false).at("bleu"), 0.3);
  EXPECT_LT(expected(found, right, 4, false).at("bleu"), 0.95);
  for (const size_t order : {1U, 2U, 4U, 9U})
    for (const bool smooth : {false, true}) expect(found, right, order, smooth, 7, 2);
  for (const int threads : {1, 3}) expect(found, right, 4, false, 60, threads, TN_U8);
  expect(right, found, 4, false, 60, 2);  // one of both is the longer
}

TEST_F(Bleu, OfKnownSequences) {
  // "the the the the the the the" against "the cat is on the mat": two of seven, the clipped count of the paper.
  const Values clipped = measure({Ids(7, 1)}, {{1, 2, 3, 4, 1, 5}});
  EXPECT_NEAR(clipped.at("precision_1"), 2.0 / 7, 1e-12);
  EXPECT_EQ(clipped.at("precision_2"), 0);
  EXPECT_EQ(clipped.at("bleu"), 0);
  EXPECT_EQ(clipped.at("brevity_penalty"), 1);
  const Values same = measure({{1, 2, 3, 4}, {5, 6, 7, 8, 9}}, {{1, 2, 3, 4}, {5, 6, 7, 8, 9}});
  for (const auto& [name, value] : same) EXPECT_EQ(value, 1) << name;
  // Runs of one sequence are not found in the label of another.
  EXPECT_EQ(measure({{1, 2}, {3, 4}}, {{3, 4}, {1, 2}}, {{"order", 1}}).at("bleu"), 0);
  // Half as long: exp(1 - 8 / 4).
  EXPECT_NEAR(measure({{1, 2, 3, 4}}, {{1, 2, 3, 4, 5, 6, 7, 8}}).at("bleu"), std::exp(-1.0), 1e-12);
}

TEST_F(Bleu, OfEmptyAndShortSequences) {
  for (const auto& [name, value] : measure({}, {})) EXPECT_EQ(value, 0) << name;
  for (const auto& [name, value] : measure({{}}, {{}})) EXPECT_EQ(value, 0) << name;
  for (const auto& [name, value] : measure({{}, {}}, {{1, 2, 3, 4}, {}})) EXPECT_EQ(value, 0) << name;
  const Values without = measure({{1, 2, 3, 4}}, {{}});
  EXPECT_EQ(without.at("bleu"), 0);
  EXPECT_EQ(without.at("brevity_penalty"), 1);
  // Shorter than 4: no run of four ids, so 0; 1 with smoothing.
  const Values shorter = measure({{1, 2, 3}}, {{1, 2, 3}});
  EXPECT_EQ(shorter.at("precision_3"), 1);
  EXPECT_EQ(shorter.at("precision_4"), 0);
  EXPECT_EQ(shorter.at("bleu"), 0);
  EXPECT_EQ(measure({{1, 2, 3}}, {{1, 2, 3}}, {{"smooth", true}}).at("bleu"), 1);
  EXPECT_EQ(measure({{1, 2, 3}}, {{1, 2, 3}}, {{"order", 3}}).at("bleu"), 1);
  // Short ones count beside longer ones.
  expect({{1}, {}, {1, 2, 3, 4, 5}}, {{1, 2}, {7}, {1, 2, 3, 4, 6}}, 4, false, 2, 1);
}

TEST_F(Bleu, Mistakes) {
  DataOptions ids;
  ids.name = "ids", ids.dtype = TN_I64, ids.storage = TN_RAGGED;
  const Layer sequences = host_.data(ids);
  EXPECT_THAT(mistake("bleu", {data("dense", {}, TN_I64), sequences}),
              testing::HasSubstr("must be sequences (ragged)"));
  EXPECT_THAT(mistake("bleu", {sequences, data("label", {}, TN_I64)}), testing::HasSubstr("label: must be sequences"));
  EXPECT_THAT(mistake("bleu", {sequences, sequences}, {{"order", 0}}), testing::HasSubstr("between 1 and 16"));
}

}  // namespace

}  // namespace tenon_tests
