// Callbacks of plan, expand and lower, called through the C tables, and attributes that every layer has.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <tenon/plugin.hpp>
#include <tenon/tenon.hpp>

#include "tests/support/bare_plugin.h"
#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using testing::HasSubstr;

// Results of the callbacks, in the order of the calls.
std::vector<int32_t>* answers = nullptr;

tn_status plan(const tn_planner* planner) {
  const tn_dim size[] = {tn_dim_constant(2)};
  tn_spec spec = {};
  spec.size = sizeof spec;
  spec.dtype = TN_COMPUTE;
  spec.rank = 1;
  spec.dims = size;
  tn_parameter parameter = {};
  parameter.size = sizeof parameter;
  parameter.spec = &spec;
  for (const char* suffix : {"first", "second", "running"}) {
    parameter.suffix = suffix;
    const auto declare = suffix == std::string("running") ? planner->buffer : planner->parameter;
    answers->push_back(declare(planner->self, &parameter));
  }
  return planner->output(planner->self, 0, planner->inputs[0]);
}

tn_status expand(const tn_expander* expander) {
  tn_expansion_layer layer = {};
  layer.size = sizeof layer;
  answers->push_back(expander->layer(expander->self, tn_int(expander->attributes, "null", 0) != 0 ? nullptr : &layer));
  return answers->back() < 0 ? TN_PLUGIN_FAULT : TN_OK;
}

// Records primitives with an absent operand, which return an absent value, and then with an unknown one, which fail.
tn_status lower(const tn_attributes*, const tn_builder* builder) {
  void* const self = builder->self;
  const tn_ref x = builder->input(self, 0, 0), absent = -1, none = x + 1000;
  const tn_dim size[] = {tn_dim_constant(2)};
  const int32_t axes[] = {0, 1};
  const tn_ref values[] = {x, none};
  *answers = {builder->input(self, 0, 1),  // the port has one value
              builder->gemm(self, absent, x, 0, 1),
              builder->gather(self, x, absent),
              builder->scatter_add(self, absent, x, size),
              builder->view(self, absent, size, 1),
              builder->concat(self, &absent, 1, 0),
              builder->slice(self, absent, 0, 0, 1),
              builder->pad(self, absent, 0, 0, 1),
              builder->transpose(self, absent, axes, 2),
              builder->weights(self, absent)};
  if (builder->status(self) != TN_OK) return TN_INVALID;
  for (const tn_ref answer :
       {builder->input(self, 5, 0), builder->gemm(self, none, x, 0, 1), builder->gemm(self, x, none, 0, 1),
        builder->gather(self, none, x), builder->gather(self, x, none), builder->scatter_add(self, none, x, size),
        builder->scatter_add(self, x, none, size), builder->view(self, none, size, 1),
        builder->concat(self, values, 2, 0), builder->slice(self, none, 0, 0, 1), builder->pad(self, none, 0, 0, 1),
        builder->transpose(self, none, axes, 2), builder->segment(self, TN_SEGMENT_SUM, none, size, 0),
        builder->weights(self, none)})
    answers->push_back(answer);
  return TN_INVALID;
}

struct Declared {
  static void describe(tn::LayerDescription& d) {
    d.type("declared", "parameters of a test");
    d.input("x", "any");
    d.output("y", "x");
    d.parameter("first");
    d.parameter("second");
    d.parameter("running");
    d.attribute(tn::int_attribute("null", 0).doc("whether expand adds no layer at all"));
  }
  static void plan(tn::Planner& planner) { planner.output(0, planner.input(0)); }
};

// A layer whose input has the index limit 0.
struct Limited {
  static void describe(tn::LayerDescription& d) {
    d.type("limited", "a layer of a test");
    d.input("ids", "integers", TN_PORT_INTEGER);
    d.output("y", "ids");
  }
  static void plan(tn::Planner& planner) {
    planner.index_limit(0, 0);
    planner.output(0, planner.input(0));
  }
  static void lower(const tn::Attributes& /*attributes*/, tn::Builder& body) { body.output(0, body.input(0)); }
};
void describe_limited(tn::Plugin& plugin) {
  plugin.about("test.limited", "1.0.0", "a layer of the tests", "Apache-2.0");
  plugin.layer<Limited>();
}

class Declarations : public testing::Test {
 protected:
  Declarations() : host_({1, {tenon_tests::plugin_folder()}, nullptr, {}}) {
    type_ = *tn::layer_type<Declared>();
    type_.plan = &plan;
    type_.expand = &expand;
    plugin_ = bare_plugin("test.declared");
    plugin_.layers_count = 1;
    plugin_.layers = types_;
    answers = &answers_;
    DataOptions x;
    x.name = "x", x.shape = {2};
    x_ = host_.data(x);
  }
  ~Declarations() override { answers = nullptr; }
  // The host copies the table, so tests change it before this call.
  void add() { host_.add_plugin(&plugin_); }
  std::string refusal(const Attributes& attributes) {
    try {
      (void)host_.layer("declared", {x_}, attributes, "mine");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), TN_PLUGIN_FAULT);
      return error.what();
    }
    return "nothing was refused";
  }

  Host host_;
  tn_layer_type type_ = {};
  const tn_layer_type* types_[1] = {&type_};
  tn_plugin plugin_ = {};
  std::vector<int32_t> answers_;
  Layer x_;
};

TEST_F(Declarations, AreNumberedFromZero) {
  type_.expand = nullptr;
  add();
  try {
    (void)host_.layer("declared", {x_}, {}, "mine");
  } catch (const Error&) {  // it has no body
  }
  EXPECT_THAT(answers_, testing::ElementsAre(0, 1, 0));
}

TEST_F(Declarations, OfALayerInsideHaveAType) {
  add();
  EXPECT_THAT(refusal({{"null", 0}}), HasSubstr("expand adds a layer without a type"));
  EXPECT_THAT(refusal({{"null", 1}}), HasSubstr("expand adds a layer without a type"));
  EXPECT_THAT(answers_, testing::ElementsAre(0, 1, 0, testing::Lt(0), 0, 1, 0, testing::Lt(0)));
}

TEST_F(Declarations, ValuesThatAreNotThereGiveNone) {
  type_.expand = nullptr;
  type_.lower = &lower;
  add();
  const Layer mine = host_.layer("declared", {x_}, {}, "mine");
  MachineOptions options;
  options.max_samples = 1;
  try {
    (void)host_.machine(host_.parameters({mine}, 1), {mine}, options);
    ADD_FAILURE() << "nothing was refused";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("layer \"mine\""));
  }
  EXPECT_THAT(answers_, testing::AllOf(testing::SizeIs(24), testing::Each(-1)));
}

TEST_F(Declarations, MultipliersAreNumbersOfAtLeastZero) {
  for (const double rate : {-1.0, std::nan(""), static_cast<double>(INFINITY)})
    for (const char* key : {"param.weight.rate_multiplier", "param.weight.decay_multiplier"}) {
      try {
        (void)host_.layer("fc", {x_}, {{"size", 1}, {key, rate}}, "mine");
        ADD_FAILURE() << key << " " << rate;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), TN_INVALID);
        EXPECT_THAT(error.what(), HasSubstr(key));
      }
    }
}

// Older job and model files have other names for the multipliers. Both names are read, the new ones are written.
TEST_F(Declarations, FormerNamesOfMultipliersAreRead) {
  const Layer made =
      host_.layer("fc", {x_}, {{"size", 1}, {"param.weight.learning_rate", 0.5}, {"param.bias.decay", 0.25}}, "mine");
  const auto attributes = nlohmann::json::parse(made.describe()).at("attributes");
  EXPECT_EQ(attributes.at("param.weight.rate_multiplier"), 0.5);
  EXPECT_EQ(attributes.at("param.bias.decay_multiplier"), 0.25);
  EXPECT_FALSE(attributes.contains("param.weight.learning_rate"));
  try {
    (void)host_.layer("fc", {x_}, {{"size", 1}, {"param.weight.decay", 0}, {"param.weight.decay_multiplier", 0}});
    ADD_FAILURE() << "accepted an attribute under two names";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("\"param.weight.decay\" is the former name of \"param.weight.decay_multiplier\""));
    EXPECT_EQ(error.subject(), "param.weight.decay");
  }
}

TEST_F(Declarations, ALimitOfZeroAllowsNoIndex) {
  host_.add_plugin(tn::entry<describe_limited>());
  DataOptions ids;
  ids.name = "ids", ids.dtype = TN_I32;
  const Layer limited = host_.layer("limited", {host_.data(ids)}, {}, "mine");
  MachineOptions options;
  options.max_samples = 1;
  const Machine machine = host_.machine(host_.parameters({limited}, 1), {limited}, options);
  const int32_t zero = 0;
  try {
    machine.forward({{"ids", {TN_I32, {1}, &zero}}});
    ADD_FAILURE() << "accepted 0 as an index";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), TN_BAD_DATA);
    EXPECT_THAT(error.what(), HasSubstr("data layer \"ids\": sample 0 of the minibatch is 0"));
  }
}

}  // namespace
}  // namespace tenon_tests
