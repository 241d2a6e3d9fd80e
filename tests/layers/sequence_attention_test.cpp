// Attention among the rows of sequences, and one step of it, against plain loops. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <tenon/tenon_machine.hpp>

#include "tests/layers/layers_on_a_host.h"
#include "tests/support/layer_check.h"

namespace tenon_tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Values = std::vector<double>;

struct Sizes {
  size_t heads = 1, depth = 2, width = 2;  // features of a head
  bool causal = true;
  double scale = 0;  // 0: the default
};

// What row `row` of a sequence of `count` rows gets; query, key and value begin with its first row.
Values attended(const Sizes& s, const double* query, const double* key, const double* value, size_t row, size_t count) {
  const size_t keys = s.heads * s.depth, values = s.heads * s.width, seen = s.causal ? row + 1 : count;
  const double scale = s.scale == 0 ? 1 / std::sqrt(static_cast<double>(s.depth)) : s.scale;
  Values result(values, 0.0);
  for (size_t head = 0; head < s.heads; ++head) {
    Values scores(seen, 0.0);
    for (size_t i = 0; i < seen; ++i)
      for (size_t d = 0; d < s.depth; ++d)
        scores[i] += scale * query[row * keys + head * s.depth + d] * key[i * keys + head * s.depth + d];
    const double most = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (double& each : scores) sum += each = std::exp(each - most);
    for (size_t i = 0; i < seen; ++i)
      for (size_t k = 0; k < s.width; ++k)
        result[head * s.width + k] += scores[i] / sum * value[i * values + head * s.width + k];
  }
  return result;
}

LayerCase sequence_attention(const Sizes& s) {
  const size_t keys = s.heads * s.depth, values = s.heads * s.width;
  LayerCase layer;
  layer.type = "sequence_attention";
  layer.attributes = {{"heads", static_cast<int64_t>(s.heads)}, {"causal", s.causal}};
  if (s.scale != 0) layer.attributes.push_back({"scale", s.scale});
  for (const size_t size : {keys, keys, values}) {
    CheckedInput rows;
    rows.shape = {static_cast<int64_t>(size)};
    rows.sequence = "text";
    layer.inputs.push_back(rows);
  }
  layer.output_shape = {static_cast<int64_t>(values)};
  layer.output_rows = true;
  layer.gradient_tolerance = 2e-4;  // a difference of sums, which may be much smaller than they are
  layer.formula = [=](const FormulaArguments& a) {
    Values result;
    const std::vector<int64_t>& ends = a.offsets[0][0];
    for (size_t i = 0; i + 1 < ends.size(); ++i) {
      const auto first = static_cast<size_t>(ends[i]), count = static_cast<size_t>(ends[i + 1]) - first;
      for (size_t row = 0; row < count; ++row) {
        const Values each = attended(s, a.inputs[0].data() + first * keys, a.inputs[1].data() + first * keys,
                                     a.inputs[2].data() + first * values, row, count);
        result.insert(result.end(), each.begin(), each.end());
      }
    }
    return result;
  };
  return layer;
}

TEST(SequenceAttention, Causal) {
  EXPECT_GT(check_layer(sequence_attention({.heads = 2, .depth = 3, .width = 2})), 0);
  EXPECT_GT(check_layer(sequence_attention({.heads = 1, .depth = 17, .width = 5, .scale = 0.3})), 0);
}

TEST(SequenceAttention, OfAllRows) {
  EXPECT_GT(check_layer(sequence_attention({.heads = 3, .depth = 1, .width = 4, .causal = false})), 0);
}

class SequenceAttentionOnAHost : public LayersOnAHost {
 protected:
  static std::vector<float> normal(size_t count, uint32_t seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> numbers(0, 1);
    std::vector<float> values(count);
    for (float& each : values) each = numbers(random);
    return values;
  }
  // Rows of the sequences of this name.
  [[nodiscard]] tenon::Layer rows_of(const std::string& name, int64_t size, const std::string& sequence) const {
    tenon::DataOptions options;
    options.name = name, options.shape = {size}, options.storage = TN_RAGGED, options.sequence = sequence;
    return host_.data(options);
  }
  [[nodiscard]] tenon::Layer numbers(const std::string& name) const {
    tenon::DataOptions options;
    options.name = name, options.dtype = TN_I64, options.storage = TN_RAGGED;
    return host_.data(options);
  }
  // The output of causal attention over one sequence of `rows` rows.
  [[nodiscard]] std::vector<float> causal_attention(const std::vector<float>& q, const std::vector<float>& k,
                                                    const std::vector<float>& v, int64_t rows, int64_t heads) const {
    const int64_t keys = static_cast<int64_t>(k.size()) / rows, values = static_cast<int64_t>(v.size()) / rows;
    const tenon::Layer whole = host_.layer(
        "sequence_attention", {rows_of("q", keys, "text"), rows_of("k", keys, "text"), rows_of("v", values, "text")},
        {{"heads", heads}, {"causal", true}});
    const int64_t ends[] = {0, rows};
    const auto sequence = [&](const std::vector<float>& from, int64_t size) {
      return tenon::Array::sequences(TN_F32, {rows, size}, from.data(), 1, ends);
    };
    const tenon::Machine machine = host_.machine(host_.parameters({whole}, 1), {whole}, tenon::MachineOptions());
    machine.forward({{"q", sequence(q, keys)}, {"k", sequence(k, keys)}, {"v", sequence(v, values)}});
    const auto* const output = static_cast<const float*>(machine.output(whole).data);
    return {output, output + v.size()};
  }
};

// Rows of a pool in any order, shared between samples, give the bits that whole sequences give.
TEST_F(SequenceAttentionOnAHost, AStepHasTheBitsOfTheWholeSequence) {
  constexpr int64_t kRows = 290, kKeys = 24, kValues = 10, kHeads = 2;
  const std::vector<float> q = normal(kRows * kKeys, 1), k = normal(kRows * kKeys, 2), v = normal(kRows * kValues, 3);
  const std::vector<float> expected = causal_attention(q, k, v, kRows, kHeads);

  // Sample i is row 289 - 33 i, which sees the rows before it in a pool that has them backwards.
  std::vector<float> pool_k, pool_v, own_q, own_k, own_v;
  std::vector<int64_t> past, past_ends = {0};
  const auto take = [](const std::vector<float>& from, int64_t row, int64_t size, std::vector<float>& to) {
    to.insert(to.end(), from.begin() + row * size, from.begin() + (row + 1) * size);
  };
  for (int64_t row = kRows; row-- > 0;) take(k, row, kKeys, pool_k), take(v, row, kValues, pool_v);
  for (int64_t row = kRows - 1; row >= 0; row -= 33) {
    take(q, row, kKeys, own_q), take(k, row, kKeys, own_k), take(v, row, kValues, own_v);
    for (int64_t i = 0; i < row; ++i) past.push_back(kRows - 1 - i);
    past_ends.push_back(static_cast<int64_t>(past.size()));
  }
  const auto samples = static_cast<int64_t>(past_ends.size()) - 1;
  std::vector<int64_t> pool_ends(static_cast<size_t>(samples) + 1, kRows);
  pool_ends[0] = 0;
  const tenon::Layer step =
      host_.layer("attention_step",
                  {data("query", {kKeys}), data("key", {kKeys}), data("value", {kValues}),
                   rows_of("past_key", kKeys, "pool"), rows_of("past_value", kValues, "pool"), numbers("past")},
                  {{"heads", kHeads}});
  tenon::MachineOptions options;
  options.max_samples = samples;
  const tenon::Machine machine = host_.machine(host_.parameters({step}, 1), {step}, options);
  const auto feed = [&](std::vector<int64_t>& of) {
    const auto dense = [&](const std::vector<float>& values, int64_t size) {
      return tenon::Array(TN_F32, {samples, size}, values.data());
    };
    machine.forward(
        {{"query", dense(own_q, kKeys)},
         {"key", dense(own_k, kKeys)},
         {"value", dense(own_v, kValues)},
         {"past_key", tenon::Array::sequences(TN_F32, {kRows, kKeys}, pool_k.data(), samples, pool_ends.data())},
         {"past_value", tenon::Array::sequences(TN_F32, {kRows, kValues}, pool_v.data(), samples, pool_ends.data())},
         {"past", tenon::Array::sequences(TN_I64, {past_ends.back()}, of.data(), samples, past_ends.data())}});
  };
  feed(past);
  const auto* const made = static_cast<const float*>(machine.output(step).data);
  for (int64_t i = 0; i < samples; ++i)
    for (int64_t c = 0; c < kValues; ++c)
      EXPECT_EQ(made[i * kValues + c], expected[static_cast<size_t>((kRows - 1 - 33 * i) * kValues + c)])
          << i << " " << c;
  past[3] = kRows;
  try {
    feed(past);
    ADD_FAILURE() << "nothing was refused";
  } catch (const tenon::Error& error) {
    EXPECT_EQ(error.code(), TN_BAD_DATA);
    EXPECT_THAT(error.what(), HasSubstr("past: number 3 is 290; there are 290 rows"));
  }
}

// A step has no derivative by any of its inputs, and is fine where none is wanted.
TEST_F(SequenceAttentionOnAHost, AStepIsNotDifferentiated) {
  const tenon::Layers inputs = {data("query", {4}),       data("key", {4}),         data("value", {4}),
                                rows_of("pk", 4, "pool"), rows_of("pv", 4, "pool"), numbers("past")};
  for (size_t i = 0; i <= 5; ++i) {
    SCOPED_TRACE(i);
    tenon::Layers changed = inputs;
    if (i < 5) changed[i] = host_.layer("fc", {inputs[i]}, {{"size", 4}}, "changed");
    const tenon::Layer step = host_.layer("attention_step", changed, {}, "step");
    const tenon::Layer after = host_.layer("fc", {step}, {{"size", 2}}, "after");
    const tenon::Layer cost = host_.layer("sum_cost", {after}, {}, "cost");
    tenon::MachineOptions options;
    options.training = true;
    const auto make = [&] { (void)host_.machine(host_.parameters({cost}, 1), {cost}, options); };
    if (i == 5) {
      EXPECT_NO_THROW(make());  // trains what comes after it
      continue;
    }
    try {
      make();
      ADD_FAILURE() << "nothing was refused";
    } catch (const tenon::Error& error) {
      EXPECT_EQ(error.code(), TN_UNSUPPORTED);
      EXPECT_THAT(error.what(), AllOf(HasSubstr("layer \"step\""), HasSubstr("has no derivative")));
    }
    options.immutable_parameters = {"changed"};
    EXPECT_NO_THROW(make());
  }
}

TEST_F(SequenceAttentionOnAHost, MistakesNameThePort) {
  const tenon::Layer query = sequences("query", {4}), flat = data("flat", {4});
  const auto bad = [&](const tenon::Layers& inputs, int64_t heads = 1) {
    return mistake("sequence_attention", inputs, {{"heads", heads}});
  };
  EXPECT_THAT(bad({flat, flat, flat}), AllOf(HasSubstr("layer \"bad\""), HasSubstr("query: must be sequences")));
  EXPECT_THAT(bad({query, sequences("other", {4}), query}),
              HasSubstr("key: must have a row for each row of the query"));
  EXPECT_THAT(bad({query, query, query}, 3), HasSubstr("query: has features that cannot be divided among 3 heads"));
  const auto both = [&](const tenon::Layers& inputs, const tenon::Attributes& attributes, tn_status code) {
    return mistake("multi_head_attention", inputs, attributes, code);
  };
  EXPECT_THAT(both({query, sequences("other", {4})}, {}, TN_INVALID), HasSubstr("key: must have a row for each row"));
  EXPECT_THAT(both({query, query, query, query}, {}, TN_UNSUPPORTED), HasSubstr("mask: is for dense inputs"));
  EXPECT_THAT(both({query}, {{"dropout", 0.5}}, TN_UNSUPPORTED), HasSubstr("dropout: of the weights is for dense"));
  const tenon::Layer rows = sequences("pool", {4}), other = sequences("other", {4}), wide = sequences("wide", {5});
  const auto step = [&](const tenon::Layers& inputs) { return mistake("attention_step", inputs); };
  EXPECT_THAT(step({query, flat, flat, rows, rows, numbers("past")}), HasSubstr("query: must be [samples, D]"));
  EXPECT_THAT(step({flat, flat, flat, rows, other, numbers("past")}),
              HasSubstr("past_value: must be rows, as many as"));
  EXPECT_THAT(step({flat, flat, flat, wide, wide, numbers("past")}),
              HasSubstr("past_key: must have the features of the row"));
}

}  // namespace
}  // namespace tenon_tests
