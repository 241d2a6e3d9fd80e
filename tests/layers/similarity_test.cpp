// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/layer_check.h"
#include "tests/support/paths.h"
#include "tests/support/test_layers.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using Values = std::vector<double>;
using Shape = std::vector<int64_t>;

double product(const double* a, const double* b, size_t depth) {
  double sum = 0;
  for (size_t k = 0; k < depth; ++k) sum += a[k] * b[k];
  return sum;
}

// The case of f for each row of `a`, of `depth` numbers, and each of `several` vectors of b (0: one).
LayerCase of_vectors(const std::string& type, const Attributes& attributes, const Shape& a, int64_t several,
                     const std::function<double(const double*, const double*, size_t)>& f) {
  LayerCase layer;
  layer.type = type;
  layer.attributes = attributes;
  Shape b = a;
  if (several > 0) b.insert(b.end() - 1, several);
  layer.inputs = {{a}, {b}};
  layer.jumps = type == "cos_sim";  // a vector of zeros has no direction
  layer.output_shape = Shape(b.begin(), b.end() - 1);
  const auto depth = static_cast<size_t>(a.back());
  const size_t each = several > 0 ? static_cast<size_t>(several) : 1;
  layer.formula = [=](const FormulaArguments& arguments) {
    Values y;
    for (size_t i = 0; i < arguments.inputs[1].size() / depth; ++i)
      y.push_back(f(arguments.inputs[0].data() + i / each * depth, arguments.inputs[1].data() + i * depth, depth));
    return y;
  };
  return layer;
}

double cosine(const double* a, const double* b, size_t depth) {
  const double lengths = std::sqrt(product(a, a, depth) * product(b, b, depth));
  return lengths == 0 ? 0 : product(a, b, depth) / lengths;
}

TEST(Similarity, Dot) {
  for (const int64_t several : {0, 1, 5}) {
    EXPECT_GT(check_layer(of_vectors("dot", {}, {7}, several, product)), 0);
    EXPECT_GT(check_layer(of_vectors("dot", {}, {3, 5}, several, product)), 0);
    EXPECT_GT(check_layer(of_vectors("dot", {}, {1}, several, product)), 0);
  }
}

LayerCase bilinear(size_t size, size_t d, size_t e, bool bias) {
  LayerCase layer;
  layer.type = "bilinear";
  layer.attributes = {{"size", static_cast<int64_t>(size)}, {"bias", bias}};
  layer.inputs = {{{static_cast<int64_t>(d)}}, {{static_cast<int64_t>(e)}}};
  layer.output_shape = {static_cast<int64_t>(size)};
  layer.formula = [=](const FormulaArguments& a) {
    Values y;
    const Values& weight = a.parameters.at("weight");
    for (size_t n = 0; n < static_cast<size_t>(a.samples); ++n)
      for (size_t k = 0; k < size; ++k) {
        double sum = bias ? a.parameters.at("bias")[k] : 0;
        for (size_t i = 0; i < d; ++i)
          for (size_t j = 0; j < e; ++j)
            sum += a.inputs[0][n * d + i] * weight[(k * d + i) * e + j] * a.inputs[1][n * e + j];
        y.push_back(sum);
      }
    return y;
  };
  return layer;
}
TEST(Similarity, Bilinear) {
  EXPECT_GT(check_layer(bilinear(2, 3, 4, true)), 0);
  EXPECT_GT(check_layer(bilinear(1, 5, 2, false)), 0);
  EXPECT_GT(check_layer(on_rows(bilinear(3, 1, 2, true))), 0);
}

TEST(Similarity, OnRowsOfSequences) {
  for (const int64_t several : {0, 3}) {
    EXPECT_GT(check_layer(on_rows(of_vectors("dot", {}, {5}, several, product))), 0);
    EXPECT_GT(check_layer(on_rows(of_vectors("cos_sim", {}, {5}, several, cosine), 2)), 0);
  }
}

TEST(Similarity, CosSim) {
  for (const int64_t several : {0, 1, 5})
    for (const Shape& shape : {Shape{7}, Shape{3, 5}}) {
      EXPECT_GT(check_layer(of_vectors("cos_sim", {}, shape, several, cosine)), 0);
      const auto scaled = [](const double* a, const double* b, size_t depth) { return 5 * cosine(a, b, depth); };
      EXPECT_GT(check_layer(of_vectors("cos_sim", {{"scale", 5.0}}, shape, several, scaled)), 0);
    }
}

class SimilarityOnAHost : public testing::Test {
 protected:
  Layer data(const std::string& name, const Shape& shape, tn_dtype dtype = TN_F32) {
    DataOptions options;
    options.name = name, options.dtype = dtype, options.shape = shape;
    return host_.data(options);
  }
  std::string refusal(const std::string& type, const Layers& inputs, const Attributes& attributes = {}) {
    try {
      (void)host_.layer(type, inputs, attributes, "mine");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), TN_INVALID);
      return error.what();
    }
    return "accepted";
  }
  Host host_{HostOptions{1, {tenon_tests::plugin_folder()}, nullptr, {}}};
};

// Vectors of zeros have no direction: the cosine is 0, and so are the gradients of both inputs.
TEST_F(SimilarityOnAHost, ZeroVectorsGiveZeroAndNoGradient) {
  host_.add_plugin(&test_layers());
  for (const bool several : {false, true}) {
    const Layer ids = data("ids", {}, TN_I32);
    const Layer a = host_.layer("test_input", {ids}, {{"rows", 3}, {"shape", Shape{2}}}, "a");
    const Layer b = host_.layer("test_input", {ids}, {{"rows", 3}, {"shape", several ? Shape{1, 2} : Shape{2}}}, "b");
    const Layer y = host_.layer("cos_sim", {a, b}, {}, "y");
    const Layer cost = host_.layer("test_cost", {y, data("w", several ? Shape{1} : Shape{})}, {}, "cost");
    const Parameters parameters = host_.parameters({cost}, 1);
    const float left[] = {0, 0, 3, 4, 0, 0}, right[] = {1, 2, 0, 0, 0, 0};
    parameters.set("a.values", {TN_F32, {3, 2}, left});
    parameters.set("b.values", {TN_F32, several ? Shape{3, 1, 2} : Shape{3, 2}, right});
    MachineOptions options;
    options.max_samples = 3;
    options.training = true;
    const Machine machine = host_.machine(parameters, {y, cost}, options);
    const int32_t rows[] = {0, 1, 2};
    const float ones[] = {1, 1, 1};
    machine.forward({{"ids", {TN_I32, {3}, rows}}, {"w", {TN_F32, several ? Shape{3, 1} : Shape{3}, ones}}});
    for (int i = 0; i < 3; ++i) EXPECT_EQ(static_cast<const float*>(machine.output(y).data)[i], 0);
    machine.backward();
    for (const char* name : {"a.values", "b.values"})
      for (int i = 0; i < 6; ++i)
        EXPECT_EQ(static_cast<const float*>(machine.gradient(name).data)[i], 0) << name << " " << i;
  }
}

TEST_F(SimilarityOnAHost, NamesBothShapesWhereTheyDoNotFit) {
  for (const char* type : {"dot", "cos_sim"})
    for (const Shape& b : {Shape{4}, Shape{2, 4}, Shape{2, 2, 3}, Shape{}}) {
      const std::string said = refusal(type, {data("a", {3}), data("b", b)});
      EXPECT_NE(said.find("\"mine\""), std::string::npos) << said;
      EXPECT_NE(said.find(": b: "), std::string::npos) << said;
      EXPECT_NE(said.find("[samples, 3]"), std::string::npos) << said;
    }
  EXPECT_NE(refusal("dot", {data("a", {}), data("b", {})}).find(": a: "), std::string::npos);
}

LayerCase factorization(const Shape& shape, int64_t factors) {
  LayerCase layer;
  layer.type = "factorization_machine";
  layer.attributes = {{"factors", factors}};
  layer.inputs = {{shape}};
  layer.output_shape = {1};
  // The layer subtracts sums of squares from squared sums.
  layer.gradient_rounded = 1;
  layer.rounded = [factors](const FormulaArguments& a) {
    const Values& v = a.parameters.at("weight");
    const auto k = static_cast<size_t>(factors);
    const size_t n = v.size() / k;
    Values squares(static_cast<size_t>(a.samples), 0.0);
    for (size_t s = 0; s < squares.size(); ++s)
      for (size_t i = 0; i < n * k; ++i) squares[s] += std::pow(v[i] * a.inputs[0][s * n + i / k], 2);
    return squares;
  };
  layer.formula = [factors](const FormulaArguments& a) {  // pair by pair, as it is defined
    const Values& v = a.parameters.at("weight");
    const auto k = static_cast<size_t>(factors);
    const size_t n = v.size() / k;
    Values y(static_cast<size_t>(a.samples), 0.0);
    for (size_t s = 0; s < y.size(); ++s)
      for (size_t i = 0; i < n; ++i)
        for (size_t j = i + 1; j < n; ++j)
          y[s] += product(v.data() + i * k, v.data() + j * k, k) * a.inputs[0][s * n + i] * a.inputs[0][s * n + j];
    return y;
  };
  return layer;
}

TEST(FactorizationMachine, IsTheSumOverPairs) {
  EXPECT_GT(check_layer(factorization({7}, 3)), 0);
  EXPECT_GT(check_layer(factorization({3, 5}, 1)), 0);
  EXPECT_GT(check_layer(factorization({2}, 9)), 0);
}

// Sparse features, without duplicate ids in a sample.
TEST(FactorizationMachine, OfSparseInput) {
  for (const bool weighted : {true, false}) {
    LayerCase layer = factorization({9}, 3);
    layer.inputs[0].sparse = true;
    layer.inputs[0].weighted = weighted;
    EXPECT_GT(check_layer(layer), 0);
  }
}

TEST_F(SimilarityOnAHost, TheLinearPartIsAnFc) {
  const Layer x = data("x", {5});
  const Layer whole = host_.layer(
      "add", {host_.layer("fc", {x}, {{"size", 1}}), host_.layer("factorization_machine", {x}, {{"factors", 3}})});
  EXPECT_NE(whole.describe().find("[samples, 1]"), std::string::npos) << whole.describe();
}

// ---- distances and shifts

LayerCase distances(int64_t p, int64_t r, int64_t depth, int64_t order) {
  LayerCase layer;
  layer.type = "cdist";
  layer.attributes = {{"order", order}};
  layer.inputs = {{{p, depth}}, {{r, depth}}};
  for (CheckedInput& input : layer.inputs) input.limited = true;  // the square of a huge number is infinite
  layer.output_shape = {p, r};
  layer.samples = {1, 2, 7};
  layer.jumps = true;  // the distance of equal vectors has no derivative
  layer.gradient_rounded = 1;
  layer.formula = [=](const FormulaArguments& a) {
    Values y;
    const auto d = static_cast<size_t>(depth);
    for (size_t i = 0; i < a.inputs[0].size() / d; ++i)
      for (size_t k = 0; k < static_cast<size_t>(r); ++k) {
        const double* const from = &a.inputs[0][i * d];
        const double* const to = &a.inputs[1][(i / static_cast<size_t>(p) * static_cast<size_t>(r) + k) * d];
        double sum = 0;
        for (size_t at = 0; at < d; ++at) sum += std::pow(std::abs(from[at] - to[at]), static_cast<double>(order));
        y.push_back(order == 2 ? std::sqrt(sum) : sum);
      }
    return y;
  };
  return layer;
}

TEST(Cdist, OfAllPairs) {
  EXPECT_GT(check_layer(distances(3, 2, 4, 2)), 0);
  EXPECT_GT(check_layer(distances(1, 3, 1, 2)), 0);
  EXPECT_GT(check_layer(distances(2, 1, 3, 1)), 0);
}

LayerCase shifted(int64_t n, int64_t m) {
  LayerCase layer;
  layer.type = "conv_shift";
  layer.inputs = {{{n}}, {{m}}};
  layer.output_shape = {n};
  layer.samples = {1, 2, 7};
  layer.gradient_rounded = 1;
  layer.formula = [=](const FormulaArguments& a) {
    Values y;
    for (int64_t i = 0; i < static_cast<int64_t>(a.inputs[0].size()); ++i) {
      y.push_back(0);
      for (int64_t j = -(m / 2); j <= m / 2; ++j) {
        const int64_t at = i / n * n + ((i % n + j) % n + n) % n;
        y.back() += a.inputs[0][static_cast<size_t>(at)] * a.inputs[1][static_cast<size_t>(i / n * m + m / 2 + j)];
      }
    }
    return y;
  };
  return layer;
}

TEST(ConvShift, IsCircular) {
  EXPECT_GT(check_layer(shifted(5, 3)), 0);
  EXPECT_GT(check_layer(shifted(4, 1)), 0);
  EXPECT_GT(check_layer(shifted(2, 7)), 0);  // longer than what it moves
}

TEST_F(SimilarityOnAHost, PairsAndShiftsNameBothShapes) {
  const Layer a = data("a", {3, 4}), b = data("b", {2, 5}), x = data("x", {3}), even = data("even", {4});
  const std::string pairs = refusal("cdist", {a, b});
  EXPECT_NE(pairs.find("b: must have samples and vectors like those of \"a\""), std::string::npos) << pairs;
  EXPECT_NE(pairs.find("[samples, 3, 4], got float [samples, 2, 5]"), std::string::npos) << pairs;
  EXPECT_NE(refusal("cdist", {x, x}).find("[samples, P, D]"), std::string::npos);
  EXPECT_NE(refusal("conv_shift", {x, even}).find("b: must have an odd number"), std::string::npos);
  EXPECT_NE(refusal("conv_shift", {a, x}).find("a: must be [samples, N]"), std::string::npos);
  EXPECT_THROW((void)host_.layer("conv_shift", {data("long", {1 << 13}), data("wide", {(1 << 13) + 1})}), Error);
}

}  // namespace
}  // namespace tenon_tests
