// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/alignment.h"
#include "base/fnv.h"
#include "base/temporary.h"
#include "base/utf8.h"

namespace tenon_tests {

namespace {

using namespace tenon::base;

TEST(Text, ListsInWords) {
  EXPECT_EQ(joined(std::vector<std::string>{}), "");
  EXPECT_EQ(joined(std::vector<std::string>{"a"}), "a");
  EXPECT_EQ(joined(std::vector<std::string>{"a", "b", "c"}), "a, b, c");
  EXPECT_EQ(joined(
                std::vector<int>{1, 2}, [](int n) { return std::to_string(n); }, "; "),
            "1; 2");
  EXPECT_EQ(listed(std::vector<std::string>(20, "a")), joined(std::vector<std::string>(20, "a")));
  EXPECT_EQ(listed(std::vector<std::string>(22, "a")), joined(std::vector<std::string>(20, "a")) + " and 2 more");
  EXPECT_EQ(to_string(std::vector<int64_t>{}), "[]");
  EXPECT_EQ(to_string(std::vector<int64_t>{784, -1}), "[784, -1]");
}

TEST(Text, NumbersHaveTheDigitsThatAreAskedFor) {
  EXPECT_EQ(brief(1.0 / 3, 4), "0.3333");
  EXPECT_EQ(brief(1e20 / 3, 6), "3.33333e+19");
  EXPECT_EQ(brief(2, 9), "2");
}

TEST(Text, IsCutBetweenCharacters) {
  const std::string accents = "\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9";  // 20 bytes
  EXPECT_EQ(beginning(accents, 20), accents);
  for (size_t most = 0; most <= 20; ++most) {
    EXPECT_TRUE(is_utf8(beginning(accents, most))) << most;
    EXPECT_TRUE(is_utf8(shortened(accents, most))) << most;
  }
  EXPECT_EQ(beginning("abcdef", 4), "abcd...");
  EXPECT_EQ(beginning(accents, 3), "\u00e9...");
  EXPECT_EQ(shortened("abcdef", 6), "abcdef");
  EXPECT_EQ(shortened("abcdefghi", 6), "abcd ... hi");
}

TEST(Fnv, IsThatOfItsAuthors) {  // their test vectors
  EXPECT_EQ(fnv1a<uint32_t>(""), 0x811c9dc5u);
  EXPECT_EQ(fnv1a<uint32_t>("foobar"), 0xbf9cf968u);
  EXPECT_EQ(fnv1a<uint64_t>(""), 0xcbf29ce484222325u);
  EXPECT_EQ(fnv1a<uint64_t>("foobar"), 0x85944171f73967e8u);
}

TEST(Alignment, RoundsUp) {
  EXPECT_EQ(round_up(0, 8), 0u);
  EXPECT_EQ(round_up(1, 8), 8u);
  EXPECT_EQ(round_up(8, 8), 8u);
  EXPECT_EQ(round_up(9, 4), 12u);
}

TEST(TemporaryFolder, IsRemovedWithItsFiles) {
  std::filesystem::path first;
  {
    const TemporaryFolder one, other;
    first = one.path();
    EXPECT_NE(first, other.path());
    std::filesystem::create_directories(first / "a/b");
    EXPECT_EQ(one.file("a"), (first / "a").string());
    EXPECT_EQ(std::filesystem::status(first).permissions(), std::filesystem::perms::owner_all);
  }
  EXPECT_FALSE(std::filesystem::exists(first));
}

TEST(TemporaryFolder, SaysWhyThereCanBeNone) {
  setenv("TMPDIR", "/proc", 1);  // it takes no folders
  EXPECT_THROW((void)make_temporary_folder(), std::system_error);
  unsetenv("TMPDIR");
}

}  // namespace

}  // namespace tenon_tests
