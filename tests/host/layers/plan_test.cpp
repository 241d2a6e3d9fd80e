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
  plugin.about("tenon.test.limited", "1.0.0", "a layer of the tests", "Apache-2.0");
  plugin.layer<Limited>();
}

class Declarations : public testing::Test {
 protected:
  Declarations() : host_({1, {tenon_tests::plugin_folder()}, nullptr, {}}) {
    type_ = *tn::layer_type<Declared>();
    type_.plan = &plan;
    type_.expand = &expand;
    plugin_ = bare_plugin("tenon.test.declared");
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

// A layer whose output port "parts" is variadic; output i is the input. Which ones plan and lower give is the test's.
struct Parts {
  static inline std::vector<uint32_t> planned, lowered;
  static void describe(tn::LayerDescription& d) {
    d.type("test_parts", "a layer of a test");
    d.input("x", "any");
    d.output("whole", "x");
    d.output("parts", "x, many times", TN_PORT_VARIADIC);
  }
  static void plan(tn::Planner& planner) {
    for (const uint32_t number : planned) planner.output(number, planner.input(0));
  }
  static void lower(const tn::Attributes& /*attributes*/, tn::Builder& body) {
    for (const uint32_t number : lowered) {
      tn::Program p;
      p.output(p.full() * static_cast<double>(number + 1));
      body.output(number, body.pointwise(p, {body.input(0)})[0]);
    }
  }
};
// A layer with the same outputs that are those of a test_parts, in reverse order.
struct ReversedParts {
  static void describe(tn::LayerDescription& d) {
    Parts::describe(d);
    d.type("test_reversed_parts", "a layer of a test");
  }
  static void plan(tn::Planner& planner) { Parts::plan(planner); }
  static bool expand(tn::Expander& expander) {
    const tn_ref parts = expander.layer("test_parts", {expander.input(0)});
    const auto count = static_cast<uint32_t>(Parts::planned.size());
    for (uint32_t i = 0; i < count; ++i)
      if (skipped != i) expander.output(i, expander.output_of(parts, count - 1 - i));
    return true;
  }
  static inline uint32_t skipped = UINT32_MAX;
};
void describe_parts(tn::Plugin& plugin) {
  plugin.about("tenon.test.parts", "1.0.0", "layers of the tests", "Apache-2.0");
  plugin.layer<Parts>();
  plugin.layer<ReversedParts>();
}

class VariadicOutputs : public Declarations {
 protected:
  VariadicOutputs() {
    host_.add_plugin(tn::entry<describe_parts>());
    Parts::planned = Parts::lowered = {0, 1, 2, 3};
    ReversedParts::skipped = UINT32_MAX;
  }
  // The message of TN_PLUGIN_FAULT for a layer of these outputs.
  std::string fault(const char* type, const std::vector<uint32_t>& planned) {
    Parts::planned = planned;
    try {
      (void)machine(host_.layer(type, {x_}, {}, "mine"));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), TN_PLUGIN_FAULT) << error.what();
      return error.what();
    }
    return "nothing was refused";
  }
  Machine machine(const Layer& layer) {
    MachineOptions options;
    options.max_samples = 1, options.keep_all = true;
    return host_.machine(host_.parameters({layer}, 1), {layer}, options);
  }
  // The factors of all outputs of a layer.
  std::vector<float> factors(const Layer& layer, uint32_t count) {
    const Machine made = machine(layer);
    const float x[] = {1, 1};
    made.forward({{"x", {TN_F32, {1, 2}, x}}});
    std::vector<float> result;
    for (uint32_t i = 0; i < count; ++i)
      result.push_back(*static_cast<const float*>(made.output(layer.output(i)).data));
    return result;
  }
};

TEST_F(VariadicOutputs, AreAsManyAsPlanStates) {
  const Layer four = host_.layer("test_parts", {x_}, {}, "four");
  EXPECT_THAT(factors(four, 4), testing::ElementsAre(1, 2, 3, 4));
  try {
    (void)four.output(4);
    ADD_FAILURE() << "an output that is not there";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), TN_NOT_FOUND);
    EXPECT_THAT(error.what(), HasSubstr("layer \"four\" has no output 4; it has 4"));
  }
  const nlohmann::json outputs = nlohmann::json::parse(four.describe()).at("outputs");
  ASSERT_EQ(outputs.size(), 4u);
  EXPECT_EQ(outputs[0].at("name"), "four");
  EXPECT_EQ(outputs[3].at("name"), "four:3");
  EXPECT_EQ(outputs[3].at("shape"), "[samples, 2]");
  Parts::planned = Parts::lowered = {0, 1};
  EXPECT_THAT(factors(host_.layer("test_parts", {x_}, {}, "two"), 2), testing::ElementsAre(1, 2));
}

TEST_F(VariadicOutputs, OfExpansionsAreNumberedLikeThoseOfLayers) {
  EXPECT_THAT(factors(host_.layer("test_reversed_parts", {x_}, {}, "four"), 4), testing::ElementsAre(4, 3, 2, 1));
  ReversedParts::skipped = 3;
  EXPECT_THAT(fault("test_reversed_parts", {0, 1, 2, 3}), HasSubstr("expand set no output \"parts[2]\""));
}

TEST_F(VariadicOutputs, AreContiguousAndAtLeastOne) {
  EXPECT_THAT(fault("test_parts", {0}), HasSubstr("plan did not declare output \"parts[0]\""));
  EXPECT_THAT(fault("test_parts", {1, 2}), HasSubstr("plan did not declare output \"whole\""));
  EXPECT_THAT(fault("test_parts", {0, 1, 4, 2}), HasSubstr("plan did not declare output \"parts[2]\""));
  EXPECT_THAT(fault("test_parts", {0, 1, UINT32_MAX}),
              HasSubstr("plan declares output 4294967295; a layer has at most"));
  Parts::lowered = {0, 1, 3};
  EXPECT_THAT(fault("test_parts", {0, 1, 2, 3}), HasSubstr("lower gave no output \"parts[1]\""));
  Parts::lowered = {0, 1, 2, 3, 4};
  EXPECT_THAT(fault("test_parts", {0, 1, 2, 3}), HasSubstr("lower sets output 4; the layer has 4 outputs"));
}

// A layer of 4-bit integers, which nothing but a native kernel could compute.
struct Nibbles {
  static constexpr tn_dtype kInt4 = TN_DTYPE(0, 4);
  static void describe(tn::LayerDescription& d) {
    d.type("test_nibbles", "a layer of a test");
    d.input("x", "any");
    d.output("y", "x, rounded");
  }
  static void plan(tn::Planner& planner) { planner.output(0, planner.input(0).as(kInt4)); }
  static void lower(const tn::Attributes& /*attributes*/, tn::Builder& body) {
    tn::Program p;
    p.output(tn::to_int(p.full()), kInt4);
    body.output(0, body.pointwise(p, {body.input(0)})[0]);
  }
};
void describe_nibbles(tn::Plugin& plugin) {
  plugin.about("tenon.test.nibbles", "1.0.0", "a layer of the tests", "Apache-2.0");
  plugin.layer<Nibbles>();
}

TEST_F(Declarations, PrimitivesHaveNoElementsOfLessThanAByte) {
  host_.add_plugin(tn::entry<describe_nibbles>());
  const Layer nibbles = host_.layer("test_nibbles", {x_}, {}, "mine");
  MachineOptions options;
  options.max_samples = 1;
  try {
    (void)host_.machine(host_.parameters({nibbles}, 1), {nibbles}, options);
    ADD_FAILURE() << "nothing was refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), TN_UNSUPPORTED);
    EXPECT_THAT(error.what(), testing::AllOf(HasSubstr("layer \"mine\""), HasSubstr("int4 [samples, 2]"),
                                             HasSubstr("only native kernels")));
  }
}

// Jobs and models of before have split2, split3 and split4; what is written has split.
TEST_F(Declarations, FormerLayerTypesAreRead) {
  DataOptions data;
  data.name = "twelve", data.shape = {12};
  const Layer twelve = host_.data(data);
  for (const int64_t parts : {2, 3, 4}) {
    const Layer made = host_.layer("split" + std::to_string(parts), {twelve}, {{"axis", 1}}, "mine");
    const auto described = nlohmann::json::parse(made.describe());
    EXPECT_EQ(described.at("type"), "split");
    EXPECT_EQ(described.at("attributes").at("parts"), parts);
    EXPECT_EQ(described.at("outputs").size(), static_cast<size_t>(parts));
  }
  EXPECT_EQ(nlohmann::json::parse(host_.describe_type("layer", "split3")).at("type"), "split");
  try {
    (void)host_.layer("split3", {twelve}, {{"parts", 3}}, "mine");
    ADD_FAILURE() << "the number of parts is given twice";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), TN_INVALID);
    EXPECT_THAT(error.what(), HasSubstr("\"split3\" is the former name of \"split\" with \"parts\" = 3"));
    EXPECT_EQ(error.subject(), "parts");
  }
}

TEST_F(Declarations, ALimitOfZeroIsRefused) {
  host_.add_plugin(tn::entry<describe_limited>());
  DataOptions ids;
  ids.name = "ids", ids.dtype = TN_I32;
  try {
    (void)host_.layer("limited", {host_.data(ids)}, {}, "mine");
    ADD_FAILURE() << "accepted the limit 0";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), TN_PLUGIN_FAULT);
    EXPECT_THAT(error.what(), HasSubstr("plan limits input 0 to 0; expected at least 1"));
  }
}

}  // namespace
}  // namespace tenon_tests
