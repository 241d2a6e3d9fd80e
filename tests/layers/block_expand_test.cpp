// Windows of images as rows, against plain loops. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/image_layer.h"

namespace tenon_tests {

using namespace tenon;

namespace {

// The rows of images with up to three dimensions in space.
LayerCase expanded(const Attributes& attributes, const std::vector<Along>& lines, int64_t channels) {
  std::vector<Along> three(3, Along{1, 1});
  std::copy(lines.begin(), lines.end(), three.end() - static_cast<std::ptrdiff_t>(lines.size()));
  const tn_window all = window_of(three);
  const auto element = [=](const Values& images, int64_t sample, const Shape& at, int64_t channel) {
    int64_t index = sample;
    for (size_t i = 0; i < 3; ++i) {
      if (at[i] < 0 || at[i] >= three[i].images) return 0.0;
      index = index * three[i].images + at[i];
    }
    return images[static_cast<size_t>(index * channels + channel)];
  };
  const auto formula = [=](const FormulaArguments& of) {
    Values rows;
    // Calls use with all places of three numbers below `limits`.
    const auto each = [](const Shape& limits, const auto& use) {
      for (int64_t i = 0; i < limits[0]; ++i)
        for (int64_t j = 0; j < limits[1]; ++j)
          for (int64_t k = 0; k < limits[2]; ++k) use(Shape{i, j, k});
    };
    for (int64_t n = 0; n < of.samples; ++n)
      each({tn_window_places(&all, 0), tn_window_places(&all, 1), tn_window_places(&all, 2)}, [&](const Shape& place) {
        each({all.kernel[0], all.kernel[1], all.kernel[2]}, [&](const Shape& inside) {
          Shape at(3);
          for (size_t i = 0; i < 3; ++i)
            at[i] = place[i] * three[i].stride - three[i].before + inside[i] * three[i].dilation;
          for (int64_t c = 0; c < channels; ++c) rows.push_back(element(of.inputs[0], n, at, c));
        });
      });
    return rows;
  };
  const tn_window window = window_of(lines);
  int64_t places = 1, elements = 1;
  for (int32_t i = 0; i < window.rank; ++i) places *= tn_window_places(&window, i), elements *= window.kernel[i];
  return image_case("block_expand", attributes, images_of(window, channels), {places, elements * channels}, formula);
}

TEST(BlockExpand, Windows) {
  using Numbers = std::vector<int64_t>;
  EXPECT_GT(check_layer(expanded({{"kernel", Numbers{2}}}, {{4, 2, 2}, {6, 2, 2}}, 3)), 0);  // patches
  EXPECT_GT(check_layer(expanded({{"kernel", Numbers{3, 2}}, {"stride", Numbers{1, 2}}, {"padding", Numbers{1, 0}}},
                                 {{3, 3, 1, 1, 1}, {5, 2, 2}}, 2)),
            0);
  EXPECT_GT(check_layer(expanded({{"kernel", Numbers{2}}, {"stride", Numbers{1}}, {"dilation", Numbers{2}}},
                                 {{5, 2, 1, 0, 0, 2}}, 2)),
            0);
  EXPECT_GT(
      check_layer(expanded({{"kernel", Numbers{2}}, {"same", true}}, {{3, 2, 2, 0, 1}, {2, 2, 2}, {3, 2, 2, 0, 1}}, 1)),
      0);
}

class BlockExpandOnAHost : public LayersOnAHost {};

TEST_F(BlockExpandOnAHost, Mistakes) {
  const Layer images = data("images", {4, 4, 1});
  using Numbers = std::vector<int64_t>;
  EXPECT_THAT(mistake("block_expand", {data("flat", {4})}, {{"kernel", Numbers{2}}}),
              testing::HasSubstr("must be [samples, space..., channels]"));
  EXPECT_THAT(mistake("block_expand", {images}, {{"kernel", Numbers{5}}}),
              testing::HasSubstr("is smaller than the kernel along dimension 1"));
  EXPECT_THAT(mistake("block_expand", {images}, {{"kernel", Numbers{1, 2, 3}}}), testing::HasSubstr("has 3 numbers"));
  EXPECT_THAT(mistake("block_expand", {data("large", {1 << 20, 1 << 20, 1})},
                      {{"kernel", Numbers{64}}, {"stride", Numbers{1}}}),
              testing::HasSubstr("has windows of more than 2^26 elements of a channel"));
}

// What Paddle's block_expand_layer is for: columns of an image as a sequence.
TEST_F(BlockExpandOnAHost, ColumnsAsSequences) {
  const Layer columns =
      host_.layer("block_expand", {data("images", {2, 3, 1})}, {{"kernel", std::vector<int64_t>{2, 1}}});
  const Layer rows = host_.layer("sequence_unpad", {columns}, {});
  const Layer last = host_.layer("sequence_pool", {rows}, {{"kind", "last"}}, "last");
  MachineOptions options;
  options.max_samples = 2;
  const Machine machine = host_.machine(host_.parameters({last}, 1), {last}, options);
  const float images[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  machine.forward({{"images", {TN_F32, {2, 2, 3, 1}, images}}});
  const auto* found = static_cast<const float*>(machine.output(last).data);
  EXPECT_EQ((std::vector<float>{found, found + 4}), (std::vector<float>{3, 6, 9, 12}));
}

}  // namespace

}  // namespace tenon_tests
