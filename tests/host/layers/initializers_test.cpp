// First values of single parameters: the host attributes param.<suffix>.init and init_*.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>
#include <tenon/tenon.hpp>

#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using testing::AllOf;
using testing::HasSubstr;

class Initializers : public testing::Test {
 protected:
  Initializers() : host_({1, {tenon_tests::plugin_folder()}, nullptr, {}}) {
    DataOptions options;
    options.name = "x", options.shape = {kInputs};
    x_ = host_.data(options);
  }

  Layer fc(const std::string& name, Attributes attributes) {
    attributes.push_back({"size", kOutputs});
    return host_.layer("fc", {x_}, attributes, name);
  }
  static std::vector<float> values(const Parameters& parameters, const std::string& name) {
    const auto array = parameters.get(name);
    int64_t count = 1;
    for (const int64_t size : array.shape) count *= size;
    const auto* const data = static_cast<const float*>(array.data);
    return {data, data + count};
  }
  // The first values of the weight [kInputs, kOutputs] of a layer with the attributes.
  std::vector<float> weight(const Attributes& attributes, uint64_t seed = 1) {
    return values(host_.parameters({fc("y", attributes)}, seed), "y.weight");
  }
  std::string refusal(const Attributes& attributes) {
    try {
      (void)fc("bad", attributes);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), TN_INVALID);
      return error.what();
    }
    return "nothing was refused";
  }

  static constexpr int64_t kInputs = 60, kOutputs = 40;
  Host host_;
  Layer x_;
};

double mean(const std::vector<float>& x) {
  double sum = 0;
  for (const float value : x) sum += value;
  return sum / static_cast<double>(x.size());
}
double deviation(const std::vector<float>& x) {
  const double middle = mean(x);
  double sum = 0;
  for (const float value : x) sum += (value - middle) * (value - middle);
  return std::sqrt(sum / static_cast<double>(x.size()));
}

TEST_F(Initializers, OfGivenNumbers) {
  EXPECT_THAT(weight({{"param.weight.init", "constant"}, {"param.weight.init_value", 0.5}}), testing::Each(0.5F));
  const std::vector<float> uniform =
      weight({{"param.weight.init", "uniform"}, {"param.weight.init_low", 2}, {"param.weight.init_high", 3.0}});
  EXPECT_THAT(uniform, testing::Each(AllOf(testing::Ge(2.0F), testing::Lt(3.0F))));
  EXPECT_NEAR(mean(uniform), 2.5, 0.05);
  const std::vector<float> normal =
      weight({{"param.weight.init", "normal"}, {"param.weight.init_mean", -1.0}, {"param.weight.init_std", 0.25}});
  EXPECT_NEAR(mean(normal), -1, 0.03);
  EXPECT_NEAR(deviation(normal), 0.25, 0.02);
}

TEST_F(Initializers, OfTheShape) {
  const auto limit = [&](const Attributes& attributes) {
    const std::vector<float> x = weight(attributes);
    return std::max(*std::max_element(x.begin(), x.end()), -*std::min_element(x.begin(), x.end()));
  };
  EXPECT_NEAR(limit({{"param.weight.init", "xavier_uniform"}}) / std::sqrt(6.0 / 100), 1, 0.01);
  EXPECT_NEAR(limit({{"param.weight.init", "kaiming_uniform"}}) / std::sqrt(6.0 / 60), 1, 0.01);
  EXPECT_NEAR(deviation(weight({{"param.weight.init", "xavier_normal"}})) / std::sqrt(2.0 / 100), 1, 0.06);
  EXPECT_NEAR(deviation(weight({{"param.weight.init", "kaiming_normal"}})) / std::sqrt(2.0 / 60), 1, 0.06);
  EXPECT_NEAR(deviation(weight({{"param.weight.init", "kaiming_normal"}, {"param.weight.init_gain", 1}})),
              1 / std::sqrt(60.0), 0.01);
}

// The variance of a normal distribution that is cut at +-bound (Johnson and Kotz, 1970, section 13.10.1).
double cut_deviation(double bound) {
  const double density = std::exp(-bound * bound / 2) / std::sqrt(2 * std::numbers::pi);
  return std::sqrt(1 - 2 * bound * density / std::erf(bound / std::numbers::sqrt2));
}

TEST_F(Initializers, OfATruncatedNormalDistribution) {
  for (const double bound : {0.25, 0.999, 1.0, 2.0, 30.0}) {
    const std::vector<float> x = weight({{"param.weight.init", "truncated_normal"},
                                         {"param.weight.init_std", 0.5},
                                         {"param.weight.init_bound", bound}});
    EXPECT_THAT(x, testing::Each(AllOf(testing::Ge(-0.5 * bound), testing::Le(0.5 * bound))));
    EXPECT_NEAR(mean(x), 0, 0.03) << bound;
    EXPECT_NEAR(deviation(x) / (0.5 * cut_deviation(bound)), 1, 0.04) << bound;
    EXPECT_GT(std::set<float>(x.begin(), x.end()).size(), x.size() - 20) << "each value has random numbers of its own";
  }
  const Attributes usual = {{"param.weight.init", "truncated_normal"}, {"param.weight.init_std", 1}};
  const std::vector<float> two = weight(usual);
  EXPECT_GT(*std::max_element(two.begin(), two.end()), 1.8F);
  EXPECT_THAT(two, testing::Each(testing::Le(2.0F)));
  EXPECT_NE(two, weight(usual, 2));
}

TEST_F(Initializers, OfAnOrthogonalMatrix) {
  const auto expect_orthonormal = [](const std::vector<float>& x, int64_t rows, int64_t columns, double gain) {
    const bool by_rows = rows <= columns;
    const int64_t vectors = std::min(rows, columns), length = std::max(rows, columns);
    const auto at = [&](int64_t k, int64_t i) {
      return static_cast<double>(x[static_cast<size_t>(by_rows ? k * columns + i : i * columns + k)]);
    };
    for (int64_t a = 0; a < vectors; ++a)
      for (int64_t b = 0; b <= a; ++b) {
        double product = 0;
        for (int64_t i = 0; i < length; ++i) product += at(a, i) * at(b, i);
        ASSERT_NEAR(product, a == b ? gain * gain : 0, 1e-6) << rows << " rows, vectors " << a << ", " << b;
      }
  };
  expect_orthonormal(weight({{"param.weight.init", "orthogonal"}}), kInputs, kOutputs, 1);
  expect_orthonormal(weight({{"param.weight.init", "orthogonal"}, {"param.weight.init_gain", 0.5}}), kInputs, kOutputs,
                     0.5);
  const auto of_shape = [&](const std::vector<int64_t>& shape) {
    const Attributes given = {{"shape", shape}, {"param.value.init", "orthogonal"}};
    return values(host_.parameters({host_.layer("parameter", {x_}, given, "p")}, 1), "p.value");
  };
  expect_orthonormal(of_shape({33, 33}), 33, 33, 1);
  expect_orthonormal(of_shape({5, 3, 7}), 5, 21, 1);  // all dimensions but the first are columns
  expect_orthonormal(of_shape({24, 3, 2}), 24, 6, 1);
  expect_orthonormal(of_shape({1, 1}), 1, 1, 1);
  // The distribution is uniform: no entry has a preferred sign.
  constexpr int kSeeds = 200;
  std::vector<double> positive(kInputs * kOutputs);
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const auto drawn = weight({{"param.weight.init", "orthogonal"}}, seed);
    for (size_t i = 0; i < positive.size(); ++i) positive[i] += drawn[i] > 0 ? 1 : 0;
  }
  for (size_t i = 0; i < positive.size(); ++i) EXPECT_NEAR(positive[i], kSeeds / 2, 32) << i;  // 4.5 deviations
}

TEST_F(Initializers, HaveModesAndNonlinearities) {
  const auto of = [&](const Attributes& more) {
    Attributes given = {{"param.weight.init", "kaiming_normal"}};
    given.insert(given.end(), more.begin(), more.end());
    return deviation(weight(given));
  };
  const double one = of({{"param.weight.init_gain", 1}});  // 1 / sqrt(60) and noise, which is the same for all
  const auto expect = [&](const Attributes& more, double factor) { EXPECT_NEAR(of(more) / one, factor, 1e-5); };
  expect({}, std::sqrt(2));
  expect({{"param.weight.init_mode", "fan_in"}}, std::sqrt(2));
  expect({{"param.weight.init_mode", "fan_out"}}, std::sqrt(2 * 60.0 / 40));
  expect({{"param.weight.init_mode", "fan_average"}}, std::sqrt(2 * 60.0 / 50));
  expect({{"param.weight.init_nonlinearity", "linear"}}, 1);
  expect({{"param.weight.init_nonlinearity", "sigmoid"}}, 1);
  expect({{"param.weight.init_nonlinearity", "tanh"}}, 5.0 / 3);
  expect({{"param.weight.init_nonlinearity", "relu"}}, std::sqrt(2));
  expect({{"param.weight.init_nonlinearity", "selu"}}, 0.75);
  expect({{"param.weight.init_nonlinearity", "leaky_relu"}}, std::sqrt(2 / 1.0001));
  expect({{"param.weight.init_nonlinearity", "leaky_relu"}, {"param.weight.init_slope", 0.5}}, std::sqrt(1.6));
  expect({{"param.weight.init_nonlinearity", "tanh"}, {"param.weight.init_mode", "fan_out"}}, 5.0 / 3 * std::sqrt(1.5));
}

TEST_F(Initializers, RefuseKeysThatDoNotGoTogether) {
  const auto of = [&](const char* init, Attributes more) {
    more.push_back({"param.weight.init", init});
    return refusal(more);
  };
  EXPECT_THAT(of("kaiming_normal", {{"param.weight.init_gain", 1}, {"param.weight.init_nonlinearity", "relu"}}),
              HasSubstr("\"param.weight.init_gain\": \"param.weight.init_nonlinearity\" replaces it"));
  for (const char* nonlinearity : {"relu", ""}) {
    Attributes given = {{"param.weight.init_slope", 1}};
    if (*nonlinearity != 0) given.push_back({"param.weight.init_nonlinearity", nonlinearity});
    EXPECT_THAT(of("orthogonal", given), HasSubstr("\"param.weight.init_slope\": is of "));
  }
  EXPECT_THAT(of("kaiming_normal", {{"param.weight.init_nonlinearity", "rellu"}}),
              AllOf(HasSubstr("unknown \"rellu\""), HasSubstr("\"relu\"")));
  EXPECT_THAT(of("kaiming_normal", {{"param.weight.init_mode", 1}}), HasSubstr("unknown 1; known: fan_in, fan_out"));
  EXPECT_THAT(of("xavier_normal", {{"param.weight.init_mode", "fan_in"}}),
              HasSubstr("has no such key; it has init_gain, init_nonlinearity, init_slope"));
  for (const double bound : {0.0, -1.0})
    EXPECT_THAT(of("truncated_normal", {{"param.weight.init_std", 1}, {"param.weight.init_bound", bound}}),
                HasSubstr("is not above 0"));
  EXPECT_THAT(of("truncated_normal", {}), HasSubstr("needs \"param.weight.init_std\""));
  EXPECT_THAT(refusal({{"param.bias.init", "orthogonal"}}),
              AllOf(HasSubstr("needs at least two dimensions"), HasSubstr("[40]")));
}

TEST_F(Initializers, DependOnSeedAndName) {
  const Attributes attributes = {{"param.weight.init", "normal"}, {"param.weight.init_std", 1}};
  EXPECT_EQ(weight(attributes), weight(attributes));
  EXPECT_NE(weight(attributes), weight(attributes, 2));
  const Layer a = fc("a", attributes), y = fc("y", attributes);
  EXPECT_EQ(values(host_.parameters({a, y}, 1), "y.weight"), weight(attributes));
}

TEST_F(Initializers, ChangeOneParameterAlone) {
  const Layer plain = fc("y", {}), one = fc("y", {{"param.bias.init", "constant"}, {"param.bias.init_value", 3}});
  const Parameters a = host_.parameters({plain}, 1), b = host_.parameters({one}, 1);
  EXPECT_EQ(values(a, "y.weight"), values(b, "y.weight"));
  EXPECT_THAT(values(a, "y.bias"), testing::Each(0.0F));
  EXPECT_THAT(values(b, "y.bias"), testing::Each(3.0F));
}

TEST_F(Initializers, ReachTheLayerBeforeAnActivation) {
  EXPECT_THAT(weight({{"param.weight.init", "constant"}, {"param.weight.init_value", 2}, {"act", "relu"}}),
              testing::Each(2.0F));
}

TEST_F(Initializers, OfSharedParametersAreStatedByAnyLayer) {
  const auto shared = [&](const std::string& name, Attributes attributes) {
    attributes.push_back({"parameter_name", "shared"});
    return fc(name, attributes);
  };
  const auto two = [&](const char* name, double value) {
    return shared(name, {{"param.weight.init", "constant"}, {"param.weight.init_value", value}});
  };
  const Layer none = shared("none", {}), a = two("a", 2), b = two("b", 2), other = two("other", 3);
  EXPECT_THAT(values(host_.parameters({none, a, b}, 1), "shared.weight"), testing::Each(2.0F));
  EXPECT_THAT(values(host_.parameters({a, none}, 1), "shared.weight"), testing::Each(2.0F));
  try {
    (void)host_.parameters({none, a, other}, 1);
    ADD_FAILURE() << "nothing was refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), TN_INVALID);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("\"shared.weight\""), HasSubstr("\"a\""), HasSubstr("\"other\"")));
  }
}

TEST_F(Initializers, AreDescribedWithTheLayer) {
  const Layer y = fc("y", {{"param.weight.init", "constant"}, {"param.weight.init_value", 2}});
  EXPECT_THAT(y.describe(), HasSubstr("param.weight.init_value"));
}

TEST_F(Initializers, RefuseWrongNumbers) {
  EXPECT_THAT(refusal({{"param.weight.init", "constnt"}}),
              AllOf(HasSubstr("\"bad\""), HasSubstr("param.weight.init"), HasSubstr("\"constant\"")));
  EXPECT_THAT(refusal({{"param.weight.init", 1}}), HasSubstr("expected the name of an initializer"));
  EXPECT_THAT(refusal({{"param.weight.inti", "constant"}}), HasSubstr("\"init\""));
  EXPECT_THAT(refusal({{"param.weights.init", "constant"}}), HasSubstr("no parameter \"weights\""));
  EXPECT_THAT(refusal({{"param.weight.init_std", 1}}), HasSubstr("needs \"param.weight.init\""));
  EXPECT_THAT(refusal({{"param.weight.init", "constant"}}), HasSubstr("needs \"param.weight.init_value\""));
  EXPECT_THAT(refusal({{"param.weight.init", "constant"}, {"param.weight.init_value", "x"}}),
              HasSubstr("expected a number"));
  EXPECT_THAT(refusal({{"param.weight.init", "constant"}, {"param.weight.init_low", 1}}),
              AllOf(HasSubstr("\"param.weight.init_low\""), HasSubstr("it has init_value")));
  EXPECT_THAT(refusal({{"param.weight.init", "normal"}, {"param.weight.init_std", -1}}),
              AllOf(HasSubstr("\"param.weight.init_std\""), HasSubstr("-1 is negative")));
  EXPECT_THAT(refusal({{"param.weight.init", "normal"}, {"param.weight.init_std", std::nan("")}}),
              HasSubstr("not a finite float32"));
  EXPECT_THAT(refusal({{"param.weight.init", "constant"}, {"param.weight.init_value", 1e39}}),
              HasSubstr("not a finite float32"));
  EXPECT_THAT(refusal({{"param.weight.init", "uniform"}, {"param.weight.init_low", 2}, {"param.weight.init_high", 1}}),
              HasSubstr("2 is above init_high, which is 1"));
  EXPECT_THAT(refusal({{"param.bias.init", "xavier_normal"}}), AllOf(HasSubstr("needs a matrix"), HasSubstr("[40]")));
}

}  // namespace
}  // namespace tenon_tests
