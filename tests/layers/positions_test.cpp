// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/support/layer_check.h"
#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using Shape = std::vector<int64_t>;
using Sources = std::vector<std::vector<int64_t>>;

constexpr int64_t kValue = -1;  // a source that is no element, but the value of the mode constant

// A layer whose element i along dimension d of a sample is element sources[d][i] of the input.
LayerCase placed(const std::string& type, const Attributes& attributes, const Shape& shape, const Sources& sources,
                 double value = 0) {
  LayerCase layer;
  layer.type = type;
  layer.attributes = attributes;
  layer.inputs = {{shape}};
  for (const auto& source : sources) layer.output_shape.push_back(static_cast<int64_t>(source.size()));
  layer.formula = [=](const FormulaArguments& a) {
    std::vector<double> y;
    int64_t elements = 1, outputs = 1;
    for (size_t d = 0; d < shape.size(); ++d) elements *= shape[d], outputs *= static_cast<int64_t>(sources[d].size());
    for (int64_t at = 0; at < a.samples * outputs; ++at) {
      int64_t rest = at % outputs, step = 1, from = at / outputs * elements;
      bool added = false;
      for (size_t d = shape.size(); d-- > 0;) {
        const auto count = static_cast<int64_t>(sources[d].size());
        const int64_t source = sources[d][static_cast<size_t>(rest % count)];
        added = added || source == kValue;
        from += source * step;
        step *= shape[d];
        rest /= count;
      }
      y.push_back(added ? value : a.inputs[0][static_cast<size_t>(from)]);
    }
    return y;
  };
  return layer;
}

TEST(Positions, Flip) {
  EXPECT_GT(check_layer(placed("flip", {{"axes", Shape{1}}}, {5}, {{4, 3, 2, 1, 0}})), 0);
  EXPECT_GT(check_layer(placed("flip", {{"axes", Shape{-1, 1}}}, {3, 2, 2}, {{2, 1, 0}, {0, 1}, {1, 0}})), 0);
  EXPECT_GT(check_layer(on_rows(placed("flip", {{"axes", Shape{1}}}, {3}, {{2, 1, 0}}), 1)), 0);
}

TEST(Positions, Roll) {
  EXPECT_GT(check_layer(placed("roll", {{"shift", 2}}, {2, 5}, {{0, 1}, {3, 4, 0, 1, 2}})), 0);
  EXPECT_GT(check_layer(placed("roll", {{"shift", -4}, {"axis", 1}}, {3, 2}, {{1, 2, 0}, {0, 1}})), 0);
}

TEST(Positions, TileAndRepeat) {
  EXPECT_GT(check_layer(placed("tile", {{"copies", Shape{3}}}, {2, 2}, {{0, 1}, {0, 1, 0, 1, 0, 1}})), 0);
  EXPECT_GT(check_layer(placed("tile", {{"copies", Shape{2, 1}}}, {2, 3}, {{0, 1, 0, 1}, {0, 1, 2}})), 0);
  EXPECT_GT(check_layer(placed("repeat", {{"times", 2}}, {2, 2}, {{0, 1}, {0, 0, 1, 1}})), 0);
  EXPECT_GT(check_layer(placed("repeat", {{"times", 3}, {"axis", 1}}, {2, 1}, {{0, 0, 0, 1, 1, 1}, {0}})), 0);
}

TEST(Positions, PadWithAValue) {
  const Shape one{1}, two{2}, none{0};
  EXPECT_GT(check_layer(placed("pad", {{"before", two}, {"after", one}}, {3}, {{kValue, kValue, 0, 1, 2, kValue}})), 0);
  const Attributes both = {{"before", Shape{1, 0}}, {"after", Shape{0, 2}}, {"value", -1.5}};
  EXPECT_GT(check_layer(placed("pad", both, {2, 2}, {{kValue, 0, 1}, {0, 1, kValue, kValue}}, -1.5)), 0);
  const Attributes first = {{"axes", one}, {"before", one}, {"after", one}, {"value", 4.0}};
  EXPECT_GT(check_layer(placed("pad", first, {2, 3}, {{kValue, 0, 1, kValue}, {0, 1, 2}}, 4)), 0);
  const Attributes middle = {{"axes", two}, {"before", none}, {"after", one}, {"value", 4.0}};
  EXPECT_GT(check_layer(placed("pad", middle, {1, 2, 2}, {{0}, {0, 1, kValue}, {0, 1}}, 4)), 0);
}
TEST(Positions, PadWithElements) {
  const auto check = [](const char* mode, const std::vector<int64_t>& sources) {
    const Attributes attributes = {{"mode", mode}, {"axes", Shape{-1}}, {"before", Shape{2}}, {"after", Shape{1}}};
    EXPECT_GT(check_layer(placed("pad", attributes, {2, 3}, {{0, 1}, sources})), 0);
  };
  check("edge", {0, 0, 0, 1, 2, 2});
  check("reflect", {2, 1, 0, 1, 2, 1});
  check("symmetric", {1, 0, 0, 1, 2, 2});
  check("wrap", {1, 2, 0, 1, 2, 0});
}
// In two dimensions the corners are those of the padded rows.
TEST(Positions, PadCorners) {
  const Attributes attributes = {{"mode", "reflect"}, {"before", Shape{1, 0}}, {"after", Shape{0, 2}}};
  EXPECT_GT(check_layer(placed("pad", attributes, {2, 3}, {{1, 0, 1}, {0, 1, 2, 1, 0}})), 0);
}

TEST(Positions, MistakesAreNamed) {
  Host host({1, {tenon_tests::plugin_folder()}, nullptr, {}});
  DataOptions data;
  data.name = "x", data.dtype = TN_F32, data.shape = {3, 4};
  const Layer x = host.data(data);
  const auto message = [&](const std::string& type, const Attributes& attributes, tn_status code = TN_INVALID) {
    try {
      (void)host.layer(type, {x}, attributes, "bad");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const auto says = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
    EXPECT_NE(text.find("bad"), std::string::npos) << text;
  };
  says(message("flip", {{"axes", Shape{}}}), "is empty");
  says(message("flip", {{"axes", Shape{1, -2}}}), "names a dimension twice");
  says(message("flip", {{"axes", Shape{0}}}), "no axis 0 after the samples");
  says(message("flip", {{"axes", Shape{3}}}), "[samples, 3, 4]");
  says(message("roll", {{"shift", 1}, {"axis", -3}}), "no axis -3");
  says(message("tile", {{"copies", Shape{}}}), "has 0 numbers; expected 1 to 2");
  says(message("tile", {{"copies", Shape{1, 1, 2}}}), "has 3 numbers; expected 1 to 2");
  says(message("tile", {{"copies", Shape{1 << 23}}}, TN_UNSUPPORTED), "at most 16777216");
  says(message("tile", {{"copies", Shape{INT64_MAX}}}, TN_UNSUPPORTED), "more than 16777216");
  says(message("repeat", {{"times", 1 << 24}}, TN_UNSUPPORTED), "at most 16777216");
  says(message("pad", {{"before", Shape{1}}, {"after", Shape{1, 1}}}), "has 1 numbers for 2 axes");
  const auto pad = [&](const char* mode, int64_t before, int64_t after) {
    return message("pad", {{"mode", mode}, {"axes", Shape{1}}, {"before", Shape{before}}, {"after", Shape{after}}});
  };
  says(pad("reflect", 3, 0), "3 cannot be added before; at most 2");
  says(pad("symmetric", 0, 4), "has 3 elements along axis 1, to which 4 cannot be added after; at most 3");
  says(pad("wrap", 4, 0), "at most 3");
  says(pad("constant", INT64_MAX, 0), "at most 16777216");
}

}  // namespace
}  // namespace tenon_tests
