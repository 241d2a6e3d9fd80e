// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/support/layer_check.h"
#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using Values = std::vector<double>;
using Shape = std::vector<int64_t>;

LayerCase shaped(const std::string& type, const Attributes& attributes, const std::vector<Shape>& inputs,
                 const Shape& output, const Formula& formula) {
  LayerCase layer;
  layer.type = type;
  layer.attributes = attributes;
  for (const Shape& shape : inputs) layer.inputs.push_back({shape});
  layer.output_shape = output;
  layer.formula = formula;
  return layer;
}

TEST(Shapes, Reshape) {
  const auto same = [](const FormulaArguments& a) { return a.inputs[0]; };
  EXPECT_GT(check_layer(shaped("reshape", {{"shape", Shape{2, -1}}}, {{3, 4}}, {2, 6}, same)), 0);
  EXPECT_GT(check_layer(shaped("reshape", {{"shape", Shape{12}}}, {{3, 4}}, {12}, same)), 0);
}

TEST(Shapes, Transpose) {
  const auto formula = [](const FormulaArguments& a) {
    Values y;
    for (size_t i = 0; i < static_cast<size_t>(a.samples); ++i)
      for (size_t k = 0; k < 4; ++k)
        for (size_t j = 0; j < 3; ++j) y.push_back(a.inputs[0][(i * 3 + j) * 4 + k]);
    return y;
  };
  EXPECT_GT(check_layer(shaped("transpose", {{"axes", Shape{0, 2, 1}}}, {{3, 4}}, {4, 3}, formula)), 0);
}

TEST(Shapes, Concat) {
  // Along the last axis: rows of 2 and 3.
  const auto last = [](const FormulaArguments& a) {
    Values y;
    for (size_t i = 0; i < static_cast<size_t>(a.samples); ++i) {
      y.insert(y.end(), &a.inputs[0][i * 2], &a.inputs[0][i * 2] + 2);
      y.insert(y.end(), &a.inputs[1][i * 3], &a.inputs[1][i * 3] + 3);
    }
    return y;
  };
  EXPECT_GT(check_layer(shaped("concat", {}, {{2}, {3}}, {5}, last)), 0);
  EXPECT_GT(check_layer(on_rows(shaped("concat", {}, {{2}, {3}}, {5}, last), 2)), 0);
  const auto middle = [](const FormulaArguments& a) {
    Values y;
    for (size_t i = 0; i < static_cast<size_t>(a.samples); ++i) {
      y.insert(y.end(), &a.inputs[0][i * 6], &a.inputs[0][i * 6] + 6);
      y.insert(y.end(), &a.inputs[1][i * 3], &a.inputs[1][i * 3] + 3);
    }
    return y;
  };
  EXPECT_GT(check_layer(shaped("concat", {{"axis", 1}}, {{2, 3}, {1, 3}}, {3, 3}, middle)), 0);
}

TEST(Shapes, Slice) {
  const auto formula = [](const FormulaArguments& a) {
    Values y;
    for (size_t i = 0; i < static_cast<size_t>(a.samples); ++i)
      y.insert(y.end(), &a.inputs[0][i * 12 + 3], &a.inputs[0][i * 12 + 3] + 6);
    return y;
  };
  EXPECT_GT(check_layer(shaped("slice", {{"axis", 1}, {"start", 1}, {"length", 2}}, {{4, 3}}, {2, 3}, formula)), 0);
}

// Each part has its own weights in the cost, so that every output has a gradient.
TEST(Shapes, SplitInParts) {
  const auto part = [](size_t number) {
    return [number](const FormulaArguments& a) {
      Values y;
      for (size_t i = 0; i < static_cast<size_t>(a.samples) * 3; ++i)
        y.insert(y.end(), &a.inputs[0][i * 6 + number * 2], &a.inputs[0][i * 6 + number * 2] + 2);
      return y;
    };
  };
  LayerCase layer = shaped("split", {{"parts", 3}}, {{3, 6}}, {3, 2}, part(0));
  layer.more_outputs = {{{3, 2}, part(1)}, {{3, 2}, part(2)}};
  EXPECT_GT(check_layer(layer), 0);
}

TEST(Shapes, SplitInUnequalParts) {
  // Of [4, 2] along the first axis of a sample: `length` of 4 lines of 2, from line `start` on.
  const auto part = [](size_t start, size_t length) {
    return [=](const FormulaArguments& a) {
      Values y;
      for (size_t i = 0; i < static_cast<size_t>(a.samples); ++i)
        y.insert(y.end(), &a.inputs[0][i * 8 + start * 2], &a.inputs[0][i * 8 + start * 2] + length * 2);
      return y;
    };
  };
  LayerCase layer = shaped("split", {{"sizes", Shape{1, 3}}, {"axis", 1}}, {{4, 2}}, {1, 2}, part(0, 1));
  layer.more_outputs = {{{3, 2}, part(1, 3)}};
  EXPECT_GT(check_layer(layer), 0);
  const LayerCase whole = shaped("split", {{"sizes", Shape{4}}, {"axis", 1}}, {{4, 2}}, {4, 2}, part(0, 4));
  EXPECT_GT(check_layer(whole), 0);
  EXPECT_GT(check_layer(on_rows(whole, 2)), 0);
}

// Concatenates the parts in another order.
TEST(Shapes, Split) {
  Host host({2, {tenon_tests::plugin_folder()}, nullptr, {}});
  DataOptions data;
  data.name = "x";
  data.dtype = TN_F32;
  data.shape = {6};
  const Layer parts = host.layer("split", {host.data(data)}, {{"parts", 3}}, "parts");
  const Layer back = host.layer("concat", {parts.output(2), parts.output(0), parts.output(1)}, {}, "back");
  const Parameters none = host.parameters({back}, 1);
  MachineOptions options;
  options.max_samples = 2;
  options.training = false;
  const Machine machine = host.machine(none, {back}, options);
  const std::vector<float> x{0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15};
  machine.forward({{"x", {TN_F32, {2, 6}, x.data()}}});
  const Array y = machine.output(back);
  EXPECT_EQ(y.shape, (Shape{2, 6}));
  const auto* values = static_cast<const float*>(y.data);
  EXPECT_EQ(std::vector<float>(values, values + 12), (std::vector<float>{4, 5, 0, 1, 2, 3, 14, 15, 10, 11, 12, 13}));
}

TEST(Shapes, SqueezeAndUnsqueeze) {
  const auto same = [](const FormulaArguments& a) { return a.inputs[0]; };
  EXPECT_GT(check_layer(shaped("squeeze", {}, {{1, 3, 1}}, {3}, same)), 0);
  EXPECT_GT(check_layer(shaped("squeeze", {{"axes", Shape{-1}}}, {{1, 3, 1}}, {1, 3}, same)), 0);
  EXPECT_GT(check_layer(shaped("squeeze", {}, {{2, 3}}, {2, 3}, same)), 0);
  EXPECT_GT(check_layer(shaped("unsqueeze", {}, {{3, 2}}, {1, 3, 2}, same)), 0);
  EXPECT_GT(check_layer(shaped("unsqueeze", {{"axis", -2}}, {{3, 2}}, {3, 1, 2}, same)), 0);
  EXPECT_GT(check_layer(shaped("unsqueeze", {{"axis", -1}}, {{}}, {1}, same)), 0);
}

// Element j of each of the inputs, [2, 3], one after another: a new dimension at the end.
TEST(Shapes, Stack) {
  const auto first = [](const FormulaArguments& a) {
    Values y;
    for (size_t i = 0; i < static_cast<size_t>(a.samples); ++i)
      for (const Values& input : a.inputs) y.insert(y.end(), &input[i * 6], &input[i * 6] + 6);
    return y;
  };
  const auto last = [](const FormulaArguments& a) {
    Values y;
    for (size_t i = 0; i < a.inputs[0].size(); ++i)
      for (const Values& input : a.inputs) y.push_back(input[i]);
    return y;
  };
  EXPECT_GT(check_layer(shaped("stack", {}, {{2, 3}, {2, 3}, {2, 3}}, {3, 2, 3}, first)), 0);
  EXPECT_GT(check_layer(shaped("stack", {{"axis", -1}}, {{2, 3}, {2, 3}}, {2, 3, 2}, last)), 0);
  EXPECT_GT(check_layer(shaped("stack", {}, {{}, {}}, {2}, last)), 0);
}

TEST(Shapes, Unstack) {
  const auto column = [](size_t number) {
    return [number](const FormulaArguments& a) {
      Values y;
      for (size_t i = number; i < a.inputs[0].size(); i += 2) y.push_back(a.inputs[0][i]);
      return y;
    };
  };
  LayerCase layer = shaped("unstack", {{"axis", -1}}, {{3, 2}}, {3}, column(0));
  layer.more_outputs = {{{3}, column(1)}};
  EXPECT_GT(check_layer(layer), 0);
  EXPECT_GT(check_layer(shaped("unstack", {}, {{1, 3}}, {3}, [](const auto& a) { return a.inputs[0]; })), 0);
}

TEST(Shapes, ErrorsNameWhatDoesNotFit) {
  Host host({1, {tenon_tests::plugin_folder()}, nullptr, {}});
  const auto data = [&](const char* name, const Shape& shape) {
    DataOptions options;
    options.name = name;
    options.dtype = TN_F32;
    options.shape = shape;
    return host.data(options);
  };
  const Layer x = data("x", {3, 4}), y = data("y", {2, 5});
  const auto message = [&](const std::string& type, const Layers& inputs, const Attributes& attributes) {
    try {
      (void)host.layer(type, inputs, attributes, "bad");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), TN_INVALID);
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_NE(message("reshape", {x}, {{"shape", Shape{5, -1}}}).find("12 elements of a sample"), std::string::npos);
  EXPECT_NE(message("transpose", {x}, {{"axes", Shape{0, 1, 1}}}).find("permutation"), std::string::npos);
  EXPECT_NE(message("transpose", {x}, {{"axes", Shape{1, 0, 2}}}).find("axes"), std::string::npos);
  EXPECT_NE(message("concat", {x, x, y}, {})
                .find("number 2 differs from number 0 beside axis 2 (expected float "
                      "[samples, 3, 5], got float [samples, 2, 5])"),
            std::string::npos)
      << message("concat", {x, x, y}, {});
  EXPECT_NE(message("concat", {x}, {{"axis", 0}}).find("no axis 0"), std::string::npos);
  EXPECT_NE(message("slice", {x}, {{"start", 3}, {"length", 2}}).find("has 4 elements along axis 2"),
            std::string::npos);
  EXPECT_NE(message("split", {y}, {{"parts", 2}}).find("not 2 equal parts"), std::string::npos);
  EXPECT_NE(message("split", {y}, {}).find("exactly one of"), std::string::npos);
  EXPECT_NE(message("split", {y}, {{"parts", 5}, {"sizes", Shape{2, 3}}}).find("exactly one of"), std::string::npos);
  for (const Shape& sizes : {Shape{2, 2}, Shape{2, 4}, Shape{6, INT64_MAX}})
    EXPECT_NE(message("split", {y}, {{"sizes", sizes}}).find("has 5 elements along axis 2, which are not the sum"),
              std::string::npos);
  EXPECT_NE(message("split", {y}, {{"sizes", Shape{}}}).find("has 0 parts"), std::string::npos);
  EXPECT_NE(message("squeeze", {x}, {{"axes", Shape{1}}}).find("another length than 1 along axis 1"),
            std::string::npos);
  EXPECT_NE(message("squeeze", {x}, {{"axes", Shape{0}}}).find("no axis 0 after the samples"), std::string::npos);
  for (const int64_t axis : {0, 4, -4})
    EXPECT_NE(message("unsqueeze", {x}, {{"axis", axis}}).find("no new dimension at axis " + std::to_string(axis)),
              std::string::npos);
  EXPECT_NE(message("stack", {x, x, y}, {})
                .find("number 2 must have the shape of number 0 (expected float "
                      "[samples, 3, 4], got float [samples, 2, 5])"),
            std::string::npos)
      << message("stack", {x, x, y}, {});
  EXPECT_NE(message("stack", {x, x}, {{"axis", 0}}).find("no new dimension at axis 0"), std::string::npos);
  EXPECT_NE(message("unstack", {x}, {{"axis", 3}}).find("no axis 3"), std::string::npos);
}

}  // namespace
}  // namespace tenon_tests
