// The reader csv: files as people have them: decimal commas, dates, lists, texts, comments, patterns of files.
// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "tests/support/reader_check.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Numbers = std::vector<int32_t>;

class CsvForms : public ReaderTest {
 protected:
  CsvForms() : ReaderTest("csv") {}

  // The values of a field of the type f64.
  double number(const std::string& field, const Values& form) {
    Values given = file("a;b\n" + field + ";1\n", form);
    given["delimiter"] = ";";
    given["columns"] = Strings{"a: f64"};
    return values<double>(given).at(0);
  }
  std::string refused(const std::string& field, const Values& form, const std::string& type = "f64") {
    Values given = file("a;b\n" + field + ";1\n", form);
    given["delimiter"] = ";";
    given["columns"] = Strings{"a: " + type};
    return refusal(given).message();
  }
  std::string message(const Bytes& content, const Strings& columns, Values more = {}) {
    more["columns"] = columns;
    return refusal(file(content, more)).message();
  }
};

TEST_F(CsvForms, NumbersWithCommasAndGroups) {
  const Values comma = {{"decimal", ","}}, english = {{"thousands", ","}};
  const Values german = {{"decimal", ","}, {"thousands", "."}}, french = {{"decimal", ","}, {"thousands", " "}};
  EXPECT_EQ(number("0,5", comma), 0.5);
  EXPECT_EQ(number("-1,25e3", comma), -1250);
  EXPECT_EQ(number("+3", comma), 3);
  EXPECT_EQ(number(",5", comma), 0.5);
  EXPECT_EQ(number("1,050.50", english), 1050.5);
  EXPECT_EQ(number("12,34,567", english), 1234567) << "as in India";
  EXPECT_EQ(number("999", english), 999);
  EXPECT_EQ(number("1234.5", english), 1234.5) << "groups may be absent";
  EXPECT_EQ(number("1.234.567,5", german), 1234567.5);
  EXPECT_EQ(number("-1 234,5", french), -1234.5);
  EXPECT_EQ(number("1\xC2\xA0"
                   "234",
                   {{"thousands", "\xC2\xA0"}}),
            1234)
      << "a space that does not break";
  EXPECT_EQ(number("1'234.5", {{"thousands", "'"}}), 1234.5);
  for (const char* const wrong : {"1.5", "1,2,3", "1,5.", "x", ",", "1,5x"})
    EXPECT_THAT(refused(wrong, comma), HasSubstr("line 2: column \"a\": expected a number, got")) << wrong;
  for (const char* const wrong : {"1,05", "1,,050", ",050", "1050,1", "1,0500", "1,050,1.5", "1234,567"})
    EXPECT_THAT(refused(wrong, english), HasSubstr("expected a number")) << wrong;
  EXPECT_THAT(refused("1,5", comma, "i32"), HasSubstr("expected a whole number, got \"1,5\""));
  EXPECT_THAT(refused("0,5", {}), HasSubstr("expected a number, got \"0,5\"; decimal = \",\" reads it"));
  EXPECT_THAT(refused("1,050.5", {}), HasSubstr("; thousands = \",\" reads it"));
  EXPECT_THAT(refused("1,050", {}, "i32"), HasSubstr("; decimal = \",\" or thousands = \",\" reads it"));
  // Types are inferred from numbers in this form, in every column, also in quotes.
  const Values mixed = file("a,b,c\n\"0,5\",\"1.050\",x\n\"1\",7,y\n", german);
  EXPECT_THAT(values<float>(mixed), ElementsAre(0.5F, 1));
  EXPECT_THAT(values<int64_t>(mixed, 1), ElementsAre(1050, 7));
  EXPECT_EQ(open(mixed)->slot(2).index_limit, 2);
  check(mixed);
  const auto attribute = [&](const Values& form) { return refusal(file("a\n1\n", form)).message(); };
  EXPECT_THAT(attribute({{"thousands", "."}}), HasSubstr("thousands: is \".\", as decimal is"));
  for (const char* const text : {"a", "1", "-", "\"", "ab", "\xC2\xA0\xC2\xA0", "\xC2"})
    EXPECT_THAT(attribute({{"thousands", text}}), HasSubstr("thousands: expected one character")) << text;
}

TEST_F(CsvForms, WholeNumbersWithZerosAsDecimals) {
  const Values given = file("label\n1.0\n0.0\n2.\n3.000\n", {{"columns", Strings{"label: i32 < 4"}}});
  EXPECT_THAT(refusal(given).message(), HasSubstr("line 4: column \"label\": expected a whole number, got \"2.\""));
  EXPECT_THAT(values<int32_t>(file("label\n1.0\n0.0\n3.000\n", {{"columns", Strings{"label: i32 < 4"}}})),
              ElementsAre(1, 0, 3));
  for (const char* const wrong : {"1.5", "1.01", "1.0.0", "1.0x", "1.-0", ".0"})
    expect_damage(file(std::string("a\n") + wrong + "\n", {{"columns", Strings{"a: i32"}}}), "expected a whole number");
}

TEST_F(CsvForms, CommentsAndTitles) {
  const Bytes content = "# exported, \"2024\n# don't\na,b\n1,2\n#3,4\n\n5,\"#6\"\n#";
  const Values given = file(content, {{"comment", "#"}, {"columns", Strings{"a: i32"}}});
  EXPECT_THAT(values<int32_t>(given), ElementsAre(1, 5));
  check(given);
  EXPECT_THAT(refusal(file(content + "\nx,1\n", {{"comment", "#"}, {"columns", Strings{"a: i32"}}})).message(),
              HasSubstr("f: line 9: column \"a\": expected a whole number, got \"x\""));
  EXPECT_THAT(values<int32_t>(file("a\n//c\n1\n/2\n", {{"comment", "//"}, {"columns", Strings{"a: category"}}})),
              ElementsAre(1, 0))
      << "a beginning of it is no comment";
  put("g", "Sales of \"May\n\nas of today\na,b\n7,8\n");
  const Values titled = {{"files", Strings{"g", "g"}}, {"skip_lines", int64_t{3}}, {"columns", Strings{"a: i32"}}};
  EXPECT_THAT(values<int32_t>(titled), ElementsAre(7, 7)) << "of each file";
  check(titled);
  expect_damage({{"files", Strings{"g"}}, {"skip_lines", int64_t{9}}}, "g: empty; expected a header");
  EXPECT_THAT(values<int32_t>(
                  file("t\n1\n2\n", {{"skip_lines", int64_t{1}}, {"header", false}, {"columns", Strings{"c0: i32"}}})),
              ElementsAre(1, 2));
  for (const char* const text : {"a", "7", "\"", ",", "-", " #"})
    EXPECT_THAT(refusal(file("a\n1\n", {{"comment", text}})).message(), HasSubstr("comment: expected a text"));
}

TEST_F(CsvForms, LongCommentsOverWindows) {
  Bytes content = "a\n";
  for (int i = 0; i < 3; ++i) content += "#\"" + Bytes(300'000, 'x') + "\n" + std::to_string(i) + "\n";
  for (const int64_t kept : {0, 1 << 30})
    EXPECT_THAT(
        values<int32_t>(file(content, {{"comment", "#"}, {"most_kept_bytes", kept}, {"columns", Strings{"a: i32"}}})),
        ElementsAre(0, 1, 2));
}

TEST_F(CsvForms, DatesAreNumbers) {
  const Bytes content =
      "when,v\n1970-01-02,1\n2024-02-29T12:30:15.5Z,2\n2024-03-01 00:00+02:00,3\n1969-12-31 23:59,4\n";
  const Values epoch = file(content, {{"columns", Strings{"when: date"}}});
  EXPECT_EQ(open(epoch)->slot(0).dtype, TN_F64);
  EXPECT_THAT(values<double>(epoch), ElementsAre(86400, 1709209815.5, 1709244000, -60));
  check(epoch);
  const Values parts =
      file(content, {{"columns", Strings{"when: date year month day weekday hour minute second yearday"}}});
  EXPECT_THAT(open(parts)->shape(0), ElementsAre(8));
  const std::vector<Sample> samples = check(parts);
  EXPECT_THAT(as<float>(samples[0][0].values), ElementsAre(1970, 1, 2, 4, 0, 0, 0, 2));
  EXPECT_THAT(as<float>(samples[1][0].values), ElementsAre(2024, 2, 29, 3, 12, 30, 15.5F, 60));
  EXPECT_THAT(as<float>(samples[3][0].values), ElementsAre(1969, 12, 31, 2, 23, 59, 0, 365));
  const auto day = [&](const std::string& format, const std::string& text) {
    return values<float>(
        file("d;e\n" + text + ";\n",
             {{"delimiter", ";"}, {"columns", Strings{"d: date(" + format + ") year month day hour"}}}));
  };
  EXPECT_THAT(day("%d.%m.%Y", "1.2.2023"), ElementsAre(2023, 2, 1, 0));
  EXPECT_THAT(day("%m/%d/%y %I:%M %p", "12/31/99 12:05 AM"), ElementsAre(1999, 12, 31, 0));
  EXPECT_THAT(day("%m/%d/%y %I:%M %p", "1/2/03  1:05 pm"), ElementsAre(2003, 1, 2, 13));
  EXPECT_THAT(day("%b %d, %Y", "September 5, 2020"), ElementsAre(2020, 9, 5, 0));
  EXPECT_THAT(day("%d %b %Y", "05 sep 2020"), ElementsAre(2020, 9, 5, 0));
  EXPECT_THAT(day("%Y%m%d", "20201231"), ElementsAre(2020, 12, 31, 0));
  EXPECT_THAT(day("%Y-%j", "2020-366"), ElementsAre(2020, 12, 31, 0));
  EXPECT_THAT(day("%%%Y", "%2020"), ElementsAre(2020, 1, 1, 0));
}

TEST_F(CsvForms, DatesThatAreNone) {
  for (const char* const wrong : {"2023-02-29", "2023-13-01", "2023-1-1x", "23-01-01", "2023-01-01T",
                                  "2023-01-01T25:00", "2023-01-01T1:00+", "2023-00-10", "01.02.2023", "x"})
    expect_damage(file(std::string("d\n") + wrong + "\n", {{"columns", Strings{"d: date"}}}),
                  "f: line 2: column \"d\": expected a date such as 2024-01-31 or 2024-01-31T12:30:00Z, got");
  expect_damage(file("d\n2023-366\n", {{"columns", Strings{"d: date(%Y-%j)"}}}),
                "expected a date of the form \"%Y-%j\", got \"2023-366\"");
  EXPECT_THAT(message("d\n1\n", {"d: date(%Q)"}), HasSubstr("unknown field \"%Q\" of the format; known: %Y"));
  EXPECT_THAT(message("d\n1\n", {"d: date(day)"}), HasSubstr("the format has no fields"));
  EXPECT_THAT(message("d\n1\n", {"d: date(%Y"}), HasSubstr("expected date(FORMAT)"));
  EXPECT_THAT(message("d\n1\n", {"d: date century"}), HasSubstr("cannot make sense of \"century\""));
  const Values filled =
      file("d,e\n2020-05-06,1\n,2\n", {{"columns", Strings{"d: date month day missing -1 indicator"}}});
  EXPECT_THAT(values<float>(filled), ElementsAre(5, 6, 0, -1, -1, 1));
  check(filled);
}

TEST_F(CsvForms, ListsInAField) {
  const Bytes content = "id,tags,genres,point\n1,3|1|2,Drama|Comedy,1 2\n2,,Comedy,  3   4.5\n3,7,,5 6\n";
  const Values given = file(
      content, {{"columns", Strings{"tags: i32 < 8 list(|)", "genres: category list(|)", "point: f32 list size 2"}}});
  const auto reader = open(given);
  EXPECT_EQ(reader->slot(0).storage, TN_RAGGED);
  EXPECT_EQ(reader->slot(0).levels, 1u);
  EXPECT_EQ(reader->slot(1).index_limit, 2);
  EXPECT_EQ(reader->slot(2).storage, TN_DENSE);
  EXPECT_THAT(reader->shape(2), ElementsAre(2));
  const std::vector<Sample> samples = check(given);
  EXPECT_THAT(as<int32_t>(samples[0][0].values), ElementsAre(3, 1, 2));
  EXPECT_THAT(as<int32_t>(samples[1][0].values), IsEmpty());
  EXPECT_THAT(as<int32_t>(samples[0][1].values), ElementsAre(1, 0));
  EXPECT_THAT(as<int32_t>(samples[2][1].values), IsEmpty());
  EXPECT_THAT(as<float>(samples[1][2].values), ElementsAre(3, 4.5F));
  expect_damage(file("a,b\n1;x,1\n", {{"columns", Strings{"a: i32 list(;)"}}}),
                "f: line 2: column \"a\": expected a whole number, got \"x\"");
  expect_damage(file("a,b\n1;;2,1\n", {{"columns", Strings{"a: i32 list(;)"}}}), "expected a whole number, got \"\"");
  expect_damage(file("a,b\n1 2 3,1\n", {{"columns", Strings{"a: f32 list size 2"}}}),
                "column \"a\": expected a list of 2 values, got 3");
  EXPECT_THAT(values<float>(file("a,b\n,1\n1 2,1\n", {{"columns", Strings{"a: f32 list size 2 missing 9"}}})),
              ElementsAre(9, 9, 1, 2));
  // Within sequences of records they are sequences of sequences; one for each sequence must be the same.
  const Values visits =
      file("u,tags,all\n1,3 1,5\n1,,5\n2,4,6 7\n", {{"columns", Strings{"tags: i32 list", "all: i32 list"}},
                                                    {"sequence_by", "u"},
                                                    {"per_sequence", Strings{"all"}}});
  EXPECT_EQ(open(visits)->slot(0).levels, 2u);
  EXPECT_EQ(open(visits)->slot(1).levels, 1u);
  const std::vector<Sample> inner = check(visits);
  EXPECT_EQ(inner[0][0].lengths, (std::vector<int64_t>{2, 0}));
  EXPECT_THAT(as<int32_t>(inner[0][0].values), ElementsAre(3, 1));
  EXPECT_THAT(as<int32_t>(inner[1][1].values), ElementsAre(6, 7));
  expect_damage(file("u,t\n1,3\n1,4\n",
                     {{"columns", Strings{"t: i32 list"}}, {"sequence_by", "u"}, {"per_sequence", Strings{"t"}}}),
                "f: line 3: slot \"t\": differs from the first record of its sequence");
  const auto wrong = [&](const std::string& entry) { return message("a,b\n1,2\n", {entry}); };
  EXPECT_THAT(wrong("x = a, b: f32 list"), HasSubstr("must be one column"));
  EXPECT_THAT(wrong("a: list"), HasSubstr("unknown type \"list\""));
  EXPECT_THAT(wrong("a: f32 list()"), HasSubstr("expected list(SEPARATOR)"));
  EXPECT_THAT(wrong("a: f32 size 2"), HasSubstr("\"size\" is the number of values of a list"));
  EXPECT_THAT(wrong("a: f32 list size 0"), HasSubstr("expected a whole number from 1"));
  EXPECT_THAT(wrong("a: f32 list missing 3"), HasSubstr("no other treatment than \"missing skip\""));
  EXPECT_THAT(wrong("a: date list"), HasSubstr("a list holds numbers or categories"));
}

TEST_F(CsvForms, TextsBesideNumbers) {
  const Bytes content = "text,stars\n\"Good, good\nfilm\",5\nBad film!,1\n,3\n";
  const Values given =
      file(content, {{"columns", Strings{"text: words lower", "stars: f32"}}, {"save_vocabularies", "."}});
  const auto reader = open(given);
  EXPECT_EQ(reader->slot(0).storage, TN_RAGGED);
  EXPECT_EQ(got("text.txt"), "<unk>\nfilm\ngood\n!\n,\nbad\n");
  EXPECT_EQ(reader->slot(0).index_limit, 6);
  const std::vector<Sample> samples = check(given);
  EXPECT_THAT(as<int32_t>(samples[0][0].values), ElementsAre(2, 4, 2, 1));
  EXPECT_THAT(as<int32_t>(samples[1][0].values), ElementsAre(5, 1, 3));
  EXPECT_THAT(as<int32_t>(samples[2][0].values), IsEmpty());
  EXPECT_THAT(values<float>(given, 1), ElementsAre(5, 1, 3));
  const auto read = [&](const std::string& type) {
    return as<int32_t>(all(file(content, {{"columns", Strings{"text: " + type}}}))[0][0].values);
  };
  EXPECT_EQ(read("words(text.txt) lower"), (Numbers{2, 4, 2, 1}));
  EXPECT_EQ(read("words lower most 3"), (Numbers{2, 0, 2, 1}));
  EXPECT_EQ(read("words lower least 2"), (Numbers{2, 0, 2, 1}));
  put("few", "film\ngood\n");
  expect_damage(file(content, {{"columns", Strings{"text: words(few) lower"}}}),
                "f: line 2: column \"text\": \",\" is not in the vocabulary, which has no <unk> either");
  EXPECT_THAT(values<int32_t>(file("t,n\nab,1\nba,2\n", {{"columns", Strings{"t: characters"}}})),
              ElementsAre(1, 2, 2, 1));
  EXPECT_EQ(all(file(content, {{"columns", Strings{"text: words missing skip"}}})).size(), 2u);
  expect_damage(file("t,n\na\xff,1\n", {{"columns", Strings{"t: words"}}}),
                "f: line 2: column \"t\": byte 2 is not valid UTF-8");
  EXPECT_THAT(message(content, {"text: f32 lower"}), HasSubstr("are options of words and characters"));
  EXPECT_THAT(message(content, {"x = text, stars: words"}), HasSubstr("a list or text must be one column"));
}

TEST_F(CsvForms, PatternsOfFiles) {
  put("data/b.csv", "a\n2\n");
  put("data/a.csv", "a\n1\n");
  put("data/B.csv", "a\n3\n");
  put("data/.hidden.csv", "a\n9\n");
  put("data/c.txt", "a\n9\n");
  std::filesystem::create_directories(folder_ / "data" / "d.csv");
  const auto read = [&](const Strings& files) {
    return values<int32_t>({{"files", files}, {"columns", Strings{"a: i32"}}});
  };
  EXPECT_THAT(read({"data/*.csv"}), ElementsAre(3, 1, 2)) << "in the order of bytes";
  EXPECT_THAT(read({"data/[ab].csv", "data/?.txt"}), ElementsAre(1, 2, 9));
  EXPECT_THAT(read({(folder_ / "data" / "*.csv").string()}), ElementsAre(3, 1, 2));
  check({{"files", Strings{"data/*.csv"}}, {"columns", Strings{"a: i32"}}});
  put("data/[ab].csv", "a\n7\n");
  EXPECT_THAT(read({"data/[ab].csv"}), ElementsAre(7)) << "a file of this name";
  const Error none = refusal({{"files", Strings{"data/*.tsv"}}});
  EXPECT_EQ(none.code(), TN_NOT_FOUND);
  EXPECT_THAT(none.message(), HasSubstr((folder_ / "data/*.tsv").string() + ": there is no such file"));
  const char* const before = std::getenv("HOME");
  const std::string home = before == nullptr ? "" : before;
  ::setenv("HOME", (folder_ / "data").c_str(), 1);
  EXPECT_THAT(read({"~/a.csv"}), ElementsAre(1));
  EXPECT_THAT(read({"~/?.csv"}), ElementsAre(3, 1, 2));
  EXPECT_THAT(refusal({{"files", Strings{"~/absent.csv"}}}).message(),
              HasSubstr("~/absent.csv: there is no such file"));
  ::setenv("HOME", home.c_str(), 1);
}

// Records that end with a delimiter, which the header does not.
TEST_F(CsvForms, TrailingDelimiters) {
  const Bytes content = "a,b\n1,2,\n\n3,4,\n";
  const Values given = file(content, {{"columns", Strings{"x = *: f32"}}});
  EXPECT_THAT(values<float>(given), ElementsAre(1, 2, 3, 4));
  check(given);
  EXPECT_EQ(open(file(content))->slots(), 2u);
  put("g", "b,a\n6,5\n");
  EXPECT_THAT(values<float>({{"files", Strings{"f", "g", "f"}}, {"columns", Strings{"x = *: f32"}}}),
              ElementsAre(1, 2, 3, 4, 5, 6, 1, 2, 3, 4));
  expect_damage(file("a,b\n1,2,\n3,4,5\n", {{"columns", Strings{"x = *: f32"}}}),
                "f: line 3: the field \"5\" behind the last column; other records have an empty one");
  expect_damage(file("a,b\n1,2,\n3,4\n", {{"columns", Strings{"x = *: f32"}}}), "line 3: expected 3 fields, got 2");
  expect_damage(file("a,b\n1,2\n3,4,\n", {{"columns", Strings{"x = *: f32"}}}), "line 3: expected 2 fields, got 3");
  expect_damage(file("a,b\n1,2,,\n", {{"columns", Strings{"x = *: f32"}}}), "line 2: expected 2 fields, got 4");
  expect_damage(file("a,b\n1,2,5\n", {{"columns", Strings{"x = *: f32"}}}), "line 2: expected 2 fields, got 3");
}

TEST_F(CsvForms, HintsOfDelimiters) {
  EXPECT_THAT(message("a;b\n1;2\n", {"a: f32"}),
              HasSubstr("unknown column \"a\"; known: \"a;b\"; delimiter = \";\" makes 2 columns of the header"));
  EXPECT_THAT(message("a\tb\n1\t2\n", {"a: f32"}),
              HasSubstr("has a control character in it; delimiter = \"\\t\" separates fields at tabs"));
  EXPECT_THAT(
      message("# exported 2024\na,b\n1,2\n", {"a: f32"}),
      HasSubstr("known: \"# exported 2024\"; the line behind it has 2 fields: comment = \"#\" leaves out lines"));
  EXPECT_THAT(message("Sales of May\n\na,b,c\n1,2,3\n", {"a: f32"}),
              HasSubstr("the line behind it has 3 fields: skip_lines = 1 skips a title"));
  EXPECT_THAT(message("b\n1\n", {"a: f32"}), testing::EndsWith("known: \"b\""));
}

}  // namespace
}  // namespace tenon_tests
