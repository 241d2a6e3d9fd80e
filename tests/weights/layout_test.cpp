// Layouts of PyTorch and Keras; tests/bindings/python/test_weights.py compares whole networks.
// SPDX-License-Identifier: Apache-2.0
#include "weights/layout.h"

#include <gmock/gmock.h>

#include <numeric>

namespace tenon_tests {

using namespace tenon;
using namespace tenon::weights;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

class LayoutTest : public testing::Test {
 protected:
  [[nodiscard]] Layer data(const std::string& name, const std::vector<int64_t>& shape) const {
    return host_.data({name, TN_F32, shape});
  }
  // Numbers 0, 1, 2, ... of a tensor as the parameter has them.
  static std::vector<float> counted(const Move& move) {
    std::vector<float> values(
        static_cast<size_t>(std::accumulate(move.sizes.begin(), move.sizes.end(), int64_t{1}, std::multiplies<>())));
    std::iota(values.begin(), values.end(), 0.0F);
    return moved(move, values);
  }
  static Move move_of(const Layout& layout, const std::string& part, const std::string& last, const Sizes& shape) {
    for (const Part& each : layout.parts())
      if (each.name == part) return layout.move(each, last, shape).value();
    throw Error(TN_NOT_FOUND, part);
  }

  Host host_;
};

TEST_F(LayoutTest, ConvolutionsOfPyTorchMoveTheirChannels) {
  const Layer conv = host_.layer("conv", {data("image", {4, 5, 3})}, {{"filters", 2}, {"kernel", Sizes{2, 2}}}, "conv");
  const Move move = move_of(Layout("pytorch", {conv}), "conv", "weight", {2, 3, 2, 2});
  EXPECT_EQ(move.to, "conv.weight");
  EXPECT_THAT(move.shape, ElementsAre(2, 2, 2, 3));
  const std::vector<float> values = counted(move);
  EXPECT_THAT(std::vector<float>(values.begin(), values.begin() + 6), ElementsAre(0, 4, 8, 1, 5, 9));
  EXPECT_EQ(values.back(), 23);
  EXPECT_EQ(move_of(Layout("pytorch", {conv}), "conv", "weight", {2, 3, 2}).mismatch, "has 3 dimensions; 4 are needed");
}

TEST_F(LayoutTest, AFlattenedImageHasItsRowsPermuted) {
  const Layer conv = host_.layer("conv", {data("image", {2, 2, 1})}, {{"filters", 2}, {"kernel", Sizes{1, 1}}}, "conv");
  const Layer fc = host_.layer("fc", {conv}, {{"size", 3}}, "fc");
  const Move move = move_of(Layout("pytorch", {fc}), "fc", "weight", {3, 8});
  // Rows [place, channel] of the parameter are columns [channel, place] of PyTorch's.
  EXPECT_THAT(move.rows, ElementsAre(0, 4, 1, 5, 2, 6, 3, 7));
  EXPECT_THAT(counted(move),
              ElementsAreArray({0, 8, 16, 4, 12, 20, 1, 9, 17, 5, 13, 21, 2, 10, 18, 6, 14, 22, 3, 11, 19, 7, 15, 23}));
}

TEST_F(LayoutTest, AMatrixOverTheLastAxisKeepsItsRows) {
  const Layer conv = host_.layer("conv", {data("image", {2, 2, 1})}, {{"filters", 2}, {"kernel", Sizes{1, 1}}}, "conv");
  const Layer fc = host_.layer("fc", {conv}, {{"size", 3}, {"axis", -1}}, "fc");
  const Move move = move_of(Layout("pytorch", {fc}), "fc", "weight", {3, 2});
  EXPECT_THAT(move.rows, IsEmpty());
  EXPECT_THAT(counted(move), ElementsAre(0, 2, 4, 1, 3, 5));
}

TEST_F(LayoutTest, AttentionHasFourMatrices) {
  const Layer attention = host_.layer("multi_head_attention", {data("x", {3, 4})}, {{"heads", 2}}, "attention");
  const Layout layout("pytorch", {attention});
  std::vector<std::string> names;
  for (const Part& part : layout.parts()) {
    EXPECT_EQ(part.type, "fc");
    names.push_back(part.name);
  }
  EXPECT_THAT(names, ElementsAre("attention.query", "attention.key", "attention.value", "attention.output"));
  EXPECT_THAT(move_of(layout, "attention.key", "weight", {4, 4}).axes, ElementsAre(1, 0));
}

TEST_F(LayoutTest, DepthwiseKernelsOfKeras) {
  const Layer conv = host_.layer("conv", {data("image", {4, 4, 2})},
                                 {{"filters", 4}, {"kernel", Sizes{1, 1}}, {"groups", 2}, {"bias", false}}, "conv");
  const Layout layout("keras", {conv});
  const Move move = move_of(layout, "conv", "depthwise_kernel", {1, 1, 2, 2});
  EXPECT_THAT(move.sizes, ElementsAre(1, 1, 1, 4));
  EXPECT_THAT(counted(move), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(layout.dotted("model/conv/kernel:0"), "model.conv.kernel");
}

TEST_F(LayoutTest, RecurrentLayersHaveTheirMatricesTransposed) {
  const Layer rows = host_.data({"x", TN_F32, {2}, -1, TN_RAGGED});
  const Layer gru = host_.layer("gru", {rows}, {{"size", 3}, {"reset_after", true}}, "gru");
  const Layout layout("pytorch", {gru});
  EXPECT_THAT(move_of(layout, "gru", "weight_ih", {9, 2}).shape, ElementsAre(2, 9));
  EXPECT_EQ(move_of(layout, "gru", "weight_hh", {9, 3}).to, "gru.recurrent_weight");
  EXPECT_EQ(move_of(layout, "gru", "candidate_bias", {3}).to, "gru.candidate_bias");
  EXPECT_FALSE(layout.move(layout.parts()[0], "weight_ih_l0", {9, 2}).has_value());
}

TEST_F(LayoutTest, UnknownFrameworksAndTypes) {
  const Layer pairs = host_.layer("factorization_machine", {data("x", {2})}, {{"factors", 2}}, "pairs");
  const Layout layout("pytorch", {pairs});
  EXPECT_FALSE(layout.knows(layout.parts().at(0)));
  EXPECT_FALSE(layout.move(layout.parts()[0], "weight", {8, 2}).has_value());
  EXPECT_THAT(layout.known_types(), testing::Contains("embedding"));
  try {
    const Layout unknown("pytorh", {pairs});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("did you mean \"pytorch\"?"));
  }
}

TEST_F(LayoutTest, DataLayersThatATableIsReadWith) {
  const Layer ids = host_.data({"ids", TN_I32, {3}, 10});
  const Layer words = host_.layer("embedding", {ids}, {{"vocabulary", 10}, {"size", 2}}, "words");
  const Layer again = host_.layer("embedding", {host_.data({"more", TN_I32, {}, 10})},
                                  {{"vocabulary", 10}, {"size", 2}, {"parameter_name", "words"}}, "again");
  const Layer both =
      host_.layer("fc", {host_.layer("concat", {host_.layer("reshape", {words}, {{"shape", Sizes{-1}}}), again})},
                  {{"size", 1}}, "fc");
  EXPECT_THAT(ModelGraph({both}).data_of("words.weight"), ElementsAre("ids", "more"));
  EXPECT_THAT(ModelGraph({both}).data_of("absent"), IsEmpty());
}

}  // namespace

}  // namespace tenon_tests
