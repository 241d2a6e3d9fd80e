// The order of versions, and intervals. SPDX-License-Identifier: Apache-2.0
#include "host/plugins/set/version.h"

#include <gtest/gtest.h>

#include "tests/support/memory_system.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

TEST(Version, TheOrderIsThatOfSemanticVersions) {
  // From its page, and texts that are no semantic versions.
  const std::vector<std::string> rising = {"",           "0.1",          "0.2",           "0.10",
                                           "1.0.0-1",    "1.0.0-alpha",  "1.0.0-alpha.1", "1.0.0-alpha.beta",
                                           "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1",
                                           "1.0.0",      "2.0",          "2.1",           "18446744073709551617",
                                           "next"};
  for (size_t i = 0; i < rising.size(); ++i)
    for (size_t j = 0; j < rising.size(); ++j)
      EXPECT_EQ(compare_versions(rising[i], rising[j]), i <=> j) << rising[i] << " " << rising[j];
  EXPECT_EQ(compare_versions("1.2", "1.2.0"), std::strong_ordering::equal);
  EXPECT_EQ(compare_versions("1.2.3+a", "1.2.3+b"), std::strong_ordering::equal);
  EXPECT_EQ(compare_versions("01.2", "1.02"), std::strong_ordering::equal);
}

TEST(Version, AnIntervalIsAllOfItsBounds) {
  const VersionInterval some(">=0.1, <0.3");
  EXPECT_FALSE(some.contains("0.0.9"));
  EXPECT_TRUE(some.contains("0.1"));
  EXPECT_TRUE(some.contains("0.2.7"));
  EXPECT_FALSE(some.contains("0.3"));
  const VersionInterval open(">1,<= 2");
  EXPECT_FALSE(open.contains("1.0"));
  EXPECT_TRUE(open.contains("2.0.0"));
  EXPECT_FALSE(open.contains("2.0.1"));
  for (const char* text : {"1.2.3", "=1.2.3", " = 1.2.3 "}) {
    const VersionInterval one(text);
    EXPECT_TRUE(one.contains("1.2.3")) << text;
    EXPECT_FALSE(one.contains("1.2.4")) << text;
  }
  EXPECT_TRUE(VersionInterval().contains(""));
  for (const char* text : {"", ">=", ">= 1, ", "~1", "1 2", ">=1 <2"})
    EXPECT_EQ(error_of([&] { (void)VersionInterval(text); }).code(), TN_BAD_CONFIG) << text;
}

}  // namespace
}  // namespace tenon_tests
