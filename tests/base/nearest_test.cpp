// SPDX-License-Identifier: Apache-2.0
#include "base/nearest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenon_tests {

namespace {

using tenon::base::nearest;
using tenon::base::suggestion;
using ::testing::EndsWith;

TEST(Nearest, FindsSlipsOnly) {
  const std::vector<std::string> known = {"relu", "softmax", "cross_entropy", "fc"};
  EXPECT_EQ(nearest("relo", known), "relu");
  EXPECT_EQ(nearest("rleu", known), "relu");  // two swapped letters are one edit
  EXPECT_EQ(nearest("ReLU", known), "relu");
  EXPECT_EQ(nearest("crossentropy", known), "cross_entropy");
  EXPECT_EQ(nearest("lstm", known), "");
  EXPECT_EQ(nearest("x", known), "");
  EXPECT_EQ(nearest("", known), "");
  EXPECT_EQ(nearest(std::string(1 << 20, 'a'), known), "");
  EXPECT_EQ(nearest("lr", {"l1", "l2", "learning_rate"}), "");
  EXPECT_EQ(nearest("cf", {"fc"}), "fc");
}

TEST(Nearest, IsTheNearestOfThoseThatAreNear) {
  EXPECT_EQ(nearest("trian", {"test", "train"}), "train") << "two swapped neighbours are one mistake";
  EXPECT_EQ(nearest("layr", {"layers", "layer"}), "layer");
  EXPECT_EQ(nearest("same", {"same", "sane"}), "same");
  EXPECT_EQ(nearest("seed", {"speed", "need"}), "speed") << "the first of those that are equally near";
  EXPECT_EQ(nearest("abc", {"axc"}), "axc") << "one of three letters differs";
  EXPECT_EQ(nearest("abc", {"axx"}), "") << "two of three differ";
  EXPECT_EQ(nearest("abcd", {"axxd"}), "axxd");
  EXPECT_EQ(nearest("abcd", {"xxxd"}), "");
  EXPECT_EQ(nearest("abcdefg", {"xbxdxfg"}), "xbxdxfg") << "three of seven differ";
  EXPECT_EQ(nearest("abcdefg", {"xbxdxfx"}), "");
  EXPECT_EQ(nearest("a", {"b"}), "") << "nothing in common";
  EXPECT_EQ(nearest("ab", {"ba"}), "ba");
  EXPECT_EQ(nearest("ab", {"ac", "abc"}), "") << "of two letters one is half of the name";
  EXPECT_EQ(nearest("", {"a"}), "");
  EXPECT_EQ(nearest("a", {}), "");
  EXPECT_EQ(nearest("epochs", {"save", "passes"}), "passes") << "the word of other frameworks";
  EXPECT_EQ(nearest("batch_size", {"batch", "files"}), "batch");
  EXPECT_EQ(nearest("epochs", {"save"}), "");
  const std::string longest(64, 'a');
  EXPECT_EQ(nearest(longest, {longest}), longest);
  EXPECT_EQ(nearest(longest + "a", {longest}), "") << "too long for a suggestion";
  EXPECT_EQ(nearest(longest, {longest + "a"}), "");
}

TEST(Suggestion, ListsAllIfNoneIsNear) {
  EXPECT_EQ(suggestion("hiden", {"score", "hidden"}), "; did you mean \"hidden\"?");
  EXPECT_EQ(suggestion("zzz", {"score", "hidden"}), "; known: score, hidden");
  EXPECT_EQ(suggestion("zzz", {}), "");
  std::vector<std::string> many(20, "name");
  EXPECT_THAT(suggestion("zzz", many), EndsWith(", name"));
  many.insert(many.end(), 44, "other");
  EXPECT_THAT(suggestion("zzz", many), EndsWith(", name and 44 more"));
}

}  // namespace

}  // namespace tenon_tests
