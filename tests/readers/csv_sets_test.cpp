// The reader csv: several labels in a field, rare categories, and n-grams of texts.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/reader_check.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CsvSets : public ReaderTest {
 protected:
  CsvSets() : ReaderTest("csv") {}

  std::string message(const std::string& entry) {
    return refusal(file("a,b\n1,2\n", {{"columns", Strings{entry}}})).message();
  }
};

TEST_F(CsvSets, SeveralLabelsInAField) {
  const Bytes content = "id,labels\n1,b;a\n2,\n3, c ;; b\n4,a\n";
  const Values given = file(content, {{"columns", Strings{"labels: category list(;) multihot"}}});
  const auto reader = open(given);
  EXPECT_EQ(reader->slot(0).storage, TN_DENSE);
  EXPECT_EQ(reader->slot(0).dtype, TN_F32);
  EXPECT_EQ(reader->slot(0).index_limit, -1);
  EXPECT_THAT(reader->shape(0), ElementsAre(3));
  check(given);
  EXPECT_THAT(values<float>(given), ElementsAre(1, 1, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0));
  // Of one category, in a file, in sequences, without any.
  EXPECT_THAT(values<float>(file("c\nx\ny\nx\n", {{"columns", Strings{"c: category multihot"}}})),
              ElementsAre(1, 0, 0, 1, 1, 0));
  put("list", "b\na\n");
  EXPECT_THAT(values<float>(file("l,n\na,1\n,2\n", {{"columns", Strings{"l: category(list) list(;) multihot"}}})),
              ElementsAre(0, 1, 0, 0));
  expect_damage(file("l,n\na;x,1\n", {{"columns", Strings{"l: category(list) list(;) multihot"}}}),
                "f: line 2: column \"l\": \"x\" is not in the vocabulary");
  EXPECT_THAT(values<float>(file("l,n\na;x,1\n", {{"columns", Strings{"l: category(list) list(;) multihot"}},
                                                  {"unknown_category", true}})),
              ElementsAre(0, 1));
  const Values visits =
      file("k,l\n1,a\n1,b a\n2,\n", {{"columns", Strings{"l: category list multihot"}}, {"sequence_by", "k"}});
  EXPECT_THAT(as<float>(check(visits)[0][0].values), ElementsAre(1, 0, 1, 1));
  EXPECT_THAT(values<float>(file("l,n\n,1\n,2\n", {{"columns", Strings{"l: category multihot"}}})), ElementsAre(0, 0));
  EXPECT_EQ(all(file("l,n\n,1\nx,2\n", {{"columns", Strings{"l: category multihot missing skip"}}})).size(), 1u);
  EXPECT_THAT(message("a: f32 multihot"), HasSubstr("are options of categories"));
  EXPECT_THAT(message("a: category multihot missing 3"), HasSubstr("no other treatment than \"missing skip\""));
  EXPECT_THAT(message("a: category list size 2 multihot"), HasSubstr("takes a list of any size"));
  EXPECT_THAT(message("x = a, b: category multihot"), HasSubstr("must be one column"));
}

TEST_F(CsvSets, RareCategories) {
  const Bytes content = "c\nb\na\nb\nc\na\nb\nd\n";
  const auto read = [&](const std::string& type) {
    return values<int32_t>(file(content, {{"columns", Strings{type}}}));
  };
  EXPECT_THAT(read("c: category least 2"), ElementsAre(0, 1, 0, 2, 1, 0, 2));
  EXPECT_THAT(read("c: category most 1"), ElementsAre(0, 1, 0, 1, 1, 0, 1));
  EXPECT_EQ(open(file(content, {{"columns", Strings{"c: category least 2"}}}))->slot(0).index_limit, 3);
  check(file(content, {{"columns", Strings{"c: category least 2 list"}}}));
  EXPECT_THAT(message("a: i32 least 2"), HasSubstr("are options of words, characters and categories"));
  EXPECT_THAT(message("a: category least 2 missing frequent"), HasSubstr("each determines the numbers"));
  EXPECT_THAT(message("a: category chunks most 2"), HasSubstr("each determines the numbers"));
  EXPECT_THAT(message("a: category(f) chunks"), HasSubstr("the file determines the numbers"));
}

TEST_F(CsvSets, GramsOfWords) {
  const Bytes content = "t,n\nGood film good film,1\nBad,2\n";
  const auto sample = [&](const std::string& type) {
    return as<int32_t>(all(file(content, {{"columns", Strings{"t: " + type}}}))[0][0].values);
  };
  Values given = file(content, {{"columns", Strings{"t: words lower grams 2"}}, {"save_vocabularies", "."}});
  check(given);
  EXPECT_EQ(got("t.txt"), "<unk>\nfilm\ngood\ngood film\nbad\nfilm good\n");
  EXPECT_THAT(sample("words lower grams 2"), ElementsAre(2, 1, 3, 2, 5, 1, 3));
  EXPECT_THAT(sample("words lower grams 2 least 2"), ElementsAre(2, 1, 3, 2, 0, 1, 3));
  EXPECT_THAT(sample("words(t.txt) lower grams 3"), ElementsAre(2, 1, 3, 2, 5, 0, 1, 3, 0));
  EXPECT_THAT(values<int32_t>(file("t,n\nabb,1\n", {{"columns", Strings{"t: characters grams 2"}}})),
              ElementsAre(2, 1, 3, 1, 4));
  EXPECT_THAT(message("a: f32 grams 2"), HasSubstr("are options of words and characters"));
  EXPECT_THAT(message("a: words grams 17"), HasSubstr("at most 16"));
  EXPECT_THAT(message("a: words buckets 9"), HasSubstr("\"buckets\" are of n-grams"));
}

// The hash is FNV-1a: of "a" with 64 bits it is af63dc4c8601ec8c.
TEST_F(CsvSets, GramsInBuckets) {
  const Values given =
      file("t,n\nGood film good film,1\nBad,2\n", {{"columns", Strings{"t: words lower grams 2 buckets 10"}}});
  EXPECT_EQ(open(given)->slot(0).index_limit, 4 + 10);
  const std::vector<int32_t> numbers = as<int32_t>(check(given)[0][0].values);
  ASSERT_EQ(numbers.size(), 7u);
  const auto bucket = [](const std::string& text) {
    uint64_t hash = 14695981039346656037u;
    for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 1099511628211u;
    return static_cast<int32_t>(hash % 10);
  };
  EXPECT_THAT(numbers,
              ElementsAre(2, 1, 4 + bucket("good film"), 2, 4 + bucket("film good"), 1, 4 + bucket("good film")));
  EXPECT_THAT(refusal(file("t\na\n", {{"columns", Strings{"t: words grams 2 buckets 2147483647"}}})).message(),
              HasSubstr("from 1 to 1073741824"));
}

}  // namespace
}  // namespace tenon_tests
