// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/support/layer_check.h"
#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using Values = std::vector<double>;
using Shape = std::vector<int64_t>;
using Names = std::vector<std::string>;

constexpr int64_t kSize = 3, kVocabulary = 7;

// Column j of the projection `kind` of row x, of `depth` numbers, with the weight w.
double projected(const std::string& kind, const double* x, size_t depth, const Values& w, size_t j) {
  if (kind == "identity") return x[j];
  if (kind == "dotmul") return x[j] * w[j];
  if (kind == "scaling") return x[j] * w[0];
  if (kind == "table") return w[static_cast<size_t>(x[0]) * kSize + j];
  double sum = 0;
  for (size_t k = 0; k < depth; ++k) sum += x[k] * (kind == "transposed" ? w[j * depth + k] : w[k * kSize + j]);
  return sum;
}

LayerCase mixed(const Names& kinds, const std::vector<Shape>& shapes, bool bias) {
  LayerCase layer;
  layer.type = "mixed";
  layer.attributes = {{"size", kSize}, {"projections", kinds}, {"bias", bias}};
  std::vector<int64_t> vocabularies;
  std::vector<size_t> depths;
  for (size_t i = 0; i < kinds.size(); ++i) {
    if (kinds[i] == "table") vocabularies.push_back(kVocabulary);
    layer.inputs.push_back({shapes[i], kinds[i] == "table" ? kVocabulary : 0});
    depths.push_back(1);
    for (const int64_t extent : shapes[i]) depths.back() *= static_cast<size_t>(extent);
  }
  if (!vocabularies.empty()) layer.attributes.push_back({"vocabularies", vocabularies});
  layer.output_shape = {kSize};
  layer.formula = [=](const FormulaArguments& a) {
    Values y;
    for (size_t s = 0; s < static_cast<size_t>(a.samples); ++s)
      for (size_t j = 0; j < kSize; ++j) {
        double sum = bias ? a.parameters.at("bias")[j] : 0;
        for (size_t i = 0; i < kinds.size(); ++i) {
          const std::string suffix = i == 0 ? "weight" : "weight_" + std::to_string(i);
          sum += projected(kinds[i], a.inputs[i].data() + s * depths[i], depths[i],
                           kinds[i] == "identity" ? Values{} : a.parameters.at(suffix), j);
        }
        y.push_back(sum);
      }
    return y;
  };
  return layer;
}

TEST(Mixed, EachProjectionAlone) {
  for (const bool bias : {false, true}) {
    EXPECT_GT(check_layer(mixed({"full_matrix"}, {{5}}, bias)), 0);
    EXPECT_GT(check_layer(mixed({"transposed"}, {{2, 2}}, bias)), 0);
    EXPECT_GT(check_layer(mixed({"table"}, {{}}, bias)), 0);
    EXPECT_GT(check_layer(mixed({"table"}, {{1}}, bias)), 0);
    EXPECT_GT(check_layer(mixed({"identity"}, {{3}}, bias)), 0);
    EXPECT_GT(check_layer(mixed({"dotmul"}, {{3}}, bias)), 0);
    EXPECT_GT(check_layer(mixed({"scaling"}, {{3, 1}}, bias)), 0);
  }
}

TEST(Mixed, OnRowsOfSequences) {
  for (const uint32_t levels : {1U, 2U})
    EXPECT_GT(check_layer(on_rows(mixed({"full_matrix", "table", "identity"}, {{5}, {}, {kSize}}, true), levels)), 0);
}

TEST(Mixed, SumsThem) {
  EXPECT_GT(check_layer(mixed({"identity", "table", "full_matrix", "transposed", "table", "scaling", "dotmul"},
                              {{3}, {}, {1}, {5}, {1}, {3}, {1, 3}}, true)),
            0);
  EXPECT_GT(check_layer(mixed(Names(8, "full_matrix"), std::vector<Shape>(8, Shape{2}), false)), 0);
}

class MixedOnAHost : public testing::Test {
 protected:
  Layer data(const std::string& name, const Shape& shape, tn_dtype dtype = TN_F32) {
    DataOptions options;
    options.name = name, options.dtype = dtype, options.shape = shape;
    return host_.data(options);
  }
  std::string refusal(const Layers& inputs, const Names& kinds, Attributes more = {}) {
    more.insert(more.begin(), {{"size", kSize}, {"projections", kinds}});
    try {
      (void)host_.layer("mixed", inputs, more, "mine");
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }
  Host host_{HostOptions{1, {tenon_tests::plugin_folder()}, nullptr, {}}};
};

// An autoencoder with tied weights: an fc encodes, its transposed matrix decodes, and both share one gradient.
TEST_F(MixedOnAHost, ATransposedProjectionSharesTheMatrixOfAnFc) {
  const Layer x = data("x", {4});
  const Layer code = host_.layer("fc", {x}, {{"size", 2}, {"bias", false}, {"parameter_name", "tied"}});
  const Layer back = host_.layer(
      "mixed", {code}, {{"size", 4}, {"projections", Names{"transposed"}}, {"parameter_name", "tied"}}, "back");
  const Layer cost = host_.layer("square_error", {back, x}, {}, "cost");
  const Parameters parameters = host_.parameters({cost}, 1);
  const float w[] = {1, 0, 0, 2, 0, 0, 1, 1};
  parameters.set("tied.weight", {TN_F32, {4, 2}, w});
  MachineOptions options;
  options.training = true;
  const Machine machine = host_.machine(parameters, {back, cost}, options);
  const float sample[] = {1, 2, 3, 4};
  machine.forward({{"x", {TN_F32, {1, 4}, sample}}});
  const auto* y = static_cast<const float*>(machine.output(back).data);
  EXPECT_EQ(Values(y, y + 4), (Values{5, 16, 0, 13}));  // the code is {5, 8}
  machine.backward();
  // dW = x (W^T e)^T + e c^T with e = 2 (y - x) = {8, 28, -6, 18}: W^T e = {26, 74}.
  const auto* g = static_cast<const float*>(machine.gradient("tied.weight").data);
  EXPECT_EQ(Values(g, g + 8), (Values{66, 138, 192, 372, 48, 174, 194, 440}));
}

TEST_F(MixedOnAHost, RefusalsNameWhatIsWrong) {
  const Layer x = data("x", {3}), ids = data("ids", {}, TN_I32);
  const auto says = [](const std::string& said, const std::string& part) {
    EXPECT_NE(said.find(part), std::string::npos) << said;
    EXPECT_NE(said.find("\"mine\""), std::string::npos) << said;
  };
  says(refusal({x}, {"identity", "identity"}), "are 2 for 1 inputs");
  says(refusal({x}, {"full_matrx"}), "projections");
  says(refusal({ids}, {"table"}), "has no number for input 0");
  says(refusal({x}, {"identity"}, {{"vocabularies", std::vector<int64_t>{5}}}), "1 numbers for 0 tables");
  says(refusal({x}, {"table"}, {{"vocabularies", std::vector<int64_t>{5}}}), "must be integers");
  says(refusal({ids}, {"full_matrix"}), "are integers");
  says(refusal({data("wide", {4})}, {"dotmul"}), "[samples, 4]");
  says(refusal({data("bag", {2}, TN_I32)}, {"table"}, {{"vocabularies", std::vector<int64_t>{5}}}), "[samples, 2]");
  says(refusal(Layers(9, x), Names(9, "identity")), "at most 8");
  const Layer table =
      host_.layer("mixed", {ids},
                  {{"size", 2}, {"projections", Names{"table"}}, {"vocabularies", std::vector<int64_t>{5}}}, "mine");
  try {
    const int32_t id = 5;
    const Machine machine = host_.machine(host_.parameters({table}, 1), {table}, {});
    machine.forward({{"ids", {TN_I32, {1}, &id}}});
    FAIL();
  } catch (const Error& error) {
    says(error.what(), "is 5");
  }
}

}  // namespace
}  // namespace tenon_tests
