// Where the program finds the installed plugins: beside libtenon, which may be a link.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/host/cli/program.h"

namespace tenon_tests {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// An installation bin/tenon whose library is a link to that of the build, as in the runfiles of Bazel.
class InstalledPluginsTest : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    fs::create_directory(path("bin"));
    fs::copy_file(program(), path("bin/tenon"));
    fs::create_directory(path("lib"));
    fs::create_symlink(library(), path("lib/libtenon.so.0"));
  }
  static fs::path library() { return fs::canonical(fs::path(program()).parent_path() / "../lib/libtenon.so.0"); }

  // Returns the files of the plugins that are used, by id.
  [[nodiscard]] std::map<std::string, std::string> used(const std::string& environment = "") const {
    const Outcome outcome = shell(environment + " bin/tenon plugins list --json");
    EXPECT_EQ(outcome.exit, 0) << outcome.error;
    std::map<std::string, std::string> result;
    for (const json& plugin : json::parse(outcome.out))
      if (plugin.at("status") == "found") result[plugin.at("manifest").at("id")] = plugin.at("file");
    return result;
  }
};

TEST_F(InstalledPluginsTest, AreBesideTheFileOfALink) {
  const std::string real = fs::canonical(plugin_folder()).string();
  EXPECT_THAT(used().at("tenon.fc"), StartsWith(real));
  EXPECT_EQ(shell("bin/tenon train job.toml --passes 1").exit, 0);
  fs::create_symlink(path("lib/libtenon.so.0"), path("lib/second.so"));
  fs::create_directory(path("third"));
  fs::create_symlink("../lib/second.so", path("third/libtenon.so.0"));  // a link to a link to a link
  EXPECT_THAT(used("LD_LIBRARY_PATH=third").at("tenon.fc"), StartsWith(real));
}

TEST_F(InstalledPluginsTest, BesideTheLinkComeFirst) {
  fs::create_directories(path("lib/tenon/plugins"));
  EXPECT_EQ(used().count("tenon.fc"), 1U) << "an empty folder beside the link";
  fs::copy_file(fs::path(test_plugin_folder()) / "layers/rich.so", path("lib/tenon/plugins/rich.so"));
  EXPECT_GT(used().size(), used("LD_LIBRARY_PATH=" + library().parent_path().string()).size());
  const fs::path copy = path("lib/tenon/plugins/fc.so");
  fs::copy_file(fs::path(plugin_folder()) / "layers/fc.so", copy);
  EXPECT_EQ(used().at("tenon.fc"), copy.string());
  EXPECT_THAT(shell("bin/tenon train job.toml --passes 1").error,
              AllOf(HasSubstr("warning: "), HasSubstr("which has the same version and comes first")));
}

TEST_F(InstalledPluginsTest, OneFolderByTwoNamesIsSearchedOnce) {
  fs::create_directory(path("lib/tenon"));
  fs::create_symlink(plugin_folder(), path("lib/tenon/plugins"));
  const Outcome outcome = shell("bin/tenon plugins list");
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("tenon.fc"), Not(HasSubstr("unused"))));
  EXPECT_EQ(outcome.error, "");
  EXPECT_EQ(used(), used("LD_LIBRARY_PATH=" + library().parent_path().string()));
}

TEST_F(InstalledPluginsTest, MessagesNameTheFoldersThatWereSearched) {
  const Outcome without = shell("bin/tenon train job.toml --set layer.hidden.type=none");
  EXPECT_EQ(without.exit, 66);
  EXPECT_THAT(without.error, AllOf(HasSubstr(path("lib/tenon/plugins") + " (no such folder), "),
                                   HasSubstr((library().parent_path() / "tenon/plugins").string() + " (")));
  fs::remove(path("lib/libtenon.so.0"));
  fs::copy_file(library(), path("lib/libtenon.so.0"));  // no link
  EXPECT_THAT(shell("bin/tenon train job.toml").error,
              HasSubstr("searched: " + path("lib/tenon/plugins") + " (no such folder)"));
}

}  // namespace

}  // namespace tenon_tests
