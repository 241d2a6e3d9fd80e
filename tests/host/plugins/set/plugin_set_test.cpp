// Plugin sets: wrong files, and what each mode admits. SPDX-License-Identifier: Apache-2.0
#include "tests/support/plugin_set_test.h"

#include <sys/stat.h>

namespace tenon_tests {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kDigest(64, 'a');

// Each mistake has its own message, with file and line.
TEST_F(PluginSetTest, NamesEveryMistake) {
  install("good", "good.so");
  const auto refused = [&](const std::string& text, const std::string& why, tn_status code = TN_BAD_CONFIG) {
    const Error error = wrong(text);
    EXPECT_EQ(error.code(), code) << text << error.message();
    EXPECT_THAT(error.message(), AllOf(HasSubstr((root_ / "set.toml").string()), HasSubstr(why))) << text;
  };
  const std::string entry = "mode = \"allow\"\n[[plugin]]\nid = \"x\"\n";
  refused("mode = [", "set.toml:1");
  refused("", "key \"mode\" is missing");
  refused("mode = \"loose\"", "expected \"dev\", \"allow\" or \"locked\", got the text \"loose\"");
  refused("mode = \"dev\"\nfolder = \"x\"", "set.toml:2: unknown key \"folder\"; did you mean \"folders\"?");
  refused(entry + "sha265 = \"\"", "plugin \"x\": unknown key \"sha265\"; did you mean \"sha256\"?");
  refused(entry + "[[plugin]]\nid = \"x\"", "set.toml:4: plugin \"x\": the id is listed already, at");
  refused("mode = \"dev\"\n[[plugin]]\nversion = \"1\"", "key \"id\" is missing");
  refused(entry + "version = \"~1\"", "key \"version\": expected bounds such as \">=0.1, <0.3\"");
  refused(entry + "sha256 = \"abc\"", "key \"sha256\": a SHA-256 has 64 hexadecimal digits, got 3");
  refused(entry + "sha256 = \"" + std::string(64, 'g') + "\"", "a SHA-256 has hexadecimal digits (0-9, a-f) alone");
  refused(entry + "signed_by = \"me\"", "the set has no key \"me\"");
  refused("mode = \"dev\"\n[[key]]\nname = \"me\"\npublic = \"00\"", "a public key has 64 hexadecimal digits, got 2");
  refused("mode = \"dev\"\n[[key]]\nname = \"me\"", "key \"public\" is missing");
  refused("mode = \"dev\"\n[[key]]\nname = \"a\"\npublic = \"" + kDigest + "\"\n[[key]]\nname = \"a\"\npublic = \"" +
              kDigest + "\"",
          "the name \"a\" is that of another key");
  refused(entry + "file = \"gone.so\"", "the file " + (root_ / "gone.so").string() + ": No such file", TN_NOT_FOUND);
  refused(entry + "file = \"plugins\"", "is not a regular file");
  refused("mode = \"dev\"\nfolders = [\"gone\"]", "the folder " + (root_ / "gone").string(), TN_NOT_FOUND);
  refused("mode = \"locked\"\nfolders = [\"plugins\"]", "a set of mode \"locked\" searches no folder");
  refused("mode = \"locked\"\ninstalled = true", "a set of mode \"locked\" searches no folder");
  refused("mode = \"locked\"\n[[plugin]]\nid = \"x\"\nsha256 = \"" + kDigest + "\"", "key \"file\" is missing");
  refused("mode = \"locked\"\n[[plugin]]\nid = \"x\"\nfile = \"plugins/good.so\"", "key \"sha256\" is missing");
  refused(entry + "libraries = [{ file = \"plugins/good.so\", sha256 = \"" + kDigest + "\" }]",
          "key \"libraries\" needs key \"sha256\" or \"signed_by\"");
  refused(entry + "sha256 = \"" + kDigest + "\"\nlibraries = [{ file = \"plugins/good.so\" }]",
          "libraries: key \"sha256\" is missing");
  refused(entry + "application = true\nfile = \"plugins/good.so\"", "a plugin of the application has no key \"file\"");
  EXPECT_EQ(error_of([&] { (void)read_plugin_set(root_ / "none.toml", *system_files()); }).code(), TN_NOT_FOUND);
}

TEST_F(PluginSetTest, IsRefusedIfOthersMayChangeIt) {
  const fs::path file = install("good", "good.so");
  const fs::path path = write_set(locked("good", file));
  const auto read = [&] { return error_of([&] { (void)read_plugin_set(path, *system_files()); }); };
  const auto refused = [&](const fs::path& which, mode_t open, mode_t shut) {
    ASSERT_EQ(chmod(which.c_str(), open), 0);
    const Error error = read();
    EXPECT_EQ(error.code(), TN_REFUSED) << which;
    EXPECT_EQ(error.subject(), which.string());
    EXPECT_THAT(error.message(), AllOf(HasSubstr("has mode "), HasSubstr("chmod go-w")));
    ASSERT_EQ(chmod(which.c_str(), shut), 0);
  };
  EXPECT_EQ(read().message(), "");
  refused(path, 0664, 0644);
  refused(path, 0646, 0644);
  refused(root_, 0777, 0700);
  refused(root_, 01777, 0700);
  refused(file, 0775, 0755);
  refused(folder_, 0775, 0755);
  if (geteuid() == 0) {
    ASSERT_EQ(chown(path.c_str(), 12345, 0), 0);
    EXPECT_THAT(read().message(), HasSubstr("belongs to user 12345"));
    ASSERT_EQ(chown(path.c_str(), 0, 0), 0);
  }
  // A link is as good as the file to which it leads.
  fs::create_directory(root_ / "open");
  fs::create_symlink(path, root_ / "open" / "link.toml");
  EXPECT_NO_THROW((void)read_plugin_set(root_ / "open" / "link.toml", *system_files()));
  EXPECT_EQ(read().message(), "");
}

TEST_F(PluginSetTest, DevAdmitsWhatIsNotListed) {
  install("good", "good.so");
  Registry found = registry("mode = \"dev\"");
  EXPECT_EQ(found.layer("good").plugin, "tenon.test.good");
  Registry constrained = registry("mode = \"dev\"\n[[plugin]]\nid = \"tenon.test.good\"\nversion = \">=2\"");
  EXPECT_THAT(
      error_of([&] { (void)constrained.layer("good"); }).message(),
      HasSubstr("its version \"1.2.3\" is not in the interval \">=2\" of " + (root_ / "set.toml").string() + ":2"));
}

TEST_F(PluginSetTest, AllowRefusesWhatIsNotListed) {
  const fs::path file = install("good", "good.so");
  Registry found = registry("mode = \"allow\"");
  const Error error = error_of([&] { (void)found.layer("good"); });
  EXPECT_EQ(error.code(), TN_REFUSED);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("its id \"tenon.test.good\" is not listed in the plugin set "),
                                     HasSubstr("set.toml (allow)")));
  EXPECT_EQ(found.list().at(0)["status"], "refused");
  EXPECT_EQ(ran(), "");
  Registry listed = registry("mode = \"allow\"\n[[plugin]]\nid = \"tenon.test.good\"\nversion = \">=1, <2\"");
  EXPECT_EQ(listed.layer("good").plugin, "tenon.test.good");
  // A file that the set names is the only one of its id.
  install("good", "other/good.so", "9.9.9");
  Registry named = registry("mode = \"allow\"\n[[plugin]]\nid = \"tenon.test.good\"\nfile = \"plugins/good.so\"");
  EXPECT_EQ(named.list().at(0)["file"], file.string());
  EXPECT_THAT(named.list().at(1)["reason"].get<std::string>(), HasSubstr("names the file " + file.string()));
}

// Of one host the added folders and the search path; of the other, nothing but what is listed.
TEST_F(PluginSetTest, TheSameNameComesFromDifferentPluginsUnderTwoSets) {
  const fs::path one = install("good", "one/good.so"), other = install("bad_type", "two/bad_type.so");
  Registry first = registry(locked("good", one));
  Registry second = registry(locked("bad_type", other));
  EXPECT_EQ(first.layer("good").plugin, "tenon.test.good");
  EXPECT_EQ(second.layer("good").plugin, "tenon.test.bad_type");
  EXPECT_EQ(first.list().size(), 1U) << "a locked set searches no folder";
}

TEST_F(PluginSetTest, LockedRefusesAChangedBit) {
  const fs::path file = install("good", "good.so");
  const std::string text = locked("good", file);
  change_bit(file);
  Registry found = registry(text);
  const Error error = error_of([&] { (void)found.layer("good"); });
  EXPECT_EQ(error.code(), TN_REFUSED);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("its SHA-256 is " + sha256(file)), HasSubstr("set.toml:3 names")));
  EXPECT_EQ(found.list().at(0)["status"], "refused");
  EXPECT_EQ(ran(), "") << "its constructor would have written";
}

TEST_F(PluginSetTest, LockedRefusesAnotherVersionAndId) {
  const fs::path file = install("good", "good.so", "1.2.4");
  Registry found = registry(locked("good", file));  // pins 1.2.3
  EXPECT_THAT(error_of([&] { (void)found.layer("good"); }).message(),
              HasSubstr("its version \"1.2.4\" is not in the interval \"=1.2.3\""));
  Registry other = registry(locked("evil", file));
  EXPECT_THAT(error_of([&] { (void)other.layer("good"); }).message(), HasSubstr("is not listed"));
  EXPECT_EQ(ran(), "");
}

// The newest that the set admits is used, and a set can pin an older one.
TEST_F(PluginSetTest, OfSeveralVersionsTheNewestAdmittedWins) {
  install("good", "a.so", "1.9.0");
  install("good", "b.so", "2.0.0");
  install("good", "c.so", "1.10.");
  Registry all = registry("mode = \"dev\"");
  EXPECT_EQ(all.list().at(1)["status"], "found");
  EXPECT_EQ(all.list().at(0)["status"], "unused");
  Registry pinned = registry("mode = \"allow\"\n[[plugin]]\nid = \"tenon.test.good\"\nversion = \"=1.9.0\"");
  EXPECT_EQ(pinned.layer("good").version, "1.9.0");
  EXPECT_EQ(pinned.list().at(1)["status"], "refused");
}

TEST_F(PluginSetTest, NamesTheSetWhereNothingIsFound) {
  const fs::path file = install("good", "good.so");
  Registry found = registry(locked("good", file));
  EXPECT_EQ(error_of([&] { (void)found.layer("other"); }).message(),
            "layer type \"other\" not found; known: good; searched: " + (root_ / "set.toml").string() + " (1 plugin)");
}

TEST_F(PluginSetTest, VerifyChecksEveryFile) {
  const fs::path good = install("good", "good.so"), type = install("bad_type", "bad_type.so");
  const fs::path path = write_set(lock_text({lock_plugin("tenon.test.good", "1.2.3", good, *system_files()),
                                             lock_plugin("tenon.test.bad_type", "1.2.3", type, *system_files())},
                                            root_));
  change_bit(type);
  const json found = verify_plugin_set(path, system_files());
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0]["status"], "ok") << found.dump(1);
  EXPECT_EQ(found[0]["version"], "1.2.3");
  EXPECT_EQ(found[1]["status"], "refused");
  EXPECT_THAT(found[1]["reason"].get<std::string>(), HasSubstr("its SHA-256 is"));
  EXPECT_EQ(ran(), "");
}

// Reading takes a time in proportion to the entries.
TEST_F(PluginSetTest, MayHaveManyEntries) {
  std::string text = "mode = \"allow\"\n";
  constexpr int kEntries = 40000;
  for (int i = 0; i < 5000; ++i)
    text += "[[key]]\nname = \"k" + std::to_string(i) + "\"\npublic = \"" + kDigest + "\"\n";
  for (int i = 0; i < kEntries; ++i) text += "[[plugin]]\nid = \"p" + std::to_string(i) + "\"\nsigned_by = \"k9\"\n";
  EXPECT_EQ(set(text)->plugins.size(), size_t{kEntries});
  EXPECT_THAT(wrong(text + "[[plugin]]\nid = \"p7\"\n").message(), HasSubstr("the id is listed already, at"));
  text.resize(size_t{5} << 20, '\n');
  EXPECT_THAT(wrong(text).message(), HasSubstr("has 5242880 bytes; at most 4194304 are allowed"));
}

TEST_F(PluginSetTest, NamesPathsThatTextsCanState) {
  const fs::path odd = install("good", "odd\xff.so"), link = root_ / "link.so";
  fs::create_symlink(odd, link);
  EXPECT_THAT(wrong("mode = \"dev\"\n[[plugin]]\nid = \"x\"\nfile = \"link.so\"").message(),
              HasSubstr("set.toml:4: plugin \"x\": the path \"link.so\" leads to one that is not UTF-8"));
  const Error lock = error_of([&] { (void)locked("good", odd); });
  EXPECT_EQ(lock.code(), TN_INVALID);
  EXPECT_THAT(lock.message(), HasSubstr("which is not UTF-8"));
  EXPECT_EQ(wrong(std::string("mode = \"dev\"\n[[plugin]]\nid = \"\xff\"")).code(), TN_BAD_CONFIG);
  EXPECT_EQ(wrong(std::string(1, '\0')).code(), TN_BAD_CONFIG);
  EXPECT_EQ(wrong("mode = " + std::string(100000, '[')).code(), TN_BAD_CONFIG);
}

}  // namespace
}  // namespace tenon_tests
