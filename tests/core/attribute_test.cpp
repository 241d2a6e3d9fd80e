// SPDX-License-Identifier: Apache-2.0
#include "core/attribute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/support/memory_system.h"

namespace tenon_tests {

using namespace tenon::core;

namespace {

using nlohmann::json;
using ::testing::HasSubstr;

using Ints = std::vector<int64_t>;
using Floats = std::vector<double>;
using Strings = std::vector<std::string>;

Attribute attribute(const std::string& name, int32_t kind, Value initial = {}, bool required = false) {
  Attribute result;
  result.name = name;
  result.kind = kind;
  result.initial = std::move(initial);
  result.required = required;
  return result;
}

std::vector<Attribute> declared() {
  std::vector<Attribute> result = {attribute("size", TN_ATTR_INT, {}, true),
                                   attribute("rate", TN_ATTR_FLOAT, 0.5),
                                   attribute("mode", TN_ATTR_STRING, std::string("mean")),
                                   attribute("shape", TN_ATTR_INTS),
                                   attribute("weights", TN_ATTR_FLOATS),
                                   attribute("names", TN_ATTR_STRINGS),
                                   attribute("bias", TN_ATTR_BOOL, true)};
  result[0].minimum = 1;
  result[1].minimum = 0;
  result[1].maximum = 1;
  result[2].choices = {"mean", "sum"};
  result[3].maximum = 1000000;
  return result;
}

std::string refusal(const Values& given) {
  const Error error = error_of([&] { (void)resolve(declared(), given); });
  EXPECT_EQ(error.code(), TN_INVALID);
  return error.message();
}

TEST(Resolve, FillsDefaultsAndConverts) {
  const std::vector<Value> values =
      resolve(declared(), {{"size", int64_t{3}}, {"rate", int64_t{1}}, {"shape", int64_t{4}}, {"weights", Ints{1, 2}}});
  EXPECT_EQ(values[0], Value(int64_t{3}));
  EXPECT_EQ(values[1], Value(1.0));
  EXPECT_EQ(values[2], Value(std::string("mean")));
  EXPECT_EQ(values[3], Value(Ints{4}));
  EXPECT_EQ(values[4], Value(Floats{1, 2}));
  EXPECT_EQ(values[5], Value());
  EXPECT_EQ(values[6], Value(true));
}

TEST(Resolve, TakesOneValueForAListAndAnEmptyListForAnyKind) {
  const std::vector<Value> values =
      resolve(declared(), {{"size", int64_t{1}}, {"shape", Ints{}}, {"weights", 0.5}, {"names", std::string("a")}});
  EXPECT_EQ(values[3], Value(Ints{}));
  EXPECT_EQ(values[4], Value(Floats{0.5}));
  EXPECT_EQ(values[5], Value(Strings{"a"}));
  EXPECT_EQ(resolve(declared(), {{"size", int64_t{1}}, {"names", Ints{}}})[5], Value(Strings{}));
}

TEST(Resolve, NamesTheAttributeWhatWasExpectedAndWhatCame) {
  EXPECT_EQ(refusal({{"size", int64_t{-3}}}), "attribute \"size\": expected an integer of at least 1, got -3");
  EXPECT_EQ(refusal({{"size", 3.0}}), "attribute \"size\": expected an integer of at least 1, got 3.0");
  EXPECT_EQ(refusal({{"size", true}}), "attribute \"size\": expected an integer of at least 1, got true");
  EXPECT_EQ(refusal({}), "attribute \"size\" is missing: expected an integer of at least 1");
  EXPECT_EQ(refusal({{"size", Value()}}), "attribute \"size\" is missing: expected an integer of at least 1");
  EXPECT_EQ(refusal({{"size", int64_t{1}}, {"rate", 1.5}}),
            "attribute \"rate\": expected a number between 0 and 1, got 1.5");
  EXPECT_EQ(refusal({{"size", int64_t{1}}, {"mode", std::string("max")}}),
            "attribute \"mode\": expected one of \"mean\", \"sum\", got \"max\"");
  EXPECT_EQ(refusal({{"size", int64_t{1}}, {"shape", Ints{1, 1000001}}}),
            "attribute \"shape\": expected a list of integers, each of at most 1000000, got [1,1000001]");
  EXPECT_EQ(refusal({{"size", int64_t{1}}, {"names", Floats{1.5}}}),
            "attribute \"names\": expected a list of texts, got [1.5]");
}

TEST(Resolve, RefusesWhatIsNoNumber) {
  EXPECT_THAT(refusal({{"size", int64_t{1}}, {"rate", std::nan("")}}), HasSubstr("got nan"));
  EXPECT_THAT(refusal({{"size", int64_t{1}}, {"weights", std::numeric_limits<double>::infinity()}}),
              HasSubstr("got inf"));
}

TEST(Resolve, SuggestsTheNameThatWasMeant) {
  EXPECT_EQ(refusal({{"sise", int64_t{1}}}), "unknown attribute \"sise\"; did you mean \"size\"?");
  EXPECT_EQ(refusal({{"zzzzzz", int64_t{1}}}),
            "unknown attribute \"zzzzzz\"; known: size, rate, mode, shape, weights, names, bias");
  const Error none = error_of([] { (void)resolve({}, {{"size", int64_t{1}}}); });
  EXPECT_EQ(none.message(), "unknown attribute \"size\"; there are no attributes here");
}

TEST(Resolve, CutsALongValueBetweenCharacters) {
  std::string long_text = "a";
  for (int i = 0; i < 100; ++i) long_text += "é";
  const std::string message = refusal({{"size", int64_t{1}}, {"mode", long_text}});
  EXPECT_LT(message.size(), 150u);
  EXPECT_EQ(json::parse(json(message).dump()), message);  // whole characters only, or this throws
}

TEST(ValueJson, GoesThereAndBack) {
  for (const Value& value : {Value(true), Value(int64_t{-5}), Value(0.25), Value(std::string("a")), Value(Ints{1, 2}),
                             Value(Floats{1.5}), Value(Strings{"a", "b"})})
    EXPECT_EQ(value_from_json(to_json(value)), value);
  EXPECT_TRUE(to_json(Value()).is_null());
  EXPECT_EQ(value_from_json(json::parse("[1, 2.5]")), Value(Floats{1, 2.5}));
}

TEST(ValueJson, RefusesWhatNoAttributeHolds) {
  for (const char* text : {"null", "{}", "[1, \"a\"]", "[[1]]", "[true]", "[null]", "18446744073709551615"}) {
    const Error error = error_of([&] { (void)value_from_json(json::parse(text)); });
    EXPECT_EQ(error.code(), TN_INVALID) << text;
  }
}

// A plugin reads texts as C strings and would see "a".
TEST(ValueJson, RefusesTextsWithANul) {
  for (const char* text : {R"("a\u0000b")", R"(["x", "a\u0000b"])"}) {
    const Error error = error_of([&] { (void)value_from_json(json::parse(text)); });
    EXPECT_EQ(error.code(), TN_INVALID) << text;
    EXPECT_EQ(error.message(), R"(a text has a NUL in it: "a\u0000b")");
  }
}

TEST(ValueFrom, RefusesNullPointersAndUnknownKinds) {
  tn_value value = {};
  EXPECT_EQ(value_from(value), Value());
  for (const int32_t kind : {4 /* string */, 5, 6, 7 /* lists */, 8, -1 /* unknown */}) {
    value.kind = kind;
    value.count = 2;
    EXPECT_EQ(error_of([&] { (void)value_from(value); }).code(), TN_INVALID) << kind;
  }
}

TEST(AttributeFrom, ReadsThePluginsTable) {
  static constexpr const char* kChoices[] = {"a", "b", nullptr};
  tn_attribute table = {};
  table.size = sizeof table;
  table.kind = TN_ATTR_STRING;
  table.name = "mode";
  table.initial.kind = TN_ATTR_STRING;
  table.initial.as.s = "b";
  table.choices = kChoices;
  Attribute expected = attribute("mode", TN_ATTR_STRING, std::string("b"));
  expected.choices = {"a", "b"};
  EXPECT_EQ(Attribute::from(table), expected);

  table.size = offsetof(tn_attribute, choices);  // the struct of an older interface
  EXPECT_TRUE(Attribute::from(table).choices.empty());
  table.size = 8;
  EXPECT_EQ(error_of([&] { (void)Attribute::from(table); }).code(), TN_INVALID);
}

TEST(AttributeFrom, RefusesADefaultThatTheAttributeRefuses) {
  tn_attribute table = {};
  table.size = sizeof table;
  table.kind = TN_ATTR_INT;
  table.name = "size";
  table.has_range = 1;
  table.minimum = 1;
  table.initial.kind = TN_ATTR_INT;
  EXPECT_EQ(error_of([&] { (void)Attribute::from(table); }).message(),
            "the default of attribute \"size\": expected an integer of at least 1, got 0");
  table.kind = 9;
  EXPECT_THAT(error_of([&] { (void)Attribute::from(table); }).message(), HasSubstr("unknown kind 9"));
}

TEST(AttributesView, ShowsWhatPluginsRead) {
  std::vector<Attribute> attributes = declared();
  const std::vector<Value> values =
      resolve(attributes, {{"size", int64_t{3}}, {"shape", Ints{2, 4}}, {"names", Strings{"x", "y"}}, {"bias", false}});
  const AttributesView view(attributes, values);
  const tn_attributes* seen = view.get();
  EXPECT_EQ(seen->count, attributes.size());
  EXPECT_EQ(tn_int(seen, "size", 0), 3);
  EXPECT_EQ(tn_float(seen, "rate", 0), 0.5);
  EXPECT_STREQ(tn_string(seen, "mode", ""), "mean");
  EXPECT_EQ(tn_find(seen, "weights"), nullptr);
  EXPECT_EQ(tn_int(seen, "bias", 7), 0);
  const tn_value* shape = tn_find(seen, "shape");
  ASSERT_NE(shape, nullptr);
  EXPECT_EQ(Ints(shape->as.ints, shape->as.ints + shape->count), (Ints{2, 4}));
  const tn_value* names = tn_find(seen, "names");
  ASSERT_NE(names, nullptr);
  EXPECT_STREQ(names->as.strings[1], "y");
  for (uint32_t i = 0; i < seen->count; ++i) EXPECT_EQ(Attribute::from(*seen->declared[i]), attributes[i]);
}

}  // namespace
}  // namespace tenon_tests
