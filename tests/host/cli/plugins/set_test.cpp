// Plugin sets in the program: lock, key, sign, verify, --plugin-set, plugin_folders.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/host/cli/calls.h"
#include "tests/support/paths.h"

namespace tenon_tests {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

class PluginSetTest : public CallTest {
 protected:
  PluginSetTest() { umask(022); }  // sets, and folders beside them, that others may write are refused

  // Copies the installed plugins to a folder of the test, to change them.
  void copy_plugins() const { fs::copy(plugin_folder(), path("plugins"), fs::copy_options::recursive); }
  void change_bit(const std::string& file) const {
    std::fstream bytes(path(file), std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekg(-1, std::ios::end);
    const char last = static_cast<char>(bytes.get());
    bytes.seekp(-1, std::ios::end);
    bytes.put(static_cast<char>(last ^ 1));
  }
  static Arguments ours(Arguments arguments) {
    arguments.insert(arguments.end(), {"--no-installed-plugins", "--plugins", "plugins"});
    return arguments;
  }
};

TEST_F(PluginSetTest, ALockedJobRunsWithItsSetAlone) {
  copy_plugins();
  EXPECT_EQ(done(run_plugins_lock, ours({"job.toml", "-o", "set.toml"})).out, "locked set.toml\n");
  const json checked = json::parse(done(run_plugins_verify, {"set.toml", "--json"}).out);
  EXPECT_GE(checked.size(), 5u);
  (void)done(run_train, {"job.toml", "--passes", "1", "--plugin-set", "set.toml", "--save", "locked.safetensors"});
  (void)done(run_train, {"job.toml", "--passes", "1", "--save", "open.safetensors"});
  EXPECT_TRUE(read("locked.safetensors") == read("open.safetensors")) << "the same plugins";
  EXPECT_EQ(json::parse(done(run_plugins_list, {"--json", "--plugin-set", "set.toml"}).out).size(), checked.size());
  // A plugin that the job does not use is not there, installed or not.
  EXPECT_THAT(failure(kNotFound, run_plan, {"job.toml", "--plugin-set", "set.toml", "--set", "updater.type=adagrad"}),
              AllOf(HasSubstr("updater type \"adagrad\" not found"),
                    ContainsRegex("[.]so offers it, and the plugin set does not list its id \"tenon[.]")));
}

TEST_F(PluginSetTest, AChangedBitIsRefusedEverywhere) {
  copy_plugins();
  (void)done(run_plugins_lock, ours({"job.toml", "-o", "set.toml"}));
  change_bit("plugins/layers/fc.so");
  const Outcome verified = call(run_plugins_verify, {"set.toml"});
  EXPECT_EQ(verified.exit, kRefused);
  EXPECT_THAT(verified.out, ContainsRegex("tenon.fc +[0-9.]+ +refused"));
  EXPECT_THAT(verified.error, HasSubstr("set.toml: 1 of "));
  for (const Call verb : {run_train, run_plan})
    EXPECT_THAT(failure(kRefused, verb, {"job.toml", "--plugin-set", "set.toml"}),
                AllOf(HasSubstr("layer type \"fc\""), HasSubstr("its SHA-256 is")));
  EXPECT_THAT(failure(kUsage, run_plugins_verify, {"plugins/layers/fc.so"}), HasSubstr("--public checks its"));
  ASSERT_EQ(chmod(path("set.toml").c_str(), 0666), 0);
  EXPECT_THAT(failure(kRefused, run_train, {"job.toml", "--plugin-set", "set.toml"}), HasSubstr("has mode 0666"));
  EXPECT_THAT(failure(kNotFound, run_train, {"job.toml", "--plugin-set", "none.toml"}), HasSubstr("none.toml"));
}

TEST_F(PluginSetTest, AnotherFileInPlaceOfAPluginIsRefused) {
  copy_plugins();
  (void)done(run_plugins_lock, ours({"job.toml", "-o", "set.toml"}));
  fs::copy_file(path("plugins/layers/matmul.so"), path("plugins/layers/fc.so"), fs::copy_options::overwrite_existing);
  const auto refused =
      AllOf(HasSubstr("layer type \"fc\" not found, and the plugin set refuses a file"), HasSubstr("fc.so"));
  for (const Call verb : {run_train, run_plan})
    EXPECT_THAT(failure(kRefused, verb, {"job.toml", "--plugin-set", "set.toml"}), refused);
  std::ofstream(path("plugins/layers/fc.so"), std::ios::trunc);
  EXPECT_THAT(failure(kRefused, run_train, {"job.toml", "--plugin-set", "set.toml"}), refused);
}

TEST_F(PluginSetTest, SignedPluginsAreVerified) {
  copy_plugins();
  const std::string entry = done(run_plugins_key, {"release"}).out;
  EXPECT_THAT(entry, ContainsRegex("^\\[\\[key\\]\\]\nname = \"release\"\npublic = \"[0-9a-f]+\"\n$"));
  EXPECT_EQ(failure(kBadConfig, run_plugins_key, {"release"}).find("release.pub exists"), 0u);
  const std::string file = "plugins/layers/fc.so";
  EXPECT_THAT(failure(kRefused, run_plugins_verify, {file, "--public", "release.pub"}), HasSubstr("it is not signed"));
  EXPECT_THAT(failure(kUsage, run_plugins_sign, {file}), HasSubstr("--key: expected the file of a secret key"));
  (void)done(run_plugins_sign, {file, "--key", "release.key"});
  EXPECT_EQ(done(run_plugins_verify, {file, "--public", "release.pub"}).out, file + ": signed with release.pub\n");
  write("set.toml", "mode = \"dev\"\n" + entry + "[[plugin]]\nid = \"tenon.fc\"\nsigned_by = \"release\"\nfile = \"" +
                        file + "\"\n");
  EXPECT_EQ(done(run_train, {"job.toml", "--passes", "1", "--plugin-set", "set.toml"}).error, "");
  change_bit(file);
  EXPECT_THAT(failure(kRefused, run_plugins_verify, {file, "--public", "release.pub"}), HasSubstr("over these bytes"));
  EXPECT_THAT(failure(kRefused, run_train, {"job.toml", "--plugin-set", "set.toml"}), HasSubstr("is not one of key"));
}

TEST_F(PluginSetTest, OptionsAreShownCheckedAndSigned) {
  fs::create_directory(path("options"));
  fs::copy(test_plugin_folder() + "/readers/options.so", path("options"));
  const std::string entry = "mode = \"dev\"\n[[plugin]]\nid = \"tenon.test.options\"\nfile = \"options/options.so\"\n";
  write("set.toml", entry + "options = { samples = 7, unit = \"thousand\" }\n");
  EXPECT_THAT(done(run_plugins_info, {"tenon.test.options", "--plugin-set", "set.toml"}).out,
              AllOf(ContainsRegex("option +type +default +value +meaning\n"),
                    ContainsRegex("samples +int >= 1 <= 100 +2 +7 +how many samples there are"),
                    ContainsRegex("rate +float +0.5 +0.5 +the number"),
                    ContainsRegex("unit +text: one \\| thousand +\"one\" +\"thousand\" +the unit")));
  const json info =
      json::parse(done(run_plugins_info, {"tenon.test.options", "--plugin-set", "set.toml", "--json"}).out);
  EXPECT_EQ(info.at("options"), json({{"samples", 7}, {"rate", 0.5}, {"unit", "thousand"}, {"negative", false}}));
  // A set is signed with its options.
  (void)done(run_plugins_key, {"release"});
  (void)done(run_plugins_sign, {"set.toml", "--key", "release.key"});
  (void)done(run_plugins_verify, {"set.toml", "--public", "release.pub"});
  write("set.toml", entry + "options = { samples = 8, unit = \"thousand\" }\n");
  EXPECT_THAT(failure(kRefused, run_plugins_verify, {"set.toml", "--public", "release.pub"}),
              HasSubstr("over these bytes"));
  write("set.toml", entry + "options = { sample = 8 }\n");
  const Outcome wrong = call(run_plugins_verify, {"set.toml"});
  EXPECT_EQ(wrong.exit, kRefused);
  EXPECT_THAT(wrong.out, HasSubstr(path("set.toml") + ":5: unknown option \"sample\"; did you mean \"samples\"?"));
}

// The id of a file is a claim: another plugin with the id of fc, in a folder of a job, of the environment, of an
// option.
TEST_F(PluginSetTest, AnAllowedIdComesFromNoFolderOfAJob) {
  copy_plugins();
  std::string listed = "mode = \"allow\"\n";
  const json planned = json::parse(done(run_plan, {"job.toml", "--json"}).out);
  for (const json& plugin : planned.at("plugins")) listed += "[[plugin]]\nid = " + plugin.at("id").dump() + "\n";
  write("set.toml", listed);
  write("evil.toml", "plugin_folders = [\"plugins/layers\"]\n" + read("job.toml"));
  setenv("TENON_PLUGIN_PATH", path("plugins").c_str(), 1);
  const Outcome outcome = call(run_plan, {"evil.toml", "--json", "--plugins", "plugins", "--plugin-set", "set.toml"});
  EXPECT_EQ(outcome.exit, kDone) << outcome.error;
  const json confined = json::parse(outcome.out);
  for (const json& plugin : confined.at("plugins"))
    EXPECT_EQ(plugin.at("file").get<std::string>().find(path("plugins")), std::string::npos) << plugin;
  EXPECT_THAT(done(run_plugins_list, {"--plugin-set", "set.toml"}).out,
              AllOf(HasSubstr("admitted by their ids alone, without sha256 or signed_by:\n"),
                    HasSubstr("it is in none of the folders that the plugin set " + path("set.toml") + " (allow)")));
  unsetenv("TENON_PLUGIN_PATH");
  const Outcome verified = done(run_plugins_verify, {"set.toml"});
  EXPECT_THAT(verified.error, ContainsRegex("warning: .*set.toml:2: plugin .* any bytes with this id are admitted"));
}

// A template without keys must not admit unsigned plugins.
TEST_F(PluginSetTest, SignedByNobodyIsWrong) {
  copy_plugins();
  write("set.toml",
        "mode = \"allow\"\n[[plugin]]\nid = \"tenon.fc\"\nfile = \"plugins/layers/fc.so\"\nsigned_by = []\n");
  for (const Call verb : {run_plan, run_train})
    EXPECT_THAT(failure(kBadConfig, verb, {"job.toml", "--plugin-set", "set.toml"}),
                HasSubstr("set.toml:5: plugin \"tenon.fc\": key \"signed_by\": expected the name of a key"));
  EXPECT_THAT(failure(kBadConfig, run_plugins_verify, {"set.toml"}), HasSubstr("key \"signed_by\""));
}

TEST_F(PluginSetTest, WarnsOfTwoFilesWithOneIdAndVersion) {
  fs::create_directories(path("mine"));
  fs::copy_file(plugin_folder() + "/layers/fc.so", path("mine/fc.so"));
  const Outcome planned = done(run_plan, {"job.toml", "--plugins", "mine"});
  EXPECT_THAT(planned.error, AllOf(HasSubstr("warning: "),
                                   HasSubstr("layers/fc.so: its id \"tenon.fc\" is also that of " + path("mine/fc.so") +
                                             ", which has the same version and comes first\n")));
  EXPECT_EQ(done(run_plan, {"job.toml"}).error, "");
}

TEST_F(PluginSetTest, AJobAddsFolders) {
  copy_plugins();
  write("more.toml", "plugin_folders = [\"plugins/layers\"]\n" + read("job.toml"));
  const json plan = json::parse(done(run_plan, {"more.toml", "--json"}).out);
  std::string file;
  for (const json& plugin : plan.at("plugins"))
    if (plugin.at("id") == "tenon.fc") file = plugin.at("file");
  EXPECT_EQ(file, path("plugins/layers/fc.so"));
  write("gone.toml", "plugin_folders = [\"nowhere\"]\n" + read("job.toml"));
  EXPECT_THAT(failure(kNotFound, run_plan, {"gone.toml"}), HasSubstr("key \"plugin_folders\": there is no folder"));
}

}  // namespace
}  // namespace tenon_tests
