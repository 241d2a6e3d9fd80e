// The layers of plugins/layers/order. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/layers/layers_on_a_host.h"
#include "tests/support/layer_check.h"

namespace tenon_tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Values = std::vector<double>;

// A sample as [outer, length, inner]: line (o, i) has the elements at (o * length + k) * inner + i.
struct Lines {
  size_t outer, length, inner;
  [[nodiscard]] size_t at(size_t o, size_t k, size_t i) const { return (o * length + k) * inner + i; }
};

// Returns the positions of a line's elements in sorted order, from the definition: stable.
std::vector<size_t> order(const Values& line, bool descending) {
  std::vector<size_t> positions(line.size());
  std::iota(positions.begin(), positions.end(), size_t{0});
  std::stable_sort(positions.begin(), positions.end(),
                   [&](size_t a, size_t b) { return descending ? line[a] > line[b] : line[a] < line[b]; });
  return positions;
}

// Applies work(line) -> new line, to each line of each sample.
template <typename Work>
Formula by_line(Lines lines, size_t length, Work work) {
  return [=](const FormulaArguments& a) {
    const size_t sample = lines.outer * lines.length * lines.inner;
    const Lines to = {lines.outer, length, lines.inner};
    Values y(a.inputs[0].size() / sample * lines.outer * length * lines.inner);
    for (size_t n = 0; n < a.inputs[0].size() / sample; ++n)
      for (size_t o = 0; o < lines.outer; ++o)
        for (size_t i = 0; i < lines.inner; ++i) {
          Values line;
          for (size_t k = 0; k < lines.length; ++k) line.push_back(a.inputs[0][n * sample + lines.at(o, k, i)]);
          const Values made = work(line);
          for (size_t k = 0; k < length; ++k) y[n * lines.outer * length * lines.inner + to.at(o, k, i)] = made.at(k);
        }
    return y;
  };
}

LayerCase sorts(std::string type, Attributes attributes, std::vector<int64_t> shape, Formula formula,
                std::vector<int64_t> output) {
  LayerCase layer;
  layer.type = std::move(type);
  layer.attributes = std::move(attributes);
  layer.inputs = {{std::move(shape)}};
  layer.formula = std::move(formula);
  layer.output_shape = std::move(output);
  layer.jumps = true;
  return layer;
}

Formula values_in_order(Lines lines, size_t count, bool descending) {
  return by_line(lines, count, [=](const Values& line) {
    Values made;
    for (const size_t k : order(line, descending)) made.push_back(line[k]);
    made.resize(count);
    return made;
  });
}
Formula positions_in_order(Lines lines, size_t count, bool descending) {
  return by_line(lines, count, [=](const Values& line) {
    const std::vector<size_t> found = order(line, descending);
    Values made(found.begin(), found.end());
    made.resize(count);
    return made;
  });
}

TEST(Order, Sort) {
  for (const bool descending : {false, true}) {
    LayerCase last = sorts("sort", {{"descending", descending}}, {5}, values_in_order({1, 5, 1}, 5, descending), {5});
    last.more_outputs = {{{5}, positions_in_order({1, 5, 1}, 5, descending)}};
    EXPECT_GT(check_layer(last), 0);
    LayerCase middle = sorts("sort", {{"descending", descending}, {"axis", -2}}, {2, 4, 3},
                             values_in_order({2, 4, 3}, 4, descending), {2, 4, 3});
    middle.more_outputs = {{{2, 4, 3}, positions_in_order({2, 4, 3}, 4, descending)}};
    EXPECT_GT(check_layer(middle), 0);
  }
}

TEST(Order, TopK) {
  for (const int64_t k : {1, 2, 6}) {
    const auto count = static_cast<size_t>(k);
    LayerCase largest = sorts("top_k", {{"k", k}}, {6}, values_in_order({1, 6, 1}, count, true), {k});
    largest.more_outputs = {{{k}, positions_in_order({1, 6, 1}, count, true)}};
    EXPECT_GT(check_layer(largest), 0);
  }
  LayerCase smallest =
      sorts("top_k", {{"k", 2}, {"axis", 1}, {"smallest", true}}, {4, 3}, values_in_order({1, 4, 3}, 2, false), {2, 3});
  smallest.more_outputs = {{{2, 3}, positions_in_order({1, 4, 3}, 2, false)}};
  EXPECT_GT(check_layer(smallest), 0);
  smallest.more_outputs.clear();
  EXPECT_GT(check_layer(on_rows(smallest)), 0);
}

// Whole numbers, of which some are equal; they have no gradient.
LayerCase positions(std::string type, Attributes attributes, std::vector<int64_t> shape, Formula formula,
                    std::vector<int64_t> output) {
  LayerCase layer = sorts(std::move(type), std::move(attributes), {}, std::move(formula), std::move(output));
  layer.inputs = {{std::move(shape), 8}};
  return layer;
}

TEST(Order, Positions) {
  for (const bool descending : {false, true})
    EXPECT_GT(check_layer(positions("argsort", {{"descending", descending}, {"axis", 1}}, {4, 2},
                                    positions_in_order({1, 4, 2}, 4, descending), {4, 2})),
              0);
  EXPECT_GT(check_layer(positions("argmax", {}, {2, 5}, positions_in_order({2, 5, 1}, 1, true), {2})), 0);
  EXPECT_GT(check_layer(positions("argmin", {{"axis", -2}}, {5, 3}, positions_in_order({1, 5, 3}, 1, false), {3})), 0);
  EXPECT_GT(check_layer(on_rows(positions("argmax", {}, {5}, positions_in_order({1, 5, 1}, 1, true), {}))), 0);
}

TEST(Order, CumulativeSum) {
  for (const bool exclusive : {false, true})
    for (const bool reverse : {false, true}) {
      const auto sums = [=](const Values& line) {
        Values made(line.size());
        for (size_t i = 0; i < line.size(); ++i)
          for (size_t j = 0; j < line.size(); ++j)
            if (i == j ? !exclusive : (j > i) == reverse) made[i] += line[j];
        return made;
      };
      LayerCase layer = sorts("cumsum", {{"axis", 1}, {"exclusive", exclusive}, {"reverse", reverse}}, {4, 3},
                              by_line({1, 4, 3}, 4, sums), {4, 3});
      layer.jumps = false;
      EXPECT_GT(check_layer(layer), 0);
      EXPECT_GT(check_layer(on_rows(layer)), 0);
    }
}

TEST(Order, Gather) {
  LayerCase layer = sorts("gather", {{"axis", 1}}, {3, 2}, {}, {5, 2});
  layer.inputs = {{{3, 2}}, {{5, 2}, 3}};
  layer.jumps = false;
  layer.formula = [](const FormulaArguments& a) {
    Values y;
    for (size_t n = 0; n * 6 < a.inputs[0].size(); ++n)
      for (size_t k = 0; k < 10; ++k)
        y.push_back(a.inputs[0][n * 6 + static_cast<size_t>(a.inputs[1][n * 10 + k]) * 2 + k % 2]);
    return y;
  };
  EXPECT_GT(check_layer(layer), 0);
  EXPECT_GT(check_layer(on_rows(layer)), 0);
}

TEST(Order, IndexSelect) {
  const std::vector<size_t> wanted = {2, 0, 3, 2};
  const auto chosen = [=](const Values& line) {
    Values made;
    for (const size_t k : wanted) made.push_back(line[k]);
    return made;
  };
  const std::vector<int64_t> indices = {2, 0, -1, -2};
  for (const int64_t axis : {int64_t{1}, int64_t{2}, int64_t{-1}}) {
    const Lines lines = axis == 1 ? Lines{1, 4, 6} : axis == 2 ? Lines{2, 4, 3} : Lines{6, 4, 1};
    std::vector<int64_t> shape = axis == 1 ? std::vector<int64_t>{4, 2, 3} : std::vector<int64_t>{2, 4, 3};
    if (axis == -1) shape = {2, 3, 4};
    LayerCase layer =
        sorts("index_select", {{"axis", axis}, {"indices", indices}}, shape, by_line(lines, 4, chosen), shape);
    layer.jumps = false;
    EXPECT_GT(check_layer(layer), 0);
  }
}

TEST(Order, OneHot) {
  LayerCase layer = sorts("one_hot", {{"classes", 4}}, {3}, {}, {3, 4});
  layer.inputs = {{{3}, 4}};
  layer.formula = [](const FormulaArguments& a) {
    Values y;
    for (const double number : a.inputs[0])
      for (int c = 0; c < 4; ++c) y.push_back(number == c ? 1 : 0);
    return y;
  };
  EXPECT_GT(check_layer(layer), 0);
}

class OrderErrors : public LayersOnAHost {};

TEST_F(OrderErrors, NameLayerPortAndShape) {
  for (const char* type : {"sort", "argsort", "argmax", "argmin", "cumsum"}) {
    EXPECT_THAT(
        mistake(type, {data("x", {3})}, {{"axis", 2}}),
        AllOf(HasSubstr("layer \"bad\""), HasSubstr("input"), HasSubstr("has no axis 2"), HasSubstr("[samples, 3]")));
    EXPECT_THAT(mistake(type, {data("x", {3})}, {{"axis", 0}}), HasSubstr("has the samples along axis 0"));
    EXPECT_THAT(mistake(type, {data("x", {})}, {}), HasSubstr("has no dimension besides the samples"));
    EXPECT_THAT(mistake(type, {data("x", {3, 0})}, {}),
                AllOf(HasSubstr("has no elements"), HasSubstr("[samples, 3, 0]")));
  }
  EXPECT_THAT(mistake("top_k", {data("x", {3})}, {{"k", 4}}),
              AllOf(HasSubstr("has fewer than 4 elements along axis -1"), HasSubstr("[samples, 3]")));
  EXPECT_THAT(mistake("top_k", {data("x", {3})}, {{"k", 0}}), HasSubstr("k"));
  EXPECT_THAT(mistake("gather", {data("x", {3, 2}), data("ids", {3, 3}, TN_I64)}, {{"axis", 1}}),
              AllOf(HasSubstr("indices"), HasSubstr("[samples, 3, 2]"), HasSubstr("[samples, 3, 3]")));
  EXPECT_THAT(mistake("gather", {data("x", {3}), data("ids", {3, 1}, TN_I64)}, {}), HasSubstr("indices"));
  EXPECT_THAT(mistake("gather", {data("x", {3}), data("y", {3})}, {}),
              HasSubstr("expected integers, got float32 [samples, 3]"));
  EXPECT_THAT(mistake("index_select", {data("x", {3})}, {{"indices", std::vector<int64_t>{1, 3}}}),
              AllOf(HasSubstr("has no element 3 along axis -1"), HasSubstr("[samples, 3]")));
  EXPECT_THAT(mistake("index_select", {data("x", {3})}, {{"indices", std::vector<int64_t>{}}}), HasSubstr("indices"));
  EXPECT_THAT(mistake("one_hot", {data("x", {3})}, {{"classes", 3}}),
              HasSubstr("expected integers, got float32 [samples, 3]"));
}

// Positions that a layer computes choose elements; one outside of the input ends the run with an error.
TEST_F(OrderErrors, PositionsOutsideOfTheInput) {
  DataOptions data;
  data.name = "x";
  data.shape = {4};
  const Layer x = host_.data(data);
  const Layer order = host_.layer("argsort", {x}, {}, "order");
  data.name = "few";
  data.shape = {2};
  const Layer few = host_.data(data);
  const Layer picked = host_.layer("gather", {few, order}, {}, "picked");
  MachineOptions options;
  options.max_samples = 2;
  const Machine machine = host_.machine(host_.parameters({picked}, 1), {picked}, options);
  const float values[] = {3, 1, 2, 0, 0, 1, 2, 3}, other[] = {5, 6, 7, 8};
  try {
    machine.forward({{"x", {TN_F32, {2, 4}, values}}, {"few", {TN_F32, {2, 2}, other}}});
    FAIL() << "no error";
  } catch (const Error& caught) {
    EXPECT_EQ(caught.code(), TN_BAD_DATA);
    EXPECT_THAT(std::string(caught.what()), HasSubstr("picked"));
  }
}

}  // namespace
}  // namespace tenon_tests
