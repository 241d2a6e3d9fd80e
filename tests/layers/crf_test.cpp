// The layers of conditional random fields, against sums and searches over all paths.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <tuple>

#include "tests/layers/layers_on_a_host.h"
#include "tests/support/layer_check.h"
#include "tests/support/sanitized.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using Numbers = std::vector<double>;
using Path = std::vector<size_t>;

constexpr size_t kTags = 3;

// Calls use(path, score) for every path through the rows of one sequence, in the order of their tags from the last one.
template <typename Use>
void each_path(const double* scores, size_t rows, const Numbers& w, Use&& use) {
  Path path(rows, 0);
  for (bool more = rows > 0; more;) {
    double score = w[path[0]] + w[kTags + path[rows - 1]];
    for (size_t t = 0; t < rows; ++t) {
      score += scores[t * kTags + path[t]];
      if (t > 0) score += w[(2 + path[t - 1]) * kTags + path[t]];
    }
    use(path, score);
    more = false;
    for (size_t t = 0; t < rows && !more; ++t) {
      path[t] = (path[t] + 1) % kTags;
      more = path[t] != 0;
    }
  }
}

// The cost of one sequence: log sum exp of all paths without the score of the right one.
double cost(const double* scores, const double* labels, size_t rows, const Numbers& w) {
  if (rows == 0) return 0;
  Numbers all;
  double right = 0, most = -HUGE_VAL, sum = 0;
  each_path(scores, rows, w, [&](const Path& path, double score) {
    all.push_back(score);
    most = std::max(most, score);
    if (std::equal(path.begin(), path.end(), labels, [](size_t a, double b) { return static_cast<double>(a) == b; }))
      right = score;
  });
  for (const double each : all) sum += std::exp(each - most);
  return most + std::log(sum) - right;
}

// The path of the largest score of a sequence, by the recursion over its rows, and the logarithm of the sum.
template <typename T>
std::pair<std::vector<int64_t>, double> recursion(const T* scores, int64_t rows, int64_t tags, const T* w) {
  const auto weight = [&](int64_t i, int64_t j) { return static_cast<double>(w[i * tags + j]); };
  std::vector<Numbers> best, all;
  std::vector<std::vector<int64_t>> from;
  const auto n = static_cast<size_t>(tags);
  const auto arrive = [&](const auto& step, double own) {  // over the tags before: largest, its tag, log of the sum
    double most = -HUGE_VAL, top = -HUGE_VAL, sum = 0;
    int64_t where = 0;
    for (int64_t i = 0; i < tags; ++i) {
      if (step(best.back(), i) > most) most = step(best.back(), i), where = i;
      top = std::max(top, step(all.back(), i));
    }
    for (int64_t i = 0; i < tags; ++i) sum += std::exp(step(all.back(), i) - top);
    return std::tuple{own + most, where, own + top + std::log(sum)};
  };
  for (int64_t t = 0; t < rows; ++t) {
    Numbers next(n), sums(n);
    from.emplace_back(n);
    for (int64_t j = 0; j < tags; ++j) {
      const auto at = static_cast<size_t>(j);
      const auto own = static_cast<double>(scores[t * tags + j]);
      next[at] = sums[at] = own + weight(0, j);
      if (t == 0) continue;
      std::tie(next[at], from.back()[at], sums[at]) =
          arrive([&](const Numbers& of, int64_t i) { return of[static_cast<size_t>(i)] + weight(2 + i, j); }, own);
    }
    best.push_back(next), all.push_back(sums);
  }
  if (rows == 0) return {{}, 0};
  auto [most, tag, whole] =
      arrive([&](const Numbers& of, int64_t i) { return of[static_cast<size_t>(i)] + weight(1, i); }, 0);
  std::vector<int64_t> path(static_cast<size_t>(rows));
  for (int64_t t = rows; t-- > 0; tag = from[static_cast<size_t>(t)][static_cast<size_t>(tag)])
    path[static_cast<size_t>(t)] = tag;
  return {path, whole};
}

struct Sequence {
  size_t first, rows;
};
std::vector<Sequence> sequences_of(const FormulaArguments& of) {
  std::vector<Sequence> all;
  const std::vector<int64_t>& ends = of.offsets[0].back();
  for (size_t s = 0; s + 1 < ends.size(); ++s)
    all.push_back({static_cast<size_t>(ends[s]), static_cast<size_t>(ends[s + 1] - ends[s])});
  return all;
}

CheckedInput rows_of(std::vector<int64_t> shape, uint32_t levels = 1) {
  CheckedInput input;
  input.shape = std::move(shape);
  input.sequence = "words";
  input.levels = levels;
  return input;
}

LayerCase crf_case(bool weighted) {
  LayerCase layer;
  layer.type = "crf";
  layer.cost = true;
  layer.inputs = {rows_of({static_cast<int64_t>(kTags)}), rows_of({})};
  layer.inputs[1].integers_below = static_cast<int64_t>(kTags);
  if (weighted) layer.inputs.push_back({{}, 0, 0.5, 2});
  for (CheckedInput& input : layer.inputs) input.limited = weighted;
  layer.samples = {1, 2, 7};
  layer.formula = [](const FormulaArguments& of) {
    Numbers costs;
    for (const Sequence& s : sequences_of(of)) {
      const double factor = of.inputs.size() > 2 ? of.inputs[2][costs.size()] : 1;
      costs.push_back(factor * cost(of.inputs[0].data() + s.first * kTags, of.inputs[1].data() + s.first, s.rows,
                                    of.parameters.at("transitions")));
    }
    return costs;
  };
  // Scores of whole paths cancel.
  layer.rounded = [](const FormulaArguments& of) {
    Numbers sizes;
    for (const Sequence& s : sequences_of(of)) {
      double size = 1;
      for (size_t i = s.first * kTags; i < (s.first + s.rows) * kTags; ++i) size += std::abs(of.inputs[0][i]);
      const double factor = of.inputs.size() > 2 ? std::abs(of.inputs[2][sizes.size()]) : 1;
      sizes.push_back(factor * size);
    }
    return sizes;
  };
  layer.gradient_rounded = 1;
  return layer;
}

TEST(Crf, Cost) { EXPECT_GT(check_layer(crf_case(false)), 0); }

TEST(Crf, CostOfNestedSequences) {
  LayerCase layer = crf_case(false);
  for (CheckedInput& input : layer.inputs) input.levels = 2;
  EXPECT_GT(check_layer(layer), 0);
}

// By the recursion, since there are too many paths.
TEST(Crf, ManyAndLongSequences) {
  if (sanitized()) GTEST_SKIP() << "sanitizers take minutes for ten thousand sequences";
  LayerCase layer = crf_case(false);
  layer.formula = [](const FormulaArguments& of) {
    Numbers costs;
    const Numbers& w = of.parameters.at("transitions");
    for (const Sequence& s : sequences_of(of)) {
      const double* const scores = of.inputs[0].data() + s.first * kTags;
      double right = 0;
      for (size_t t = 0; t < s.rows; ++t) {
        const auto tag = static_cast<size_t>(of.inputs[1][s.first + t]);
        const size_t row = t == 0 ? 0 : 2 + static_cast<size_t>(of.inputs[1][s.first + t - 1]);
        right += scores[t * kTags + tag] + w[row * kTags + tag] + (t + 1 == s.rows ? w[kTags + tag] : 0);
      }
      costs.push_back(recursion(scores, static_cast<int64_t>(s.rows), kTags, w.data()).second - right);
    }
    return costs;
  };
  EXPECT_GT(check_long_sequences(layer), 0);
}

TEST(Crf, WeightedCost) { EXPECT_GT(check_layer(crf_case(true)), 0); }

// Scores and weights so far apart that their exponentials are 0 or infinite in fp32; 60 tags; sequences of 0, 1 and 40
// rows. The reference is the recursion in fp64.
class CrfOnAHost : public LayersOnAHost {
 protected:
  static constexpr int64_t kMany = 60;
  const std::vector<int64_t> offsets_ = {0, 1, 1, 41};
  const Layer scores_ = words("scores", {kMany}, TN_F32), labels_ = words("labels", {}, TN_I64);

  [[nodiscard]] Layer words(const std::string& name, std::vector<int64_t> shape, tn_dtype dtype) const {
    DataOptions options;
    options.name = name, options.dtype = dtype, options.shape = std::move(shape);
    options.storage = TN_RAGGED, options.sequence = "words";
    return host_.data(options);
  }
  [[nodiscard]] std::vector<Feed> feeds(const std::vector<float>& scores, const std::vector<int64_t>& labels) const {
    return {{"scores", Array::sequences(TN_F32, {offsets_.back(), kMany}, scores.data(), 3, offsets_.data())},
            {"labels", Array::sequences(TN_I64, {offsets_.back()}, labels.data(), 3, offsets_.data())}};
  }
};

TEST_F(CrfOnAHost, FarScoresAndForbiddenPairs) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<float> draw(-300, 300);
  std::vector<float> scores(41 * kMany), weights((kMany + 2) * kMany);
  for (float& each : scores) each = draw(random);
  for (float& each : weights) each = random() % 3 == 0 ? -1e6F : draw(random);  // a third of the pairs is forbidden
  const Layer cost = host_.layer("crf", {scores_, labels_}, {{"parameter_name", "shared"}}, "cost");
  const Layer tags = host_.layer("crf_decoding", {scores_}, {{"parameter_name", "shared"}}, "tags");
  const Parameters parameters = host_.parameters({cost, tags}, 1);
  parameters.set("shared.transitions", {TN_F32, {kMany + 2, kMany}, weights.data()});
  MachineOptions options;
  options.max_samples = 3, options.training = true;
  const Machine machine = host_.machine(parameters, {cost, tags}, options);

  std::vector<int64_t> best;
  std::vector<double> sums;
  for (size_t s = 0; s < 3; ++s) {
    const auto [path, sum] =
        recursion(scores.data() + offsets_[s] * kMany, offsets_[s + 1] - offsets_[s], kMany, weights.data());
    best.insert(best.end(), path.begin(), path.end());
    sums.push_back(sum);
  }
  machine.forward(feeds(scores, best));
  machine.backward();
  const auto* found = static_cast<const int64_t*>(machine.output(tags).data);
  EXPECT_EQ((std::vector<int64_t>{found, found + 41}), best);
  const auto* costs = static_cast<const float*>(machine.output(cost).data);
  for (size_t s = 0; s < 3; ++s) {  // the best path is all but certain where scores are this far apart
    EXPECT_GE(costs[s], -1e-5 * std::abs(sums[s])) << s;
    EXPECT_LE(costs[s], 1 + 1e-5 * std::abs(sums[s])) << s;
  }
  EXPECT_EQ(costs[1], 0);
  const Array gradient = machine.gradient("shared.transitions");
  const auto* each = static_cast<const float*>(gradient.data);
  for (int64_t i = 0; i < gradient.count(); ++i) ASSERT_TRUE(std::abs(each[i]) <= 1) << i << ": " << each[i];
}

// Whole numbers, so that many paths are equal.
TEST_F(CrfOnAHost, Decoding) {
  constexpr auto kWide = static_cast<int64_t>(kTags);
  const Layer tags = host_.layer("crf_decoding", {words("few", {kWide}, TN_F32)}, {}, "tags");
  const Parameters parameters = host_.parameters({tags}, 1);
  MachineOptions options;
  options.max_samples = 6;
  const Machine machine = host_.machine(parameters, {tags}, options);
  const std::vector<int64_t> offsets = {0, 5, 5, 6, 8, 15, 18};
  std::mt19937_64 random(3);
  for (const int range : {1, 3, 100}) {
    std::uniform_int_distribution<int> draw(0, range - 1);
    std::vector<float> scores(18 * kTags), weights((kTags + 2) * kTags);
    for (float& each : scores) each = static_cast<float>(draw(random));
    for (float& each : weights) each = static_cast<float>(draw(random));
    parameters.set("tags.transitions", {TN_F32, {kWide + 2, kWide}, weights.data()});
    machine.forward({{"few", Array::sequences(TN_F32, {18, kWide}, scores.data(), 6, offsets.data())}});
    const Numbers wide(scores.begin(), scores.end());
    std::vector<int64_t> expected;
    for (size_t s = 0; s < 6; ++s) {
      Path best;
      double most = -HUGE_VAL;
      const auto first = static_cast<size_t>(offsets[s]), rows = static_cast<size_t>(offsets[s + 1]) - first;
      each_path(wide.data() + first * kTags, rows, Numbers(weights.begin(), weights.end()),
                [&](const Path& path, double score) {
                  if (score > most) most = score, best = path;
                });
      expected.insert(expected.end(), best.begin(), best.end());
    }
    const auto* found = static_cast<const int64_t*>(machine.output(tags).data);
    EXPECT_EQ((std::vector<int64_t>{found, found + 18}), expected) << range;
  }
}

TEST_F(CrfOnAHost, SequencesOfWeightZeroDoNotCount) {
  const Layer weight = data("weight", {});
  const Layer cost = host_.layer("crf", {scores_, labels_, weight}, {}, "cost");
  MachineOptions options;
  options.max_samples = 3, options.training = true;
  const Machine machine = host_.machine(host_.parameters({cost}, 1), {cost}, options);
  std::vector<float> scores(41 * kMany, 0.0F);
  for (size_t i = kMany; i < scores.size(); ++i) scores[i] = NAN;  // of the last sequence
  const std::vector<int64_t> labels(41, 2);
  std::vector<Feed> given = feeds(scores, labels);
  const float weights[] = {2, 1, 0};
  given.push_back({"weight", {TN_F32, {3}, weights}});
  machine.forward(given);
  machine.backward();
  EXPECT_NEAR(machine.cost(), 2 * std::log(60.0) / 3, 1e-5);
  const Array gradient = machine.gradient("cost.transitions");
  const auto* each = static_cast<const float*>(gradient.data);
  for (int64_t j = 0; j < kMany; ++j) EXPECT_NEAR(each[j], 2.0 / 3 * (1.0 / 60 - (j == 2 ? 1 : 0)), 1e-6) << j;
  for (int64_t i = 2 * kMany; i < gradient.count(); ++i) ASSERT_EQ(each[i], 0) << i;
}

TEST_F(CrfOnAHost, Mistakes) {
  EXPECT_THAT(mistake("crf", {data("dense", {4}), labels_}), testing::HasSubstr("must be sequences (ragged)"));
  EXPECT_THAT(mistake("crf", {words("flat", {}, TN_F32), labels_}), testing::HasSubstr("must be sequences (ragged)"));
  EXPECT_THAT(mistake("crf", {scores_, sequences("others", {})}), testing::HasSubstr("label"));
  EXPECT_THAT(mistake("crf", {scores_, labels_, words("each", {}, TN_F32)}),
              testing::HasSubstr("one value for each row"));
  EXPECT_THAT(mistake("crf_decoding", {words("wide", {40000}, TN_F32)}), testing::HasSubstr("more than 32768 tags"));
  const Layer cost = host_.layer("crf", {scores_, labels_}, {}, "cost");
  const Machine machine = host_.machine(host_.parameters({cost}, 1), {cost}, {});
  const std::vector<float> scores(41 * kMany);
  const std::vector<int64_t> above(41, kMany);
  EXPECT_THROW(machine.forward(feeds(scores, above)), Error);
}

}  // namespace

}  // namespace tenon_tests
