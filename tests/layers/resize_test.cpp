// Resizing of images against its definition. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "tests/layers/image_layer.h"

namespace tenon_tests {

using namespace tenon;

namespace {

enum class Kind { kNearest, kLinear, kCorners };

// The share that element `from` of `size` has in element `to` of `wanted`.
double share(Kind kind, int64_t size, int64_t wanted, int64_t from, int64_t to) {
  const auto s = static_cast<double>(size), t = static_cast<double>(wanted), o = static_cast<double>(to);
  if (kind == Kind::kNearest) return to * size / wanted == from ? 1 : 0;
  const double at = kind == Kind::kLinear ? (o + 0.5) * s / t - 0.5 : wanted == 1 ? 0 : o * (s - 1) / (t - 1);
  const double within = std::min(std::max(at, 0.0), s - 1);
  return std::max(0.0, 1 - std::abs(within - static_cast<double>(from)));
}

LayerCase resize(const Attributes& attributes, Kind kind, Shape from, Shape to, int64_t channels) {
  Shape input = from, output = to;
  input.push_back(channels);
  output.push_back(channels);
  from.resize(3, 1);
  to.resize(3, 1);
  const auto formula = [=](const FormulaArguments& a) {
    Values made;
    for (int64_t n = 0; n < a.samples; ++n)
      for (int64_t p = 0; p < to[0]; ++p)
        for (int64_t q = 0; q < to[1]; ++q)
          for (int64_t r = 0; r < to[2]; ++r)
            for (int64_t c = 0; c < channels; ++c) {
              double sum = 0;
              for (int64_t i = 0; i < from[0]; ++i)
                for (int64_t j = 0; j < from[1]; ++j)
                  for (int64_t k = 0; k < from[2]; ++k)
                    sum +=
                        share(kind, from[0], to[0], i, p) * share(kind, from[1], to[1], j, q) *
                        share(kind, from[2], to[2], k, r) *
                        a.inputs[0]
                                [static_cast<size_t>((((n * from[0] + i) * from[1] + j) * from[2] + k) * channels + c)];
              made.push_back(sum);
            }
    return made;
  };
  return image_case("resize", attributes, input, output, formula);
}

TEST(Resize, Nearest) {
  EXPECT_GT(check_layer(resize({{"size", 7}}, Kind::kNearest, {5}, {7}, 2)), 0);
  EXPECT_GT(check_layer(resize({{"times", Shape{2, 3}}}, Kind::kNearest, {2, 3}, {4, 9}, 2)), 0);
  EXPECT_GT(check_layer(resize({{"size", Shape{2, 3, 1}}}, Kind::kNearest, {3, 2, 4}, {2, 3, 1}, 1)), 0);
}
// Of sizes whose quotient is not a number of fp64: floor(o s / t) is computed without rounding.
TEST(Resize, NearestHasNoRounding) {
  for (const int64_t from : {3, 7, 49})
    for (const int64_t to : {1, 6, 10, 49, 98, 147}) {
      LayerCase layer = resize({{"size", to}}, Kind::kNearest, {from}, {to}, 1);
      layer.samples = {1};
      EXPECT_GT(check_layer(layer), 0) << from << " to " << to;
    }
}
TEST(Resize, Linear) {
  const auto attributes = [](const std::string& name, const Shape& size) {
    return Attributes{{name, size}, {"kind", "linear"}};
  };
  EXPECT_GT(check_layer(resize(attributes("size", {7}), Kind::kLinear, {4}, {7}, 2)), 0);
  EXPECT_GT(check_layer(resize(attributes("size", {2, 5}), Kind::kLinear, {5, 3}, {2, 5}, 2)), 0);
  EXPECT_GT(check_layer(resize(attributes("times", {2, 1, 2}), Kind::kLinear, {2, 2, 2}, {4, 2, 4}, 1)), 0);
  EXPECT_GT(check_layer(resize(attributes("size", {3}), Kind::kLinear, {1}, {3}, 2)), 0);
}
TEST(Resize, AlignedCorners) {
  const auto attributes = [](const Shape& size) {
    return Attributes{{"size", size}, {"kind", "linear"}, {"align_corners", true}};
  };
  EXPECT_GT(check_layer(resize(attributes({7}), Kind::kCorners, {4}, {7}, 2)), 0);
  EXPECT_GT(check_layer(resize(attributes({2, 1}), Kind::kCorners, {5, 3}, {2, 1}, 2)), 0);
}

using Resizing = LayersOfImages;

TEST_F(Resizing, MistakesAreNamed) {
  refuses("resize", {4}, {{"size", 2}}, {"input", "[samples, space..., channels]", "4]"});
  refuses("resize", {4, 4, 1}, {}, {"size", "times"});
  refuses("resize", {4, 4, 1}, {{"size", 2}, {"times", 2}}, {"size", "times"});
  refuses("resize", {4, 4, 1}, {{"size", 0}}, {"size", "between 1 and", "0"});
  refuses("resize", {4, 4, 1}, {{"size", Shape{1, 2, 3}}}, {"size", "3 numbers", "2 dimensions"});
  refuses("resize", {4, 4, 1}, {{"times", Shape{}}}, {"times", "0 numbers"});
  refuses("resize", {4, 4, 1}, {{"size", 2}, {"kind", "cubic"}}, {"kind", "cubic", "linear"});
  refuses("resize", {4, 4, 1}, {{"size", 2}, {"align_corners", true}}, {"align_corners", "linear"});
  refuses("resize", {4, 1}, {{"times", int64_t{1} << 31}}, {"times", "2^31", "4, 1]"});
  refuses("resize", {4, 4, 4, 1024}, {{"size", int64_t{1} << 31}},
          {"output", "elements", "2147483648, 1024]", "4, 4, 4, 1024]"});
}

}  // namespace
}  // namespace tenon_tests
