// Pooling of images against plain loops. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <utility>

#include "tests/layers/image_layer.h"
#include "tests/support/paths.h"
#include "tests/support/test_layers.h"

namespace tenon_tests {

using namespace tenon;

namespace {

// What is made of the numbers of a window, of which `counted` are divided by in a mean.
using Join = std::function<double(const Values& numbers, double counted)>;
double largest(const Values& numbers, double) { return *std::max_element(numbers.begin(), numbers.end()); }
double total(const Values& numbers, double) { return std::accumulate(numbers.begin(), numbers.end(), 0.0); }
double mean(const Values& numbers, double counted) { return total(numbers, counted) / counted; }
Join norm(double power) {
  return [=](const Values& numbers, double) {
    double sum = 0;
    for (const double x : numbers) sum += std::pow(std::abs(x), power);
    return std::pow(sum, 1 / power);
  };
}

// Images, and the padding that a mean counts: `before` on the low side and `counted` on the high side, of which the
// window adds `after` in all.
struct Row {
  Along along;
  int64_t counted = 0;
};

// The indices of window `place` along a dimension that lie in the image, and how many of them are counted.
std::pair<Shape, double> elements(const Row& row, bool count_padding, int64_t place) {
  Shape within;
  double counted = 0;
  for (int64_t j = 0; j < row.along.kernel; ++j) {
    const int64_t at = place * row.along.stride - row.along.before + j * row.along.dilation;
    if (at >= 0 && at < row.along.images) within.push_back(at);
    const bool in_image = at >= 0 && at < row.along.images;
    if (in_image || (count_padding && at >= -row.along.before && at < row.along.images + row.counted)) ++counted;
  }
  return {within, counted};
}

// Pooling over two dimensions in space; one with a second dimension of 1 is a special case of it.
LayerCase pool(const Attributes& attributes, const Join& join, const std::vector<Row>& rows, int64_t channels,
               bool count_padding = false) {
  std::vector<Along> dimensions;
  for (const Row& row : rows) dimensions.push_back(row.along);
  const tn_window window = window_of(dimensions);
  std::vector<Row> three = rows;
  three.resize(3, {{1, 1}, 0});
  const auto formula = [=](const FormulaArguments& a) {
    Values made;
    const tn_window all = window_of({three[0].along, three[1].along, three[2].along});
    const int64_t elements_of_one = all.images[0] * all.images[1] * all.images[2] * channels;
    for (int64_t n = 0; n < a.samples; ++n)
      for (int64_t p = 0; p < tn_window_places(&all, 0); ++p)
        for (int64_t q = 0; q < tn_window_places(&all, 1); ++q)
          for (int64_t r = 0; r < tn_window_places(&all, 2); ++r)
            for (int64_t c = 0; c < channels; ++c) {
              const auto [is, is_counted] = elements(three[0], count_padding, p);
              const auto [js, js_counted] = elements(three[1], count_padding, q);
              const auto [ks, ks_counted] = elements(three[2], count_padding, r);
              Values numbers;
              for (const int64_t i : is)
                for (const int64_t j : js)
                  for (const int64_t k : ks)
                    numbers.push_back(a.inputs[0][static_cast<size_t>(
                        n * elements_of_one + ((i * all.images[1] + j) * all.images[2] + k) * channels + c)]);
              made.push_back(join(numbers, is_counted * js_counted * ks_counted));
            }
    return made;
  };
  LayerCase layer = image_case("pool", attributes, images_of(window, channels), places_of(window, channels), formula);
  // The first of equal maxima has the gradient of each window, which is no slope where windows overlap.
  for (const Row& row : rows) layer.jumps = layer.jumps || row.along.stride < row.along.kernel;
  return layer;
}

Attributes of_kind(const std::string& kind, Attributes attributes) {
  attributes.push_back({"kind", kind});
  return attributes;
}

// Of every kind, with the same windows.
void check_kinds(const Attributes& attributes, const std::vector<Row>& rows, int64_t channels) {
  for (const auto& [kind, join] : {std::pair<std::string, Join>{"max", largest}, {"average", mean}, {"sum", total}})
    EXPECT_GT(check_layer(pool(of_kind(kind, attributes), join, rows, channels)), 0) << kind;
}

TEST(Pool, OneToThreeDimensions) {
  check_kinds({{"kernel", 2}}, {{{5, 2, 2}}}, 3);
  check_kinds({{"kernel", Shape{2, 3}}, {"stride", Shape{1, 2}}, {"padding", Shape{0, 1}}},
              {{{3, 2, 1}}, {{4, 3, 2, 1, 1}}}, 2);
  check_kinds({{"kernel", Shape{1, 2, 2}}, {"padding", Shape{0, 0, 0, 1, 1, 0}}},
              {{{2, 1, 1}}, {{3, 2, 2, 0, 1}}, {{3, 2, 2, 1, 0}}}, 2);
}
TEST(Pool, Norms) {
  EXPECT_GT(check_layer(pool({{"kind", "norm"}, {"kernel", 2}}, norm(2), {{{4, 2, 2}}, {{3, 2, 2}}}, 2)), 0);
  EXPECT_GT(check_layer(pool({{"kind", "norm"}, {"kernel", 2}, {"stride", 1}, {"power", 3.0}, {"padding", 1}}, norm(3),
                             {{{3, 2, 1, 1, 1}}}, 2)),
            0);
}
// Of a norm with power 1 the derivative jumps at 0.
TEST(Pool, SumsOfAbsoluteValues) {
  LayerCase layer = pool({{"kind", "norm"}, {"kernel", 2}, {"power", 1.0}}, norm(1), {{{4, 2, 2}}}, 2);
  layer.inputs[0].gap = 0.1;
  EXPECT_GT(check_layer(layer), 0);
}
TEST(Pool, SameAndDilation) {
  check_kinds({{"kernel", 3}, {"stride", 2}, {"same", true}}, {{{4, 3, 2, 0, 1}}, {{5, 3, 2, 1, 1}}}, 2);
  check_kinds({{"kernel", 2}, {"stride", 1}, {"dilation", 3}}, {{{6, 2, 1, 0, 0, 3}}}, 2);
}
// A last window that begins within the image, or its padding before it, ends outside of it.
TEST(Pool, Ceil) {
  check_kinds({{"kernel", 2}, {"ceil", true}}, {{{5, 2, 2, 0, 1}}, {{4, 2, 2}}}, 2);
  check_kinds({{"kernel", 3}, {"stride", 2}, {"padding", 1}, {"ceil", true}}, {{{6, 3, 2, 1, 2}}}, 2);
  // It would begin at 5 of an image of 5, and is left out.
  check_kinds({{"kernel", 2}, {"stride", 3}, {"padding", 1}, {"ceil", true}}, {{{5, 2, 3, 1, 0}}}, 2);
}
// What ceil adds is not counted.
TEST(Pool, CountPadding) {
  const Attributes first = {
      {"kind", "average"}, {"count_padding", true}, {"kernel", 2}, {"stride", 1}, {"padding", Shape{1, 1}}};
  EXPECT_GT(check_layer(pool(first, mean, {{{3, 2, 1, 1, 1}, 1}}, 2, true)), 0);
  const Attributes second = {{"kind", "average"}, {"count_padding", true}, {"kernel", 3},
                             {"stride", 2},       {"padding", 1},          {"ceil", true}};
  EXPECT_GT(check_layer(pool(second, mean, {{{4, 3, 2, 1, 2}, 1}, {{3, 3, 2, 1, 1}, 1}}, 2, true)), 0);
}
TEST(Pool, Whole) {
  check_kinds({{"whole", true}}, {{{3, 3, 1}}, {{2, 2, 1}}}, 3);
  EXPECT_GT(check_layer(pool({{"kind", "norm"}, {"whole", true}}, norm(2), {{{5, 5, 1}}}, 2)), 0);
}

// Of equal maxima the first one has the gradient.
TEST(Pool, EqualMaxima) {
  Host host({1, {plugin_folder()}, nullptr, {}});
  host.add_plugin(&test_layers());
  const Layer x =
      host.layer("test_input", {host.data({"ids", TN_I32, {}})}, {{"rows", 1}, {"shape", Shape{4, 1}}}, "x");
  const Layer y = host.layer("pool", {x}, {{"kind", "max"}, {"kernel", 2}, {"stride", 1}}, "y");
  const Layer cost = host.layer("test_cost", {y, host.data({"w", TN_F32, {3, 1}})}, {}, "cost");
  const Parameters parameters = host.parameters({cost}, 1);
  const float ones[] = {1, 1, 1, 1}, weights[] = {2, 3, 5};
  parameters.set("x.values", {TN_F32, {1, 4, 1}, ones});
  MachineOptions options;
  options.max_samples = 1;
  options.training = true;
  const Machine machine = host.machine(parameters, {cost}, options);
  const int32_t ids[] = {0};
  machine.forward({{"ids", {TN_I32, {1}, ids}}, {"w", {TN_F32, {1, 3, 1}, weights}}});
  machine.backward();
  const auto* const gradient = static_cast<const float*>(machine.gradient("x.values").data);
  EXPECT_EQ(std::vector<float>(gradient, gradient + 4), (std::vector<float>{2, 3, 5, 0}));
}

TEST(SpatialPyramidPool, ConcatenatesLevels) {
  const auto formula = [](const Join& join) {
    return [=](const FormulaArguments& a) {
      // Images of [3, 5, 2]: level 1 the whole image, level 2 windows of 2 and 3, at 1 and 2 elements of distance.
      Values made;
      for (int64_t n = 0; n < a.samples; ++n)
        for (const int64_t level : {int64_t{1}, int64_t{2}})
          for (int64_t p = 0; p < level; ++p)
            for (int64_t q = 0; q < level; ++q)
              for (int64_t c = 0; c < 2; ++c) {
                Values numbers;
                for (int64_t i = level == 1 ? 0 : p; i < (level == 1 ? 3 : p + 2); ++i)
                  for (int64_t j = level == 1 ? 0 : 2 * q; j < (level == 1 ? 5 : 2 * q + 3); ++j)
                    numbers.push_back(a.inputs[0][static_cast<size_t>(((n * 3 + i) * 5 + j) * 2 + c)]);
                made.push_back(join(numbers, static_cast<double>(numbers.size())));
              }
      return made;
    };
  };
  const Attributes levels = {{"levels", Shape{1, 2}}};
  EXPECT_GT(check_layer(image_case("spatial_pyramid_pool", levels, {3, 5, 2}, {10}, formula(largest))), 0);
  EXPECT_GT(check_layer(image_case("spatial_pyramid_pool", of_kind("average", levels), {3, 5, 2}, {10}, formula(mean))),
            0);
}

using Pooling = LayersOfImages;

TEST_F(Pooling, MistakesAreNamed) {
  refuses("pool", {4}, {{"kind", "max"}, {"kernel", 1}}, {"input", "[samples, space..., channels]", "4]"});
  refuses("pool", {4, 4, 1}, {{"kernel", 2}}, {"kind"});
  refuses("pool", {4, 4, 1}, {{"kind", "median"}, {"kernel", 2}}, {"kind", "median", "max"});
  refuses("pool", {4, 4, 1}, {{"kind", "max"}}, {"kernel", "missing", "whole"});
  refuses("pool", {4, 4, 1}, {{"kind", "max"}, {"whole", true}, {"stride", 2}}, {"stride", "whole"});
  refuses("pool", {4, 4, 1}, {{"kind", "max"}, {"whole", true}, {"same", true}}, {"same", "whole"});
  refuses("pool", {4, 4, 1}, {{"kind", "max"}, {"kernel", 2}, {"stride", 0}}, {"stride", "between 1 and", "0"});
  refuses("pool", {4, 3, 1}, {{"kind", "max"}, {"kernel", 4}}, {"smaller than the kernel", "dimension 2", "4, 3, 1]"});
  refuses("pool", {4, 1}, {{"kind", "max"}, {"kernel", 2}, {"padding", Shape{1, 1, 1}}}, {"padding", "3 numbers"});
  refuses("pool", {4, 1}, {{"kind", "average"}, {"kernel", 2}, {"padding", 2}}, {"padding", "window 0", "4, 1]"});
  refuses("pool", {4, 1}, {{"kind", "norm"}, {"kernel", 2}, {"power", 0.5}}, {"power", "at least 1"});
  refuses("pool", {4, 1}, {{"kind", "max"}, {"kernel", 2}, {"padding", int64_t{1} << 31}}, {"padding", "window 0"});
  // Some window in the middle has elements on both sides of the image alone.
  refuses("pool", {2, 1}, {{"kind", "max"}, {"kernel", 2}, {"stride", 1}, {"dilation", 4}, {"padding", 4}},
          {"padding", "window 2 along dimension 1", "2, 1]"});
  refuses("pool", {int64_t{1} << 61, 1}, {{"kind", "max"}, {"kernel", 2}}, {"2^60 elements"});
  const int64_t most = int64_t{1} << 31;  // at once, though there are as many windows
  refuses("pool", {1, 1, 1, 1}, {{"kind", "sum"}, {"kernel", most}, {"stride", 1}, {"padding", most}},
          {"output of more than 2^60 elements", "1, 1, 1, 1]"});
  refuses("spatial_pyramid_pool", {4, 3, 1}, {{"levels", Shape{1, 4}}}, {"levels", "4", "dimension 2", "4, 3, 1]"});
  refuses("spatial_pyramid_pool", {4, 3, 1}, {{"levels", Shape{}}}, {"levels", "empty"});
}

}  // namespace
}  // namespace tenon_tests
