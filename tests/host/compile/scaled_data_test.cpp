// Integers with a scale and an offset, such as the bytes of an image: layers that only move values keep the integers;
// scale and offset are applied where a layer reads floats. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tenon/plugin.hpp>

#include "tests/support/layer_bench.h"
#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

namespace {

constexpr double kScale = 0.5, kOffset = -3;
constexpr int64_t kSamples = 3;
using Shape = std::vector<int64_t>;

// Concatenates inputs of integers or floats without converting them.
struct Join {
  static void describe(tn::LayerDescription& d) {
    d.type("test_join", "The inputs behind one another.");
    d.input("inputs", "[samples, n]", TN_PORT_VARIADIC | TN_PORT_ANY);
    d.output("output", "[samples, n + ...]", TN_PORT_ANY);
  }
  static void plan(tn::Planner& planner) {
    int64_t length = 0;
    for (uint32_t i = 0; i < planner.inputs_count(); ++i) length += planner.elements(i, 1);
    tn::Spec output = planner.input(0).leading(1);
    output.push_back(length);
    planner.output(0, output.as(planner.input(0).dtype()));
  }
  static void lower(const tn::Attributes&, tn::Builder& body) {
    std::vector<tn::Tensor> values{body.input(0)};
    for (uint32_t i = 1;; ++i) {
      const std::optional<tn::Tensor> next = body.optional_input(0, i);
      if (!next) break;
      values.push_back(*next);
    }
    body.output(0, body.concat(values, 1));
  }
};
// Moves the rows of each sequence one place later; the first row becomes 0.
struct Shift {
  static void describe(tn::LayerDescription& d) {
    d.type("test_shift", "The rows of each sequence one later.");
    d.input("input", "[rows, ...]", TN_PORT_ANY);
    d.output("output", "the shape of the input", TN_PORT_ANY);
  }
  static void plan(tn::Planner& planner) { planner.output(0, planner.input(0)); }
  static void lower(const tn::Attributes&, tn::Builder& body) {
    const tn::Tensor input = body.input(0);
    body.output(0, body.segment(TN_SEGMENT_SHIFT, input, input.spec()[0], -1));
  }
};
void describe(tn::Plugin& plugin) {
  plugin.about("tenon.test_join", "1.0.0", "For tests of data", "Apache-2.0");
  plugin.layer<Join>();
  plugin.layer<Shift>();
}

class ScaledData : public testing::Test {
 protected:
  ScaledData() {
    host_.add_plugin(tn::entry<describe>());
    std::iota(bytes_.begin(), bytes_.end(), uint8_t{0});
  }

  Layer data(const std::string& name, double scale = kScale, double offset = kOffset, int32_t storage = TN_DENSE) {
    DataOptions options;
    options.name = name;
    options.dtype = TN_U8;
    options.shape = {2, 4};
    options.scale = scale;
    options.offset = offset;
    options.storage = storage;
    return host_.data(options);
  }
  // Makes a layer that reads floats and copies them.
  Layer floats(const Layer& layer) { return host_.layer("concat", {layer}, {}, ""); }

  Machine machine(const Layers& outputs, bool training = false) {
    MachineOptions options;
    options.max_samples = kSamples;
    options.training = training;
    options.seed = 5;
    return host_.machine(host_.parameters(outputs, 1), outputs, options);
  }
  [[nodiscard]] Array image() const { return {TN_U8, {kSamples, 2, 4}, bytes_.data()}; }

  static std::vector<double> bytes_of(const Array& array) {
    const auto* const bytes = static_cast<const uint8_t*>(array.data);
    return {bytes, bytes + array.count()};
  }

  // Compares the outputs of a layer that reads the image as bytes with those of one that reads it as floats.
  void expect_scaled(const std::string& type, const Attributes& attributes, uint32_t outputs = 1) {
    SCOPED_TRACE(type);
    const Layer x = data("image");
    const Layer moved = host_.layer(type, {x}, attributes, "moved");
    const Layer before = host_.layer(type, {floats(x)}, attributes, "before");
    for (uint32_t i = 0; i < outputs; ++i) {
      const Layer after = floats(moved.output(i));
      const Machine both = machine({after, moved.output(i), before.output(i)});
      both.forward({{"image", image()}});
      const std::vector<double> expected = numbers_of(both.output(before.output(i)));
      EXPECT_EQ(numbers_of(both.output(after)), expected);
      const Array raw = both.output(moved.output(i));
      EXPECT_EQ(raw.dtype, TN_U8) << "the layer must not convert the values";
      const std::vector<double> bytes = bytes_of(raw);
      ASSERT_EQ(bytes.size(), expected.size());
      for (size_t k = 0; k < bytes.size(); ++k) EXPECT_EQ(expected[k], kScale * bytes[k] + kOffset);
    }
  }

  Host host_{HostOptions{1, {tenon_tests::plugin_folder()}, nullptr, {}}};
  std::vector<uint8_t> bytes_ = std::vector<uint8_t>(kSamples * 8);
};

TEST_F(ScaledData, SurvivesWhatMovesIt) {
  expect_scaled("reshape", {{"shape", Shape{4, -1}}});
  expect_scaled("reshape", {{"shape", Shape{2, 4}}});  // the same shape
  expect_scaled("transpose", {{"axes", Shape{0, 2, 1}}});
  expect_scaled("slice", {{"axis", 2}, {"start", 1}, {"length", 2}});
  expect_scaled("split", {{"parts", 2}}, 2);
  expect_scaled("split", {{"parts", 2}, {"axis", 1}}, 2);
  expect_scaled("split", {{"parts", 4}}, 4);
}

TEST_F(ScaledData, SurvivesOneAfterTheOther) {
  const Layer x = data("image");
  const Layer flat = host_.layer("reshape", {x}, {{"shape", Shape{8}}}, "");
  const Layer part = host_.layer("slice", {flat}, {{"start", 2}, {"length", 6}}, "");
  const Layer turned = host_.layer("transpose", {host_.layer("reshape", {part}, {{"shape", Shape{2, 3}}}, "")},
                                   {{"axes", Shape{0, 2, 1}}}, "");
  const Layer all = floats(turned);
  const Machine made = machine({all});
  made.forward({{"image", image()}});
  std::vector<double> expected;
  for (int i = 0; i < kSamples; ++i)
    for (const int at : {2, 5, 3, 6, 4, 7}) expected.push_back(kScale * (i * 8 + at) + kOffset);
  EXPECT_EQ(numbers_of(made.output(all)), expected);
}

TEST_F(ScaledData, SurvivesInSequences) {
  const Layer rows = data("rows", kScale, kOffset, TN_RAGGED), each = data("each", 2, 1);
  const Layer turned = floats(host_.layer("sequence_reverse", {rows}, {}, ""));
  const Layer spread = floats(host_.layer("sequence_expand", {each, rows}, {}, ""));
  const Layer later = floats(host_.layer("test_shift", {rows}, {}, ""));
  const Machine made = machine({turned, spread, later});
  const int64_t offsets[] = {0, 2, 2, 3};
  made.forward({{"rows", Array::sequences(TN_U8, {3, 2, 4}, bytes_.data(), kSamples, offsets)}, {"each", image()}});
  const std::vector<double> reversed = numbers_of(made.output(turned)), copied = numbers_of(made.output(spread)),
                            shifted = numbers_of(made.output(later));
  const size_t from[] = {1, 0, 2}, of[] = {0, 0, 2};
  for (size_t row = 0; row < 3; ++row)
    for (size_t k = 0; k < 8; ++k) {
      EXPECT_EQ(reversed.at(row * 8 + k), kScale * static_cast<double>(from[row] * 8 + k) + kOffset);
      // The filler is the integer 0, which is scaled like all integers.
      EXPECT_EQ(shifted.at(row * 8 + k), kScale * (row == 1 ? static_cast<double>(k) : 0) + kOffset);
      EXPECT_EQ(copied.at(row * 8 + k), 2 * static_cast<double>(of[row] * 8 + k) + 1);
    }
}

// A dropped element is 0; a kept one is the scaled value divided by the share of kept elements.
TEST_F(ScaledData, IsScaledBeforeItIsDropped) {
  const Layer flat = host_.layer("reshape", {data("image")}, {{"shape", Shape{8}}, {"drop_rate", 0.5}}, "flat");
  const Layer score = host_.layer("fc", {flat}, {{"size", 1}, {"bias", false}}, "score");
  const Layer cost = host_.layer("square_error", {score, score}, {}, "cost");
  const Layer seen = floats(flat);
  const Machine made = machine({cost, seen}, true);
  made.forward({{"image", image()}});
  const std::vector<double> values = numbers_of(made.output(seen));
  size_t dropped = 0;
  for (size_t k = 0; k < values.size(); ++k) {
    dropped += values[k] == 0;
    if (values[k] != 0) {
      EXPECT_EQ(values[k], 2 * (kScale * static_cast<double>(k) + kOffset));
    }
  }
  EXPECT_GT(dropped, 2U);
  EXPECT_LT(dropped, 22U);
}

// A reshape of the input does not change the gradients of a network.
TEST_F(ScaledData, GradientsAreThoseOfTheScaledNumbers) {
  const auto gradient = [&](bool reshaped) {
    const Layer x = data("image");
    const Layer flat = reshaped ? host_.layer("reshape", {x}, {{"shape", Shape{8}}}, "") : x;
    const Layer score = host_.layer("fc", {flat}, {{"size", 2}}, "score");
    const Layer target =
        host_.layer("slice", {host_.layer("reshape", {floats(x)}, {{"shape", Shape{8}}}, "")}, {{"length", 2}}, "");
    const Layer cost = host_.layer("square_error", {score, target}, {}, "cost");
    const Machine made = machine({cost}, true);
    made.forward({{"image", image()}});
    made.backward();
    return numbers_of(made.gradient("score.weight"));
  };
  const std::vector<double> expected = gradient(false);
  EXPECT_TRUE(std::all_of(expected.begin(), expected.end(), [](double each) { return each != 0; }));
  EXPECT_EQ(gradient(true), expected);
}

// A port of integers reads the fed integers without scale and offset.
TEST_F(ScaledData, IntegersStayIntegers) {
  DataOptions options;
  options.name = "labels";
  options.dtype = TN_U8;
  options.shape = {2};
  options.scale = 0.25;
  const Layer labels = host_.data(options);
  const Layer second = host_.layer("reshape", {host_.layer("slice", {labels}, {{"start", 1}, {"length", 1}}, "")},
                                   {{"shape", Shape{}}}, "");
  const Layer score = host_.layer("reshape", {floats(data("image"))}, {{"shape", Shape{8}}}, "");
  const Layer cost = host_.layer("cross_entropy", {score, second}, {{"from_logits", true}}, "cost");
  const Machine made = machine({cost});
  const std::vector<uint8_t> classes{9, 7, 9, 0, 9, 3};
  made.forward({{"image", image()}, {"labels", {TN_U8, {kSamples, 2}, classes.data()}}});
  const std::vector<double> costs = numbers_of(made.output(cost));
  double sum = 0;
  for (int k = 0; k < 8; ++k) sum += std::exp(kScale * k);
  const double best[] = {7, 0, 3};
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(costs.at(i), std::log(sum) - kScale * best[i], 1e-5);
}

// Integers of different scales or offsets cannot be joined in one value.
TEST_F(ScaledData, OfOneKindAlone) {
  const auto joined = [&](double scale, double offset) {
    const Layer parts[] = {host_.layer("reshape", {data("a")}, {{"shape", Shape{8}}}, ""),
                           host_.layer("reshape", {data("b", scale, offset)}, {{"shape", Shape{8}}}, "")};
    const Layer both = floats(host_.layer("test_join", {parts[0], parts[1]}, {}, "both"));
    const Machine made = machine({both});
    made.forward({{"a", image()}, {"b", image()}});
    return numbers_of(made.output(both)).at(15);
  };
  EXPECT_EQ(joined(kScale, kOffset), kScale * 7 + kOffset);
  for (const auto& [scale, offset] : {std::pair{kScale, 0.0}, std::pair{1.0, kOffset}, std::pair{1.0, 0.0}}) {
    try {
      (void)joined(scale, offset);
      FAIL() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), TN_UNSUPPORTED);
      EXPECT_NE(std::string(error.what()).find("\"both\" (test_join)"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace tenon_tests
