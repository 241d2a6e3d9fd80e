// Plugins that end the process: the program tells which one it was. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "host/cli/cli.h"
#include "tests/host/cli/program.h"

namespace tenon_tests {

namespace {

using testing::HasSubstr;

// The plugin bad_begin does when it is loaded what TENON_TEST_BEGIN says.
class CrashTest : public ProgramTest {
 protected:
  [[nodiscard]] Outcome begin(const std::string& what) const {
    return shell("TENON_TEST_BEGIN=" + what + " exec \"$TENON\" train job.toml --no-save --plugins '" +
                 test_plugin_folder() + "/bad_begin' --plugins '" + plugin_folder() +
                 "' --set layer.hidden.act=bad_begin");
  }
  static std::string told(const std::string& what) {
    return "tenon: " + what + " in " + test_plugin_folder() +
           "/bad_begin/bad_begin.so of plugin \"tenon.test.bad_begin\": dlopen [load]\n";
  }
};

TEST_F(CrashTest, WhileAPluginIsLoaded) {
  const Outcome outcome = begin("crash");
  EXPECT_EQ(outcome.exit, 128 + SIGSEGV);
  EXPECT_THAT(outcome.error, HasSubstr(told("segmentation fault")));
}

// Not 0, as if the training were done.
TEST_F(CrashTest, APluginThatExits) {
  const Outcome outcome = begin("exit");
  EXPECT_EQ(outcome.exit, tenon::cli::kInternal);
  EXPECT_THAT(outcome.error, HasSubstr(told("the process was ended")));
  EXPECT_EQ(run("train job.toml --passes 1 --no-save").error, "") << "the program's own end";
}

}  // namespace

}  // namespace tenon_tests
