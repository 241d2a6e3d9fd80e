// Ranked lists: lambda_cost in the harness, metrics against known lists.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <numeric>
#include <random>

#include "tests/support/layer_check.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using Values = std::vector<double>;
using Offsets = std::vector<int64_t>;

double gain(double relevance) { return std::pow(2.0, relevance) - 1; }
double discount(size_t place, size_t top) { return place < top ? 1 / std::log2(static_cast<double>(place) + 2) : 0; }

// The place of each value in descending order.
std::vector<size_t> places(const Values& values) {
  std::vector<size_t> order(values.size()), place(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] > values[b]; });
  for (size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  return place;
}

double discounted_gain(const Values& score, const Values& relevance, size_t top) {
  const std::vector<size_t> place = places(score);
  double sum = 0;
  for (size_t i = 0; i < score.size(); ++i) sum += gain(relevance[i]) * discount(place[i], top);
  return sum;
}

double softplus(double z) { return z > 0 ? z + std::log1p(std::exp(-z)) : std::log1p(std::exp(z)); }

double lambda_cost(const Values& score, const Values& relevance, size_t top, double sigma) {
  const double best = discounted_gain(relevance, relevance, top);
  if (best == 0) return 0;
  const std::vector<size_t> place = places(score);
  std::vector<size_t> row(place.size());  // by place
  for (size_t i = 0; i < place.size(); ++i) row[place[i]] = i;
  double cost = 0;
  for (size_t p = 0; p < std::min(top, row.size()); ++p)
    for (size_t q = p + 1; q < row.size(); ++q) {
      const size_t high = relevance[row[p]] > relevance[row[q]] ? row[p] : row[q];
      const size_t low = high == row[p] ? row[q] : row[p];
      const double change = (gain(relevance[high]) - gain(relevance[low])) * (discount(p, top) - discount(q, top));
      cost += change / best * softplus(-sigma * (score[high] - score[low]));
    }
  return cost;
}

LayerCase lists(size_t top, double sigma, uint32_t levels, bool one_column) {
  LayerCase layer;
  layer.type = "lambda_cost";
  layer.attributes = {{"sigma", sigma}};
  if (top < 100) layer.attributes.push_back({"top", static_cast<int64_t>(top)});
  layer.inputs = {{one_column ? std::vector<int64_t>{1} : std::vector<int64_t>{}}, {{}, 4}};
  for (CheckedInput& input : layer.inputs) input.sequence = "list", input.levels = levels;
  layer.cost = true;
  layer.jumps = true;  // where scores change places
  layer.formula = [=](const FormulaArguments& a) {
    const Offsets& ends = a.offsets[0].back();
    Values cost;
    for (size_t s = 0; s + 1 < ends.size(); ++s)
      cost.push_back(lambda_cost({a.inputs[0].begin() + ends[s], a.inputs[0].begin() + ends[s + 1]},
                                 {a.inputs[1].begin() + ends[s], a.inputs[1].begin() + ends[s + 1]}, top, sigma));
    return cost;
  };
  return layer;
}

constexpr size_t kAll = std::numeric_limits<int32_t>::max();

TEST(LambdaCost, OfLists) {
  EXPECT_GT(check_layer(lists(kAll, 1, 1, false)), 0);
  EXPECT_GT(check_layer(lists(3, 1, 1, true)), 0);
  EXPECT_GT(check_layer(lists(kAll, 2.5, 2, false)), 0);
  EXPECT_GT(check_long_sequences(lists(3, 1, 1, false)), 0);
}

// ---- metrics

class ListMetrics : public testing::Test {
 protected:
  Layer data(const std::string& name, int32_t storage, tn_dtype dtype = TN_F32) {
    DataOptions options;
    options.name = name, options.dtype = dtype, options.storage = storage,
    options.sequence = storage == TN_RAGGED ? "list" : "";
    return host_.data(options);
  }
  // The value `name` of the metric after one minibatch.
  double value(const Layer& metric, const std::vector<Feed>& feeds, const std::string& name) {
    MachineOptions options;
    options.max_samples = 1000;
    const Machine machine = host_.machine(host_.parameters({metric}, 1), {metric}, options);
    machine.forward(feeds);
    for (const Metric& each : machine.metrics())
      if (each.name == name || each.name.ends_with("." + name)) return each.value;
    ADD_FAILURE() << "no " << name;
    return 0;
  }
  Array sequences(const std::vector<float>& rows, const Offsets& offsets) {
    return Array::sequences(TN_F32, {static_cast<int64_t>(rows.size())}, rows.data(),
                            static_cast<int64_t>(offsets.size()) - 1, offsets.data());
  }
  Host host_{HostOptions{2, {tenon_tests::plugin_folder()}, nullptr, {}}};
};

TEST_F(ListMetrics, NdcgOfKnownLists) {
  const Layer score = data("score", TN_RAGGED), relevance = data("relevance", TN_RAGGED);
  // The second list is empty and the third has no relevant rows: neither is counted.
  const std::vector<float> scores = {0.1F, 0.9F, 0.5F, 3, 2, 5, 4};
  const std::vector<float> grades = {3, 0, 1, 0, 0, 1, 2};
  const Offsets offsets = {0, 3, 3, 5, 7};
  const std::vector<Feed> feeds = {{"score", sequences(scores, offsets)}, {"relevance", sequences(grades, offsets)}};
  for (const size_t top : {size_t{1}, size_t{2}, kAll}) {
    Attributes attributes;
    if (top < 100) attributes.push_back({"top", static_cast<int64_t>(top)});
    const double first = discounted_gain({0.1, 0.9, 0.5}, {3, 0, 1}, top) / discounted_gain({3, 0, 1}, {3, 0, 1}, top);
    const double last = discounted_gain({5, 4}, {1, 2}, top) / discounted_gain({1, 2}, {1, 2}, top);
    EXPECT_NEAR(value(host_.layer("ndcg", {score, relevance}, attributes), feeds, "ndcg"), (first + last) / 2, 1e-6);
  }
}

TEST_F(ListMetrics, RecallAndReciprocalRankOfKnownLists) {
  const Layer score = data("score", TN_RAGGED), relevance = data("relevance", TN_RAGGED);
  // By score the relevant rows are at the places 2 and 3 of the first list, and at place 1 of the last; the second is
  // empty, and the third has no relevant row.
  const std::vector<float> scores = {0.1F, 0.9F, 0.5F, 3, 2, 5, 4};
  const std::vector<float> grades = {3, 0, 1, 0, 0, 1, 0};
  const Offsets offsets = {0, 3, 3, 5, 7};
  const std::vector<Feed> feeds = {{"score", sequences(scores, offsets)}, {"relevance", sequences(grades, offsets)}};
  const auto of = [&](const char* type, int64_t top) {
    const Attributes attributes = top > 0 ? Attributes{{"top", top}} : Attributes();
    return value(host_.layer(type, {score, relevance}, attributes), feeds, type);
  };
  EXPECT_NEAR(of("recall_at_k", 1), (0 + 1) / 2.0, 1e-7);
  EXPECT_NEAR(of("recall_at_k", 2), (0.5 + 1) / 2.0, 1e-7);
  EXPECT_NEAR(of("recall_at_k", 0), 1, 1e-7);
  EXPECT_NEAR(of("mean_reciprocal_rank", 1), (0 + 1) / 2.0, 1e-7);
  EXPECT_NEAR(of("mean_reciprocal_rank", 0), (0.5 + 1) / 2.0, 1e-7);
}

TEST_F(ListMetrics, NdcgOfTheBestOrderIsOne) {
  const Layer score = data("score", TN_RAGGED), relevance = data("relevance", TN_RAGGED);
  const std::vector<float> grades = {4, 2, 0, 1, 3};
  const Offsets offsets = {0, 3, 5};
  const Layer metric = host_.layer("ndcg", {score, relevance}, {});
  EXPECT_NEAR(value(metric, {{"score", sequences(grades, offsets)}, {"relevance", sequences(grades, offsets)}}, "ndcg"),
              1, 1e-6);
  const std::vector<float> none = {0, 0, 0, 0, 0};
  EXPECT_EQ(value(metric, {{"score", sequences(grades, offsets)}, {"relevance", sequences(none, offsets)}}, "ndcg"), 0);
}

TEST_F(ListMetrics, PairsOfSequences) {
  const Layer metric = host_.layer("pnpair", {data("score", TN_RAGGED), data("label", TN_RAGGED)}, {});
  // First list: (0, 1) right, (0, 2) wrong, (1, 2) not a pair. Third list: tied. Rows of different lists are not pairs.
  const std::vector<float> scores = {2, 1, 3, 5, 5, 9};
  const std::vector<float> labels = {1, 0, 0, 0, 1, 1};
  const Offsets offsets = {0, 3, 3, 5, 6};
  const std::vector<Feed> feeds = {{"score", sequences(scores, offsets)}, {"label", sequences(labels, offsets)}};
  EXPECT_EQ(value(metric, feeds, "right"), 1);
  EXPECT_EQ(value(metric, feeds, "wrong"), 1);
  EXPECT_EQ(value(metric, feeds, "tied"), 1);
  EXPECT_EQ(value(metric, feeds, "pnpair"), 1);
}

// Compares with a count over all pairs; queries are interleaved over several blocks of samples.
TEST_F(ListMetrics, PairsOfQueriesWithWeights) {
  const Layer score = data("score", TN_DENSE), label = data("label", TN_DENSE);
  const Layer query = data("query", TN_DENSE, TN_I64), weight = data("weight", TN_DENSE);
  const size_t samples = 500;
  std::mt19937 random(5);
  std::vector<float> scores(samples), labels(samples), weights(samples);
  std::vector<int64_t> queries(samples);
  for (size_t i = 0; i < samples; ++i) {
    scores[i] = static_cast<float>(random() % 50), labels[i] = static_cast<float>(random() % 4);
    weights[i] = static_cast<float>(random() % 8), queries[i] = static_cast<int64_t>(random() % 7) - 3;
  }
  for (const bool weighted : {true, false}) {
    double right = 0, wrong = 0, tied = 0;
    for (size_t i = 0; i < samples; ++i)
      for (size_t j = 0; j < samples; ++j) {
        if (queries[i] != queries[j] || !(labels[i] > labels[j])) continue;
        const double pair = weighted ? (weights[i] + weights[j]) / 2.0 : 1;
        (scores[i] > scores[j] ? right : scores[i] < scores[j] ? wrong : tied) += pair;
      }
    const Layer metric =
        host_.layer("pnpair", weighted ? Layers{score, label, query, weight} : Layers{score, label, query}, {});
    const auto count = static_cast<int64_t>(samples);
    std::vector<Feed> feeds = {{"score", {TN_F32, {count}, scores.data()}},
                               {"label", {TN_F32, {count}, labels.data()}},
                               {"query", {TN_I64, {count}, queries.data()}}};
    if (weighted) feeds.push_back({"weight", {TN_F32, {count}, weights.data()}});
    EXPECT_EQ(value(metric, feeds, "right"), right);
    EXPECT_EQ(value(metric, feeds, "wrong"), wrong);
    EXPECT_EQ(value(metric, feeds, "tied"), tied);
    EXPECT_NEAR(value(metric, feeds, "pnpair"), (right + tied / 2) / (wrong + tied / 2), 1e-12);
  }
}

TEST_F(ListMetrics, PairsWithoutAnyAndWithoutWrongOnes) {
  const Layer metric = host_.layer("pnpair", {data("score", TN_RAGGED), data("label", TN_RAGGED)}, {});
  const std::vector<float> rows = {1, 2}, same = {1, 1};
  const Offsets offsets = {0, 2};
  EXPECT_EQ(value(metric, {{"score", sequences(rows, offsets)}, {"label", sequences(same, offsets)}}, "pnpair"), 0);
  EXPECT_EQ(value(metric, {{"score", sequences(rows, offsets)}, {"label", sequences(rows, offsets)}}, "pnpair"),
            std::numeric_limits<double>::infinity());
  EXPECT_EQ(value(metric, {{"score", sequences({}, {0, 0})}, {"label", sequences({}, {0, 0})}}, "pnpair"), 0);
}

// A NaN score has the last place, so that with top = 1 it is only compared with the best row, whose relevance is equal.
TEST_F(ListMetrics, NanScoresComeLast) {
  const Layer cost = host_.layer("lambda_cost", {data("score", TN_RAGGED), data("relevance", TN_RAGGED)},
                                 {{"top", 1}, {"sigma", 2.0}}, "cost");
  MachineOptions options;
  options.max_samples = 1;
  const Machine machine = host_.machine(host_.parameters({cost}, 1), {cost}, options);
  const std::vector<float> scores = {std::nanf(""), 3, 1}, grades = {1, 1, 0};
  const Offsets offsets = {0, 3};
  machine.forward({{"score", sequences(scores, offsets)}, {"relevance", sequences(grades, offsets)}});
  EXPECT_NEAR(machine.cost(), std::log1p(std::exp(-2.0 * (3 - 1))), 1e-6);
}

TEST_F(ListMetrics, SayWhatTheyNeed) {
  const auto refusal = [&](const char* type, const Layers& inputs) {
    try {
      (void)host_.layer(type, inputs, {});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const Layer dense = data("dense", TN_DENSE), ragged = data("ragged", TN_RAGGED);
  EXPECT_NE(refusal("ndcg", {dense, dense}).find("must be sequences"), std::string::npos);
  EXPECT_NE(refusal("lambda_cost", {dense, dense}).find("must be sequences"), std::string::npos);
  EXPECT_NE(refusal("pnpair", {dense, dense}).find("query for each sample"), std::string::npos);
  EXPECT_NE(refusal("lambda_cost", {ragged, dense}).find("one value for each row"), std::string::npos);
}

// The cost and the weights after some steps, of a linear score of each line of lists.
struct Ranker {
  double cost = 0;
  std::vector<float> weight;
};
Ranker ranked(const std::string& file, bool sparse) {
  const Host host({1, {plugin_folder()}, nullptr, {}});
  const auto data = [&](const char* name, tn_dtype dtype, std::vector<int64_t> shape, uint32_t levels) {
    DataOptions options;
    options.name = name, options.dtype = dtype, options.shape = std::move(shape);
    options.storage = TN_RAGGED, options.levels = levels, options.sequence = "query";
    return host.data(options);
  };
  const auto with = [](Attributes more) {
    more.insert(more.end(), {{"size", 1}, {"param.weight.init", "constant"}, {"param.weight.init_value", 0.25}});
    return more;
  };
  Layer score;
  if (sparse) {
    const Layer vectors = host.layer("embedding", {data("ids", TN_I64, {}, 2)}, with({{"vocabulary", 5}}), "w");
    const Layer weighed = host.layer("mul", {vectors, data("values", TN_F32, {}, 2)}, {});
    score = host.layer("sequence_pool", {weighed}, {{"kind", "sum"}});
  } else {
    score = host.layer("fc", {data("features", TN_F32, {5}, 1)}, with({{"bias", false}}), "w");
  }
  TrainOptions options;
  options.outputs = {host.layer("lambda_cost", {score, data("label", TN_F32, {}, 1)}, {}, "cost")};
  options.parameters = host.parameters(options.outputs, 1);
  options.updater = host.updater("sgd", {{"learning_rate", 0.5}});
  options.passes = 10;
  const Attributes attributes = {
      {"files", std::vector<std::string>{file}}, {"width", 5}, {sparse ? "sparse_lists" : "lists", true}};
  options.reader = host.reader("libsvm", attributes).batch(2);
  train(options);
  const Array weight = options.parameters.get("w.weight");
  const auto* const values = static_cast<const float*>(weight.data);
  return {test(options).cost, {values, values + weight.count()}};
}

// Lists whose rows stay sparse, as the entries of inner sequences, are those with dense rows; one line has no entry.
TEST(Lists, OfSparseRowsAreThoseOfDenseRows) {
  const TemporaryFolder folder;
  const std::string file = folder.file("lists");
  std::ofstream(file) << "2 qid:1 1:0.5 4:2\n0 qid:1 2:1\n1 qid:1\n0 qid:2 3:1 4:0.5\n3 qid:2 1:-1 5:2\n1 qid:3 2:2\n";
  const Ranker dense = ranked(file, false), sparse = ranked(file, true);
  EXPECT_NEAR(sparse.cost, dense.cost, 1e-6);
  ASSERT_EQ(sparse.weight.size(), dense.weight.size());
  for (size_t i = 0; i < dense.weight.size(); ++i) EXPECT_NEAR(sparse.weight[i], dense.weight[i], 1e-6) << i;
  EXPECT_GT(dense.weight[4], 0.3F) << "it has learned";
}

}  // namespace
}  // namespace tenon_tests
