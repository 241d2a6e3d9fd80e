// The reader text: words, vocabularies, labels, windows, damage. SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "tests/support/reader_check.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Numbers = std::vector<int32_t>;

class Text : public ReaderTest {
 protected:
  Text() : ReaderTest("text") {}

  // The words of all lines.
  std::vector<Numbers> lines(const Values& attributes) {
    std::vector<Numbers> result;
    for (const Sample& sample : all(attributes)) result.push_back(as<int32_t>(sample[0].values));
    return result;
  }
  // The vocabulary that this content makes, joined by spaces.
  std::string vocabulary(const Bytes& content, Values more = {}) {
    std::filesystem::remove(folder_ / "v");
    more["save_vocabulary"] = "v";
    open(file(content, more));
    Bytes words = got("v");
    std::replace(words.begin(), words.end(), '\n', ' ');
    return words;
  }
};

TEST_F(Text, LinesAreSequences) {
  const Bytes content = "the cat  saw\tthe dog\n\n  \r\nthe dog ran\r\nsaw";
  const Values given = file(content);
  const auto reader = open(given);
  ASSERT_EQ(reader->slots(), 1u);
  EXPECT_STREQ(reader->slot(0).name, "words");
  EXPECT_EQ(reader->slot(0).storage, TN_RAGGED);
  EXPECT_EQ(reader->slot(0).levels, 1u);
  EXPECT_EQ(reader->slot(0).rank, 0);
  EXPECT_EQ(reader->slot(0).dtype, TN_I32);
  EXPECT_EQ(reader->slot(0).index_limit, 6);
  // <unk>, the 3, dog 2, saw 2, cat 1, ran 1
  EXPECT_EQ(vocabulary(content), "<unk> the dog saw cat ran ");
  EXPECT_THAT(lines(given), ElementsAre(Numbers{1, 4, 3, 1, 2}, Numbers{1, 2, 5}, Numbers{3}));
  check(given);
  const Values empty = file(content, {{"keep_empty", true}, {"begin", "<s>"}, {"end", "</s>"}});
  EXPECT_THAT(lines(empty), ElementsAre(Numbers{1, 3, 6, 5, 3, 4, 2}, Numbers{1, 2}, Numbers{1, 2},
                                        Numbers{1, 3, 4, 7, 2}, Numbers{1, 5, 2}));
  EXPECT_TRUE(lines(file(content, {{"keep_empty", true}}))[1].empty());
  check(file(content, {{"keep_empty", true}}));
  check(empty);
  put("f.gz", gzip(content));
  EXPECT_EQ(lines({{"files", Strings{"f.gz"}}}), lines(given));
}

TEST_F(Text, WordsAreSplitByRules) {
  const Bytes content = "Don't stop, \"ÄRGER\" 3.5 x_y l\xE2\x80\x99\xC3\xA9t\xC3\xA9 '90s\xC2\xA0rock'\n";
  const std::string words = vocabulary(content, {{"unknown", ""}, {"split", "words"}, {"lower_case", true}});
  for (const char* word : {"don't ", "stop ", ", ", "\" ", "\xC3\xA4rger ", "3 ", ". ", "5 ", "x ", "_ ", "y ",
                           "l\xE2\x80\x99\xC3\xA9t\xC3\xA9 ", "90s ", "rock ", "' "})
    EXPECT_THAT(" " + words, HasSubstr(std::string(" ") + word));
  EXPECT_EQ(std::count(words.begin(), words.end(), ' '), 15);
  const std::string plain = vocabulary(content, {{"unknown", ""}});
  EXPECT_THAT(plain, HasSubstr("Don't "));
  EXPECT_THAT(plain, HasSubstr("stop, "));
  EXPECT_THAT(plain, HasSubstr("\"\xC3\x84RGER\" "));
  EXPECT_THAT(plain, HasSubstr("rock' "));  // a no-break space separates too
}

TEST_F(Text, CharactersAreWords) {
  const Bytes content = "a b\xC3\xA9  A\n";
  EXPECT_EQ(vocabulary(content, {{"unknown", ""}, {"split", "characters"}}), "  A a b \xC3\xA9 ");  // a space is first
  const Values lower = file(content, {{"unknown", ""}, {"split", "characters"}, {"lower_case", true}});
  EXPECT_THAT(lines(lower), ElementsAre(Numbers{1, 0, 2, 3, 0, 0, 1}));
  check(lower);
}

TEST_F(Text, TwoNamesAreWordsAndTheWordAfterEach) {
  const Values given =
      file("1\ta b c\n2\ta\n", {{"names", Strings{"words", "next"}}, {"labelled", true}, {"end", "."}});
  EXPECT_EQ(open(given)->slot(1).storage, TN_RAGGED);
  const std::vector<Sample> samples = check(given);  // <unk> 0, "." 1, a 2, b 3, c 4
  EXPECT_EQ(as<int32_t>(samples[0][0].values), (Numbers{2, 3, 4}));
  EXPECT_EQ(as<int32_t>(samples[0][1].values), (Numbers{3, 4, 1}));
  EXPECT_EQ(as<int32_t>(samples[0][2].values), Numbers{0});
  EXPECT_EQ(as<int32_t>(samples[1][0].values), Numbers{2});
  EXPECT_EQ(as<int32_t>(samples[1][1].values), Numbers{1});
  EXPECT_EQ(as<int32_t>(samples[1][2].values), Numbers{1});
  const std::vector<Sample> one = check(file("a\n", {{"names", Strings{"words", "next"}}}));
  EXPECT_TRUE(as<int32_t>(one[0][0].values).empty());
  EXPECT_TRUE(as<int32_t>(one[0][1].values).empty());
  EXPECT_EQ(refusal(file("1\ta", {{"names", Strings{"x", "label"}}, {"labelled", true}})).code(), TN_INVALID);
}

TEST_F(Text, VocabulariesAreBoundedAndKept) {
  const Bytes content = "b a c a b a d\nc b a e\n";  // a 4, b 3, c 2, d 1, e 1
  EXPECT_EQ(vocabulary(content), "<unk> a b c d e ");
  EXPECT_EQ(vocabulary(content, {{"most_words", int64_t{3}}}), "<unk> a b ");
  EXPECT_EQ(vocabulary(content, {{"min_count", int64_t{2}}}), "<unk> a b c ");
  EXPECT_EQ(vocabulary(content, {{"begin", "c"}}), "<unk> c a b d e ");
  EXPECT_THAT(lines(file(content, {{"most_words", int64_t{3}}})),
              ElementsAre(Numbers{2, 1, 0, 1, 2, 1, 0}, Numbers{0, 2, 1, 0}));
  vocabulary(content, {{"most_words", int64_t{3}}});
  const Values other = file("a x b\n", {{"vocabulary", "v"}});
  EXPECT_THAT(lines(other), ElementsAre(Numbers{1, 0, 2}));
  EXPECT_EQ(open(other)->slot(0).index_limit, 3);
  check(other);
  expect_damage(file("a b\na x b\n", {{"vocabulary", "v"}, {"unknown", ""}}),
                "f: line 2: \"x\" is not in the vocabulary");
  EXPECT_THAT(refusal(file("a\n", {{"vocabulary", "v"}, {"begin", "<s>"}})).message(),
              HasSubstr("begin: the vocabulary has no entry \"<s>\""));
  put("v", "a\nb\n");  // without <unk>: a word that it lacks is an error
  EXPECT_THAT(lines(file("a b\nb\n", {{"vocabulary", "v"}})), ElementsAre(Numbers{0, 1}, Numbers{1}));
  expect_damage(file("a b\na x b\n", {{"vocabulary", "v"}}), "f: line 2: \"x\" is not in the vocabulary");
  EXPECT_THAT(refusal(file("a b\n", {{"vocabulary", "v"}, {"unknown", "<unk>"}})).message(),
              HasSubstr("unknown: the vocabulary has no entry \"<unk>\""));
  put("v", "a\nb\na\n");
  expect_damage(file("a\n", {{"vocabulary", "v"}}), "v: line 3: duplicate entry \"a\"");
  EXPECT_EQ(refusal(file("a\n", {{"vocabulary", "absent"}})).code(), TN_NOT_FOUND);
}

TEST_F(Text, SavedVocabulariesStayAsTheyAre) {
  const Values saving = file("a a b\n", {{"save_vocabulary", "v"}});
  open(saving);
  EXPECT_EQ(got("v"), "<unk>\na\nb\n");
  std::filesystem::create_hard_link(folder_ / "v", folder_ / "w");
  open(saving);  // the same words: the file is not replaced
  EXPECT_TRUE(std::filesystem::equivalent(folder_ / "v", folder_ / "w"));
  put("v", "<unk>\r\na\r\nb");
  open(saving);
  const auto refused = [&](const Bytes& there, const std::string& why) {
    put("v", there);
    const Error error = refusal(saving);
    EXPECT_EQ(error.code(), TN_INVALID);
    EXPECT_THAT(error.message(), HasSubstr((folder_ / "v").string() + ": line " + why + " would be written; "));
    EXPECT_THAT(error.message(), HasSubstr("read it with the attribute vocabulary, or remove the file"));
    EXPECT_EQ(got("v"), there);
  };
  refused("<unk>\nb\na\n", "2 is \"b\", but \"a\"");
  refused("<unk>\na\n", "3 is missing, but \"b\"");
  refused("<unk>\na\nb\nc\n", "4 is \"c\", but nothing");
  refused("", "1 is missing, but \"<unk>\"");
  const Error absent = refusal(file("a\n", {{"save_vocabulary", "absent/v"}}));
  EXPECT_EQ(absent.code(), TN_NOT_FOUND);
  EXPECT_THAT(absent.message(),
              HasSubstr((folder_ / "absent/v").string() + ": cannot be written: there is no folder \"" +
                        (folder_ / "absent").string() + "\""));
  std::filesystem::create_directory(folder_ / "d");
  EXPECT_THAT(refusal(file("a\n", {{"save_vocabulary", "d"}})).message(), HasSubstr((folder_ / "d").string() + ": "));
  for (const auto& entry : std::filesystem::directory_iterator(folder_))
    EXPECT_THAT(entry.path().filename().string(), ::testing::AnyOf("f", "v", "w", "d"));
}

TEST_F(Text, LabelsComeBeforeATab) {
  const Bytes content = "pos\tgood film\nneg\tbad\npos\t\n";
  const Values given = file(content, {{"labelled", true}});
  const std::vector<Sample> samples = check(given);
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_STREQ(open(given)->slot(1).name, "label");
  EXPECT_EQ(open(given)->slot(1).index_limit, 2);
  EXPECT_EQ(as<int32_t>(samples[0][1].values), Numbers{1});
  EXPECT_EQ(as<int32_t>(samples[1][1].values), Numbers{0});
  EXPECT_EQ(samples[0][0].values.size(), 2 * sizeof(int32_t));
  EXPECT_TRUE(samples[2][0].values.empty());
  EXPECT_EQ(as<int32_t>(all(file(content, {{"labelled", true}, {"labels", Strings{"pos", "neg"}}}))[0][1].values),
            Numbers{0});
  EXPECT_EQ(as<int32_t>(all(file("10\ta\n9\tb\n", {{"labelled", true}}))[0][1].values), Numbers{1});
  expect_damage(file("pos\ta\nb\n", {{"labelled", true}}), "f: line 2: expected a label, a tab and the text");
  expect_damage(file("pos\ta\nneu\tb\n", {{"labelled", true}, {"labels", Strings{"pos"}}}),
                "f: line 2: unknown label \"neu\"; known: \"pos\"");
  EXPECT_EQ(refusal(file(content, {{"labelled", true}, {"labels", Strings{"a", "a"}}})).code(), TN_INVALID);
}

TEST_F(Text, WindowsGoOverTheWholeText) {
  const Bytes content = "a b\n\nc a\nb";  // a 1, b 2, c 3
  const Values given = file(content, {{"window", int64_t{3}}});
  EXPECT_EQ(open(given)->slot(0).storage, TN_DENSE);
  EXPECT_THAT(open(given)->shape(0), ElementsAre(3));
  EXPECT_THAT(lines(given), ElementsAre(Numbers{1, 2, 3}, Numbers{2, 3, 1}, Numbers{3, 1, 2}));
  check(given);
  EXPECT_EQ(lines(file(content, {{"window", int64_t{3}}, {"end", "."}})).size(), 6u);
  const Values two = file(content, {{"window", int64_t{3}}, {"names", Strings{"context", "next"}}});
  EXPECT_THAT(open(two)->shape(0), ElementsAre(2));
  EXPECT_EQ(open(two)->slot(1).rank, 0);
  const std::vector<Sample> samples = check(two);
  EXPECT_EQ(as<int32_t>(samples[1][0].values), (Numbers{2, 3}));
  EXPECT_EQ(as<int32_t>(samples[1][1].values), Numbers{1});
  const std::vector<Sample> each = check(file(content, {{"window", int64_t{3}}, {"names", Strings{"x", "y", "z"}}}));
  EXPECT_EQ(as<int32_t>(each[2][1].values), Numbers{1});
  EXPECT_EQ(check(file(content, {{"window", int64_t{2}}, {"names", Strings{"x", "y"}}})).size(), 4u);
  EXPECT_EQ(check(file(content, {{"window", int64_t{9}}})).size(), 0u);
  EXPECT_EQ(refusal(file(content, {{"window", int64_t{4}}, {"names", Strings{"x", "y", "z"}}})).code(), TN_INVALID);
  EXPECT_EQ(refusal(file(content, {{"window", int64_t{2}}, {"names", Strings{"x", "x"}}})).code(), TN_INVALID);
  EXPECT_EQ(refusal(file(content, {{"names", Strings{"x", "y", "z"}}})).code(), TN_INVALID);
  EXPECT_EQ(refusal(file(content, {{"window", int64_t{2}}, {"labelled", true}})).code(), TN_INVALID);
  EXPECT_EQ(open(file(content, {{"window", int64_t{1} << 30}}))->samples(), 0);
  const Error larger = refusal(file(content, {{"window", std::numeric_limits<int64_t>::max()}}));
  EXPECT_EQ(larger.code(), TN_INVALID);
  EXPECT_THAT(larger.message(), HasSubstr("window"));
}

TEST_F(Text, DamageAndBounds) {
  const Values words = {{"split", "words"}};
  expect_damage(file("fine\nab\xFFz\n", words), (folder_ / "f").string() + ": line 2: byte 3 is not valid UTF-8");
  expect_damage(file("cut \xE2\x82\n", words), "line 1: byte 5 is not valid UTF-8");
  expect_damage(file("a \xED\xA0\x80\n"), "line 1: byte 3 is not valid UTF-8");
  expect_damage(file("a\n" + Bytes(2000, 'x') + "\n", {{"most_line_bytes", int64_t{1000}}}),
                "line 2: longer than 1000 bytes");
  const Bytes zipped = gzip(Bytes(100'000, 'x'));
  expect_damage(file(zipped.substr(0, zipped.size() / 2)), "damaged gzip data");
  EXPECT_EQ(lines(file(Bytes(1 << 20, 'x') + " y\n"))[0].size(), 2u);
  EXPECT_EQ(check(file("")).size(), 0u);  // the vocabulary is <unk> only
  expect_damage(file("", {{"unknown", ""}}), (folder_ / "f").string() + ": contains no words for a vocabulary");
  expect_damage({{"unknown", ""}, {"files", Strings{"f", "f"}}}, "f: contains no words for a vocabulary, nor do");
  put("empty", "");
  expect_damage(file("fine\n", {{"vocabulary", "empty"}}), (folder_ / "empty").string() + ": the vocabulary is empty");
  put("v", "<unk>\nfine\n");
  const auto reader = open(file("fine\nab\xFFz\nfine\n", {{"vocabulary", "v"}}));
  EXPECT_EQ(reader->next(9).size(), 1u);
  EXPECT_THAT(error_of([&] { reader->next(9); }).message(), HasSubstr("line 2: byte 3 is not valid UTF-8"));
  EXPECT_EQ(reader->next(9).size(), 1u);
}

TEST_F(Text, ManyLines) {
  Bytes content;
  for (int i = 0; i < 30'000; ++i) content += "w" + std::to_string(i % 100) + " x" + std::to_string(i % 7) + " y\n";
  const Values given = file(content);
  const auto reader = open(given);
  EXPECT_EQ(reader->slot(0).index_limit, 109);
  const std::vector<Sample> samples = reader->all(512);
  ASSERT_EQ(samples.size(), 30'000u);
  for (const Sample& sample : samples) ASSERT_EQ(as<int32_t>(sample[0].values)[2], 1);
  check_shards(given, samples, 3);
  const Values windows = file(content, {{"window", int64_t{5}}});
  EXPECT_EQ(open(windows)->samples(), 90'000 - 4);
  check_shards(windows, all(windows), 3);
  check_no_memory(windows);
  expect_cancelled(windows);
}

}  // namespace
}  // namespace tenon_tests
