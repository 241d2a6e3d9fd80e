// The reader csv: delimiters of several characters and blanks, texts with quotes, sentences between blank lines, and
// tags of chunks: the formats of MovieLens and CoNLL. SPDX-License-Identifier: Apache-2.0
#include "tests/support/reader_check.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CsvSentences : public ReaderTest {
 protected:
  CsvSentences() : ReaderTest("csv") {}

  static Values blanks(Values more = {}) {
    more["delimiter"] = "blanks";
    more["quotes"] = false;
    more["header"] = false;
    more["sentences"] = true;
    return more;
  }
  std::vector<std::string> lengths(const Values& given) {
    std::vector<std::string> result;
    for (const Sample& sample : all(given)) result.push_back(std::to_string(sample[0].values.size() / 4));
    return result;
  }
};

TEST_F(CsvSentences, DelimitersOfSeveralCharacters) {
  Values given = file("1::1193::5::978300760\n6040::1::4.5::0\n",
                      {{"delimiter", "::"}, {"header", false}, {"columns", Strings{"x = c0..c1: i32", "c2: f32"}}});
  EXPECT_THAT(values<int32_t>(given), ElementsAre(1, 1193, 6040, 1));
  EXPECT_THAT(values<float>(given, 1), ElementsAre(5, 4.5F));
  check(given);
  const auto categories = [&](const Bytes& content, const std::string& delimiter, const Values& more = {}) {
    Values form = file(content, more);
    form["delimiter"] = delimiter;
    form["columns"] = Strings{"b: category"};
    return values<int32_t>(form);
  };
  EXPECT_THAT(categories("a||b\n1||x:|y\n2||\"x||z\"\n||x:|y\n", "||"), ElementsAre(0, 1, 0)) << "quotes hold it";
  EXPECT_THAT(categories("a, b\n1, x\n2, y\n", ", "), ElementsAre(0, 1));
  EXPECT_THAT(categories("a::b\n1::\"\"\"x\"\"\"\n2::\"\"\"x\"\"\"\n", "::"), ElementsAre(0, 0));
  expect_damage(file("a::b\n1::2\n1::2::3\n", {{"delimiter", "::"}}), "f: line 3: expected 2 fields, got 3");
  expect_damage(file("a::b\n1::2\n1:2\n", {{"delimiter", "::"}}), "f: line 3: expected 2 fields, got 1");
  expect_damage(file("a::b\n1::x\x1fy\n", {{"delimiter", "::"}}), "f: line 2: has the control character 31");
  EXPECT_THAT(values<int64_t>(file("a::b::\n1::2::\n", {{"delimiter", "::"}, {"columns", Strings{"a"}}})),
              ElementsAre(1));
  EXPECT_THAT(
      refusal(file("1::2\n", {{"header", false}, {"names", Strings{"a", "b"}}})).message(),
      HasSubstr("names: expected 1 names, one for each column, got 2; delimiter = \"::\" makes 2 columns of the "
                "first line \"1::2\""));
  for (const char* const wrong : {"", "ab", "blank", "::1", "\"\"", "--", "\n\n"})
    EXPECT_THAT(refusal(file("a\n1\n", {{"delimiter", wrong}})).message(),
                HasSubstr("delimiter: expected one character, or several, other than letters"))
        << wrong;
}

TEST_F(CsvSentences, QuotesThatAreText) {
  const Bytes content = "a,b\n\"x,1\ny \"z\" ,2\n";
  EXPECT_THAT(values<int32_t>(file(content, {{"quotes", false}, {"columns", Strings{"b: i32"}}})), ElementsAre(1, 2));
  EXPECT_THAT(refusal(file("a,b\nx \"y\",1\n")).message(), HasSubstr("quotes = false takes quotes as text"));
  EXPECT_THAT(refusal(file("a,b\n\"y\" x,1\n")).message(), HasSubstr("quotes = false takes quotes as text"));
}

TEST_F(CsvSentences, BlanksAndTabs) {
  const Values given = file("  a \t b\n 1  2 \n3\t4\n \t\n\t5   6\t\n", {{"delimiter", "blanks"}});
  EXPECT_THAT(values<int64_t>(given), ElementsAre(1, 3, 5));
  EXPECT_THAT(values<int64_t>(given, 1), ElementsAre(2, 4, 6));
  check(given);
  expect_damage(file("a b\n1 2\n3\n", {{"delimiter", "blanks"}}), "line 3: expected 2 fields, got 1");
}

// CoNLL 2003: columns by blanks, a document mark, and a blank line behind each sentence.
TEST_F(CsvSentences, SequencesBetweenBlankLines) {
  const Bytes content =
      "-DOCSTART- -X- O\n\nEU NNP B-ORG\nrejects VBZ O\n\n\nPeter NNP B-PER\n\" \" O\nBlackburn NNP I-PER\n \t\n. . "
      "O\n";
  Values form = file(content, blanks({{"names", Strings{"word", "pos", "tag"}},
                                      {"comment", "-DOCSTART-"},
                                      {"columns", Strings{"tag: category chunks", "word: category"}}}));
  const auto reader = open(form);
  EXPECT_EQ(reader->slot(0).storage, TN_RAGGED);
  EXPECT_EQ(reader->slot(0).levels, 1u);
  EXPECT_EQ(reader->slot(0).index_limit, 5);  // B-ORG I-ORG B-PER I-PER O
  const std::vector<Sample> samples = check(form);
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_THAT(as<int32_t>(samples[0][0].values), ElementsAre(0, 4));
  EXPECT_THAT(as<int32_t>(samples[1][0].values), ElementsAre(2, 4, 3));
  EXPECT_THAT(as<int32_t>(samples[2][0].values), ElementsAre(4));
  form["columns"] = Strings{"word: characters"};
  EXPECT_EQ(open(form)->slot(0).levels, 2u);
  check(form);
  form["columns"] = Strings{"pos: category", "tag: i32"};
  expect_damage(form, "f: line 3: column \"tag\": expected a whole number, got \"B-ORG\"");
  // Each file begins a sentence, and a comment is no end of one.
  put("g", "a 1\n# note\nb 2");
  put("h", "c 3\n\nd 4\n");
  Values several = blanks({{"comment", "#"}, {"columns", Strings{"c1: i32"}}});
  several["files"] = Strings{"g", "h", "g"};
  EXPECT_THAT(lengths(several), ElementsAre("2", "1", "1", "2"));
  check(several);
}

// CoNLL-U: tabs, comments, and lines of words that are several tokens.
TEST_F(CsvSentences, TokensThatAreLeftOut) {
  const Bytes content =
      "# sent_id = 1\n1-2\tvamonos\t_\n1\tvamos\tVERB\n2\tnos\tPRON\n\n# sent_id = 2\n3-4\tx\t_\n\n1\tal mar\tNOUN\n\n";
  const Values given = file(content, {{"delimiter", "\t"},
                                      {"quotes", false},
                                      {"header", false},
                                      {"sentences", true},
                                      {"comment", "#"},
                                      {"names", Strings{"id", "form", "upos"}},
                                      {"missing_texts", Strings{"_"}},
                                      {"columns", Strings{"upos: category missing skip", "form: category"}}});
  const std::vector<Sample> samples = check(given);
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_THAT(as<int32_t>(samples[0][0].values), ElementsAre(2, 1));
  EXPECT_THAT(as<int32_t>(samples[1][1].values), ElementsAre(0));
}

TEST_F(CsvSentences, OptionsThatExcludeEachOther) {
  EXPECT_THAT(refusal(file("a b\n1 2\n", {{"sentences", true}, {"sequence_by", "a b"}})).message(),
              HasSubstr("sentences: sequence_by says already"));
  EXPECT_THAT(all(file("\n\n", blanks({{"names", Strings{"a"}}, {"columns", Strings{"a: i32"}}}))), IsEmpty());
  const Values labelled = file(
      "1 a\n1 b\n\n0 c\n", blanks({{"columns", Strings{"c0: i32", "c1: category"}}, {"per_sequence", Strings{"c0"}}}));
  EXPECT_EQ(open(labelled)->slot(0).storage, TN_DENSE);
  EXPECT_THAT(values<int32_t>(labelled), ElementsAre(1, 0));
  expect_damage(file("1 a\n0 b\n", blanks({{"columns", Strings{"c0: i32"}}, {"per_sequence", Strings{"c0"}}})),
                "f: line 2: slot \"c0\": differs from the first record of its sequence");
}

TEST_F(CsvSentences, TagsOfChunks) {
  const auto limit = [&](const Bytes& tags) {
    Bytes content = "t\n";
    for (const char c : tags) content += c == ' ' ? '\n' : c;
    return open(file(content + "\n", {{"columns", Strings{"t: category chunks"}}, {"save_vocabularies", "."}}))
        ->slot(0)
        .index_limit;
  };
  EXPECT_EQ(limit("O I-b B-a X-c"), 6);
  EXPECT_EQ(got("t.txt"), "B-a\nI-a\nB-b\nI-b\nO\nX-c\n");
  std::filesystem::remove(folder_ / "t.txt");
  EXPECT_EQ(limit("S-x O"), 5);
  EXPECT_EQ(got("t.txt"), "B-x\nI-x\nE-x\nS-x\nO\n");
  std::filesystem::remove(folder_ / "t.txt");
  EXPECT_EQ(limit("U-x"), 4);
  EXPECT_EQ(got("t.txt"), "B-x\nI-x\nL-x\nU-x\n");
}

}  // namespace
}  // namespace tenon_tests
