// Plugin sets: wrong files, and what each mode admits. SPDX-License-Identifier: Apache-2.0
#include "tests/support/plugin_set_test.h"

#include <sys/stat.h>
#include <unistd.h>

#include <ctime>

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
  // An empty list or text of a key that restricts never means "no restriction".
  refused(entry + "signed_by = []",
          "set.toml:4: plugin \"x\": key \"signed_by\": expected the name of a key, or a list of");
  refused(entry + "signed_by = \"\"", "key \"signed_by\": expected");
  refused(entry + "signed_by = [\"\"]", "key \"signed_by\": expected");
  refused(entry + "sha256 = \"\"", "key \"sha256\": expected a text that is not empty");
  refused(entry + "version = \"\"", "key \"version\": expected a text that is not empty");
  refused(entry + "file = \"\"", "key \"file\": expected a text that is not empty");
  refused(entry + "system = [\"\"]", "key \"system\": expected");
  refused(entry + "libraries = [{}]", "key \"file\" is missing");
  refused("mode = \"\"", "key \"mode\": expected");
  refused("mode = \"allow\"\nfolders = [\"\"]", "key \"folders\": expected");
  refused("mode = \"allow\"\nplugin = []", "key \"plugin\": expected");
  refused("mode = \"allow\"\nkey = []", "key \"key\": expected");
  refused("mode = \"allow\"\n[[plugin]]\nid = \"\"", "key \"id\": expected a text that is not empty");
  refused("mode = \"allow\"\n[[key]]\nname = \"\"\npublic = \"" + kDigest + "\"",
          "key \"name\": expected a text that is not empty");
  refused("mode = \"allow\"\n[[key]]\nname = \"a\"\npublic = \"\"",
          "key \"public\": expected a text that is not empty");
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

// ---- mode "allow": an id is a claim that any file can make

class AllowTest : public PluginSetTest {
 protected:
  AllowTest() { fs::create_directory(added_); }

  // The plugins of a host with the installed ones in folder_ and a folder of a job.
  Registry found(const std::string& text) {
    return Registry({folder_}, system_files(), nullptr, set(text), nullptr, {added_});
  }
  static std::string reason(const Registry& registry, const fs::path& file) {
    for (const json& each : registry.list())
      if (each["file"] == file.string())
        return each["status"].get<std::string>() + ": " + each["reason"].get<std::string>();
    return "it was not found";
  }

  const fs::path added_ = root_ / "added", vendor_ = root_ / "vendor";
  const std::string allow_ = "mode = \"allow\"\n", good_ = "[[plugin]]\nid = \"tenon.test.good\"\n";
};

TEST_F(AllowTest, RefusesWhatLiesInFoldersOfOthers) {
  const fs::path installed = install("good", "good.so");
  for (const char* const version : {"1.2.3", "9.9.9"}) {  // equal, and newer
    const fs::path evil = install("good", "../added/evil.so", version);
    Registry one = found(allow_ + good_);
    EXPECT_EQ(one.layer("good").version, "1.2.3");
    EXPECT_THAT(reason(one, fs::canonical(evil)), HasSubstr("it is in none of the folders that the plugin set " +
                                                            (root_ / "set.toml").string() + " (allow) searches"));
    // A living host that found it without a set.
    Registry other({folder_}, system_files(), nullptr, nullptr, nullptr, {added_});
    other.use(set(allow_ + good_));
    EXPECT_EQ(error_of([&] { (void)other.layer("good"); }).code(), TN_REFUSED);
  }
  EXPECT_EQ(ran(), "good\n") << "the installed one alone";
  // Without a set the added folder comes first, with one in mode "dev" the installed plugins do.
  install("good", "../added/evil.so");
  EXPECT_THAT(reason(found("mode = \"dev\""), fs::canonical(added_ / "evil.so")), HasSubstr("unused: "));
  EXPECT_THAT(reason(Registry({folder_}, system_files(), nullptr, nullptr, nullptr, {added_}), installed),
              HasSubstr("unused: "));
}

TEST_F(AllowTest, RefusesFilesThatOthersMayChange) {
  const fs::path file = install("good", "good.so"), copy = install("good", "../vendor/good.so", "1.2.4");
  const auto refused = [&](const fs::path& which, mode_t open, const std::string& text) {
    ASSERT_EQ(chmod(which.c_str(), open), 0);
    EXPECT_THAT(reason(found(text), file), AllOf(HasSubstr("refused: "), HasSubstr(which.string() + " has mode")));
    ASSERT_EQ(chmod(which.c_str(), 0755), 0);
  };
  for (const std::string more : {"", "file = \"plugins/good.so\"\n"}) {
    refused(file, 0777, allow_ + good_ + more);
    refused(folder_, 0775, allow_ + good_ + more);
    EXPECT_EQ(reason(found(allow_ + good_ + more), file), "found: ");
  }
  if (geteuid() != 0) return;
  ASSERT_EQ(chown(file.c_str(), 12345, 0), 0);
  EXPECT_THAT(reason(found(allow_ + good_), file), HasSubstr("belongs to user 12345"));
}

TEST_F(AllowTest, NamesOfTenonAreThoseOfInstalledPlugins) {
  const fs::path file = install("good", "../vendor/good.so"), place = fs::canonical(file);
  const std::string text = allow_ + "folders = [\"vendor\"]\n" + good_;
  EXPECT_THAT(
      reason(found(text), place),
      HasSubstr("its id \"tenon.test.good\" is one of Tenon's, and the file is not among the installed plugins"));
  EXPECT_EQ(reason(found(text + "file = \"vendor/good.so\""), place), "found: ");
  EXPECT_EQ(reason(found(text + "sha256 = \"" + sha256(file) + "\""), place), "found: ");
  EXPECT_EQ(reason(found("mode = \"dev\"\nfolders = [\"vendor\"]\n"), place), "found: ");
  // Others than Tenon have names of their own. A type without a vendor is refused in them, with or without a set.
  std::string bytes = content(file);
  for (const std::string name : {"tenon.test.good", "\"good\""})
    for (size_t at = bytes.find(name); at != std::string::npos; at = bytes.find(name, at + 1))
      bytes.replace(at, name.size(), name.front() == 't' ? "other.test.good" : "\"o.od\"");
  write(file, bytes);
  EXPECT_EQ(reason(found(allow_ + "folders = [\"vendor\"]\n[[plugin]]\nid = \"other.test.good\"\n"), place), "found: ");
}

TEST_F(AllowTest, TellsWhatAnEntryLeavesOpen) {
  const fs::path file = install("good", "good.so");
  const auto warning = [&](const std::string& text) {
    const json found = verify_plugin_set(write_set(text), system_files());
    return found.empty() ? ""
                         : found.at(0)["status"].get<std::string>() + ": " + found.at(0)["warning"].get<std::string>();
  };
  const std::string named = good_ + "file = \"plugins/good.so\"\n", digest = "sha256 = \"" + sha256(file) + "\"\n",
                    place = (root_ / "set.toml").string() + ":2: plugin \"tenon.test.good\" has ";
  EXPECT_EQ(warning(allow_ + good_), "ok: " + place +
                                         "neither \"sha256\" nor \"signed_by\": any bytes with this id are "
                                         "admitted from the folders that the set searches");
  EXPECT_EQ(warning(allow_ + named), "ok: " + place +
                                         "neither \"sha256\" nor \"signed_by\": any bytes with this id are "
                                         "admitted in its file");
  EXPECT_EQ(warning(allow_ + named + digest), "ok: ");
  EXPECT_EQ(warning("mode = \"dev\"\n" + good_), "");
  create_key(root_ / "a.key", root_ / "a.pub");
  sign(file, root_ / "a.key", *system_files());
  const std::string key = "[[key]]\nname = \"a\"\npublic = \"" + content(root_ / "a.pub").substr(19, 64) + "\"\n",
                    by = "signed_by = \"a\"\n";
  EXPECT_THAT(warning(allow_ + key + named + by),
              HasSubstr("has \"signed_by\" without \"version\": every older file that was signed is admitted, too"));
  EXPECT_EQ(warning(allow_ + key + named + by + "version = \">=1.2\"\n"), "ok: ");
  EXPECT_EQ(found(allow_ + good_).list().at(0)["admitted_by"], "id");
  EXPECT_EQ(found(allow_ + good_ + digest).list().at(0)["admitted_by"], "bytes");
}

// The work is in proportion to the files.
TEST_F(AllowTest, FindsManyFiles) {
  int files = 0;
  const auto seconds = [&](int count) {
    for (; files < count; ++files) write(folder_ / (std::to_string(files) + ".so"), "x");
    const std::clock_t begin = std::clock();
    EXPECT_EQ(Registry({folder_, folder_}, system_files()).list().size(), static_cast<size_t>(count));
    return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  };
  const double few = seconds(1000);
  EXPECT_LT(seconds(8000), 20 * few) << "fifty times as much if each file is compared with all others";
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
  // A plugin that the set leaves out.
  const fs::path other = install("bad_plan", "bad_plan.so");
  EXPECT_THAT(error_of([&] { (void)found.layer("bad_plan"); }).message(),
              HasSubstr(" (1 plugin); " + other.string() +
                        " offers it, and the plugin set does not list its id \"tenon.test.bad_plan\""));
}

TEST_F(PluginSetTest, VerifyChecksEveryFile) {
  const fs::path good = install("good", "good.so"), type = install("bad_type", "bad_type.so");
  const fs::path path = write_set(lock_text({lock_plugin("tenon.test.good", "1.2.3", good, system_files()),
                                             lock_plugin("tenon.test.bad_type", "1.2.3", type, system_files())},
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
