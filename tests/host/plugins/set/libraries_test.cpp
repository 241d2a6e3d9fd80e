// The libraries that are loaded with a plugin under a set: found as the system's loader finds them, named or guarded.
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstring>

#include "host/plugins/set/library_search.h"
#include "host/plugins/set/system_libraries.h"
#include "tests/support/plugin_set_test.h"

namespace tenon_tests {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr const char* kLibrary = "libtenon_test_brought.so";

class LibrariesTest : public PluginSetTest {
 protected:
  LibrariesTest() {
    fs::create_directory(vendor_);
    fs::copy_file(fs::path(test_plugin_folder()) / "brings" / kLibrary, vendor_ / kLibrary);
  }
  ~LibrariesTest() override { unsetenv("LD_LIBRARY_PATH"); }

  // Installs the plugin "runpath" or "rpath" with this search path in the file.
  fs::path with_search(const std::string& kind, const std::string& search, const std::string& version = "1.2.3") {
    const fs::path file = install("brings", kind + ".so", version, kind + ".so");
    std::string bytes = content(file);
    const std::string old = "/" + std::string(200, 'x');
    const size_t at = bytes.find(old);
    EXPECT_NE(at, std::string::npos);
    EXPECT_LE(search.size(), old.size());
    bytes.replace(at, old.size(), search + std::string(old.size() - search.size(), '\0'));
    write(file, bytes);
    return file;
  }
  [[nodiscard]] std::string lock_refusal(const fs::path& file) const {
    const Error error = error_of([&] { (void)locked("brings", file); });
    EXPECT_EQ(error.code(), TN_REFUSED);
    return error.message();
  }
  // The reason why a set refuses the only plugin.
  std::string refusal_by(const std::string& text) { return registry(text).list().at(0)["reason"].get<std::string>(); }

  const fs::path vendor_ = root_ / "vendor";
};

TEST_F(LibrariesTest, OfAnyFolderAreLockedByTheirBytes) {
  int number = 0;
  for (const std::string kind : {"runpath", "rpath"}) {
    SCOPED_TRACE(kind);
    const std::string version = "5.0." + std::to_string(number++);
    const fs::path file = with_search(kind, "/nowhere:" + vendor_.string(), version);
    const std::string text = locked("brings", file, version);
    EXPECT_THAT(text, AllOf(HasSubstr("{ file = \"vendor/" + std::string(kLibrary) + "\", sha256 = \"" +
                                      sha256(vendor_ / kLibrary)),
                            ContainsRegex("\nsystem = \\[.*\"libc.so.6\".*\\]")))
        << "beside the libraries of a sanitizer";
    Registry found = registry(text);
    EXPECT_EQ(found.layer("brings").version, version);
    EXPECT_EQ(content("/proc/self/maps").find(vendor_.string()), std::string::npos) << "a copy of it is loaded";
    change_bit(vendor_ / kLibrary);
    EXPECT_THAT(refusal_by(text), HasSubstr("the SHA-256 of its library " + (vendor_ / kLibrary).string()));
    change_bit(vendor_ / kLibrary);
    fs::remove(file);
  }
}

TEST_F(LibrariesTest, AreNotSearchedWhereOthersMayPutFiles) {
  for (const std::string kind : {"runpath", "rpath"}) {
    SCOPED_TRACE(kind);
    const fs::path file = with_search(kind, vendor_.string());
    const std::string text = locked("brings", file);
    ASSERT_EQ(chmod(vendor_.c_str(), 0777), 0);
    const std::string why = "has the search path \"" + vendor_.string() + "\" for libraries (DT_" +
                            (kind == "rpath" ? "RPATH" : "RUNPATH") +
                            "), where others may put files: " + vendor_.string() + " has mode 0777";
    EXPECT_THAT(lock_refusal(file), HasSubstr(why));
    const Error changed = error_of([&] { (void)registry(text); });
    EXPECT_EQ(changed.code(), TN_REFUSED) << "a file of the set is not guarded";
    const std::string digest = sha256(file);
    EXPECT_THAT(refusal_by("mode = \"allow\"\n[[plugin]]\nid = \"tenon.test.brings\"\n"), HasSubstr(why));
    EXPECT_THAT(refusal_by("mode = \"dev\"\n[[plugin]]\nid = \"tenon.test.brings\"\nsha256 = \"" + digest +
                           "\"\nlibraries = [{ file = \"vendor/" + kLibrary + "\", sha256 = \"" +
                           sha256(vendor_ / kLibrary) + "\" }]\n"),
                HasSubstr(why));
    ASSERT_EQ(chmod(vendor_.c_str(), 0755), 0);
    fs::remove(file);
  }
  // Folders that anybody may make, the working folder, and what has no meaning in a copy.
  for (const auto& [search, why] : std::map<std::string, std::string>{
           {"/tmp/tenon-no-such-folder/lib", "where others may put files: /tmp has mode"},
           {"lib", "which depends on the working folder"},
           {"$ORIGIN:", "search path \"\" for libraries"},
           {"$ORIGIN/$PLATFORM", "with a token that is not $ORIGIN"},
           {"$ORIGIN/../../../tmp", "where others may put files: /tmp has mode"}}) {
    const fs::path file = with_search("runpath", search);
    install("brings", kLibrary, "1.2.3", kLibrary);
    const std::string entry = "mode = \"allow\"\n[[plugin]]\nid = \"tenon.test.brings\"\nsha256 = \"" + sha256(file) +
                              "\"\nlibraries = [{ file = \"vendor/" + kLibrary + "\", sha256 = \"" +
                              sha256(vendor_ / kLibrary) + "\" }]\n";
    Registry found = registry(entry);
    const json list = found.list();
    for (const json& each : list) {
      if (each["file"] != file.string()) continue;
      EXPECT_THAT(each["reason"].get<std::string>(), HasSubstr(why)) << search;
    }
  }
  EXPECT_EQ(ran(), "");
}

// A library of a library is loaded with the plugin, too: it is locked, and a changed one is refused.
TEST_F(LibrariesTest, OfLibrariesAreLocked) {
  const std::string between = "libtenon_test_between.so";
  const fs::path file = install("brings", "indirect.so", "5.2.0", "indirect.so");
  const fs::path first = install("brings", between, "1.2.3", between),
                 second = install("brings", kLibrary, "1.2.3", kLibrary);
  const std::string text = locked("brings", file, "5.2.0");
  EXPECT_THAT(text, ContainsRegex("\nsystem = \\[.*\"libc.so.6\".*\"libm.so.6\".*\\]"))
      << "the second is of the library alone";
  std::string other = text;
  other.replace(other.find("libm.so.6"), 9, "libdl.so.");
  EXPECT_THAT(refusal_by(other), HasSubstr("its library " + first.string() + " needs the library libm.so.6"));
  for (const fs::path& each : {first, second}) {
    const std::string entry =
        "  { file = \"plugins/" + each.filename().string() + "\", sha256 = \"" + sha256(each) + "\" },\n";
    EXPECT_THAT(text, HasSubstr(entry));
    change_bit(each);
    EXPECT_THAT(refusal_by(text), HasSubstr("the SHA-256 of its library " + each.string()));
    change_bit(each);
    EXPECT_EQ(refusal_by(text), "");
    std::string without = text;
    without.erase(without.find(entry), entry.size());
    EXPECT_THAT(refusal_by(without), AllOf(HasSubstr("needs the library " + each.filename().string() + ", which "),
                                           HasSubstr("names neither in \"libraries\" nor in \"system\"")));
  }
  fs::rename(second, vendor_ / second.filename());
  EXPECT_THAT(lock_refusal(file), AllOf(HasSubstr(first.string() + " needs the library "), HasSubstr(kLibrary),
                                        HasSubstr(", which is not found")));
  fs::rename(vendor_ / second.filename(), second);
  EXPECT_EQ(ran(), "");
  Registry found = registry(text);
  EXPECT_EQ(found.layer("brings").version, "5.2.0");
  EXPECT_THAT(ran(), EndsWith("between\nbrings\n"));  // another test may have loaded the third one
}

// What a set of an earlier version says of such a library.
TEST_F(LibrariesTest, OfTheSystemLieInItsFolders) {
  const fs::path file = with_search("runpath", vendor_.string());
  const std::string text = locked("brings", file), key = "\nsystem = [";
  const size_t begin = text.find(key) + key.size();
  const std::string system = text.substr(begin, text.find(']', begin) - begin);  // "libc.so.6", and a sanitizer's
  const std::string entry = "id = \"tenon.test.brings\"\nfile = \"plugins/runpath.so\"\nsha256 = \"" + sha256(file) +
                            "\"\nsystem = [" + system + ", \"" + kLibrary + "\"]\n";
  for (const std::string mode : {"allow", "locked", "dev"}) {
    const std::string set = "mode = \"" + mode + "\"\n[[plugin]]\n" + entry;
    EXPECT_THAT(refusal_by(set),
                HasSubstr(std::string("needs the library ") + kLibrary + ", which is not in \"libraries\" of " +
                          (root_ / "set.toml").string() + ":2: no library of the system has that name"));
    EXPECT_EQ(verify_plugin_set(write_set(set), system_files()).at(0)["status"], "refused");
  }
  EXPECT_EQ(ran(), "");
}

TEST_F(LibrariesTest, OfLdLibraryPathAreLockedByTheirBytes) {
  const fs::path file = with_search("runpath", "/nowhere");
  EXPECT_THAT(lock_refusal(file), HasSubstr(std::string("needs the library ") + kLibrary + ", which is not found"));
  const std::string vendor = vendor_.string();
  for (const std::string& folders : {vendor, "/nowhere:" + vendor, "/nowhere:" + vendor + ":/elsewhere", vendor + ";/",
                                     "/nowhere;/elsewhere:" + vendor + ";/other;/last"}) {
    setenv("LD_LIBRARY_PATH", folders.c_str(), 1);
    EXPECT_THAT(locked("brings", file), HasSubstr("{ file = \"vendor/" + std::string(kLibrary) + "\"")) << folders;
  }
}

TEST_F(LibrariesTest, OfAllowedPluginsAreGuarded) {
  const fs::path file = with_search("runpath", vendor_.string(), "5.1.0");
  const std::string entry = "mode = \"allow\"\n[[plugin]]\nid = \"tenon.test.brings\"\n";
  const fs::path library = vendor_ / kLibrary;
  ASSERT_EQ(chmod(library.c_str(), 0666), 0);
  EXPECT_THAT(refusal_by(entry), HasSubstr(library.string() + " has mode 0666"));
  ASSERT_EQ(chmod(library.c_str(), 0644), 0);
  EXPECT_EQ(refusal_by(entry), "");
  EXPECT_THAT(refusal_by(entry + "sha256 = \"" + sha256(file) + "\""), HasSubstr("which is not in \"libraries\""));
}

// ---- the libraries of the system

std::string cache_of(const std::vector<std::tuple<int32_t, std::string, std::string, uint64_t>>& entries) {
  std::string head = "glibc-ld.so.cache1.1", table, texts;
  const auto put = [](std::string& to, auto value) { to.append(reinterpret_cast<const char*>(&value), sizeof value); };
  const auto text = [&](const std::string& value) {
    const size_t at = 48 + 24 * entries.size() + texts.size();
    texts += value + '\0';
    return static_cast<uint32_t>(at);
  };
  put(head, static_cast<uint32_t>(entries.size()));
  head.resize(48);
  for (const auto& [flags, name, file, processor] : entries) {
    put(table, flags);
    put(table, text(name));
    put(table, text(file));
    put(table, uint32_t{0});
    put(table, processor);
  }
  return head + table + texts;
}

#if defined(__x86_64__)
TEST_F(LibrariesTest, OfTheSystemAreThoseOfTheCacheAndTheDefaultFolders) {
  constexpr int32_t kHere = 0x0303, kOther = 0x0003;
  constexpr uint64_t kByProcessor = uint64_t{1} << 62;
  const auto touch = [&](const std::string& place) {
    fs::create_directories((root_ / place).parent_path());
    write(root_ / place, "x");
    return (root_ / place).string();
  };
  const std::string plain = touch("lib/liba.so"), better = touch("lib/glibc-hwcaps/x86-64-v2/liba.so"),
                    unknown = touch("lib/glibc-hwcaps/x86-64-v9/liba.so"), other = touch("lib32/libb.so"),
                    folder = touch("usr/libb.so");
  const std::string cache = cache_of({{kHere, "liba.so", plain, 0},
                                      {kHere, "liba.so", unknown, kByProcessor},
                                      {kHere, "liba.so", better, kByProcessor + 1},
                                      {kOther, "libb.so", other, 0},
                                      {kHere, "libgone.so", root_.string() + "/lib/libgone.so", 0}});
  const SystemLibraries found(cache, {root_ / "lib64", root_ / "usr"});
  EXPECT_EQ(found.find("liba.so"), __builtin_cpu_supports("sse4.2") ? better : plain);
  EXPECT_EQ(found.find("libb.so"), folder) << "the cached one is of another machine";
  EXPECT_EQ(found.find("libgone.so"), "");
  EXPECT_EQ(found.find("lib"), "");
  for (size_t length = 0; length < cache.size(); ++length)  // damaged files end nothing
    (void)SystemLibraries(cache.substr(0, length), {}).find("liba.so");
  std::string wrong = cache;
  wrong.replace(20, 4, "\xff\xff\xff\xff");
  EXPECT_EQ(SystemLibraries(wrong, {}).find("liba.so"), "");
}
#endif

TEST_F(LibrariesTest, OfThisSystemAreFound) {
  LibrarySearch search(system_files());
  const auto found = search.of_system({"libc.so.6", "libtenon_no_such.so"});
  ASSERT_GE(found.size(), 2U);
  EXPECT_TRUE(found[0].of_system) << found[0].unguarded;
  EXPECT_EQ(found[0].links.soname, "libc.so.6");
  EXPECT_TRUE(found[1].file.empty() && !found[1].of_system);
}

}  // namespace
}  // namespace tenon_tests
