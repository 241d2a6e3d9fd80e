// Values, keys and tables of TOML within each other, on threads with small stacks. SPDX-License-Identifier: Apache-2.0
#include "host/toml/parse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/support/sanitized.h"
#include "tests/support/small_stack.h"

namespace tenon_tests {

namespace {

using namespace tenon::toml_file;
using ::testing::HasSubstr;

std::exception_ptr mistake(const std::string& message) { return std::make_exception_ptr(std::runtime_error(message)); }

std::string repeated(const std::string& text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

// Returns the message of a text that is refused, "" of one that is not. The callers of the parser have 28 KiB. The tree
// is destroyed on the stack of the test, since the code for that is part of the test, which is not optimized.
std::string refusal(const std::string& text) {
  Node tree;
  return on_a_stack(size_t{sanitized() ? 1024U : 100U} << 10, [&] { tree = parse(text, "job.toml", mistake); });
}

std::string lists(int depth) { return "a = " + repeated("[", depth) + "1" + repeated("]", depth); }
std::string tables(const std::string& key, int depth) {
  return "a = " + repeated("{" + key + " = ", depth) + "1" + repeated("}", depth);
}
std::string mixed(int depth) { return "a = " + repeated("[{b = ", depth) + "1" + repeated("}]", depth); }

TEST(TomlNesting, IsReadOnASmallStack) {
  const std::string part = ".c", header = "[a" + repeated(part, 64) + "]\n";
  EXPECT_EQ(refusal(lists(32)), "");
  EXPECT_EQ(refusal(tables("b", 32)), "");
  EXPECT_EQ(refusal(mixed(16)), "");
  EXPECT_EQ(refusal("a" + repeated(part, 64) + " = 1"), "");
  EXPECT_EQ(refusal(header + lists(32)), "");
  EXPECT_EQ(refusal(header + tables("b.c", 32)), "") << "128 tables";
  EXPECT_EQ(refusal(header + "b" + repeated(part, 32) + " = " + lists(32).substr(4)), "");
  EXPECT_EQ(refusal("[" + header.substr(0, header.size() - 1) + "]\n" + tables("b", 32)), "");
}

TEST(TomlNesting, IsRefusedBeforeItUsesTheStack) {
  const std::string part = ".c", header = "[a" + repeated(part, 64) + "]\n";
  const std::string brackets = ": more than 32 brackets within each other",
                    more = ": more than 128 tables within each other";
  for (const int depth : {33, 64, 200, 256, 100000}) {
    SCOPED_TRACE(depth);
    EXPECT_EQ(refusal("# one\n" + lists(depth)), "job.toml:2" + brackets);
    EXPECT_EQ(refusal(tables("b", depth)), "job.toml:1" + brackets);
    EXPECT_EQ(refusal(mixed(depth)), "job.toml:1" + brackets);
    EXPECT_EQ(refusal("b = '''\n[[['''\n" + lists(depth)), "job.toml:3" + brackets);
    EXPECT_EQ(refusal("a = " + repeated("[\n", depth)), "job.toml:33" + brackets);
    EXPECT_EQ(refusal(repeated("[", depth)), "job.toml:1" + brackets);
    EXPECT_EQ(refusal("\xC3\xA9 = 1\n" + lists(depth)), "job.toml:2" + brackets);
  }
  EXPECT_EQ(refusal(tables("b" + repeated(part, 63), 16)), "job.toml:1" + more) << "1024 tables";
  EXPECT_EQ(refusal(tables("b.c.d.e.f", 32)), "job.toml:1" + more);
  EXPECT_EQ(refusal(header + tables("b.c.d", 32)), "job.toml:2" + more);
  EXPECT_EQ(refusal(header + header + "a = 1\n" + tables("b.c.d", 32)), "job.toml:4" + more);
}

// What stands beside each other, and in texts and comments, is not nested.
TEST(TomlNesting, CountsNothingElse) {
  EXPECT_EQ(refusal("a = [" + repeated("[1.5, 2.5],", 1000) + "]"), "");
  EXPECT_EQ(refusal("a = [" + repeated("{b.c = {d = [1]}},", 1000) + "]"), "");
  EXPECT_EQ(refusal(repeated("[[a.b.c]]\nd = [[1]]\n", 1000)), "");
  EXPECT_EQ(refusal("a = '" + repeated("[{", 1000) + "' # " + repeated("[{", 1000)), "");
  EXPECT_EQ(refusal("a = \"\"\"\n" + repeated("[{\n", 1000) + "\\\"\"\"\""), "");
  EXPECT_EQ(refusal("a = \"" + repeated("\\\"[", 1000) + "\"\nb." + "\"" + repeated("[.", 1000) + "\" = 1"), "");
  EXPECT_THAT(refusal("a = " + repeated("]", 1000)), HasSubstr("job.toml:1: "));
}

}  // namespace

}  // namespace tenon_tests
