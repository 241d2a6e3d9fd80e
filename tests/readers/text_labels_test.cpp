// The reader text: labels as fastText has them, several labels of a line, and n-grams.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/reader_check.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TextLabels : public ReaderTest {
 protected:
  TextLabels() : ReaderTest("text") {}

  static Values fast(Values more = {}) {
    more["label_prefix"] = "__label__";
    return more;
  }
};

TEST_F(TextLabels, OfFastText) {
  const Bytes content = "__label__pos I liked it\n  __label__neg\tI left\n\n__label__pos\n";
  const Values given = file(content, fast());
  const std::vector<Sample> samples = check(given);
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_EQ(open(given)->slot(1).index_limit, 2);
  EXPECT_THAT(values<int32_t>(given, 1), ElementsAre(1, 0, 1));
  EXPECT_EQ(samples[0][0].values.size(), 3 * sizeof(int32_t)) << "without the label";
  EXPECT_THAT(samples[2][0].values, IsEmpty());
  expect_damage(file("__label__a x\ny\n", fast()), "f: line 2: expected a label that begins with \"__label__\"");
  expect_damage(file("__label__ x\n", fast()), "f: line 1: a label has no name behind \"__label__\"");
  expect_damage(file("__label__a x\n__label__a __label__b y\n", fast()),
                "f: line 2: has several labels; label_separator = \" \" takes them");
  expect_damage(file("__label__a x\n", fast({{"labels", Strings{"b"}}})), "unknown label \"a\"; known: \"b\"");
  EXPECT_THAT(values<int32_t>(file("#x a\n#y b\n", {{"label_prefix", "#"}, {"labels", Strings{"y", "x"}}}), 1),
              ElementsAre(1, 0));
}

TEST_F(TextLabels, SeveralOfFastText) {
  const Bytes content = "__label__b __label__a I liked it\nno label\n__label__c  __label__b x\n";
  const Values given = file(content, fast({{"label_separator", " "}}));
  const auto reader = open(given);
  EXPECT_EQ(reader->slot(1).dtype, TN_F32);
  EXPECT_THAT(reader->shape(1), ElementsAre(3));
  const std::vector<Sample> samples = check(given);
  EXPECT_THAT(values<float>(given, 1), ElementsAre(1, 1, 0, 0, 0, 0, 0, 1, 1));
  EXPECT_EQ(samples[0][0].values.size(), 3 * sizeof(int32_t));
  EXPECT_THAT(refusal(file(content, fast({{"label_separator", ";"}}))).message(),
              HasSubstr("label_separator: labels with a prefix have blanks between them"));
}

TEST_F(TextLabels, SeveralBeforeATab) {
  const Values given = file("b;a\tone\n\ttwo\n a ; c \tthree\n", {{"labelled", true}, {"label_separator", ";"}});
  check(given);
  EXPECT_THAT(values<float>(given, 1), ElementsAre(1, 1, 0, 0, 0, 0, 1, 0, 1));
  expect_damage(file("a\tx\nb\n", {{"labelled", true}, {"label_separator", ";"}}),
                "f: line 2: expected a label, a tab and the text");
  EXPECT_THAT(refusal(file("x\n", {{"label_separator", ";"}})).message(),
              HasSubstr("label_separator: the lines have no labels"));
}

TEST_F(TextLabels, Grams) {
  const auto numbers = [&](const Values& given) { return as<int32_t>(check(given)[0][0].values); };
  const Bytes content = "a b a b\nb\n";
  EXPECT_THAT(numbers(file(content, {{"ngrams", int64_t{2}}, {"save_vocabulary", "v"}})),
              ElementsAre(2, 1, 3, 2, 4, 1, 3));
  EXPECT_EQ(got("v"), "<unk>\nb\na\na b\nb a\n");
  EXPECT_THAT(numbers(file(content, {{"ngrams", int64_t{3}}, {"vocabulary", "v"}, {"end", "b"}})),
              ElementsAre(2, 1, 3, 2, 4, 0, 1, 3, 0, 1));
  EXPECT_THAT(numbers(file("abb\n", {{"ngrams", int64_t{2}}, {"split", "characters"}})), ElementsAre(2, 1, 3, 1, 4));
  const Values hashed = file(content, {{"ngrams", int64_t{2}}, {"buckets", int64_t{1}}});
  EXPECT_THAT(numbers(hashed), ElementsAre(2, 1, 3, 2, 3, 1, 3));
  EXPECT_EQ(open(hashed)->slot(0).index_limit, 4);
  EXPECT_THAT(refusal(file(content, {{"ngrams", int64_t{2}}, {"window", int64_t{2}}})).message(),
              HasSubstr("ngrams: windows"));
  EXPECT_THAT(refusal(file(content, {{"ngrams", int64_t{2}}, {"names", Strings{"x", "y"}}})).message(),
              HasSubstr("ngrams: windows, and words with those after them, are single words"));
  EXPECT_THAT(refusal(file(content, {{"buckets", int64_t{2}}})).message(), HasSubstr("buckets: are the numbers of"));
}

}  // namespace
}  // namespace tenon_tests
