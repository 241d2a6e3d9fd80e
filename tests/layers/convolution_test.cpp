// conv and conv_transpose against plain loops. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/layers/image_layer.h"

namespace tenon_tests {

using namespace tenon;

namespace {

// Adds the parameter bias, if there is one, to each place of `filters` numbers.
Values with_bias(Values made, const FormulaArguments& a, size_t filters) {
  if (!a.parameters.contains("bias")) return made;
  for (size_t i = 0; i < made.size(); ++i) made[i] += a.parameters.at("bias")[i % filters];
  return made;
}

// A convolution of `channels`, whose attributes must make the window of `dimensions`.
LayerCase conv(const Attributes& attributes, const std::vector<Along>& dimensions, int64_t channels, int64_t filters,
               int64_t groups = 1) {
  const tn_window window = window_of(dimensions);
  Attributes all = attributes;
  all.push_back({"filters", filters});
  if (groups > 1) all.push_back({"groups", groups});
  return image_case("conv", all, images_of(window, channels), places_of(window, filters),
                    [=](const FormulaArguments& a) {
                      return with_bias(reference::conv(TN_CONV_RESULTS, window, {a.samples, channels, filters, groups},
                                                       a.inputs[0], a.parameters.at("weight")),
                                       a, static_cast<size_t>(filters));
                    });
}

TEST(Conv, OneDimension) {
  EXPECT_GT(check_layer(conv({{"kernel", 3}}, {{7, 3}}, 2, 3)), 0);
  EXPECT_GT(check_layer(conv({{"kernel", 2}, {"stride", 3}, {"padding", Shape{1, 2}}}, {{6, 2, 3, 1, 2}}, 2, 2)), 0);
  EXPECT_GT(check_layer(conv({{"kernel", 1}, {"bias", false}}, {{1, 1}}, 1, 1)), 0);
  EXPECT_GT(check_layer(conv({{"kernel", 3}, {"dilation", 2}, {"same", true}}, {{5, 3, 1, 2, 2, 2}}, 2, 2)), 0);
}
TEST(Conv, TwoDimensions) {
  EXPECT_GT(check_layer(conv({{"kernel", 3}}, {{5, 3}, {4, 3}}, 2, 3)), 0);
  EXPECT_GT(check_layer(conv({{"kernel", Shape{2, 3}}, {"stride", Shape{2, 1}}, {"padding", Shape{0, 1}}},
                             {{5, 2, 2}, {4, 3, 1, 1, 1}}, 3, 2)),
            0);
  EXPECT_GT(check_layer(conv({{"kernel", 2}, {"padding", Shape{1, 0, 0, 2}}, {"bias", false}},
                             {{3, 2, 1, 1, 0}, {3, 2, 1, 0, 2}}, 2, 2)),
            0);
  EXPECT_GT(check_layer(conv({{"kernel", 2}, {"dilation", Shape{1, 2}}}, {{3, 2}, {4, 2, 1, 0, 0, 2}}, 2, 2)), 0);
}
TEST(Conv, ThreeDimensions) {
  EXPECT_GT(check_layer(conv({{"kernel", Shape{1, 2, 2}}, {"stride", Shape{1, 2, 1}}, {"padding", Shape{0, 1, 0}}},
                             {{2, 1}, {3, 2, 2, 1, 1}, {3, 2}}, 2, 2)),
            0);
  EXPECT_GT(check_layer(conv({{"kernel", 2}, {"padding", Shape{0, 1, 1, 0, 0, 0}}},
                             {{2, 2, 1, 0, 1}, {2, 2, 1, 1, 0}, {2, 2}}, 1, 2)),
            0);
}
// An odd padding is longer at the end; the size of the image is divided by the stride, rounded up.
TEST(Conv, Same) {
  EXPECT_GT(check_layer(conv({{"kernel", 2}, {"same", true}}, {{3, 2, 1, 0, 1}, {4, 2, 1, 0, 1}}, 2, 2)), 0);
  EXPECT_GT(check_layer(conv({{"kernel", 3}, {"stride", 2}, {"same", true}}, {{4, 3, 2, 0, 1}, {5, 3, 2, 1, 1}}, 2, 2)),
            0);
  EXPECT_GT(check_layer(conv({{"kernel", 1}, {"stride", 2}, {"same", true}}, {{4, 1, 2}, {3, 1, 2}}, 2, 2)), 0);
}
TEST(Conv, Groups) {
  EXPECT_GT(check_layer(conv({{"kernel", 2}}, {{3, 2}, {3, 2}}, 4, 6, 2)), 0);
  EXPECT_GT(check_layer(conv({{"kernel", 3}, {"same", true}}, {{3, 3, 1, 1, 1}, {4, 3, 1, 1, 1}}, 3, 3, 3)), 0);
  EXPECT_GT(check_layer(conv({{"kernel", 2}, {"stride", 2}}, {{4, 2, 2}}, 3, 6, 3)), 0);  // two filters for a channel
}
TEST(Conv, StrideLongerThanTheKernel) {
  EXPECT_GT(check_layer(conv({{"kernel", 2}, {"stride", 4}}, {{7, 2, 4}, {6, 2, 4}}, 2, 2)), 0);
}
// More channels than a vector has, which other kernels of a device compute.
TEST(Conv, ManyChannels) {
  LayerCase layer = conv({{"kernel", 3}, {"padding", 1}}, {{3, 3, 1, 1, 1}, {3, 3, 1, 1, 1}}, 17, 18);
  layer.samples = {1};
  EXPECT_GT(check_layer(layer), 0);
}

// A transposed convolution from `channels` to `filters`; the window is that over the images that it makes.
LayerCase transposed(const Attributes& attributes, const std::vector<Along>& dimensions, int64_t channels,
                     int64_t filters, int64_t groups = 1) {
  const tn_window window = window_of(dimensions);
  Attributes all = attributes;
  all.push_back({"filters", filters});
  if (groups > 1) all.push_back({"groups", groups});
  return image_case("conv_transpose", all, places_of(window, channels), images_of(window, filters),
                    [=](const FormulaArguments& a) {
                      return with_bias(reference::conv(TN_CONV_IMAGES, window, {a.samples, filters, channels, groups},
                                                       a.inputs[0], a.parameters.at("weight")),
                                       a, static_cast<size_t>(filters));
                    });
}

TEST(ConvTranspose, OfOneToThreeDimensions) {
  EXPECT_GT(check_layer(transposed({{"kernel", 3}, {"stride", 2}}, {{7, 3, 2}}, 2, 3)), 0);
  EXPECT_GT(check_layer(transposed({{"kernel", Shape{2, 3}}, {"padding", Shape{0, 1}}, {"bias", false}},
                                   {{4, 2}, {3, 3, 1, 1, 1}}, 3, 2)),
            0);
  EXPECT_GT(check_layer(transposed({{"kernel", 2}, {"stride", Shape{1, 1, 2}}}, {{3, 2}, {2, 2}, {4, 2, 2}}, 2, 1)), 0);
}
TEST(ConvTranspose, OutputPadding) {
  EXPECT_GT(check_layer(transposed({{"kernel", 3}, {"stride", 2}, {"padding", 1}, {"output_padding", 1}},
                                   {{4, 3, 2, 1, 1}, {6, 3, 2, 1, 1}}, 2, 2)),
            0);
  EXPECT_GT(check_layer(transposed({{"kernel", 1}, {"stride", 3}, {"output_padding", 2}}, {{6, 1, 3}}, 2, 2)), 0);
}
TEST(ConvTranspose, DilationAndGroups) {
  EXPECT_GT(check_layer(transposed({{"kernel", 2}, {"dilation", 2}}, {{5, 2, 1, 0, 0, 2}, {4, 2, 1, 0, 0, 2}}, 2, 2)),
            0);
  EXPECT_GT(check_layer(transposed({{"kernel", 2}, {"stride", 2}}, {{4, 2, 2}}, 4, 6, 2)), 0);
}
// The stride times the size of the input, whether the kernel or the stride is longer.
TEST(ConvTranspose, Same) {
  EXPECT_GT(check_layer(transposed({{"kernel", 3}, {"stride", 2}, {"same", true}}, {{6, 3, 2, 0, 1}}, 2, 2)), 0);
  EXPECT_GT(check_layer(transposed({{"kernel", 2}, {"stride", 3}, {"same", true}}, {{6, 2, 3}}, 2, 2)), 0);
}

using Convolution = LayersOfImages;

TEST_F(Convolution, MistakesAreNamed) {
  for (const char* type : {"conv", "conv_transpose"}) {
    const Attributes one = {{"filters", 2}, {"kernel", 1}};
    refuses(type, {4}, one, {"input", "[samples, space..., channels]", "4]"});
    refuses(type, {2, 2, 2, 2, 2}, one, {"input", "1 to 3 dimensions"});
    refuses(type, {4, 4, 2}, {{"kernel", 1}}, {"filters"});
    refuses(type, {4, 4, 2}, {{"filters", 2}}, {"kernel"});
    refuses(type, {4, 4, 2}, {{"filters", 0}, {"kernel", 1}}, {"filters", "at least 1", "0"});
    refuses(type, {4, 4, 2}, {{"filters", 2}, {"kernel", Shape{1, 2, 3}}}, {"kernel", "3 numbers", "2 dimensions"});
    refuses(type, {4, 4, 2}, {{"filters", 2}, {"kernel", Shape{}}}, {"kernel", "0 numbers"});
    refuses(type, {4, 4, 2}, {{"filters", 2}, {"kernel", 1}, {"stride", 0}}, {"stride", "between 1 and", "0"});
    refuses(type, {4, 4, 2}, {{"filters", 2}, {"kernel", 1}, {"padding", -1}}, {"padding", "between 0 and", "-1"});
    refuses(type, {4, 4, 2}, {{"filters", 2}, {"kernel", 1}, {"padding", Shape{1, 2, 3}}},
            {"padding", "3 numbers", "2 dimensions"});
    refuses(type, {4, 4, 2}, {{"filters", 2}, {"kernel", 1}, {"padding", 1}, {"same", true}}, {"padding", "same"});
    refuses(type, {4, 4, 3}, {{"filters", 2}, {"kernel", 1}, {"groups", 2}}, {"3 channels", "2 groups", "4, 4, 3]"});
    refuses(type, {4, 4, 4}, {{"filters", 3}, {"kernel", 1}, {"groups", 2}}, {"filters", "3", "2 groups"});
    refuses(type, {4, 4, 2}, {{"filters", 2}, {"kernel", 1}, {"dilation", 0}}, {"dilation", "between 1 and"});
    refuses(type, {4, 4, 2}, {{"filters", int64_t{1} << 62}, {"kernel", 4}}, {"elements", "4, 4, 2]"});
    refuses(type, {int64_t{1} << 40, 2}, {{"filters", int64_t{1} << 22}, {"kernel", 1}}, {"output", "elements"});
    refuses(type, {int64_t{1} << 61, 1}, {{"filters", 1}, {"kernel", 1}}, {"2^60 elements"});
    refuses(type, {4, 2}, {{"filters", 2}, {"kernel", 1 << 20}, {"dilation", 1 << 20}}, {"dilation", "2^31"});
  }
}
// A normalisation and an activation behind a convolution are part of its call.
TEST_F(Convolution, NormalisationIsAnEpilogue) {
  for (const bool training : {false, true}) {
    const Layer made =
        host_.layer("conv", {data("x", {5, 4, 2})}, {{"filters", 3}, {"kernel", 3}, {"bias", false}}, "made");
    const Layer y = host_.layer("relu", {host_.layer("batch_norm", {made}, {}, "norm")}, {}, "active");
    const Layer cost = host_.layer("square_error", {y, data("wanted", {3, 2, 3})}, {}, "cost");
    MachineOptions options;
    options.max_samples = 4;
    options.training = training;
    const Layer output = training ? cost : y;
    const auto plan = nlohmann::json::parse(host_.machine(host_.parameters({output}, 1), {output}, options).plan());
    const nlohmann::json first = plan.at("calls")[0];
    EXPECT_EQ(first.at("call"), "conv") << first;
    EXPECT_EQ(first.at("layers")[0], "made") << first;
    EXPECT_EQ(first.at("layers")[1], "norm") << first;
    EXPECT_EQ(first.at("layers")[2], "active") << first;
    if (!training) {
      EXPECT_EQ(plan.at("calls").size(), 1U) << plan.at("calls");
    }
  }
}
TEST_F(Convolution, KernelLargerThanTheImage) {
  refuses("conv", {4, 3, 2}, {{"filters", 2}, {"kernel", 5}, {"padding", Shape{1, 0}}},
          {"smaller than the kernel", "dimension 2", "3", "kernel of 5", "4, 3, 2]"});
  refuses("conv", {4, 2}, {{"filters", 2}, {"kernel", 3}, {"dilation", 2}}, {"dimension 1", "kernel of 5", "dilation"});
}
TEST_F(Convolution, KernelOfTooManyElements) {
  const int64_t most = int64_t{1} << 31;
  refuses("conv", {4, 4, 4}, {{"filters", 2}, {"kernel", most}, {"padding", most}}, {"kernel", "elements"});
  refuses("conv_transpose", {4, 4, 4, 4}, {{"filters", 2}, {"kernel", most}}, {"kernel", "elements"});
}
TEST_F(Convolution, MistakesOfTransposedOnes) {
  refuses("conv_transpose", {4, 2}, {{"filters", 2}, {"kernel", 2}, {"stride", 2}, {"output_padding", 2}},
          {"output_padding", "2", "stride 2"});
  refuses("conv_transpose", {4, 2}, {{"filters", 2}, {"kernel", 2}, {"output_padding", Shape{1, 1}}},
          {"output_padding", "2 numbers", "1 dimensions", "4, 2]"});
  refuses("conv_transpose", {4, 2}, {{"filters", 2}, {"kernel", 2}, {"same", true}, {"output_padding", 0}},
          {"output_padding", "same"});
  refuses("conv_transpose", {2, 2}, {{"filters", 2}, {"kernel", 2}, {"padding", 2}},
          {"padding", "dimension 1", "2, 2]"});
  refuses("conv_transpose", {int64_t{1} << 40, 2}, {{"filters", 2}, {"kernel", 2}, {"stride", 1 << 30}},
          {"stride", "elements"});
}

}  // namespace
}  // namespace tenon_tests
