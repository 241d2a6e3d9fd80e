// Links on the way to a set, and to what it names: who can change one chooses what it leads to.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include "host/plugins/set/library_search.h"
#include "tests/support/plugin_set_test.h"

namespace tenon_tests {

namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kLibrary = "libtenon_test_brought.so";

// The folder open_ is one in which others may replace a link.
class LinksTest : public PluginSetTest {
 protected:
  LinksTest() {
    fs::create_directories(open_ / "inner");
    fs::create_directory(vendor_);
    shut();
  }

  void set_mode(mode_t mode) { ASSERT_EQ(chmod(open_.c_str(), mode), 0); }
  void shut() { set_mode(0755); }

  // The refusal of a set that is named by this path; "" if there is none.
  std::string refusal(const fs::path& path) {
    const Error error = error_of([&] { (void)read_plugin_set(path, *system_files()); });
    EXPECT_EQ(error.code(), error.message().empty() ? TN_OK : TN_REFUSED) << path << error.message();
    return error.message();
  }
  // The refusal of the only plugin under this set, or of the set.
  std::string refusal_under(const std::string& text) {
    std::string result;
    const Error error = error_of([&] {
      Registry found({folder_}, system_files(), nullptr, set(text));
      result = found.list().empty() ? "not found" : found.list().at(0)["reason"].get<std::string>();
    });
    return result + error.message();
  }
  // Returns the text of a set with another path of a file.
  static std::string renamed(std::string text, const std::string& from, const std::string& to) {
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << text;
    return text.replace(at, from.size(), to);
  }
  // That `examine` refuses a path through open_ if others may write to it, and nothing else.
  template <typename Examine>
  void expect_guarded(const Examine& examine) {
    EXPECT_EQ(examine(), "");
    for (const mode_t mode : {mode_t{0777}, mode_t{0775}, mode_t{0757}}) {
      set_mode(mode);
      EXPECT_THAT(examine(), AllOf(HasSubstr(open_.string() + " has mode 0"), HasSubstr("chmod go-w")))
          << std::oct << mode;
    }
    shut();
    EXPECT_EQ(examine(), "");
    if (geteuid() != 0) return;
    ASSERT_EQ(chown(open_.c_str(), 12345, 0), 0);
    EXPECT_THAT(examine(), HasSubstr(open_.string() + " belongs to user 12345"));
    ASSERT_EQ(chown(open_.c_str(), 0, 0), 0);
  }

  const fs::path open_ = root_ / "open", vendor_ = root_ / "vendor";
};

TEST_F(LinksTest, ToASet) {
  const fs::path set = write_set("mode = \"dev\"");
  fs::create_symlink(set, open_ / "set.toml");
  fs::create_symlink("../set.toml", open_ / "relative.toml");
  fs::create_symlink("open/set.toml", root_ / "first.toml");  // itself in a folder that is guarded
  fs::create_directory_symlink("..", open_ / "way");
  fs::create_directory_symlink("open", root_ / "around");
  for (const char* const name :
       {"open/set.toml", "open/relative.toml", "first.toml", "open/way/set.toml", "around/../set.toml",
        "open/inner/../../set.toml", "open/way/open/way/set.toml", "around/set.toml"}) {
    SCOPED_TRACE(name);
    expect_guarded([&] { return refusal(root_ / name); });
  }
  const fs::path here = fs::current_path();
  fs::current_path(root_);
  expect_guarded([&] { return refusal("first.toml"); });
  fs::current_path(here);
}

TEST_F(LinksTest, ToWhatASetNames) {
  const fs::path file = install("good", "good.so");
  fs::create_symlink(file, open_ / "good.so");
  fs::create_symlink("open/good.so", root_ / "first.so");
  fs::create_directory_symlink(vendor_, open_ / "vendor");
  fs::create_directory_symlink(folder_, open_ / "plugins");
  const std::string id = "[[plugin]]\nid = \"tenon.test.good\"\n", allow = "mode = \"allow\"\n",
                    digest = "sha256 = \"" + sha256(file) + "\"\n";
  for (const std::string mode : {"dev", "allow"})
    for (const std::string folder : {"open/vendor", "open/inner/../vendor", "open/../vendor"})
      expect_guarded([&] { return refusal_under("mode = \"" + mode + "\"\nfolders = [\"" + folder + "\"]\n" + id); });
  for (const std::string name : {"open/good.so", "first.so", "open/plugins/good.so", "open/inner/../good.so"}) {
    SCOPED_TRACE(name);
    const std::string named = id + "file = \"" + name + "\"\n";
    expect_guarded([&] { return refusal_under(allow + named); });
    expect_guarded([&] { return refusal_under(renamed(locked("good", file), "plugins/good.so", name)); });
    set_mode(0777);
    EXPECT_EQ(refusal_under("mode = \"dev\"\n" + named + digest), "") << "only its bytes matter";
    shut();
  }
}

TEST_F(LinksTest, ToALibraryOfALockedSet) {
  const fs::path file = install("brings", "brings.so"), library = install("brings", kLibrary, "1.2.3", kLibrary);
  fs::create_symlink(library, open_ / kLibrary);
  const std::string text =
      renamed(locked("brings", file), std::string("plugins/") + kLibrary, std::string("open/") + kLibrary);
  expect_guarded([&] { return refusal_under(text); });
}

// A link in a folder that is searched, and one on the way to the folder of the installed plugins.
TEST_F(LinksTest, ToAPluginThatIsFound) {
  const fs::path file = install("good", "../vendor/good.txt");
  const std::string allow =
      "mode = \"allow\"\nfolders = [\"vendor\"]\n[[plugin]]\nid = \"tenon.test.good\"\nsha256 = \"" + sha256(file) +
      "\"\n";
  fs::create_symlink(vendor_ / "good.txt", open_ / "way");
  fs::create_symlink("../open/way", vendor_ / "good.so");
  expect_guarded([&] { return refusal_under(allow); });
  fs::remove(vendor_ / "good.so");
  install("good", "good.so");
  fs::create_directory_symlink(folder_, open_ / "installed");
  expect_guarded([&] {
    Registry found({open_ / "installed"}, system_files(), nullptr, set(allow));
    return found.list().at(0)["reason"].get<std::string>();
  });
}

TEST_F(LinksTest, OfASetThatALivingHostTakes) {
  const fs::path file = install("good", "good.so");
  fs::create_symlink(file, open_ / "good.so");
  expect_guarded([&]() -> std::string {
    Registry found({folder_}, system_files());
    found.use(set("mode = \"allow\"\n[[plugin]]\nid = \"tenon.test.good\"\nfile = \"open/good.so\"\n"));
    return found.list().at(0)["reason"].get<std::string>();
  });
}

// The system's loader follows the link anew when the plugin is loaded.
TEST_F(LinksTest, ToALibraryThatTheLoaderFinds) {
  fs::copy_file(fs::path(test_plugin_folder()) / "brings" / kLibrary, vendor_ / kLibrary);
  fs::create_symlink(vendor_ / kLibrary, open_ / kLibrary);
  fs::create_directory_symlink(vendor_, open_ / "vendor");
  const fs::path file = install("brings", "runpath.so", "1.2.3", "runpath.so");
  const std::string allow = "mode = \"allow\"\n[[plugin]]\nid = \"tenon.test.brings\"\n";
  for (const fs::path& folder : {open_, open_ / "vendor", open_ / "inner/../vendor"}) {
    SCOPED_TRACE(folder);
    setenv("LD_LIBRARY_PATH", folder.c_str(), 1);
    std::string bytes = content(file);
    const std::string old = "/" + std::string(200, 'x'), guarded = "/nowhere";
    if (const size_t at = bytes.find(old); at != std::string::npos)
      bytes.replace(at, old.size(), guarded + std::string(old.size() - guarded.size(), '\0'));
    write(file, bytes);
    expect_guarded([&] { return refusal_under(allow); });
    unsetenv("LD_LIBRARY_PATH");
  }
}

// $ORIGIN of a library is the folder of the link by which the loader finds it.
TEST_F(LinksTest, ToALibraryWithASearchPathOfItsOwn) {
  const std::string between = "libtenon_test_between.so", search = "$ORIGIN/../open";
  install("brings", "indirect.so", "1.2.3", "indirect.so");
  std::string bytes = content(fs::path(test_plugin_folder()) / "brings" / "runpath.so");
  const std::string old = "/" + std::string(200, 'x');
  fs::create_directory(vendor_ / "inner");
  write(vendor_ / "inner" / between, renamed(bytes, old, search + std::string(old.size() - search.size(), '\0')));
  fs::copy_file(fs::path(test_plugin_folder()) / "brings" / kLibrary, open_ / kLibrary);
  fs::create_symlink(vendor_ / "inner" / between, folder_ / between);
  write(open_ / kLibrary, "another is found first");
  fs::copy_file(fs::path(test_plugin_folder()) / "brings" / kLibrary, folder_ / kLibrary);
  expect_guarded([&] { return refusal_under("mode = \"allow\"\n[[plugin]]\nid = \"tenon.test.brings\"\n"); });
}

TEST_F(LinksTest, ToAFolderInWhichLibrariesAreSearched) {
  fs::create_directory_symlink(vendor_, open_ / "vendor");
  fs::create_directory_symlink(open_ / "new", root_ / "later");
  fs::create_directory_symlink("/tmp/tenon-no-such-folder", root_ / "anybody");
  const auto examine = [&](const fs::path& folder) {
    return error_of([&] { check_search({"", {}, {folder.string()}, false}, "/", {}, "it"); }).message();
  };
  for (const fs::path& folder : {open_ / "vendor", open_ / "vendor/lib/sub", open_ / "inner/../../vendor",
                                 root_ / "later", root_ / "later/lib", open_ / "new"}) {
    SCOPED_TRACE(folder);
    expect_guarded([&] { return examine(folder); });
  }
  EXPECT_THAT(examine(root_ / "anybody/lib"), HasSubstr("where others may put files: /tmp has mode"));
}

// In a folder such as /tmp a link is as safe as its owner.
TEST_F(LinksTest, InFoldersWhereEverybodyMayCreateFiles) {
  const fs::path set = write_set("mode = \"dev\""), link = open_ / "set.toml";
  fs::create_symlink(set, link);
  set_mode(01777);
  EXPECT_EQ(refusal(link), "");
  if (geteuid() != 0) return;
  ASSERT_EQ(lchown(link.c_str(), 12345, 0), 0);
  EXPECT_THAT(refusal(link), HasSubstr("the link " + link.string() + " belongs to user 12345"));
  set_mode(01775);
  EXPECT_THAT(refusal(link), HasSubstr("the link " + link.string() + " belongs to user 12345"));
  shut();
  EXPECT_EQ(refusal(link), "") << "its owner cannot replace it";
}

// The file itself must not lie in such a folder, with a link or without one.
TEST_F(LinksTest, DoNotHideTheFolderOfAFile) {
  write(open_ / "set.toml", "mode = \"dev\"");
  fs::create_symlink(open_ / "set.toml", root_ / "link.toml");
  set_mode(01777);
  for (const fs::path& path : {open_ / "set.toml", root_ / "link.toml"})
    EXPECT_THAT(refusal(path), HasSubstr(open_.string() + " has mode 1777"));
  shut();
  EXPECT_EQ(refusal(root_ / "link.toml"), "");
}

}  // namespace

}  // namespace tenon_tests
