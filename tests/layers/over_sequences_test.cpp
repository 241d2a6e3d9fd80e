// Attention of one query over each sequence, of plugins/layers/attention. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <tenon/tenon_machine.hpp>

#include "tests/layers/layers_on_a_host.h"
#include "tests/support/layer_check.h"

namespace tenon_tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Values = std::vector<double>;

// The score of a query for a key.
using Score = std::function<double(const FormulaArguments& arguments, const double* query, const double* key)>;

// query [Q], keys [D] and, if `width` is not 0, values [width].
LayerCase over_sequences(const std::string& type, size_t queries, size_t depth, size_t width, uint32_t levels,
                         const Score& score) {
  const auto rows = [&](size_t size) {
    CheckedInput input;
    input.shape = {static_cast<int64_t>(size)};
    input.sequence = "s", input.levels = levels;
    return input;
  };
  LayerCase layer;
  layer.type = type;
  CheckedInput query;
  if (levels == 2) query = rows(queries), query.levels = 1;
  query.shape = {static_cast<int64_t>(queries)};
  layer.inputs = {query, rows(depth)};
  if (width > 0) layer.inputs.push_back(rows(width));
  const size_t out = width == 0 ? depth : width;
  layer.output_shape = {static_cast<int64_t>(out)};
  layer.output_rows = levels == 2;
  layer.formula = [=](const FormulaArguments& a) {
    const std::vector<int64_t>& ends = a.offsets[1].back();
    const Values& values = a.inputs[width == 0 ? 1 : 2];
    Values result((ends.size() - 1) * out, 0.0);
    for (size_t s = 0; s + 1 < ends.size(); ++s) {
      Values scores;
      double most = -INFINITY, sum = 0;
      for (auto row = static_cast<size_t>(ends[s]); row < static_cast<size_t>(ends[s + 1]); ++row)
        scores.push_back(score(a, a.inputs[0].data() + s * queries, a.inputs[1].data() + row * depth));
      for (const double each : scores) most = std::max(most, each);
      for (const double each : scores) sum += std::exp(each - most);
      for (size_t r = 0; r < scores.size(); ++r)
        for (size_t k = 0; k < out; ++k)
          result[s * out + k] +=
              std::exp(scores[r] - most) / sum * values[(static_cast<size_t>(ends[s]) + r) * out + k];
    }
    return result;
  };
  return layer;
}

LayerCase additive(size_t queries, size_t depth, size_t width, uint32_t levels) {
  LayerCase layer = over_sequences("additive_attention", queries, depth, width, levels,
                                   [=](const FormulaArguments& a, const double* query, const double* key) {
                                     const Values &w = a.parameters.at("query.weight"),
                                                  &v = a.parameters.at("score.weight");
                                     double score = 0;
                                     for (size_t d = 0; d < depth; ++d) {
                                       double sum = key[d];
                                       for (size_t q = 0; q < queries; ++q) sum += query[q] * w[q * depth + d];
                                       score += v[d] * std::tanh(sum);
                                     }
                                     return score;
                                   });
  layer.gradient_rounded = 1;  // of tanh
  return layer;
}

LayerCase products(size_t depth, size_t width, double scale, uint32_t levels) {
  LayerCase layer = over_sequences("dot_attention", depth, depth, width, levels,
                                   [=](const FormulaArguments&, const double* query, const double* key) {
                                     double score = 0;
                                     for (size_t d = 0; d < depth; ++d) score += query[d] * key[d];
                                     return scale * score;
                                   });
  if (scale != 1) layer.attributes = {{"scale", scale}};
  return layer;
}

TEST(OverSequences, Additive) {
  EXPECT_GT(check_layer(additive(3, 4, 2, 1)), 0);
  EXPECT_GT(check_layer(additive(2, 3, 0, 1)), 0);
  EXPECT_GT(check_layer(additive(2, 2, 3, 2)), 0);
}

TEST(OverSequences, Dot) {
  EXPECT_GT(check_layer(products(3, 2, 1, 1)), 0);
  EXPECT_GT(check_layer(products(4, 0, 0.5, 1)), 0);
  EXPECT_GT(check_layer(products(2, 3, 1, 2)), 0);
}

class OverSequencesOnAHost : public LayersOnAHost {
 protected:
  static std::vector<float> read(const Array& array) {
    const auto* const from = static_cast<const float*>(array.data);
    return {from, from + array.count()};
  }
};

TEST_F(OverSequencesOnAHost, WeightsAreThoseOfTheSum) {
  const Layer query = data("query", {2}), key = sequences("key", {2});
  for (const char* type : {"additive_attention", "dot_attention"}) {
    const Layer made = host_.layer(type, {query, key});
    const Layer weights = made.output(1);
    const Layer again = host_.layer("sequence_pool", {host_.layer("mul", {key, weights})}, {{"kind", "sum"}});
    MachineOptions options;
    options.max_samples = 3;
    const Machine machine = host_.machine(host_.parameters({made, again}, 1), {made, again, weights}, options);
    const float queries[] = {1, -1, 0.5F, 2, 3, 3}, keys[] = {1, 2, -1, 0.5F, 0, 1, 2, -2};
    const int64_t ends[] = {0, 3, 3, 4};
    machine.forward({{"query", {TN_F32, {3, 2}, queries}}, {"key", Array::sequences(TN_F32, {4, 2}, keys, 3, ends)}});
    EXPECT_EQ(read(machine.output(made)), read(machine.output(again)));
    const std::vector<float> shares = read(machine.output(weights));
    ASSERT_EQ(shares.size(), 4U);
    EXPECT_NEAR(static_cast<double>(shares[0] + shares[1] + shares[2]), 1, 1e-6);
    EXPECT_EQ(shares[3], 1);
  }
}

TEST_F(OverSequencesOnAHost, MistakesNameThePort) {
  const Layer query = data("query", {4}), key = sequences("key", {4});
  for (const char* type : {"additive_attention", "dot_attention"}) {
    EXPECT_THAT(mistake(type, {query, query}),
                AllOf(HasSubstr("layer \"bad\""), HasSubstr("key: must be sequences of rows [rows, D]")));
    EXPECT_THAT(mistake(type, {query, sequences("tall", {2, 2})}), HasSubstr("key: must be sequences of rows"));
    EXPECT_THAT(mistake(type, {key, key}), HasSubstr("query: must have one vector for each sequence of the key"));
    EXPECT_THAT(mistake(type, {query, key, sequences("other", {4})}),
                AllOf(HasSubstr("value: must have a row for each row of the key"), HasSubstr("rows of \"other\"")));
  }
  EXPECT_THAT(mistake("dot_attention", {data("wide", {5}), key}),
              HasSubstr("query: must have as many features as the key"));
}

}  // namespace
}  // namespace tenon_tests
