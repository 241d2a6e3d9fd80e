// tn_parse_double and tn_parse_float against std::from_chars. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <tenon/decimal.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <random>
#include <string>

namespace {

// The number that `text` begins with, and how many characters it takes; 0 if there is none.
template <typename Float>
struct Parsed {
  Float value = 7;
  size_t length = 0;
};
Parsed<double> parsed(const std::string& text, double) {
  Parsed<double> result;
  result.length = static_cast<size_t>(tn_parse_double(text.c_str(), &result.value) - text.c_str());
  return result;
}
Parsed<float> parsed(const std::string& text, float) {
  Parsed<float> result;
  result.length = static_cast<size_t>(tn_parse_float(text.c_str(), &result.value) - text.c_str());
  return result;
}

template <typename Float>
void expect_as_from_chars(const std::string& text) {
  const Parsed<Float> found = parsed(text, Float());
  Float expected = 7;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), expected);
  EXPECT_EQ(found.length, static_cast<size_t>(end - text.data())) << text;
  if (error == std::errc::result_out_of_range) {
    EXPECT_TRUE(std::isinf(found.value) || std::abs(found.value) < std::numeric_limits<Float>::min()) << text;
    return;
  }
  EXPECT_EQ(std::memcmp(&found.value, &expected, sizeof expected), 0)
      << text << " gives " << found.value << "; expected " << expected;
}
void expect_both(const std::string& text) {
  expect_as_from_chars<double>(text);
  expect_as_from_chars<float>(text);
}

TEST(Numbers, OfAllFormsAreParsed) {
  for (const char* text : {"0",
                           "-0",
                           "1",
                           "1.",
                           ".5",
                           "00012.50",
                           "-1.5e-3",
                           "1e5",
                           "1E+5",
                           "1e",
                           "1e+",
                           "1.5e-x",
                           "12ab",
                           "1..2",
                           "1.5.5",
                           "3,25",
                           "inf",
                           "-INF",
                           "nan",
                           "infin",
                           "",
                           ".",
                           "e5",
                           "-",
                           "--1",
                           "x",
                           "1e0005",
                           "0e999999999999",
                           "1 2",
                           "0x10",
                           "Infinity and more"})
    expect_both(text);
  EXPECT_EQ(parsed("+2.5", 0.0).value, 2.5);
  EXPECT_EQ(parsed("1e99999999999999999999", 0.0).value, HUGE_VAL);
  EXPECT_EQ(parsed("-1e400", 0.0).value, -HUGE_VAL);
  EXPECT_EQ(parsed("1e-99999999999999999999", 0.0).value, 0);
  EXPECT_EQ(parsed("1e39", 0.0F).value, HUGE_VALF);
  EXPECT_EQ(parsed(" 1", 0.0).length, 0U);
}

TEST(Numbers, AreRoundedToTheNearest) {
  for (const char* text : {"9007199254740993", "9007199254740992.99999", "9007199254740993.00000000000000000001",
                           "2.2250738585072011e-308", "2.2250738585072014e-308", "1.7976931348623157e308",
                           "4.9406564584124654e-324", "2.4703282292062329e-324", "3.4028234e38", "1.401298464e-45",
                           "1.17549435e-38", "16777217", "16777219", "0.1", "0.3", "1.23456789e-7"})
    expect_both(text);
  EXPECT_EQ(parsed("2.4703282292062327e-324", 0.0).value, 0);  // half of the smallest number, rounded to even
  std::mt19937_64 random(3);
  char text[2048];
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t bits = random();
    double value = 0;
    std::memcpy(&value, &bits, sizeof value);
    if (!std::isfinite(value)) continue;
    std::snprintf(text, sizeof text, "%.*g", static_cast<int>(random() % 20 + 1), value);
    expect_both(text);
    std::snprintf(text, sizeof text, "%.*f", static_cast<int>(random() % 9), std::fmod(value, 1e6));
    expect_both(text);
  }
}

// All digits of numbers that lie halfway between two others, and of one a little above.
TEST(Numbers, HalfwayAreRoundedToTheEvenOne) {
  std::mt19937_64 random(5);
  char digits[2048];
  for (int i = 0; i < 300; ++i) {
    const uint64_t bits = random() & 0x7FEF'FFFF'FFFF'FFFFU;
    double value = 0;
    std::memcpy(&value, &bits, sizeof value);
    const long double halfway = (static_cast<long double>(value) + std::nextafter(value, 1e308)) / 2;
    std::snprintf(digits, sizeof digits, "%.1100Le", halfway);
    expect_as_from_chars<double>(digits);
    const std::string whole = digits, exponent = whole.substr(whole.find('e'));
    expect_as_from_chars<double>(whole.substr(0, whole.find('e')) + "0001" + exponent);
  }
}

}  // namespace
