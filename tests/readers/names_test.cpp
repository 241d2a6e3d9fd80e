// Names that readers make of texts and folders: encodings, and the order of their numbers.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/npy_files.h"
#include "tests/support/reader_check.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ReaderNames : public ReaderTest {
 protected:
  ReaderNames() : ReaderTest("csv") {}

  // The names of a slot; none if it has no list.
  Strings names(const Values& attributes, const std::string& slot) {
    const auto reader = open(attributes);
    Strings result;
    for (size_t i = 0; i < reader->slots(); ++i)
      if (slot == reader->slot(i).name && reader->slot(i).names != nullptr)
        for (int64_t k = 0; k < reader->slot(i).names->count; ++k)
          result.emplace_back(reader->slot(i).names->texts[k].data, reader->slot(i).names->texts[k].length);
    return result;
  }
  static Values with(Values given, const std::string& name, const Value& value) {
    given[name] = value;
    return given;
  }
};

const Strings kAsNumbers = {"-3", "0", "1", "2", "9", "10", "100"};

TEST_F(ReaderNames, WholeNumbersAreInTheOrderOfNumbers) {
  const Strings found = {"10", "9", "1", "2", "100", "-3", "0", "10"};
  Bytes table = "a,b\n", lines;
  for (const std::string& name : found) table += name + "," + name + "x\n", lines += name + "\tword\n";
  const Values given = file(table, {{"columns", Strings{"a: category", "b: category"}}});
  EXPECT_EQ(names(given, "a"), kAsNumbers);
  EXPECT_EQ(names(given, "b"), (Strings{"-3x", "0x", "100x", "10x", "1x", "2x", "9x"}));
  EXPECT_EQ(values<int32_t>(given, 0), (std::vector<int32_t>{5, 4, 2, 3, 6, 0, 1, 5}));
  type_ = "text";
  EXPECT_EQ(names(file(lines, {{"labelled", true}}), "label"), kAsNumbers);
  type_ = "images";
  for (const std::string& name : found) put("photos/" + name + "/none.txt", "");
  EXPECT_EQ(names({{"folder", "photos"}, {"size", Ints{1, 1}}}, "label"), kAsNumbers);
  put("photos/cat/none.txt", "");
  EXPECT_EQ(names({{"folder", "photos"}, {"size", Ints{1, 1}}}, "label"),
            (Strings{"-3", "0", "1", "10", "100", "2", "9", "cat"}));
}

// Numbers in several forms, and those that no integer holds.
TEST_F(ReaderNames, OtherTextsAreInTheOrderOfBytes) {
  const auto sorted = [&](const Bytes& lines) {
    return names(file("a\n" + lines, {{"columns", Strings{"a: category"}}}), "a");
  };
  EXPECT_THAT(sorted("7\n007\n07\n1\n"), ElementsAre("1", "007", "07", "7"));
  EXPECT_THAT(sorted("10\n9\n1.5\n"), ElementsAre("1.5", "10", "9"));
  EXPECT_THAT(sorted("10\n9\n99999999999999999999\n"), ElementsAre("10", "9", "99999999999999999999"));
  EXPECT_THAT(sorted("10\n9\n+1\n"), ElementsAre("+1", "10", "9"));
  EXPECT_THAT(names(file("a\n10\n9\n?\n",
                         {{"columns", Strings{"a: category"}}, {"missing", "value"}, {"missing_texts", Strings{"?"}}}),
                    "a"),
              ElementsAre("9", "10"));
}

TEST_F(ReaderNames, CategoriesInLatin1) {
  const Bytes table = "x,titr\xE9\n1,Caf\xE9 n1\n2,th\xE9\n";
  EXPECT_THAT(refusal(file(table)).message(), AllOf(HasSubstr("line 1: column 2: its name \"titr?\" is not UTF-8"),
                                                    HasSubstr("encoding = \"latin1\"")));
  const Bytes sound_header = "x,titre\n1,Caf\xC3\xA9\n2,Caf\xE9 n1\n";
  const Values typed = file(sound_header, {{"columns", Strings{"titre: category"}}});
  const Error error = refusal(typed);
  EXPECT_EQ(error.code(), TN_BAD_DATA);
  EXPECT_THAT(error.message(),
              HasSubstr((folder_ / "f").string() + ": line 3: column \"titre\": \"Caf? n1\" is not UTF-8; encoding = "
                                                   "\"latin1\" reads ISO 8859-1"));
  EXPECT_EQ(refusal(file(sound_header)).code(), TN_BAD_DATA) << "the type is inferred";
  EXPECT_EQ(refusal(file(gzip(sound_header), {{"columns", Strings{"titre: category"}}})).code(), TN_BAD_DATA);
  EXPECT_EQ(refusal(file(sound_header, {{"columns", Strings{"x"}}})).code(), TN_OK) << "the column is not read";

  const Values latin1 = file(table, {{"encoding", "latin1"}, {"columns", Strings{"titr\xC3\xA9: category", "x: f32"}}});
  EXPECT_THAT(names(latin1, "titr\xC3\xA9"), ElementsAre("Caf\xC3\xA9 n1", "th\xC3\xA9"));
  EXPECT_EQ(check(latin1).size(), 2u);
  EXPECT_EQ(values<int32_t>(latin1, 0), (std::vector<int32_t>{0, 1}));
  EXPECT_THAT(names(file("a\n\"\xE9\"\"\xE9\"\n \xFF \nn\xE9"
                         "ant\n",
                         {{"encoding", "latin1"},
                          {"missing", "skip"},
                          {"missing_texts", Strings{"n\xC3\xA9"
                                                    "ant"}}}),
                    "a"),
              ElementsAre("\xC3\xA9\"\xC3\xA9", "\xC3\xBF"));
}

// A category that is not in its list, and could become the unknown one.
TEST_F(ReaderNames, VocabulariesAndUnknownCategories) {
  put("list.txt", "Caf\xC3\xA9\nth\xC3\xA9\n");
  const Bytes table = "a\nCaf\xC3\xA9\nCaf\xE9\n";
  const Values listed = file(table, {{"columns", Strings{"a: category(list.txt)"}}, {"unknown_category", true}});
  expect_damage(listed, "line 3: column \"a\": \"Caf?\" is not UTF-8");
  EXPECT_EQ(values<int32_t>(with(file("a\nCaf\xE9\nx\n", listed), "encoding", "latin1")), (std::vector<int32_t>{0, 2}));
  put("list.txt", "caf\n\ncaf\xE9\n");
  expect_damage(listed, "list.txt: line 3: \"caf?\" is not UTF-8");
  type_ = "text";
  expect_damage(file("caf\n", {{"vocabulary", "list.txt"}}), "list.txt: line 3: \"caf?\" is not UTF-8");
}

TEST_F(ReaderNames, WordsAndLabelsInLatin1) {
  type_ = "text";
  const Values given = file("bon\tcaf\xC3\xA9\n\xE9t\xE9\tmot\n", {{"labelled", true}});
  expect_damage(given, "line 2: the label \"?t?\" is not UTF-8; encoding = \"latin1\" reads ISO 8859-1");
  expect_damage(with(given, "labels", Strings{"bon", "\xC3\xA9t\xC3\xA9"}), "line 2: the label \"?t?\" is not UTF-8");
  expect_damage(file("caf\xE9\n"), "line 1: byte 4 is not valid UTF-8; encoding = \"latin1\" reads ISO 8859-1");
  const Values latin1 = file("bon\tCAF\xC9\n\xE9t\xE9\tmot\n",
                             {{"labelled", true}, {"encoding", "latin1"}, {"lower_case", true}, {"unknown", ""}});
  EXPECT_THAT(names(latin1, "label"), ElementsAre("bon", "\xC3\xA9t\xC3\xA9"));
  EXPECT_THAT(names(latin1, "words"), ElementsAre("caf\xC3\xA9", "mot"));
  EXPECT_EQ(check(latin1).size(), 2u);
  EXPECT_EQ(check(file("caf\xE9 th\xE9 caf\xE9\n", {{"encoding", "latin1"}, {"window", int64_t{2}}})).size(), 2u);
}

TEST_F(ReaderNames, Utf16IsRefusedByItsName) {
  for (const char* type : {"csv", "text", "libsvm"})
    for (const bool big : {false, true})
      for (const bool marked : {false, true})
        for (const char* encoding : {"utf-8", "latin1"}) {
          type_ = type;
          Bytes content = !marked ? "" : big ? "\xFE\xFF" : "\xFF\xFE";
          for (const char c : Bytes("1 1:2\nlong enough\n")) content += big ? Bytes{'\0', c} : Bytes{c, '\0'};
          Values given;
          if (type_ != "libsvm") given["encoding"] = encoding;
          expect_damage(file(content, given), "f: is UTF-16; expected UTF-8");
          expect_damage(file(gzip(content), given), "f: is UTF-16; expected UTF-8");
        }
}

TEST_F(ReaderNames, ClassFolders) {
  type_ = "images";
  put("photos/caf\xE9/none.txt", "");
  expect_damage({{"folder", "photos"}, {"size", Ints{1, 1}}},
                "photos: the name of the class folder \"caf?\" is not UTF-8");
  put("others/.\xE9/none.txt", "");
  put("others/caf\xC3\xA9/none.txt", "");
  EXPECT_THAT(names({{"folder", "others"}, {"size", Ints{1, 1}}}, "label"), ElementsAre("caf\xC3\xA9"));
}

// A wrong name of a slot is a fault of the caller, whatever the reader.
TEST_F(ReaderNames, NamesOfSlotsAreUtf8) {
  const Bytes images = Bytes{0, 0, 8, 1, 0, 0, 0, 1, 7};
  const Bytes array = npy(header("|u1", "(1,)"), "7");
  for (const auto& [type, content] :
       std::map<std::string, Bytes>{{"csv", "1\n"}, {"idx", images}, {"npy", array}, {"text", "a\n"}}) {
    type_ = type;
    Values given = file(content, {{"names", Strings{"caf\xe9"}}}, "f.npy");
    if (type == "csv") given["header"] = false;
    const Error error = refusal(given);
    EXPECT_EQ(error.code(), TN_INVALID) << type << ": " << error.message();
    EXPECT_THAT(error.message(), AllOf(HasSubstr("names"), HasSubstr("\"caf?\" is not UTF-8"))) << type;
    given["names"] = Strings{"caf\xc3\xa9"};
    EXPECT_EQ(refusal(given).code(), TN_OK) << type;
  }
  type_ = "csv";
  for (const char* entry : {"caf\xe9 = a: f32", "\"caf\xe9\" = a, b", "a, caf\xe9", "a..caf\xe9"}) {
    const Error error = refusal(file("a,b\n1,2\n", {{"columns", Strings{entry}}}));
    EXPECT_EQ(error.code(), TN_INVALID) << error.message();
    EXPECT_THAT(error.message(), HasSubstr("\"caf?\" is not UTF-8"));
  }
}

}  // namespace
}  // namespace tenon_tests
