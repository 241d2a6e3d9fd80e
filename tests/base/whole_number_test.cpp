// Numbers in texts that have nothing else. SPDX-License-Identifier: Apache-2.0
#include "base/whole_number.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace {

using tenon::base::whole_number;

TEST(WholeNumber, IsTheWholeText) {
  EXPECT_EQ(whole_number<int>("0"), 0);
  EXPECT_EQ(whole_number<int>("-7"), -7);
  EXPECT_EQ(whole_number<int64_t>("9223372036854775807"), INT64_MAX);
  for (const char* text : {"", " 7", "7 ", "+7", "7x", "0x7", "7.0", "-"})
    EXPECT_EQ(whole_number<int>(text), std::nullopt) << text;
}

TEST(WholeNumber, IsOneThatTheTypeCanHold) {
  EXPECT_EQ(whole_number<int>("2147483648"), std::nullopt);
  EXPECT_EQ(whole_number<int64_t>("9223372036854775808"), std::nullopt);
  EXPECT_EQ(whole_number<uint32_t>("-1"), std::nullopt);
}

}  // namespace
