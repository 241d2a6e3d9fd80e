// The reader csv: windows of rows in the order of time, for forecasts. SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "tests/support/reader_check.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Floats = std::vector<float>;

class CsvWindows : public ReaderTest {
 protected:
  CsvWindows() : ReaderTest("csv") {}

  Values windows(const Bytes& content, Values more) const {
    more.emplace("window", int64_t{3});
    more.emplace("columns", Strings{"v: f32"});
    more.emplace("targets", Strings{"next = v"});
    return file(content, more);
  }
  // The values of two slots of each sample.
  std::vector<std::pair<Floats, Floats>> pairs(const Values& given, size_t first = 0, size_t second = 1) {
    std::vector<std::pair<Floats, Floats>> result;
    for (const Sample& sample : check(given))
      result.emplace_back(as<float>(sample[first].values), as<float>(sample[second].values));
    return result;
  }
  using Pairs = std::vector<std::pair<Floats, Floats>>;
};

constexpr const char* kFive = "v\n1\n2\n3\n4\n5\n6\n";

TEST_F(CsvWindows, OfRowsAndTheRowsBehindThem) {
  const Values given = windows(kFive, {});
  const auto reader = open(given);
  ASSERT_EQ(reader->slots(), 2u);
  EXPECT_THAT(reader->shape(0), ElementsAre(3));
  EXPECT_THAT(reader->shape(1), IsEmpty());
  EXPECT_EQ(pairs(given), (Pairs{{{1, 2, 3}, {4}}, {{2, 3, 4}, {5}}, {{3, 4, 5}, {6}}}));
  check_no_memory(given);
  const Values far = windows(kFive, {{"horizon", int64_t{2}}});
  EXPECT_THAT(open(far)->shape(1), ElementsAre(2));
  EXPECT_EQ(pairs(far), (Pairs{{{1, 2, 3}, {4, 5}}, {{2, 3, 4}, {5, 6}}}));
  const Values strides = windows(kFive, {{"stride", int64_t{2}}});
  EXPECT_EQ(pairs(strides), (Pairs{{{1, 2, 3}, {4}}, {{3, 4, 5}, {6}}})) << "with the last one";
  EXPECT_THAT(check(windows(kFive, {{"window", int64_t{6}}})), IsEmpty());
  EXPECT_EQ(check(windows(kFive, {{"window", int64_t{6}}, {"targets", Strings{}}})).size(), 1u);
  EXPECT_EQ(check(windows(kFive, {{"window", int64_t{1}}})).size(), 5u);
}

TEST_F(CsvWindows, OfSeveralColumns) {
  const Bytes content = "a,b,c,d\n1,2,x,2024-01-01\n3,4,y,2024-01-02\n5,6,x,2024-01-03\n7,8,y,2024-01-04\n";
  const Values given = file(content, {{"window", int64_t{2}},
                                      {"horizon", int64_t{2}},
                                      {"columns", Strings{"x = a, b: f32", "c: category", "d: date day weekday"}},
                                      {"targets", Strings{"y = b, a", "kind = c", "one=b"}}});
  const auto reader = open(given);
  EXPECT_THAT(reader->shape(0), ElementsAre(2, 2));
  EXPECT_THAT(reader->shape(1), ElementsAre(2));
  EXPECT_THAT(reader->shape(2), ElementsAre(2, 2));
  EXPECT_THAT(reader->shape(3), ElementsAre(2, 2));
  EXPECT_THAT(reader->shape(4), ElementsAre(2));
  EXPECT_EQ(reader->slot(4).index_limit, 2);
  const std::vector<Sample> samples = check(given);
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_THAT(as<float>(samples[0][0].values), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(as<int32_t>(samples[0][1].values), ElementsAre(0, 1));
  EXPECT_THAT(as<float>(samples[0][2].values), ElementsAre(1, 0, 2, 1));
  EXPECT_THAT(as<float>(samples[0][3].values), ElementsAre(6, 5, 8, 7));
  EXPECT_THAT(as<int32_t>(samples[0][4].values), ElementsAre(0, 1));
  EXPECT_THAT(as<float>(samples[0][5].values), ElementsAre(6, 8));
}

TEST_F(CsvWindows, OfGroupsInTheOrderOfTime) {
  const Bytes content =
      "shop,day,v\nA,2024-01-03,3\nB,2024-01-01,10\nA,2024-01-01,1\nB,2024-01-03,30\nA,2024-01-02,2\nB,2024-01-02,20\n"
      "C,2024-01-01,9\n";
  const Values given = windows(content, {{"window", int64_t{2}}, {"group_by", "shop"}, {"order_by", "day"}});
  // In the order of their last records.
  EXPECT_EQ(pairs(given), (Pairs{{{1, 2}, {3}}, {{10, 20}, {30}}}));
  Values numbers = windows("t,v\n30,3\n10,1\n20,2\n", {{"window", int64_t{2}}, {"order_by", "t"}});
  EXPECT_EQ(pairs(numbers), (Pairs{{{1, 2}, {3}}}));
  numbers =
      windows("t,v\n03.01.24,3\n01.02.24,4\n02.01.24,2\n", {{"window", int64_t{2}}, {"order_by", "t: date(%d.%m.%y)"}});
  EXPECT_EQ(pairs(numbers), (Pairs{{{2, 3}, {4}}}));
  expect_damage(windows("t,v\n1,1\nx,2\n", {{"order_by", "t"}}), "f: line 3: column \"t\": expected a time, got \"x\"");
  expect_damage(windows("t,v\n1,1\n,2\n", {{"order_by", "t"}}), "expected a time, got \"\"");
}

TEST_F(CsvWindows, GapsLeaveWindowsOut) {
  const Bytes content = "t,v\n0,1\n1,2\n2,3\n4,5\n5,6\n6,7\n7,8\n";
  const Values given = windows(content, {{"window", int64_t{2}}, {"order_by", "t"}, {"step", "1"}});
  EXPECT_EQ(pairs(given), (Pairs{{{1, 2}, {3}}, {{5, 6}, {7}}, {{6, 7}, {8}}}));
  Values without = given;
  without.erase("step");
  EXPECT_EQ(check(without).size(), 5u);
  expect_damage(windows("t,v\n0,1\n1,2\n1.5,3\n", {{"order_by", "t"}, {"step", "1"}}),
                "f: line 4: column \"t\": the time since the row before is not a number of steps of \"1\"");
  expect_damage(windows("t,v\n0,1\n1,2\n1,3\n", {{"order_by", "t"}, {"step", "1"}}),
                "f: line 4: column \"t\": another row of its group has this time");
  const Bytes hours = "t,v\n2024-01-01 22:00,1\n2024-01-01 23:00,2\n2024-01-02,3\n2024-01-02 02:00,4\n";
  EXPECT_EQ(pairs(windows(hours, {{"window", int64_t{2}}, {"order_by", "t"}, {"step", "1h"}})), (Pairs{{{1, 2}, {3}}}));
  EXPECT_EQ(check(windows(hours, {{"window", int64_t{1}}, {"order_by", "t"}, {"step", "60min"}})).size(), 2u);
  for (const char* const wrong : {"", "h", "0", "-1h", "1 h", "1y", "inf"})
    EXPECT_THAT(refusal(windows(content, {{"order_by", "t"}, {"step", wrong}})).message(),
                HasSubstr("step: expected a number above 0"))
        << wrong;
}

TEST_F(CsvWindows, MasksOfGapsAndMissingValues) {
  const Bytes content = "t,v,w\n0,1,10\n1,,20\n3,4,40\n4,5,\n5,6,60\n";
  const Values given = windows(content, {{"order_by", "t"},
                                         {"step", "1"},
                                         {"masks", true},
                                         {"columns", Strings{"x = v, w: f32", "t: i32"}},
                                         {"targets", Strings{"next = w"}}});
  const auto reader = open(given);
  ASSERT_EQ(reader->slots(), 6u);
  EXPECT_STREQ(reader->slot(1).name, "x_mask");
  EXPECT_THAT(reader->shape(1), ElementsAre(3, 2));
  EXPECT_STREQ(reader->slot(3).name, "t_mask");
  EXPECT_THAT(reader->shape(3), ElementsAre(3));
  EXPECT_STREQ(reader->slot(5).name, "next_mask");
  EXPECT_THAT(reader->shape(5), IsEmpty());
  const std::vector<Sample> samples = check(given);
  ASSERT_EQ(samples.size(), 2u);  // which end at the times 3 and 4: at 2 there is no row
  EXPECT_THAT(as<float>(samples[0][0].values), ElementsAre(0, 20, 0, 0, 4, 40));
  EXPECT_THAT(as<float>(samples[0][1].values), ElementsAre(0, 1, 0, 0, 1, 1));
  EXPECT_THAT(as<int32_t>(samples[0][2].values), ElementsAre(1, 0, 3));
  EXPECT_THAT(as<float>(samples[0][3].values), ElementsAre(1, 0, 1));
  EXPECT_THAT(as<float>(samples[0][4].values), ElementsAre(0));
  EXPECT_THAT(as<float>(samples[0][5].values), ElementsAre(0)) << "the value is missing";
  EXPECT_THAT(as<float>(samples[1][0].values), ElementsAre(0, 0, 4, 40, 5, 0));
  EXPECT_THAT(as<float>(samples[1][4].values), ElementsAre(60));
  EXPECT_THAT(as<float>(samples[1][5].values), ElementsAre(1));
  // A target of which a row is there counts; one of none does not.
  Values far = given;
  far["window"] = int64_t{1};
  far["horizon"] = int64_t{2};
  EXPECT_EQ(check(far).size(), 3u);  // at 0, 1 and 3
  // Filled as the column says; the mask is the same. Categories have a number of their own for what is missing.
  Values filled = given;
  filled["columns"] = Strings{"x = v, w: f32 missing mean indicator"};
  EXPECT_THAT(as<float>(check(filled)[0][0].values), ElementsAre(4, 20, 1, 0, 0, 0, 0, 0, 4, 40, 0, 0));
  EXPECT_THAT(as<float>(check(filled)[0][1].values), ElementsAre(0, 1, 0, 0, 1, 1));
  const Values named =
      windows("c\nb\n\"\"\na\n", {{"columns", Strings{"c: category"}}, {"masks", true}, {"targets", Strings{}}});
  EXPECT_THAT(as<int32_t>(check(named)[0][0].values), ElementsAre(1, 2, 0));
  EXPECT_THAT(as<float>(check(named)[0][1].values), ElementsAre(1, 0, 1));
  EXPECT_THAT(refusal(windows("v\n1\n\"\"\n", {})).message(), HasSubstr("the value is missing")) << "without masks";
}

TEST_F(CsvWindows, ManyRows) {
  Bytes content = "g,t,v\n";
  for (int t = 0; t < 100; ++t)
    for (int g = 0; g < 3; ++g)
      content += std::to_string(g) + "," + std::to_string(t) + "," + std::to_string(1000 * g + t) + "\n";
  const Values given =
      windows(content, {{"window", int64_t{24}}, {"horizon", int64_t{7}}, {"group_by", "g"}, {"order_by", "t"}});
  const auto all = pairs(given);
  ASSERT_EQ(all.size(), 3u * (100 - 24 - 7 + 1));
  for (size_t i = 0; i < all.size(); ++i) {
    Floats past(24), ahead(7);
    const float first = static_cast<float>(1000 * (i % 3) + i / 3);
    std::iota(past.begin(), past.end(), first);
    std::iota(ahead.begin(), ahead.end(), first + 24);
    ASSERT_EQ(all[i], (std::pair{past, ahead})) << i;
  }
}

TEST_F(CsvWindows, AttributesThatDoNotFit) {
  const auto message = [&](Values more, const Bytes& content = kFive) {
    return refusal(windows(content, std::move(more))).message();
  };
  EXPECT_THAT(message({{"targets", Strings{"v"}}}), HasSubstr("targets: \"v\": expected \"slot = column\""));
  EXPECT_THAT(message({{"targets", Strings{"y = z"}}}), HasSubstr("targets: unknown column \"z\"; known: \"v\""));
  EXPECT_THAT(message({{"targets", Strings{"y = "}}}), HasSubstr("targets: unknown column \"\""));
  EXPECT_THAT(message({{"targets", Strings{"v = v"}}}), HasSubstr("targets: two slots are named \"v\""));
  EXPECT_THAT(message({{"targets", Strings{" = v"}}}), HasSubstr("the slot has no name"));
  EXPECT_THAT(message({{"columns", Strings{"v: words"}}}), HasSubstr("window: the slot \"v\" holds lists or texts"));
  EXPECT_THAT(message({{"group_by", "g"}}), HasSubstr("group_by: unknown column \"g\""));
  EXPECT_THAT(message({{"order_by", "g"}}), HasSubstr("order_by: \"order_by = g\": unknown column \"g\""));
  EXPECT_THAT(message({{"order_by", "v: words"}}), HasSubstr("order_by: expected one column, of numbers or dates"));
  EXPECT_THAT(message({{"step", "1"}}), HasSubstr("step: needs the attribute order_by"));
  EXPECT_THAT(message({{"sentences", true}}), HasSubstr("window: a sample is a window of rows or a sequence"));
  EXPECT_THAT(message({{"columns", Strings{"v: f32", "w: i32"}}, {"targets", Strings{"y = v, w"}}}, "v,w\n1,2\n"),
              HasSubstr("targets: \"y = v, w\": the columns have different types"));
  for (const auto& [name, value] : Values{{"targets", Strings{"y = v"}},
                                          {"horizon", int64_t{2}},
                                          {"masks", true},
                                          {"stride", int64_t{2}},
                                          {"order_by", "v"},
                                          {"group_by", "v"}})
    EXPECT_THAT(refusal(file(kFive, {{name, value}})).message(), HasSubstr(name + ": needs the attribute window"));
}

}  // namespace
}  // namespace tenon_tests
