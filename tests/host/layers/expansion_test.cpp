// Requirements of the host on the expansion of a cost.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tenon/plugin.hpp>
#include <tenon/tenon.hpp>

#include "tests/support/paths.h"
#include "tests/support/test_layers.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int64_t kSamples = 3, kColumns = 2;

// A cost with one value per sample and without a body.
template <typename Type>
struct ExpandedCost {
  static void describe(tn::LayerDescription& d) {
    d.type(Type::kName, "a cost made of other layers");
    d.role(TN_ROLE_COST);
    d.input("value", "[samples, columns]");
    d.input("weight", "[samples, columns]");
    d.output("output", "[samples]");
  }
  static void plan(tn::Planner& planner) { planner.output(0, tn::Spec({planner.input(0)[0]})); }
};

struct GoodCost : ExpandedCost<GoodCost> {
  static constexpr const char* kName = "good_cost";
  static bool expand(tn::Expander& expander) {
    expander.output(0, expander.layer("test_cost", {expander.input(0), expander.input(1)}));
    return true;
  }
};

struct NestedCost : ExpandedCost<NestedCost> {
  static constexpr const char* kName = "nested_cost";
  static bool expand(tn::Expander& expander) {
    expander.output(0, expander.layer("good_cost", {expander.input(0), expander.input(1)}));
    return true;
  }
};

// Expands to a layer that is not a cost but reads one.
struct ScaledCost : ExpandedCost<ScaledCost> {
  static constexpr const char* kName = "scaled_cost";
  static bool expand(tn::Expander& expander) {
    const tn_ref cost = expander.layer("good_cost", {expander.input(0), expander.input(1)});
    expander.output(0, expander.layer("relu", {cost}));
    return true;
  }
};

// A cost with two outputs.
struct PairCost : ExpandedCost<PairCost> {
  static constexpr const char* kName = "pair_cost";
  static void describe(tn::LayerDescription& d) {
    ExpandedCost<PairCost>::describe(d);
    d.output("second", "[samples]");
  }
  static void plan(tn::Planner& planner) {
    planner.output(0, tn::Spec({planner.input(0)[0]}));
    planner.output(1, tn::Spec({planner.input(0)[0]}));
  }
};

// Expands to the second output of a cost.
struct SecondCost : ExpandedCost<SecondCost> {
  static constexpr const char* kName = "second_cost";
  static bool expand(tn::Expander& expander) {
    const tn_ref pair = expander.layer("pair_cost", {expander.input(0), expander.input(1)});
    expander.output(0, expander.output_of(pair, 1));
    return true;
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.test.expanded_costs", "1.0.0", "costs of the tests", "Apache-2.0");
  plugin.layer<GoodCost>();
  plugin.layer<NestedCost>();
  plugin.layer<ScaledCost>();
  plugin.layer<PairCost>();
  plugin.layer<SecondCost>();
}

class ExpandedCosts : public testing::Test {
 protected:
  ExpandedCosts() : host_({2, {tenon_tests::plugin_folder()}, nullptr, {}}) {
    host_.add_plugin(&test_layers());
    host_.add_plugin(tn::entry<describe>());
    DataOptions ids;
    ids.name = "ids", ids.dtype = TN_I32;
    value_ = host_.layer("test_input", {host_.data(ids)},
                         {{"rows", kSamples}, {"shape", std::vector<int64_t>{kColumns}}}, "x");
    DataOptions weight;
    weight.name = "weight", weight.shape = {kColumns};
    weight_ = host_.data(weight);
  }

  Layer make(const char* type) { return host_.layer(type, {value_, weight_}, {}, "mine"); }
  std::string refusal(const char* type) {
    try {
      (void)make(type);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), TN_PLUGIN_FAULT);
      return error.what();
    }
    return "nothing was refused";
  }

  Host host_;
  Layer value_, weight_;
};

TEST_F(ExpandedCosts, AreTrained) {
  const Layer cost = make("nested_cost");
  MachineOptions options;
  options.max_samples = kSamples, options.training = true;
  const Machine machine = host_.machine(host_.parameters({cost}, 1), {cost}, options);
  const std::vector<int32_t> ids = {0, 1, 2};
  const std::vector<float> weights(kSamples * kColumns, 6);
  machine.forward(
      {{"ids", {TN_I32, {kSamples}, ids.data()}}, {"weight", {TN_F32, {kSamples, kColumns}, weights.data()}}});
  machine.backward();
  const auto* gradient = static_cast<const float*>(machine.gradient("x.values").data);
  EXPECT_THAT(std::vector<float>(gradient, gradient + kSamples * kColumns), testing::Each(2));
}

TEST_F(ExpandedCosts, EndInACost) {
  EXPECT_THAT(refusal("scaled_cost"), AllOf(HasSubstr("layer \"mine\" (scaled_cost)"), HasSubstr("a cost must expand"),
                                            HasSubstr("layer \"mine/relu\" (relu), which is not one")));
  EXPECT_THAT(refusal("second_cost"), AllOf(HasSubstr("layer \"mine\" (second_cost)"),
                                            HasSubstr("ends in output 1 of layer \"mine/pair_cost\"")));
}

}  // namespace
}  // namespace tenon_tests
