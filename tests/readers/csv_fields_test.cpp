// The reader csv: fields at every place of the blocks in which they are found, and numbers in every form.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <iomanip>
#include <random>
#include <sstream>

#include "tests/support/reader_check.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

using ::testing::ElementsAre;

class CsvFields : public ReaderTest {
 protected:
  CsvFields() : ReaderTest("csv") {}

  std::string digits(size_t count) {
    std::string result;
    while (result.size() < count) result += static_cast<char>('0' + random_() % 10);
    return result;
  }

  std::mt19937 random_{1};
};

TEST_F(CsvFields, IntegersAreBelowTheirLimit) {
  for (const int64_t limit : {int64_t{1}, int64_t{2}, int64_t{10}, INT64_MAX}) {
    const Strings columns = {"v:i64<" + std::to_string(limit)};
    const Bytes last = std::to_string(limit - 1);
    const Values given = file("v\n0\n" + last + "\n", {{"columns", columns}});
    EXPECT_EQ(open(given)->slot(0).index_limit, limit);
    EXPECT_THAT(values<int64_t>(given), ElementsAre(0, limit - 1));
    expect_damage(file("v\n0\n" + std::to_string(limit) + "\n", {{"columns", columns}}),
                  "line 3: column \"v\": expected a whole number from 0 to " + last);
  }
}

// Each record has numbers, which fields of any length, some of them quoted, move against the blocks of 64 bytes.
TEST_F(CsvFields, AtEveryPlaceOfABlock) {
  Bytes content = "a,t,b,u,c,d\n";
  std::vector<int64_t> a;
  std::vector<double> b;
  std::vector<float> c_d;
  const auto filler = [&] {
    Bytes text(random_() % 150, 'x');
    if (random_() % 3 != 0) return text;
    if (!text.empty()) text[random_() % text.size()] = ',';
    return "\"" + text + "\"";
  };
  for (int i = 0; i < 5'000; ++i) {
    const std::string whole = (random_() % 2 == 0 ? "-" : "") + digits(1 + random_() % 18);
    const std::string fraction = digits(1 + random_() % 8) + "." + digits(random_() % 12);
    const std::string first = std::to_string(i % 100), second = random_() % 5 == 0 ? "\"-7.5\"" : "-7.5";
    content += whole + "," + filler() + "," + fraction + "," + filler() + "," + first + "," + second + "\n";
    a.push_back(std::stoll(whole));
    b.push_back(std::strtod(fraction.c_str(), nullptr));
    c_d.insert(c_d.end(), {static_cast<float>(i % 100), -7.5F});
  }
  content.pop_back();  // the last line has no end
  for (const int64_t kept : {0, 1 << 30}) {
    const Values given =
        file(content, {{"columns", Strings{"a:i64", "b:f64", "y = c, d:f32"}}, {"most_kept_bytes", kept}});
    EXPECT_EQ(values<int64_t>(given), a);
    EXPECT_EQ(values<double>(given, 1), b);
    EXPECT_EQ(values<float>(given, 2), c_d);
  }
}

// Numbers so near to the middle between two floats that they must not be rounded to fp64 on the way.
TEST_F(CsvFields, SinglesNearTheMiddleBetweenTwo) {
  Bytes content = "a\n";
  std::vector<float> expected;
  size_t halfway = 0;  // numbers of which fp64 has the middle
  for (int i = 0; i < 20'000; ++i) {
    const int exponent = static_cast<int>(random_() % 24);  // the number has 16 digits
    const float below = std::ldexp(1 + static_cast<float>(random_() % (1 << 23)) / (1 << 23), exponent);
    const double middle = (double{below} + double{std::nextafter(below, INFINITY)}) / 2;
    std::ostringstream text;
    text << std::setprecision(16) << middle;
    content += text.str() + "\n";
    expected.push_back(std::strtof(text.str().c_str(), nullptr));
    if (const double read = std::strtod(text.str().c_str(), nullptr); read == middle)
      halfway += static_cast<float>(read) != expected.back() ? 1 : 0;
  }
  EXPECT_GT(halfway, 1'000u);
  EXPECT_EQ(values<float>(file(content, {{"columns", Strings{"a:f32"}}})), expected);
}

TEST_F(CsvFields, NumbersInEveryForm) {
  const std::vector<std::pair<std::string, double>> good = {{"+1", 1},
                                                            {".5", .5},
                                                            {"-.5", -.5},
                                                            {"5.", 5},
                                                            {"-0", 0},
                                                            {"1e2", 100},
                                                            {"1E-2", .01},
                                                            {" 7\t", 7},
                                                            {"00000000000000000000012", 12},
                                                            {"0000000.00000000", 0},
                                                            {"12345678.12345678", 12345678.12345678},
                                                            {"123456789.5", 123456789.5},
                                                            {".1234567890123456", .1234567890123456},
                                                            {"\"3\"", 3},
                                                            {"9007199254740993", 9007199254740992}};
  for (const auto& [text, value] : good)
    EXPECT_THAT(values<double>(file("a,b,c\n1," + text + ",1\n", {{"columns", Strings{"x = *:f64"}}})),
                ElementsAre(1, value, 1))
        << text;
  for (const std::string type : {"f32", "f64", "i32", "i64"})
    for (const Bytes text : {".", "-", "+", "--1", "-+1", "1-", "1.2.3", "..5", "0x10", "1_0", "1:2", "1/2",
                             "12345678 9", "1234567890123456x", "12345678.1234567x", "e5", "1e", "-.", "1 .5"}) {
      const Values given = file("a,b,c\n1,1,1\n1," + text + ",1\n", {{"columns", Strings{"x = *:" + type}}});
      const std::string number = type[0] == 'i' ? "whole number" : "number";
      expect_damage(given, "line 3: column \"b\": expected a " + number + ", got \"" + text + "\"");
    }
  for (const Bytes& text : {Bytes("1\0", 2), Bytes("\0", 1), Bytes("1.5\0", 4)})
    expect_damage(file("a,b\n1," + text + "\n", {{"columns", Strings{"x = *:f32"}}}),
                  "line 2: column \"b\": expected a number, got ");
}

}  // namespace

}  // namespace tenon_tests
