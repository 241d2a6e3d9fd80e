// The reader csv: records, columns, types, missing values, damage. SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <random>

#include "tests/support/reader_check.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Csv : public ReaderTest {
 protected:
  Csv() : ReaderTest("csv") {}

  Error attribute_error(const Bytes& content, const Values& more) {
    const Error error = refusal(file(content, more));
    EXPECT_EQ(error.code(), TN_INVALID) << error.message();
    return error;
  }
};

constexpr const char* kPeople = "age,income,city,label\n31,1.5,Rome,0\n22,-2e3,Oslo,1\n45,0.25,Rome,2\n";

TEST_F(Csv, InfersATypeForEachColumn) {
  const auto reader = open(file(kPeople));
  ASSERT_EQ(reader->slots(), 4u);
  EXPECT_STREQ(reader->slot(0).name, "age");
  EXPECT_EQ(reader->slot(0).dtype, TN_I64);
  EXPECT_EQ(reader->slot(0).rank, 0);
  EXPECT_EQ(reader->slot(1).dtype, TN_F32);
  EXPECT_EQ(reader->slot(2).dtype, TN_I32);
  EXPECT_EQ(reader->slot(2).index_limit, 2);
  EXPECT_EQ(reader->slot(3).index_limit, -1);
  EXPECT_THAT(values<int64_t>(file(kPeople)), ElementsAre(31, 22, 45));
  EXPECT_THAT(values<float>(file(kPeople), 1), ElementsAre(1.5F, -2000.0F, 0.25F));
  EXPECT_THAT(values<int32_t>(file(kPeople), 2), ElementsAre(1, 0, 1));  // Oslo, Rome
  check(file(kPeople));
  check(file(kPeople, {{"files", Strings{"f", "f"}}}));
}

TEST_F(Csv, ColumnsMakeSlots) {
  const Values some = file(kPeople, {{"columns", Strings{"x = age, income : f64", "y=label:u8<3"}}});
  const auto reader = open(some);
  ASSERT_EQ(reader->slots(), 2u);
  EXPECT_STREQ(reader->slot(0).name, "x");
  EXPECT_THAT(reader->shape(0), ElementsAre(2));
  EXPECT_EQ(reader->slot(1).dtype, TN_U8);
  EXPECT_EQ(reader->slot(1).index_limit, 3);
  EXPECT_EQ(reader->slot(1).rank, 0);
  EXPECT_THAT(values<double>(some), ElementsAre(31, 1.5, 22, -2000, 45, 0.25));
  EXPECT_THAT(values<uint8_t>(some, 1), ElementsAre(0, 1, 2));
  check(some);
  const Values rest = file("a,b,c,d\n1,2,3,4\n", {{"columns", Strings{"y = c", "x = *", "z = \"d\"..d:i16"}}});
  EXPECT_THAT(open(rest)->shape(1), ElementsAre(2));
  EXPECT_EQ(open(rest)->slot(1).dtype, TN_I64);
  EXPECT_THAT(open(rest)->shape(2), ElementsAre(1));
  EXPECT_THAT(values<int64_t>(rest, 1), ElementsAre(1, 2));
  const Values mixed = file("a,b,c\n1,2,3\n", {{"columns", Strings{"x = c, *"}}});
  EXPECT_EQ(values<int64_t>(mixed).size(), 3u);
}

TEST_F(Csv, EveryTypeHasItsRange) {
  const auto read = [&](const std::string& type, const Bytes& text) {
    return all(file("v\n" + text + "\n", {{"columns", Strings{"v:" + type}}}))[0][0].values;
  };
  EXPECT_THAT(as<int8_t>(read("i8", "-128")), ElementsAre(-128));
  EXPECT_THAT(as<int16_t>(read("i16", "32767")), ElementsAre(32767));
  EXPECT_THAT(as<int32_t>(read("i32", "-2147483648")), ElementsAre(std::numeric_limits<int32_t>::min()));
  EXPECT_THAT(as<int64_t>(read("i64", "-9223372036854775808")), ElementsAre(std::numeric_limits<int64_t>::min()));
  EXPECT_THAT(as<uint8_t>(read("u8", "255")), ElementsAre(255));
  EXPECT_THAT(as<uint16_t>(read("u16", "65535")), ElementsAre(65535));
  EXPECT_THAT(as<uint32_t>(read("u32", "4294967295")), ElementsAre(4294967295u));
  EXPECT_THAT(as<double>(read("f64", "0.1")), ElementsAre(0.1));
  EXPECT_THAT(as<float>(read("f32", " +1e-3 ")), ElementsAre(1e-3F));
  const auto damage = [&](const std::string& type, const Bytes& text, const std::string& why) {
    expect_damage(file("v\n1\n" + text + "\n", {{"columns", Strings{"v:" + type}}}),
                  (folder_ / "f").string() + ": line 3: column \"v\": " + why);
  };
  damage("i8", "128", "expected a whole number from -128 to 127, got \"128\"");
  damage("u8", "-1", "expected a whole number from 0 to 255, got \"-1\"");
  damage("i32<10", "10", "expected a whole number from 0 to 9");
  damage("i64", "9223372036854775808", "expected a whole number from -9223372036854775808");
  damage("i64", "1.5", "expected a whole number, got \"1.5\"");
  damage("i64", "1 2", "expected a whole number, got \"1 2\"");
  damage("f32", "1.5x", "expected a number, got \"1.5x\"");
  damage("f32", "+-1", "expected a number");
  damage("f32", "1e39", "\"1e39\" is not a finite number of its type");
  damage("f32", "nan", "\"nan\" is not a finite number");
  damage("f64", "1e999", "\"1e999\" is not a finite number");
  damage("f32", "a\033[31m", "expected a number, got \"a?[31m\"");
  damage("f32", Bytes(100, 'z'), "expected a number, got \"" + Bytes(40, 'z') + "...\"");
}

TEST_F(Csv, QuotesFollowTheStandard) {
  const Values given =
      file("", {{"columns", Strings{"a:i32", "\"b, c\":f32", "t:category"}}, {"save_vocabularies", "."}});
  EXPECT_THAT(values<int32_t>(file("a,t\n1,\"x\n\n\ny\"\n2,\"\n\"\n", {{"columns", Strings{"a:i32"}}})),
              ElementsAre(1, 2));
  expect_damage(file("a,t\n1,\"x\n\n\ny\"\nq,\"\n\"\n", {{"columns", Strings{"a:i32"}}}), "line 6: column \"a\"");
  put("f", "\"a\",\"b, c\",t\n\"1\",2,\"x \"\"y\"\" z\"\n3,\"4\",\"\"\"\"\n5,6,w\n");
  EXPECT_THAT(values<int32_t>(given), ElementsAre(1, 3, 5));
  EXPECT_THAT(values<float>(given, 1), ElementsAre(2, 4, 6));
  EXPECT_THAT(values<int32_t>(given, 2), ElementsAre(2, 0, 1));
  EXPECT_EQ(got("t.txt"), "\"\nw\nx \"y\" z\n");
  check(given);
  const Values numbers = {{"columns", Strings{"a:i32"}}};
  expect_damage(file("a\n1\n\"2\n3\n", numbers), "f: line 3: a quoted field has no end");
  expect_damage(file("a\n\"2\"3\n", numbers), "f: line 2: column \"a\": text after the closing quote of a field");
  expect_damage(file("a\n2\"3\"\n", numbers), "line 2: column \"a\": a quote inside a field");
  expect_damage(file("\"a\"b\n2\n", numbers), "line 1: field 1: text after the closing quote");
}

TEST_F(Csv, LineEndsOfEveryKind) {
  const Values typed = {{"columns", Strings{"a:i32"}}};
  for (const char* content : {"a,b\n1,2\n3,4\n", "a,b\r\n1,2\r\n3,4\r\n", "a,b\n1,2\n3,4",
                              "a,b\r\n1,2\r\n3,4\r\n\r\n\n", "\n\na,b\n\n1,2\n\n3,4\n",
                              "\xEF\xBB\xBF"
                              "a,b\n1,2\n3,4\n"})
    EXPECT_THAT(values<int32_t>(file(content, typed)), ElementsAre(1, 3)) << content;
  EXPECT_THAT(values<int32_t>(file("\xEF\xBB\xBF"
                                   "7,8\n1,2\n",
                                   {{"header", false}, {"columns", Strings{"c0:i32"}}})),
              ElementsAre(7, 1));
  check(file("a,b\r\n1,2\r\n3,4", typed));
  const std::string returns = "f: line 1: a carriage return with text behind it: lines must end with \"\\n\"";
  expect_damage(file("a,b\r1,2\r3,4\r", typed), returns);
  expect_damage(file("\"a\rb\",b\r1,2", typed), returns);
  expect_damage(file("1,2\r3,4\r", {{"header", false}}), returns);
  EXPECT_EQ(check(file("\"x\ry\",2\n", {{"header", false}})).size(), 1u);
}

TEST_F(Csv, HeadersMayBeAbsent) {
  const Values plain = file("1;2\n3;4\n", {{"header", false}, {"delimiter", ";"}});
  EXPECT_STREQ(open(plain)->slot(1).name, "c1");
  EXPECT_THAT(values<int64_t>(plain, 1), ElementsAre(2, 4));
  const Values named = file("1\t2\n", {{"header", false}, {"delimiter", "\t"}, {"names", Strings{"u", "v"}}});
  EXPECT_STREQ(open(named)->slot(1).name, "v");
  EXPECT_STREQ(open(file(",b\n1,2\n"))->slot(0).name, "c0");
  EXPECT_THAT(attribute_error("1,2\n", {{"header", false}, {"names", Strings{"u"}}}).message(),
              HasSubstr("names: expected 2 names, one for each column, got 1"));
  EXPECT_THAT(attribute_error("1,2\n", {{"header", false}, {"names", Strings{"u", "u"}}}).message(),
              HasSubstr("two columns are named \"u\""));
  EXPECT_THAT(attribute_error("1,2\n", {{"names", Strings{"u", "v"}}}).message(), HasSubstr("set header = false"));
  expect_damage(file("a,a\n1,2\n"), "f: two columns are named \"a\"");
  put("g", "b,c\n1,2\n");
  put("f", "a,b\n1,2\n");
  expect_damage({{"files", Strings{"f", "g"}}}, "g: its header differs from that of " + (folder_ / "f").string());
}

TEST_F(Csv, NamesThatCannotNameSlotsOrFiles) {
  put("victim.toml", "kept");
  const auto damage = [&](const Bytes& header, const std::string& why) {
    for (const char* save : {"", "."}) {
      Values given = file(header + "\nred,blue\n");
      if (*save != '\0') given["save_vocabularies"] = save;
      expect_damage(given, (folder_ / "f").string() + ": line 1: column 2: its name " + why);
    }
  };
  damage("a," + Bytes("victim.toml\0x", 13), "\"victim.toml?x\" has a control character in it");
  EXPECT_EQ(got("victim.toml"), "kept");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "a.txt"));
  damage("a,b\033[31m", "\"b?[31m\" has a control character in it");
  damage("a,\"b\nc\"", "\"b?c\" has a control character in it");
  damage("a,\x7f", "\"?\" has a control character in it");
  damage("a,\xc2\x9b", "\"?\" has a control character in it");
  damage("a,caf\xe9", "\"caf?\" is not UTF-8");
  for (const char* bytes : {"\x80", "\xc0\xaf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
                            "\xf8\x88\x80\x80\x80", "\xe2\x82", "\xff"})
    damage(Bytes("a,b") + bytes, "\"b?");
  expect_damage(file("\n\na,caf\xe9\n1,2\n"), "f: line 3: column 2: its name \"caf?\"");
  const Strings good = {"caf\xc3\xa9", "\xe2\x82\xac", "\xed\x9f\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"};
  for (const std::string& name : good) EXPECT_EQ(open(file(name + "\n1\n"))->slot(0).name, name);
  EXPECT_THAT(attribute_error("1\n", {{"header", false}, {"names", Strings{"caf\xe9"}}}).message(),
              HasSubstr("names: \"caf?\" is not UTF-8"));
  // A message is cut between two characters.
  const Bytes accents = "x" + [] {
    Bytes result;
    for (int i = 0; i < 40; ++i) result += "\xc3\xa9";
    return result;
  }();
  EXPECT_THAT(attribute_error(accents + "\n1\n", {{"columns", Strings{"y"}}}).message(),
              HasSubstr("known: \"" + accents.substr(0, 39) + "...\""));
}

TEST_F(Csv, EmptyFilesAndFilesWithoutRecords) {
  EXPECT_EQ(check(file("a,b\n", {{"columns", Strings{"a:f32"}}})).size(), 0u);
  EXPECT_EQ(check(file("a,b", {{"columns", Strings{"a:category"}}})).size(), 0u);
  expect_damage(file(""), "f: empty; expected a header");
  expect_damage(file("\n\n"), "f: empty; expected a header");
  expect_damage(file("", {{"header", false}}), "f: empty; its columns are unknown");
  EXPECT_EQ(check(file("", {{"header", false}, {"names", Strings{"a"}}})).size(), 0u);
  EXPECT_EQ(refusal({{"files", Strings{}}}).code(), TN_INVALID);
  EXPECT_EQ(refusal({{"files", Strings{"absent"}}}).code(), TN_NOT_FOUND);
  EXPECT_THAT(refusal({{"files", Strings{"absent"}}}).message(), HasSubstr((folder_ / "absent").string()));
  EXPECT_EQ(refusal({{"files", Strings{"."}}}).code(), TN_INVALID);
  EXPECT_THAT(refusal({{"files", Strings{"."}}}).message(), HasSubstr("it is a folder; expected a file"));
}

TEST_F(Csv, MissingValuesByPolicy) {
  const Bytes content = "a,b,c\n1,2,x\n,4,y\n5,NA,\n7,8,x\n";
  const Strings columns = {"a:i32", "b:f32", "c:category"};
  expect_damage(file(content, {{"columns", columns}, {"missing_texts", Strings{"NA"}}}),
                "f: line 3: column \"a\": the value is missing");
  const Values value = file(
      content, {{"columns", columns}, {"missing", "value"}, {"missing_value", -1.0}, {"missing_texts", Strings{"NA"}}});
  EXPECT_THAT(values<int32_t>(value), ElementsAre(1, -1, 5, 7));
  EXPECT_THAT(values<float>(value, 1), ElementsAre(2, 4, -1, 8));
  EXPECT_THAT(values<int32_t>(value, 2), ElementsAre(0, 1, 2, 0));
  EXPECT_EQ(open(value)->slot(2).index_limit, 3);
  check(value);
  const Values skip = file(content, {{"columns", columns}, {"missing", "skip"}, {"missing_texts", Strings{"NA", "?"}}});
  EXPECT_THAT(values<int32_t>(skip), ElementsAre(1, 7));
  check(skip);
  const Values unused = file(content, {{"columns", Strings{"b:f32"}}, {"missing", "skip"}});
  expect_damage(unused, "line 4: column \"b\": expected a number, got \"NA\"");
  put("f", "a,b,c\n1,2,x\n,4,y\n");
  EXPECT_THAT(values<float>(unused), ElementsAre(2, 4));
  EXPECT_THAT(attribute_error(content, {{"columns", columns}, {"missing", "value"}, {"missing_value", 0.5}}).message(),
              HasSubstr("missing_value: column \"a\" needs a whole number"));
  EXPECT_THAT(attribute_error(content, {{"columns", Strings{"a:u8"}}, {"missing", "value"}, {"missing_value", 256.0}})
                  .message(),
              HasSubstr("from 0 to 255"));
}

TEST_F(Csv, MissingClassesAreNotFilled) {
  const Bytes content = "a,label\n1,2\n,1\n3,\n";
  Values given = file(content, {{"columns", Strings{"a:f32", "label:i32<3"}}, {"missing", "value"}});
  expect_damage(given,
                "f: line 4: column \"label\": the value is missing, and missing_value fills no column with a limit");
  given["missing_value"] = 0.5;  // not an integer, but a column with a limit is never filled
  expect_damage(given, "f: line 4: column \"label\": the value is missing");
  given["missing"] = "skip";
  EXPECT_THAT(values<int32_t>(given, 1), ElementsAre(2));
}

TEST_F(Csv, NumbersAmongTextsMustBeDeclared) {
  const Bytes content = "age,city\n31,Rome\nn/a,Oslo\n22,7\n";
  expect_damage(file(content),
                (folder_ / "f").string() +
                    ": line 3: column \"age\": \"n/a\" is not a number, unlike \"31\": declare it as "
                    "\"age: f32\", with missing_texts = [\"n/a\"] where that means missing, or as \"age: category\"");
  expect_damage(file(content, {{"missing_texts", Strings{"n/a"}}}),
                "line 2: column \"city\": \"Rome\" is not a number, unlike \"7\"");
  const Values known = file(
      content, {{"columns", Strings{"age", "city:category"}}, {"missing", "skip"}, {"missing_texts", Strings{"n/a"}}});
  EXPECT_THAT(values<int64_t>(known), ElementsAre(31, 22));
  EXPECT_THAT(values<int32_t>(known, 1), ElementsAre(2, 0));
  expect_damage(
      file("a,b\n1,2\n3,x\n", {{"columns", Strings{"v = a, b"}}}),
      "line 3: column \"b\": \"x\" is not a number, unlike \"2\": declare it as \"v = ...: f32\", with missing_texts");
  expect_damage(file("a\n1\nx\n", {{"columns", Strings{"v = a"}}}), "declare it as \"v = ...: f32\"");
  // A very long name is cut after 200 bytes.
  const Bytes name(198, 'n');
  expect_damage(file(name + "\n1\n2\nx\n", {{"sample_records", int64_t{2}}}), "declare it as \"" + name + ": ...\"");
  EXPECT_EQ(open(file("a\n+1\n-2\n"))->slot(0).dtype, TN_I64);
  EXPECT_EQ(open(file("a,b\n,1\n,2\n"))->slot(0).dtype, TN_I64);  // column a has no values
  // Later values that the inferred type does not take.
  const auto later = [&](const Bytes& first, const Bytes& text, const std::string& why) {
    expect_damage(file("v\n" + first + "\n2\n" + text + "\n", {{"sample_records", int64_t{2}}}),
                  "line 4: column \"v\": " + why);
  };
  const std::string inferred = "; its type was inferred from the first 2 records: declare it as ";
  later("1", "1200.5", "expected a whole number, got \"1200.5\"" + inferred + "\"v: f32\"");
  later("1", "99999999999999999999",
        "expected a whole number from -9223372036854775808 to 9223372036854775807, got \"99999999999999999999\"" +
            inferred + "\"v: f32\"");
  later("1.5", "?",
        "expected a number, got \"?\"" + inferred +
            "\"v: f32\", with missing_texts = [\"?\"] where that means missing, or as \"v: category\"");
  later("1.5", "1e39", "\"1e39\" is not a finite number of its type" + inferred + "\"v: f64\"");
  later("1.5", "nan", "\"nan\" is not a finite number of its type" + inferred + "\"v: f32\", with missing_texts");
  const Error declared = refusal(file("v\n1\n1.5\n", {{"columns", Strings{"v:i64"}}}));
  EXPECT_THAT(declared.message(), ::testing::EndsWith("expected a whole number, got \"1.5\""));
}

TEST_F(Csv, CategoriesHaveTheSameNumbersElsewhere) {
  put("train", "c,d\nred,1\nblue,2\nred,3\ngreen,4\n");
  put("test", "c,d\ngreen,1\nblue,2\n");
  const Values train = {{"files", Strings{"train"}}, {"save_vocabularies", "."}};
  EXPECT_THAT(values<int32_t>(train), ElementsAre(2, 0, 2, 1));
  EXPECT_EQ(got("c.txt"), "blue\ngreen\nred\n");
  Values test = {{"files", Strings{"test"}}, {"columns", Strings{"c:category(c.txt)"}}};
  EXPECT_THAT(values<int32_t>(test), ElementsAre(1, 0));
  EXPECT_EQ(open(test)->slot(0).index_limit, 3);
  put("test", "c,d\ngreen,1\npink,2\n");
  expect_damage(test, "test: line 3: column \"c\": \"pink\" is not in the vocabulary");
  test["missing"] = "value";  // fills missing values, not unknown ones
  expect_damage(test, "test: line 3: column \"c\": \"pink\" is not in the vocabulary");
  test.erase("missing");
  test["unknown_category"] = true;
  EXPECT_THAT(values<int32_t>(test), ElementsAre(1, 3));
  EXPECT_EQ(open(test)->slot(0).index_limit, 4);
  put("c.txt", "blue\nred\nblue\n");
  expect_damage(test, "c.txt: line 3: duplicate entry \"blue\"");
}

TEST_F(Csv, SavedVocabulariesStayAsTheyAre) {
  const Values saving = file("c,d\nred,x\nblue,x\n", {{"save_vocabularies", "."}});
  open(saving);
  open(saving);
  EXPECT_EQ(got("c.txt"), "blue\nred\n");
  put("f", "c,d\nred,x\ngreen,x\n");
  const Error error = refusal(saving);
  EXPECT_EQ(error.code(), TN_INVALID);
  EXPECT_THAT(error.message(), HasSubstr("c.txt: line 1 is \"blue\", but \"green\" would be written"));
  EXPECT_THAT(error.message(), HasSubstr("read it with the type category(FILE), or remove the file"));
  EXPECT_EQ(got("c.txt"), "blue\nred\n");
  std::filesystem::remove(folder_ / "c.txt");
  put("other", "of another user");  // who guesses the name of the temporary file
  for (const char* const end : {"", "-0", "-1"})
    std::filesystem::create_symlink("other", folder_ / ("c.txt.tmp" + std::to_string(::getpid()) + end));
  open(saving);
  EXPECT_EQ(got("c.txt"), "green\nred\n");
  EXPECT_EQ(got("other"), "of another user");
  const Error absent = refusal(file("c\nred\n", {{"save_vocabularies", "absent"}}));
  EXPECT_EQ(absent.code(), TN_NOT_FOUND);
  EXPECT_THAT(absent.message(), HasSubstr("absent/c.txt: cannot be written: there is no folder"));
  EXPECT_THAT(refusal(file("c\n\"a\nb\"\n", {{"save_vocabularies", "."}})).message(),
              HasSubstr("has a line end in it"));
}

TEST_F(Csv, ColumnsThatMakeNoSense) {
  const auto message = [&](const Strings& columns) {
    return attribute_error("a,b,c\n1,2,x\n", {{"columns", columns}}).message();
  };
  EXPECT_THAT(message({"d"}), HasSubstr("columns: \"d\": unknown column \"d\"; known: \"a\", \"b\", \"c\""));
  EXPECT_THAT(message({"a:f16"}), HasSubstr("unknown type \"f16\"; known: f32"));
  EXPECT_THAT(message({"a,b"}), HasSubstr("needs a name: \"x = a,b\""));
  EXPECT_THAT(message({"*"}), HasSubstr("needs a name"));
  EXPECT_THAT(message({"a", "a"}), HasSubstr("duplicate column \"a\""));
  EXPECT_THAT(message({"x = a", "x = b"}), HasSubstr("two slots are named \"x\""));
  EXPECT_THAT(message({"x = *", "y = *"}), HasSubstr("duplicate \"*\""));
  EXPECT_THAT(message({"x = a..c", "y = *"}), HasSubstr("no column is left for \"y\""));
  EXPECT_THAT(message({"x = c..a"}), HasSubstr("the range ends before it begins"));
  EXPECT_THAT(message({"x = a, c: category"}), HasSubstr("must be one column"));
  EXPECT_THAT(message({"x = a..c"}), HasSubstr("the column \"c\" of \"x\" does not hold numbers"));
  for (const char* column : {"a:f32<3", "a:i32<0", "a:i32<-1", "a:i32<", "a:i32<x"})
    EXPECT_THAT(message({column}), HasSubstr("of at least 1 after \"<\", and an integer type before it"));
  EXPECT_THAT(message({"a:i32 b"}), HasSubstr("cannot make sense of \"b\""));
  EXPECT_THAT(message({"\"a"}), HasSubstr("a quoted name has no end"));
  EXPECT_THAT(message({""}), HasSubstr("expected the name of a column"));
  for (const char* delimiter : {"", "ab", "a", "1", "\"", "-", "\n"})
    EXPECT_THAT(attribute_error("a\n1\n", {{"delimiter", delimiter}}).message(), HasSubstr("delimiter: expected one"));
}

TEST_F(Csv, WrongNumbersOfFieldsAndLongLines) {
  const Values typed = {{"columns", Strings{"x = *:f32"}}};
  expect_damage(file("a,b\n1,2\n3\n", typed), (folder_ / "f").string() + ": line 3: expected 2 fields, got 1");
  expect_damage(file("a,b\n1,2,3\n", typed), "line 2: expected 2 fields, got 3");
  expect_damage(file("a,b\n1,\n", typed), "line 2: column \"b\": the value is missing");
  // A field of 1 MiB is accepted in a column that is not used, but no field may be longer than the bound.
  const Bytes huge(1 << 20, 'x');
  const Values second = {{"columns", Strings{"b:i32"}}};
  EXPECT_THAT(values<int32_t>(file("a,b\n" + huge + ",1\n\"" + huge + "\n\",2\n", second)), ElementsAre(1, 2));
  expect_damage(file("a,b\n1,1\n" + huge + ",1\n", {{"columns", Strings{"b:i32"}}, {"most_line_bytes", int64_t{1000}}}),
                "line 3: longer than 1000 bytes");
  expect_damage(file("a,b\n\"" + huge + "\n,1\n", {{"most_line_bytes", int64_t{1000}}}),
                "line 2: longer than 1000 bytes, in a quoted field");
  expect_damage(file(Bytes(5000, '\0'), second), "line 1: column 1: its name \"" + Bytes(40, '?') + "...\" has");
}

TEST_F(Csv, OneDamagedRecordLosesNothingElse) {
  const auto reader = open(file("a\n1\n2\nx\n4\n5\n", {{"columns", Strings{"a:i32"}}}));
  EXPECT_EQ(reader->next(10).size(), 2u);
  const Error error = error_of([&] { reader->next(10); });
  EXPECT_EQ(error.code(), TN_BAD_DATA);
  EXPECT_THAT(error.message(), HasSubstr("line 4"));
  EXPECT_EQ(reader->position(), 3);
  EXPECT_EQ(reader->next(10).size(), 2u);
  EXPECT_EQ(reader->next(10).size(), 0u);
  EXPECT_EQ(error_of([&] { reader->read_at({0, 2, 1}); }).code(), TN_BAD_DATA);
  EXPECT_EQ(reader->read_at({4, 0}).size(), 2u);
}

TEST_F(Csv, ManyRecordsOverManyWindows) {
  Bytes content = "i,x,t\n";
  for (int i = 0; i < 60'000; ++i)
    content += std::to_string(i) + "," + std::to_string(i) + ".5," + (i % 7 == 0 ? "\"a,\n\"\"\"" : "b") + "\n";
  ASSERT_GT(content.size(), size_t{3} << 18);
  const Values plain = file(content, {{"columns", Strings{"i:i32", "x:f32", "t:category"}}});
  put("f.gz", gzip(content));
  Values zipped = plain;
  zipped["files"] = Strings{"f.gz"};
  const auto reader = open(plain);
  ASSERT_EQ(reader->samples(), 60'000);
  const std::vector<Sample> samples = reader->all(1000);
  for (int i = 0; i < 60'000; ++i) {
    const Sample& sample = samples[static_cast<size_t>(i)];
    ASSERT_EQ(as<int32_t>(sample[0].values)[0], i);
    ASSERT_EQ(as<float>(sample[1].values)[0], static_cast<float>(i) + 0.5F);
    ASSERT_EQ(as<int32_t>(sample[2].values)[0], i % 7 == 0 ? 0 : 1);
  }
  EXPECT_TRUE(open(zipped)->all(777) == samples);
  Values from_file = plain;
  from_file["most_kept_bytes"] = int64_t{0};
  EXPECT_TRUE(open(from_file)->all(777) == samples);
  EXPECT_TRUE(open(from_file)->read_at({59'999, 0, 30'000}) ==
              (std::vector<Sample>{samples[59'999], samples[0], samples[30'000]}));
  EXPECT_TRUE(reader->read_at({59'999, 0, 30'000}) ==
              (std::vector<Sample>{samples[59'999], samples[0], samples[30'000]}));
  check_shards(plain, samples, 7);
  check_no_memory(zipped);
  expect_cancelled(plain);
  expect_cancelled(zipped);
}

TEST_F(Csv, ManyColumns) {
  constexpr int kColumns = 200'000;  // linear searches would take minutes
  Bytes content = "c0", record = "0";
  for (int i = 1; i < kColumns; ++i) {
    content += ",c" + std::to_string(i);
    record += "," + std::to_string(i);
  }
  content += "\n" + record + "\n";
  std::string picked = "x = *";
  for (int i = kColumns - 1; i >= 0; i -= 2) picked += ", c" + std::to_string(i);
  const Values given = file(content, {{"columns", Strings{picked + ": i32"}}});
  const std::vector<int32_t> found = values<int32_t>(given);
  ASSERT_EQ(found.size(), size_t{kColumns});
  for (int i = 0; i < kColumns / 2; ++i) {
    ASSERT_EQ(found[static_cast<size_t>(i)], 2 * i);
    ASSERT_EQ(found[static_cast<size_t>(kColumns / 2 + i)], kColumns - 1 - 2 * i);
  }
  expect_cancelled(given);
}

TEST_F(Csv, NumbersAreRoundedOnce) {
  std::mt19937 random(1);
  const auto digits = [&](uint64_t most) {
    std::string result;
    for (uint64_t count = random() % (most + 1); count > 0; --count) result += static_cast<char>('0' + random() % 10);
    return result;
  };
  Strings texts = {"0",
                   "-0",
                   "5.",
                   ".5",
                   "-.25",
                   "0.0000001",
                   "16777217",
                   "16777216.0",
                   "9007199254740993",
                   "123456789.1234567",
                   "1e5",
                   "1.5E-3",
                   "00000000000000000001.5",
                   "0.12345678",
                   "3.4028235e38"};
  while (texts.size() < 50'000) {
    std::string text = (random() % 2 == 0 ? "-" : "") + digits(4 + random() % 8);
    if (random() % 4 != 0) text += "." + digits(random() % 12);
    if (random() % 16 == 0) text += "e" + std::to_string(random() % 20);
    if (text.find_first_of("0123456789") != std::string::npos && text.find("-e") == std::string::npos &&
        text.find(".e") == std::string::npos && text[0] != 'e')
      texts.push_back(text);
  }
  Bytes content = "a,b\n";
  for (const std::string& text : texts) content.append(text).append(",").append(text).append("\n");
  for (const int64_t kept : {0, 1 << 30}) {
    const Values given = file(content, {{"columns", Strings{"a:f32", "b:f64"}}, {"most_kept_bytes", kept}});
    const std::vector<float> singles = values<float>(given);
    const std::vector<double> doubles = values<double>(given, 1);
    for (size_t i = 0; i < texts.size(); ++i) {
      ASSERT_EQ(singles[i], std::strtof(texts[i].c_str(), nullptr)) << texts[i];
      ASSERT_EQ(doubles[i], std::strtod(texts[i].c_str(), nullptr)) << texts[i];
      ASSERT_EQ(std::signbit(singles[i]), texts[i][0] == '-') << texts[i];
    }
  }
}

TEST_F(Csv, DamagedGzipAndShrunkFiles) {
  Bytes content = "a\n";
  for (int i = 0; i < 100'000; ++i) content += std::to_string(i) + "\n";
  const Bytes zipped = gzip(content);
  expect_damage(file(zipped.substr(0, zipped.size() / 2)), "f: damaged gzip data: the compressed data ends");
  Bytes changed = zipped;
  changed[zipped.size() - 6] = static_cast<char>(changed[zipped.size() - 6] ^ 1);
  expect_damage(file(changed), "f: damaged gzip data: incorrect data check");
  expect_damage(file(gzip(Bytes(1 << 20, '\n')), {{"most_inflated_bytes", int64_t{100'000}}}),
                "f: inflates to more than 100000 bytes");
  // The size at the end of a gzip file is that of its last member. So the buffer grows from 64 KiB by doubling, up to
  // the bound.
  expect_damage(file(gzip(content.substr(0, 150'000)) + gzip(content.substr(150'000, 10)),
                     {{"most_inflated_bytes", int64_t{131'072}}}),
                "f: inflates to more than 131072 bytes");
  const auto reader = open(file(content, {{"most_kept_bytes", int64_t{0}}}));
  std::filesystem::resize_file(folder_ / "f", 1000);
  const Error error = error_of([&] { reader->read_at({40'000}); });
  EXPECT_EQ(error.code(), TN_BAD_DATA);
  EXPECT_THAT(error.message(), HasSubstr("f: became shorter while it was read"));
}

}  // namespace
}  // namespace tenon_tests
