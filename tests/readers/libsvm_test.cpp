// The reader libsvm: labels, entries, queries, damage. SPDX-License-Identifier: Apache-2.0
#include "tests/support/reader_check.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Libsvm : public ReaderTest {
 protected:
  Libsvm() : ReaderTest("libsvm") {}
};

constexpr const char* kMixed = "+1 1:0.5 4:2 # a comment 9:9\n\n# only a comment\n-1\n0.25\t2:-1e-3 3:4 \r\n7 4:1";

TEST_F(Libsvm, LabelsAndEntries) {
  const Values given = file(kMixed);
  const auto reader = open(given);
  ASSERT_EQ(reader->slots(), 2u);
  EXPECT_STREQ(reader->slot(0).name, "label");
  EXPECT_EQ(reader->slot(0).dtype, TN_F32);
  EXPECT_STREQ(reader->slot(1).name, "features");
  EXPECT_EQ(reader->slot(1).storage, TN_CSR);
  EXPECT_THAT(reader->shape(1), ElementsAre(4));
  const std::vector<Sample> samples = check(given);
  ASSERT_EQ(samples.size(), 4u);
  EXPECT_THAT(as<float>(samples[0][0].values), ElementsAre(1));
  EXPECT_THAT(samples[0][1].ids, ElementsAre(0, 3));
  EXPECT_THAT(as<float>(samples[0][1].values), ElementsAre(0.5F, 2));
  EXPECT_TRUE(samples[1][1].ids.empty());
  EXPECT_THAT(as<float>(samples[2][0].values), ElementsAre(0.25F));
  EXPECT_THAT(samples[2][1].ids, ElementsAre(1, 2));
  EXPECT_THAT(as<float>(samples[2][1].values), ElementsAre(-1e-3F, 4));
  put("f.gz", gzip(kMixed));
  EXPECT_TRUE(all({{"files", Strings{"f.gz"}}}) == samples);
  EXPECT_EQ(all({{"files", Strings{"f", "f.gz"}}}).size(), 8u);
}

TEST_F(Libsvm, WidthAndFirstId) {
  EXPECT_THAT(open(file("1 0:1 4:1\n", {{"first_id", int64_t{0}}}))->shape(1), ElementsAre(5));
  EXPECT_THAT(open(file("1 1:1\n", {{"width", int64_t{100}}}))->shape(1), ElementsAre(100));
  EXPECT_THAT(open(file("1\n"))->shape(1), ElementsAre(1));
  expect_damage(file("1 0:1\n"), "f: line 1: the id 0 is not from 1 to the width; first_id = 0 takes ids from 0");
  expect_damage(file("1 1:1\n2 5:1\n", {{"width", int64_t{4}}}), "f: line 2: the id 5 is not from 1 to 4");
  expect_damage(file("1 1:1\n2 -5:1\n"), "f: line 2: the id -5");
  expect_damage(file("1 300000000000000:1\n"), "is too large");
  EXPECT_EQ(refusal(file("1\n", {{"first_id", int64_t{2}}})).code(), TN_INVALID);
  // Ids may be in any order, without duplicates.
  const std::vector<Sample> samples = check(file("1 3:3 1:1 2:2\n"));
  EXPECT_THAT(samples[0][1].ids, ElementsAre(0, 1, 2));
  EXPECT_THAT(as<float>(samples[0][1].values), ElementsAre(1, 2, 3));
  expect_damage(file("1 3:3 1:1 3:2\n"), "line 1: duplicate id 3");
}

TEST_F(Libsvm, ClassesAndQueries) {
  const Values ranked = file("2 qid:7 1:1\n0 qid:7 2:1\n1 qid:9\n", {{"classes", int64_t{3}}});
  const auto reader = open(ranked);
  ASSERT_EQ(reader->slots(), 3u);
  EXPECT_EQ(reader->slot(0).dtype, TN_I64);
  EXPECT_EQ(reader->slot(0).index_limit, 3);
  EXPECT_STREQ(reader->slot(2).name, "qid");
  const std::vector<Sample> samples = check(ranked);
  EXPECT_EQ(as<int64_t>(samples[0][0].values), Ints{2});
  EXPECT_EQ(as<int64_t>(samples[2][2].values), Ints{9});
  EXPECT_EQ(samples[1][1].ids, Ints{1});
  const Values two = {{"classes", int64_t{2}}};
  expect_damage(file("1\n2\n", two),
                "f: line 2: expected a class from 0 to 1, got \"2\"; the attribute labels numbers other labels");
  expect_damage(
      file("-1\n", two),
      "expected a class from 0 to 1, got \"-1\"; the attribute labels numbers other labels, such as [\"-1\", \"1\"]");
  expect_damage(file("0.5\n", two), "expected a class as label, got \"0.5\"");
  expect_damage(file("x\n", two), "expected a class as label, got \"x\"");
  expect_damage(file("nan\n", two), "expected a class as label, got \"nan\"");
  EXPECT_THAT(values<int64_t>(file("1.0\n+1\n0e5\n-0\n1e0\n", two)), ElementsAre(1, 1, 0, 0, 1));
  expect_damage(file("1 qid:1\n1 1:1\n"), "f: line 2: has no qid, as the first line has");
  expect_damage(file("1 1:1\n1 qid:1\n"), "f: line 2: has a qid, unlike the first line");
  expect_damage(file("1 qid:x\n"), "expected qid and a whole number, got \"qid:x\"");
  expect_damage(file("1 qid:99999999999999999999\n"), "the qid of \"qid:99999999999999999999\" is too large");
}

// Lines of one query are one sample: rows of labels and of dense features.
TEST_F(Libsvm, ListsAreTheLinesOfOneQuery) {
  constexpr const char* kLists = "2 qid:7 1:0.5 3:1\n\n0 qid:7 2:2 # last\n1 qid:9\n3 qid:-1 3:4\n0 qid:-1 1:1\n";
  const Values lists = file(kLists, {{"lists", true}});
  const auto reader = open(lists);
  ASSERT_EQ(reader->slots(), 3u);
  EXPECT_EQ(reader->slot(0).storage, TN_RAGGED);
  EXPECT_EQ(reader->slot(0).dtype, TN_F32);
  EXPECT_EQ(reader->slot(1).storage, TN_RAGGED);
  EXPECT_THAT(reader->shape(1), ElementsAre(3));
  const std::vector<Sample> samples = check(lists);
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_THAT(as<float>(samples[0][0].values), ElementsAre(2, 0));
  EXPECT_THAT(as<float>(samples[0][1].values), ElementsAre(0.5F, 0, 1, 0, 2, 0));
  EXPECT_EQ(as<int64_t>(samples[0][2].values), Ints{7});
  EXPECT_THAT(as<float>(samples[1][1].values), ElementsAre(0, 0, 0));
  EXPECT_THAT(as<float>(samples[2][0].values), ElementsAre(3, 0));
  EXPECT_EQ(as<int64_t>(samples[2][2].values), Ints{-1});
  const Values classes = file(kLists, {{"lists", true}, {"classes", int64_t{4}}, {"width", int64_t{5}}});
  EXPECT_EQ(open(classes)->slot(0).dtype, TN_I64);
  EXPECT_THAT(open(classes)->shape(1), ElementsAre(5));
  EXPECT_EQ(as<int64_t>(check(classes)[2][0].values), (Ints{3, 0}));
  EXPECT_EQ(check(file("", {{"lists", true}})).size(), 0u);
  expect_damage(file("1 qid:1 1:1\n1 1:2\n", {{"lists", true}}),
                "f: line 2: has no qid, which the attribute lists needs on each line");
  expect_damage(file("1 qid:1 1:1\n1 qid:2\n\n1 qid:1\n", {{"lists", true}}),
                "f: line 4: the lines of qid 1 do not follow one another");
}

// The rows of a list as inner sequences of entries.
TEST_F(Libsvm, SparseListsAreSequencesOfEntries) {
  const Values lists = file("2 qid:7 3:1 1:0.5\n0 qid:7\n1 qid:9\n3 qid:-1 3:4\n", {{"sparse_lists", true}});
  const auto reader = open(lists);
  ASSERT_EQ(reader->slots(), 4u);
  EXPECT_EQ(reader->slot(0).levels, 1u);
  EXPECT_STREQ(reader->slot(1).name, "ids");
  EXPECT_EQ(reader->slot(1).dtype, TN_I64);
  EXPECT_EQ(reader->slot(1).index_limit, 3);
  EXPECT_STREQ(reader->slot(2).name, "values");
  for (const size_t slot : {1, 2}) {
    EXPECT_EQ(reader->slot(slot).storage, TN_RAGGED);
    EXPECT_EQ(reader->slot(slot).levels, 2u);
    EXPECT_EQ(reader->slot(slot).rank, 0);
  }
  const std::vector<Sample> samples = check(lists);
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_THAT(as<float>(samples[0][0].values), ElementsAre(2, 0));
  EXPECT_EQ(as<int64_t>(samples[0][1].values), (Ints{0, 2}));
  EXPECT_THAT(as<float>(samples[0][2].values), ElementsAre(0.5F, 1));
  EXPECT_EQ(samples[0][1].lengths, (Ints{2, 0}));
  EXPECT_EQ(samples[0][2].lengths, (Ints{2, 0}));
  EXPECT_EQ(samples[1][1].lengths, Ints{0});
  EXPECT_EQ(as<int64_t>(samples[2][1].values), Ints{2});
  EXPECT_EQ(as<int64_t>(samples[2][3].values), Ints{-1});
}

TEST_F(Libsvm, LabelsNumberTheClasses) {
  const Values signs = file("+1 1:1\n-1\n1.0\n-1.00\n1\n", {{"labels", Strings{"-1", "1"}}});
  EXPECT_EQ(open(signs)->slot(0).dtype, TN_I64);
  EXPECT_EQ(open(signs)->slot(0).index_limit, 2);
  EXPECT_THAT(values<int64_t>(signs), ElementsAre(1, 0, 1, 0, 1));
  check(signs);
  EXPECT_THAT(values<int64_t>(file("2\n0.5\n7\n", {{"labels", Strings{"2", "0.5", "+7"}}, {"classes", int64_t{3}}})),
              ElementsAre(0, 1, 2));
  const Values two = {{"labels", Strings{"1", "2"}}};
  expect_damage(file("1\n0\n", two), "f: line 2: unknown label \"0\"; known: \"1\", \"2\"");
  expect_damage(file("x\n", two), "f: line 1: unknown label \"x\"; known: \"1\", \"2\"");
  const auto wrong = [&](const Values& given) {
    const Error error = refusal(file("1\n", given));
    EXPECT_EQ(error.code(), TN_INVALID);
    return error.message();
  };
  EXPECT_THAT(wrong({{"labels", Strings{"1", "1.0"}}}), HasSubstr("labels: duplicate label \"1.0\""));
  EXPECT_THAT(wrong({{"labels", Strings{"good"}}}), HasSubstr("labels: \"good\" is not a number"));
  EXPECT_THAT(wrong({{"labels", Strings{"inf"}}}), HasSubstr("labels: \"inf\" is not a number"));
  EXPECT_THAT(wrong({{"labels", Strings{}}}), HasSubstr("labels: expected at least one label"));
  EXPECT_THAT(wrong({{"labels", Strings{"1"}}, {"classes", int64_t{2}}}),
              HasSubstr("classes: expected 1, the number of labels, got 2"));
}

TEST_F(Libsvm, DamagedLines) {
  const auto damage = [&](const Bytes& line, const std::string& why) {
    for (const bool known : {false, true})
      expect_damage(file("1 1:1\n\n" + line + "\n", known ? Values{{"width", int64_t{10}}} : Values{}),
                    (folder_ / "f").string() + ": line 3: " + why);
  };
  damage("1 2", "expected id:value, got \"2\"");
  damage("1 :2", "expected id:value, got \":2\"");
  damage("1 2:", "expected id:value, got \"2:\"");
  damage("1 a:2", "expected id:value, got \"a:2\"");
  damage("1 2:b", "expected id:value, got \"2:b\"");
  damage("1 2:1:1", "expected id:value, got \"2:1:1\"");
  damage("1 2:nan", "the value of \"2:nan\" is not a finite float32");
  damage("1 2:1e99", "the value of \"2:1e99\" is not a finite float32");
  damage("inf 3:1", "the label \"inf\" is not a finite float32");
  damage("2:1 3:1", "expected a label before \"2:1\"");
  damage("1,2 3:1", "has several labels, \"1,2\"; one is expected");
  damage("x 3:1", "expected a label, got \"x\"");
  damage("1 99999999999999999999:1", "the id of \"99999999999999999999:1\" is too large");
  damage("1 -99999999999999999999:1", "the id of \"-99999999999999999999:1\" is too small");
  expect_damage(file("1 1:" + Bytes(5000, '1') + "\n", {{"most_line_bytes", int64_t{1000}}}),
                "line 1: longer than 1000 bytes");
  const auto reader = open(file("1\nx\n2\n"));
  EXPECT_EQ(reader->next(9).size(), 1u);
  EXPECT_THAT(error_of([&] { reader->next(9); }).message(), HasSubstr("line 2: expected a label"));
  EXPECT_EQ(reader->next(9).size(), 1u);
}

TEST_F(Libsvm, EmptyLargeAndCancelled) {
  EXPECT_EQ(check(file("")).size(), 0u);
  EXPECT_EQ(check(file("\n# nothing\n")).size(), 0u);
  EXPECT_EQ(refusal({{"files", Strings{"absent"}}}).code(), TN_NOT_FOUND);
  Bytes content;
  for (int i = 0; i < 30'000; ++i) {
    content += std::to_string(i) + ".5";
    for (int k = 0; k < i % 5; ++k)
      content += " " + std::to_string(1 + (i * 31 + k * 1000) % 5000) + ":" + std::to_string(k);
    content += "\n";
  }
  const Values given = file(content, {{"most_kept_bytes", int64_t{0}}});
  const auto reader = open(given);
  const std::vector<Sample> samples = reader->all(512);
  ASSERT_EQ(samples.size(), 30'000u);
  for (int i = 0; i < 30'000; ++i) {
    ASSERT_EQ(as<float>(samples[static_cast<size_t>(i)][0].values)[0], static_cast<float>(i) + 0.5F);
    ASSERT_EQ(samples[static_cast<size_t>(i)][1].ids.size(), static_cast<size_t>(i % 5));
  }
  check_shards(given, samples, 4);
  expect_cancelled(given);
  check_no_memory(given);
}

}  // namespace
}  // namespace tenon_tests
