// Numbers of each element type as texts. SPDX-License-Identifier: Apache-2.0
#include "host/cli/numbers.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>

#include "tests/host/cli/calls.h"

namespace tenon_tests {

using namespace tenon;
using namespace tenon::cli;

namespace {

using testing::HasSubstr;

// The bits of a number, as an array of one element.
template <typename T>
std::string text_of(tn_dtype dtype, T bits, double* value = nullptr) {
  Array array;
  array.dtype = dtype;
  array.shape = {1};
  array.data = &bits;
  const Numbers numbers(array, "null");
  if (value != nullptr) *value = numbers.value(0);
  std::string text;
  numbers.append(text, 0);
  return text;
}

TEST(Numbers, OfEveryType) {
  EXPECT_EQ(text_of(TN_I8, int8_t{-128}), "-128");
  EXPECT_EQ(text_of(TN_I16, int16_t{-3}), "-3");
  EXPECT_EQ(text_of(TN_I32, INT32_MIN), "-2147483648");
  EXPECT_EQ(text_of(TN_I64, INT64_MAX), "9223372036854775807");
  EXPECT_EQ(text_of(TN_U8, uint8_t{255}), "255");
  EXPECT_EQ(text_of(TN_U16, uint16_t{65535}), "65535");
  EXPECT_EQ(text_of(TN_U32, UINT32_MAX), "4294967295");
  EXPECT_EQ(text_of(TN_BOOL, uint8_t{1}), "1");
  EXPECT_EQ(text_of(TN_F32, 0.1F), "0.1");
  EXPECT_EQ(text_of(TN_F64, 0.1), "0.1");
  EXPECT_THROW((void)text_of(TN_DTYPE(1, 4), uint8_t{3}), Failure);
}

TEST(Numbers, OfTwoBytesHaveTheFewestDigits) {
  const std::pair<int, const char*> halves[] = {
      {0x0000, "0"},         {0x8000, "-0"},     {0x2E66, "0.1"},   {0x3C00, "1"},      {0x3C01, "1.001"},
      {0xBC00, "-1"},        {0x3555, "0.3333"}, {0x7BFF, "65500"}, {0xFBFF, "-65500"}, {0x0001, "6e-08"},
      {0x0400, "6.104e-05"}, {0x6400, "1024"},   {0x7C00, "null"},  {0xFC00, "null"},   {0x7E01, "null"}};
  for (const auto& [bits, text] : halves) EXPECT_EQ(text_of(TN_F16, static_cast<uint16_t>(bits)), text) << bits;
  const std::pair<int, const char*> brains[] = {{0x0000, "0"},     {0x3DCD, "0.1"},  {0x3F80, "1"},
                                                {0x3F81, "1.01"},  {0xC2C8, "-100"}, {0x7F7F, "3.39e+38"},
                                                {0x0001, "9e-41"}, {0x4049, "3.14"}, {0x7F80, "null"}};
  for (const auto& [bits, text] : brains) EXPECT_EQ(text_of(TN_BF16, static_cast<uint16_t>(bits)), text) << bits;
}

TEST(Numbers, OfTwoBytesReadBackAsTheNearest) {
  for (const tn_dtype dtype : {TN_F16, TN_BF16}) {
    const int infinity = dtype == TN_F16 ? 0x7C00 : 0x7F80;
    double before = -1;
    for (int bits = 0; bits < infinity; ++bits) {
      double value = 0, next = INFINITY, opposite = 0;
      const double read = std::strtod(text_of(dtype, static_cast<uint16_t>(bits), &value).c_str(), nullptr);
      if (bits + 1 < infinity) (void)text_of(dtype, static_cast<uint16_t>(bits + 1), &next);
      ASSERT_GT(value, before) << "larger bits are larger numbers";
      ASSERT_LE(2 * std::fabs(read - value), (read < value ? value - before : next - value)) << bits;
      (void)text_of(dtype, static_cast<uint16_t>(bits | 0x8000), &opposite);
      ASSERT_EQ(opposite, -value);
      before = value;
    }
  }
}

class NumbersOfAReader : public CallTest {};

TEST_F(NumbersOfAReader, AreShownInEachType) {
  const auto npy = [&](const std::string& name, const std::string& type, const std::string& shape,
                       const std::string& bytes) {
    const std::string header = "{'descr': '" + type + "', 'fortran_order': True, 'shape': " + shape + "}\n";
    write(name + ".npy", std::string("\x93NUMPY\1\0", 8) + static_cast<char>(header.size()) + '\0' + header + bytes);
  };
  npy("halves", "<f2", "(2, 2)", std::string("\x66\x2E\x00\x3C\x01\x3C\xFF\x7B", 8));
  npy("large", "<f2", "(2, 2, 2)", std::string(16, '\x3C'));
  npy("label", "|i1", "(2,)", std::string("\0\1", 2));
  write("job.toml", R"(layer = [{ name = "score", type = "fc", inputs = ["halves"], size = 2 },
         { name = "cost", type = "cross_entropy", inputs = ["score", "label"], from_logits = true }]
updater = { type = "adam" }
[reader.train]
type = "npy"
files = ["halves.npy", "large.npy", "label.npy"]
classes = 2
batch = 2
)");
  const std::string out = done(run_data_show, {"job.toml"}).out;
  EXPECT_THAT(out, HasSubstr("     0  [0.1, 1.001]  1.059 to 1.059, mean 1.059  0\n"));
  EXPECT_THAT(out, HasSubstr("     1  [1, 65500]    1.059 to 1.059, mean 1.059  1\n"));
}

}  // namespace

}  // namespace tenon_tests
