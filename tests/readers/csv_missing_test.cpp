// The reader csv: what stands for missing values, column by column.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "tests/support/reader_check.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CsvMissing : public ReaderTest {
 protected:
  CsvMissing() : ReaderTest("csv") {}

  static Values with(const Strings& columns, Values more = {}) {
    more["columns"] = columns;
    return more;
  }
  // The names of the elements of a slot.
  Strings elements(const Values& attributes, size_t slot = 0) {
    const auto reader = open(attributes);
    Strings result;
    const tn_names* const names = reader->slot(slot).names;
    for (int64_t i = 0; names != nullptr && i < names->columns_count; ++i)
      result.emplace_back(names->columns[i].data, names->columns[i].length);
    return result;
  }
  std::string message(const Bytes& content, const Strings& columns, const Values& more = {}) {
    const Error error = refusal(file(content, with(columns, more)));
    EXPECT_EQ(error.code(), TN_INVALID) << error.message();
    return error.message();
  }
};

constexpr const char* kTable = "age,pay,city,label\n10,1,Rome,0\n,2,Oslo,1\n40,,Rome,0\n13,5,,1\n,2,Rome,1\n";

TEST_F(CsvMissing, NumbersGetWhatTheColumnSays) {
  const auto ages = [&](const std::string& treatment) {
    const Values given = file(kTable, with({"age: f32 missing " + treatment}));
    check(given);
    return values<float>(given);
  };
  EXPECT_THAT(ages("mean"), ElementsAre(10, 21, 40, 13, 21));
  EXPECT_THAT(ages("median"), ElementsAre(10, 13, 40, 13, 13));
  EXPECT_THAT(ages("frequent"), ElementsAre(10, 10, 40, 13, 10)) << "the least of equally frequent ones";
  EXPECT_THAT(ages("-1.5"), ElementsAre(10, -1.5F, 40, 13, -1.5F));
  EXPECT_THAT(ages("\"7\""), ElementsAre(10, 7, 40, 13, 7));
  EXPECT_THAT(ages("value"), ElementsAre(10, 0, 40, 13, 0));
  EXPECT_THAT(ages("skip"), ElementsAre(10, 40, 13));
  expect_damage(file(kTable, with({"age: f32 missing error"}, {{"missing", "value"}})),
                "f: line 3: column \"age\": the value is missing");
  // A median of an even number of values; integers; the type is inferred, a mean is a float.
  EXPECT_THAT(values<float>(file(kTable, with({"pay: missing median"}))), ElementsAre(1, 2, 2, 5, 2));
  EXPECT_THAT(values<double>(file("a\n1\n\n4\n\"\"\n", with({"a: f64 missing median"}))), ElementsAre(1, 4, 2.5));
  EXPECT_THAT(values<int64_t>(file(kTable, with({"pay: missing frequent"}))), ElementsAre(1, 2, 2, 5, 2));
  EXPECT_THAT(values<uint8_t>(file(kTable, with({"pay: u8 missing 9"}))), ElementsAre(1, 2, 9, 5, 2));
  EXPECT_THAT(values<int32_t>(file(kTable, with({"pay: i32 < 7 missing 6"}))), ElementsAre(1, 2, 6, 5, 2));
}

// Columns of one reader differ, and labels are untouched.
TEST_F(CsvMissing, EachColumnHasItsOwn) {
  const Values given = file(
      kTable, with({"x = age, pay: f32 missing mean indicator", "city: category missing \"none\"", "label: category"}));
  const auto reader = open(given);
  EXPECT_THAT(reader->shape(0), ElementsAre(4));
  EXPECT_EQ(reader->slot(2).index_limit, 2) << "no number for a missing label";
  const std::vector<Sample> samples = check(given);
  EXPECT_THAT(as<float>(samples[0][0].values), ElementsAre(10, 1, 0, 0));
  EXPECT_THAT(as<float>(samples[1][0].values), ElementsAre(21, 2, 1, 0));
  EXPECT_THAT(as<float>(samples[2][0].values), ElementsAre(40, 2.5F, 0, 1));
  EXPECT_THAT(values<int32_t>(given, 1), ElementsAre(1, 0, 1, 2, 1)) << "Oslo, Rome, none";
  EXPECT_THAT(elements(given), ElementsAre("age (missing 21)", "pay (missing 2.5)", "age (missing)", "pay (missing)"));
  const Values own = file(kTable, with({"city: category missing value", "label: category"}));
  EXPECT_THAT(values<int32_t>(own), ElementsAre(1, 0, 1, 2, 1));
  EXPECT_EQ(open(own)->slot(0).index_limit, 3);
  EXPECT_EQ(open(own)->slot(1).index_limit, 2);
  const Values frequent = file(kTable, with({"city: category missing frequent"}));
  EXPECT_THAT(values<int32_t>(frequent), ElementsAre(0, 1, 0, 0, 0)) << "the most frequent has number 0";
  check(frequent);
  // A range, "*", and a flag of a constant; records that another column leaves out do not count.
  EXPECT_THAT(values<float>(file("a,b,c\n1,,5\n,,7\n3,4,\n", with({"x = a..b: f32 missing -9 indicator",
                                                                   "c: f32 missing "
                                                                   "skip"}))),
              ElementsAre(1, -9, 0, 1, -9, -9, 1, 1));
  EXPECT_THAT(values<float>(file("a,c\n1,5\n,7\n100,\n", with({"x = a, c: f32 missing mean"}))),
              ElementsAre(1, 5, 50.5F, 7, 100, 6));
  EXPECT_THAT(values<float>(file("a,c\n1,5\n,7\n100,\n", with({"a: f32 missing mean", "c: f32 missing skip"}))),
              ElementsAre(1, 1))
      << "records that are left out have no part in the mean";
}

TEST_F(CsvMissing, SequencesHaveThemToo) {
  const Values given = file("k,v\n1,2\n1,\n2,\n3,4\n", with({"v: f32 missing mean indicator"}, {{"sequence_by", "k"}}));
  const std::vector<Sample> samples = check(given);
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_THAT(as<float>(samples[0][0].values), ElementsAre(2, 0, 3, 1));
  EXPECT_THAT(as<float>(samples[1][0].values), ElementsAre(3, 1));
}

TEST_F(CsvMissing, ManyRecordsAndExactMeans) {
  Bytes content = "v\n";
  for (int i = 0; i < 20'000; ++i) content += i % 5 == 0 ? "?\n" : i % 2 == 0 ? "1e16\n1\n-1e16\n" : "3\n";
  const Values given = file(content, with({"v: f64 missing mean"}, {{"missing_texts", Strings{"?"}}}));
  const std::vector<double> found = values<double>(given);
  EXPECT_DOUBLE_EQ(found[0], (8000.0 + 3 * 8000) / 32000) << "large numbers that cancel leave the small ones";
  check_shards(given, all(given), 3);
  expect_cancelled(given);
}

TEST_F(CsvMissing, WhatMakesNoSense) {
  EXPECT_THAT(message(kTable, {"age: f32 missing often"}),
              HasSubstr("columns: \"age: f32 missing often\": expected error, skip, value, mean, median, frequent, a "
                        "number or a text in quotes after \"missing\", got \"often\""));
  EXPECT_THAT(message(kTable, {"age: f32 missing"}), HasSubstr("after \"missing\", got \"\""));
  EXPECT_THAT(message(kTable, {"age: f32 missing \"x"}), HasSubstr("expected missing \"TEXT\""));
  EXPECT_THAT(message(kTable, {"age: i32 missing mean"}), HasSubstr("needs a column of the type f32 or f64"));
  EXPECT_THAT(message(kTable, {"city: category missing mean"}), HasSubstr("needs a column of the type f32 or f64"));
  EXPECT_THAT(message(kTable, {"city: category indicator"}), HasSubstr("an indicator stands beside numbers"));
  EXPECT_THAT(message(kTable, {"city: missing skip indicator"}), HasSubstr("\"city\" holds texts, not numbers"));
  EXPECT_THAT(message(kTable, {"city: category(f) missing frequent"}), HasSubstr("so it takes no file"));
  EXPECT_THAT(message(kTable, {"age: u8 missing 256"}),
              HasSubstr("columns: column \"age\" needs a whole number from 0 to 255"));
  EXPECT_THAT(message(kTable, {"label: i32 < 2 missing 2"}), HasSubstr("needs a whole number from 0 to 1"));
  EXPECT_THAT(message(kTable, {"age: f32 missing 1e99"}), HasSubstr("needs a finite number"));
  EXPECT_THAT(message(kTable, {"age: f32 missing \"none\""}), HasSubstr("missing \"none\" is not a number"));
  EXPECT_THAT(message("a,a (missing)\n1,2\n", {"x = *: f32 indicator"}),
              HasSubstr("two elements of \"x\" are named \"a (missing)\""));
  put("cities", "Oslo\nRome\n");
  EXPECT_THAT(message(kTable, {"city: category(cities) missing \"none\""}),
              HasSubstr("the vocabulary has no \"none\", which stands for what is missing"));
  expect_damage(file("a,b\n,1\n,2\n", with({"a: f32 missing mean"})),
                "f: column \"a\": has no values, so that nothing can stand for those that are missing");
  expect_damage(file("a,b\n1,1\nx,2\n", with({"a: f32 missing mean"})), "f: line 3: column \"a\": expected a number");
}

}  // namespace
}  // namespace tenon_tests
