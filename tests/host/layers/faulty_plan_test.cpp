// Structs of a plugin that plan must not trust: sizes, dimensions, types, rules. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <tenon/plugin.hpp>
#include <tenon/tenon.hpp>

#include "tests/support/bare_plugin.h"
#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using testing::HasSubstr;

using Plan = std::function<tn_status(const tn_planner&)>;
const Plan* current = nullptr;

struct Faulty {
  static void describe(tn::LayerDescription& d) {
    d.type("test_faulty", "what a test plans");
    d.input("in", "any");
    d.output("out", "any");
    d.parameter("weight");
  }
  static void plan(tn::Planner& /*planner*/) {}
  static void lower(const tn::Attributes& /*attributes*/, tn::Builder& body) { body.output(0, body.input(0)); }
};

// A spec with the dimensions `dims`, which it borrows.
tn_spec spec_of(const std::vector<tn_dim>& dims) {
  tn_spec spec = {};
  spec.size = sizeof spec;
  spec.dtype = TN_COMPUTE;
  spec.rank = static_cast<int32_t>(dims.size());
  spec.dims = dims.data();
  return spec;
}

class FaultyPlan : public testing::Test {
 protected:
  FaultyPlan() : host_({1, {plugin_folder()}, nullptr, {}}) {
    type_ = *tn::layer_type<Faulty>();
    type_.plan = [](const tn_planner* planner) { return (*current)(*planner); };
    plugin_.layers_count = 1;
    plugin_.layers = types_;
    host_.add_plugin(&plugin_);
    DataOptions words;
    words.name = "words", words.shape = {2}, words.storage = TN_RAGGED;
    words_ = host_.data(words);
  }
  ~FaultyPlan() override { current = nullptr; }

  // Returns the refusal of a layer that is planned by `plan`.
  std::string refusal(const Plan& plan) {
    current = &plan;
    try {
      (void)host_.layer("test_faulty", {words_}, {}, "mine");
    } catch (const Error& error) {
      EXPECT_NE(error.code(), TN_INTERNAL) << error.what();
      EXPECT_THAT(error.what(), HasSubstr("layer \"mine\""));
      return error.what();
    }
    return "nothing was refused";
  }
  // The same of an output with the spec that `change` makes from a sound one, [samples].
  std::string output_refusal(const std::function<void(tn_spec&)>& change) {
    return refusal([&](const tn_planner& planner) {
      const std::vector<tn_dim> dims = {tn_dim_symbol(TN_SYMBOL_SAMPLES)};
      tn_spec spec = spec_of(dims);
      change(spec);
      return planner.output(planner.self, 0, &spec);
    });
  }
  // The same of an output with one dimension.
  std::string dim_refusal(const tn_dim& dim) {
    return output_refusal([&](tn_spec& spec) { spec.dims = &dim; });
  }
  // The same of rows by the rule that `change` makes from a sound one: the first of the words.
  std::string rule_refusal(const std::function<void(tn_rows_rule&, const tn_planner&)>& change) {
    return refusal([&](const tn_planner& planner) -> tn_status {
      tn_rows_rule rule = {};
      rule.size = sizeof rule;
      rule.rule = TN_ROWS_FIRST;
      rule.count = 1;
      rule.a = planner.inputs[0];
      change(rule, planner);
      tn_dim rows;
      if (planner.rows(planner.self, &rule, &rows) < 0) return TN_INVALID;
      return planner.output(planner.self, 0, planner.inputs[0]);
    });
  }

  Host host_;
  tn_layer_type type_ = {};
  const tn_layer_type* types_[1] = {&type_};
  tn_plugin plugin_ = bare_plugin("tenon.test.faulty");
  Layer words_;
};

TEST_F(FaultyPlan, ASoundOneIsAccepted) {
  EXPECT_EQ(output_refusal([](tn_spec&) {}), "nothing was refused");
  EXPECT_EQ(rule_refusal([](tn_rows_rule&, const tn_planner&) {}), "nothing was refused");
}

TEST_F(FaultyPlan, ExemptionsWithoutALimitAreRefused) {
  const auto exempting = [](uint32_t input) {
    return [input](const tn_planner& planner) { return planner.index_exempt(planner.self, input, -1); };
  };
  EXPECT_THAT(refusal(exempting(0)), HasSubstr("plan exempts -1 of input 0, which it does not limit"));
  EXPECT_THAT(refusal(exempting(7)), HasSubstr("plan exempts an integer of input 7"));
}

TEST_F(FaultyPlan, StructsOfTooSmallASizeAreRefused) {
  EXPECT_THAT(output_refusal([](tn_spec& spec) { spec.size = 0; }), HasSubstr("a tn_spec states a size of 0 bytes"));
  EXPECT_THAT(output_refusal([](tn_spec& spec) { spec.size = offsetof(tn_spec, outer); }),
              HasSubstr("a tn_spec states a size of 32 bytes"));
  EXPECT_THAT(rule_refusal([](tn_rows_rule& rule, const tn_planner&) { rule.size = 16; }), HasSubstr("too short"));
  for (const bool buffer : {false, true})
    EXPECT_THAT(refusal([&](const tn_planner& planner) -> tn_status {
                  const std::vector<tn_dim> dims = {tn_dim_constant(2)};
                  const tn_spec spec = spec_of(dims);
                  tn_parameter parameter = {};
                  parameter.suffix = "weight";
                  parameter.spec = &spec;
                  const auto declare = buffer ? planner.buffer : planner.parameter;
                  return declare(planner.self, &parameter) < 0 ? TN_INVALID : TN_OK;
                }),
                HasSubstr("a tn_parameter states a size of 0 bytes"));
  EXPECT_THAT(refusal([](const tn_planner& planner) -> tn_status {
                tn_error_report report = {};
                report.code = TN_INVALID;
                report.message = "unread";
                planner.errors->report(planner.errors->self, &report);
                return TN_INVALID;
              }),
              HasSubstr("a tn_error_report that states too small a size"));
}

TEST_F(FaultyPlan, TypesStoragesAndLayoutsOfALaterVersionAreRefused) {
  for (const tn_dtype dtype : {TN_F32 + (1U << 16), TN_DTYPE(9, 8), TN_DTYPE(2, 0)})
    EXPECT_THAT(output_refusal([&](tn_spec& spec) { spec.dtype = dtype; }), HasSubstr("the element type dtype(code"));
  for (const int32_t storage : {-1, 4, 77})
    EXPECT_THAT(output_refusal([&](tn_spec& spec) { spec.storage = storage; }),
                HasSubstr("the storage " + std::to_string(storage) + " is unknown"));
  EXPECT_THAT(output_refusal([](tn_spec& spec) { spec.layout = 3; }), HasSubstr("the layout 3 is unknown"));
}

TEST_F(FaultyPlan, DimensionsThatCanBeNegativeAreRefused) {
  EXPECT_THAT(dim_refusal({0, -4, 7, TN_SYMBOL_NONE, 0}), HasSubstr("-4 can be negative"));
  EXPECT_THAT(dim_refusal({1, -10, TN_UNBOUNDED, TN_SYMBOL_SAMPLES, 0}), HasSubstr("can be negative"));
  for (const int64_t coefficient : {0, -1})
    EXPECT_THAT(dim_refusal({coefficient, 5, TN_UNBOUNDED, TN_SYMBOL_SAMPLES, 0}), HasSubstr("expected at least 1"));
  for (const int32_t symbol : {-1, TN_SYMBOL_SAMPLES + 1, TN_SYMBOL_FIRST_RAGGED - 1})
    EXPECT_THAT(dim_refusal({1, 0, TN_UNBOUNDED, symbol, 0}),
                HasSubstr("the unknown symbol " + std::to_string(symbol)));
}

TEST_F(FaultyPlan, RowsNeedSymbolsOfTheInputs) {
  const tn_dim foreign = tn_dim_symbol(TN_SYMBOL_FIRST_RAGGED + 1000);
  EXPECT_THAT(dim_refusal(foreign), HasSubstr("plan uses rows of none of the inputs"));
  const std::vector<tn_dim> dims = {foreign}, twice = {{2, 0, TN_UNBOUNDED, TN_SYMBOL_FIRST_RAGGED + 1000, 0}};
  for (const std::vector<tn_dim>& shape : {dims, twice})
    for (const bool second : {false, true}) {
      tn_spec spec = spec_of(shape);
      spec.storage = TN_RAGGED;
      spec.levels = 1;
      spec.outer = shape.data();
      EXPECT_THAT(rule_refusal([&](tn_rows_rule& rule, const tn_planner&) {
                    if (second) rule.rule = TN_ROWS_CONCATENATED;
                    (second ? rule.b : rule.a) = &spec;
                  }),
                  HasSubstr("input"));
    }
  EXPECT_THAT(rule_refusal([&](tn_rows_rule& rule, const tn_planner&) {
                rule.rule = TN_ROWS_DATA;
                rule.bound = &foreign;
              }),
              HasSubstr("which no input has"));
  const tn_spec scalar = [] {
    tn_spec spec = spec_of({});
    spec.storage = TN_RAGGED;
    return spec;
  }();
  EXPECT_THAT(rule_refusal([&](tn_rows_rule& rule, const tn_planner&) { rule.a = &scalar; }),
              HasSubstr("expected sequences"));
}

TEST_F(FaultyPlan, ReservedMembersAndUnknownFlagsAreRefused) {
  EXPECT_THAT(dim_refusal({1, 0, TN_UNBOUNDED, TN_SYMBOL_SAMPLES, 7}), HasSubstr("reserved member of a tn_dim is 7"));
  const auto parameter = [&](const std::function<void(tn_parameter&, tn_spec&)>& change) {
    return refusal([&](const tn_planner& planner) -> tn_status {
      const std::vector<tn_dim> dims = {tn_dim_constant(2)};
      tn_spec spec = spec_of(dims);
      tn_parameter made = {};
      made.size = sizeof made;
      made.suffix = "weight";
      made.spec = &spec;
      change(made, spec);
      if (planner.parameter(planner.self, &made) < 0) return TN_INVALID;
      return planner.output(planner.self, 0, planner.inputs[0]);
    });
  };
  EXPECT_EQ(parameter([](tn_parameter&, tn_spec&) {}), "nothing was refused");
  EXPECT_THAT(parameter([](tn_parameter& p, tn_spec&) { p.flags = 0x10; }), HasSubstr("flags of a tn_parameter"));
  EXPECT_THAT(parameter([](tn_parameter& p, tn_spec&) { p.reserved = 5; }), HasSubstr("of a tn_parameter is 5"));
  EXPECT_THAT(parameter([](tn_parameter& p, tn_spec&) { p.initializer.reserved = 5; }), HasSubstr("tn_initializer"));
  for (const int32_t kind : {3, 1000, 1001})
    EXPECT_THAT(parameter([&](tn_parameter& p, tn_spec&) { p.initializer.kind = kind; }),
                HasSubstr("unknown initializer kind " + std::to_string(kind)));
  EXPECT_THAT(parameter([](tn_parameter& p, tn_spec&) { p.merge = TN_MERGE_SUM; }), HasSubstr("merge of a parameter"));
  EXPECT_THAT(parameter([](tn_parameter&, tn_spec& spec) { spec.storage = TN_CSR; }), HasSubstr("that is csr"));
  EXPECT_THAT(rule_refusal([](tn_rows_rule& rule, const tn_planner&) { rule.window = 3; }),
              HasSubstr("members that it does not use"));
}

TEST_F(FaultyPlan, AFailedDeclarationCannotBeIgnored) {
  const auto ignoring = [&](const std::function<void(const tn_planner&)>& fault) {
    return refusal([&](const tn_planner& planner) -> tn_status {
      fault(planner);
      return planner.output(planner.self, 0, planner.inputs[0]);
    });
  };
  EXPECT_THAT(ignoring([](const tn_planner& p) { p.index_limit(p.self, 0, 3); }), HasSubstr("which has floats"));
  EXPECT_THAT(ignoring([](const tn_planner& p) { p.index_limit(p.self, 0, 0); }), HasSubstr("expected at least 1"));
  EXPECT_THAT(ignoring([](const tn_planner& p) { p.state(p.self, 2); }), HasSubstr("only a metric has a state"));
  EXPECT_THAT(ignoring([](const tn_planner& p) { p.carried(p.self, nullptr); }), HasSubstr("carries a null spec"));
  EXPECT_THAT(ignoring([](const tn_planner& p) {
                p.output(p.self, 0, nullptr);
                p.index_limit(p.self, 99, 1);
                tn_fail(p.errors, TN_INVALID, nullptr, "a later report");
              }),
              HasSubstr("plan declares output 0"))
      << "the first failure is told";
}

TEST_F(FaultyPlan, APartOfAByteAboveOneIsNoType) {
  for (const uint32_t bits : {9U, 12U, 33U})
    EXPECT_THAT(output_refusal([&](tn_spec& spec) { spec.dtype = TN_DTYPE(0, bits); }), HasSubstr("is unknown"));
}

// The rows of a rule have the sequences of the input, whatever the plugin's spec says.
TEST_F(FaultyPlan, TheSequencesAreThoseOfTheInput) {
  EXPECT_EQ(rule_refusal([](tn_rows_rule& rule, const tn_planner& planner) {
              static tn_spec changed;
              static const tn_dim outer[] = {tn_dim_constant(12345)};
              changed = *planner.inputs[0];
              changed.outer = outer;
              rule.a = &changed;
            }),
            "nothing was refused");
}

}  // namespace

}  // namespace tenon_tests
