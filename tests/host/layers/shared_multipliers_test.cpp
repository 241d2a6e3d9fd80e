// Layers that share a parameter and state its multipliers.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tenon/tenon.hpp>

#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using testing::AllOf;
using testing::HasSubstr;

class SharedMultipliers : public testing::Test {
 protected:
  SharedMultipliers() : host_({1, {tenon_tests::plugin_folder()}, nullptr, {}}) {
    DataOptions options;
    options.name = "x", options.shape = {kSize};
    x_ = host_.data(options);
  }

  Layer layer(const std::string& name, Attributes attributes) {
    attributes.push_back({"size", kSize});
    attributes.push_back({"parameter_name", "shared"});
    return host_.layer("fc", {x_}, attributes, name);
  }
  std::string refusal(const Layers& outputs) {
    try {
      (void)host_.parameters(outputs, 1);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), TN_INVALID);
      return error.what();
    }
    return "nothing was refused";
  }

  static constexpr int64_t kSize = 2;
  Host host_;
  Layer x_;
};

TEST_F(SharedMultipliers, AreStatedByAnyOfThem) {
  const Layer none = layer("none", {});
  const Layer weight = layer("weight", {{"param.weight.rate_multiplier", 0.5}});
  const Layer both = layer("both", {{"param.weight.rate_multiplier", 0.5}, {"param.bias.decay_multiplier", 0.25}});
  EXPECT_NO_THROW((void)host_.parameters({none, weight, both}, 1));
  EXPECT_NO_THROW((void)host_.parameters({both, weight, none}, 1));
}

TEST_F(SharedMultipliers, MustAgree) {
  const Layer none = layer("none", {});
  const Layer a = layer("a", {{"param.weight.rate_multiplier", 0.5}, {"param.bias.decay_multiplier", 0.125}});
  const Layer b = layer("b", {{"param.weight.rate_multiplier", 0.25}});
  const Layer c = layer("c", {{"param.bias.decay_multiplier", 0}, {"act", "relu"}});
  EXPECT_THAT(refusal({none, a, b}), AllOf(HasSubstr("\"shared.weight\""), HasSubstr("rate multiplier to 0.5"),
                                           HasSubstr("\"a\""), HasSubstr("\"b\" to 0.25")));
  EXPECT_THAT(refusal({c, a}), AllOf(HasSubstr("\"shared.bias\""), HasSubstr("decay multiplier to 0.0"),
                                     HasSubstr("\"c/fc\""), HasSubstr("\"a\" to 0.125")));
}

}  // namespace
}  // namespace tenon_tests
