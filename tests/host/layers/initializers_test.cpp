// First values of single parameters: the host attributes param.<suffix>.init and init_*.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
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
