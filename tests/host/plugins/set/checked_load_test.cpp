// The bytes that were checked are the bytes that run. SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

#include "host/plugins/set/checked_copy.h"
#include "tests/support/plugin_set_test.h"

namespace tenon_tests {

namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Calls `hook` when a file is opened.
class HookedFiles : public FileSystem {
 public:
  std::function<void(const fs::path&)> before = [](const fs::path&) {}, after = before;

  std::unique_ptr<InputFile> open(const fs::path& path) override {
    before(path);
    std::unique_ptr<InputFile> file = files_->open(path);
    after(path);
    return file;
  }
  std::unique_ptr<Output> replace(const fs::path& path) override { return files_->replace(path); }

 private:
  const std::shared_ptr<FileSystem> files_ = system_files();
};

class CheckedLoadTest : public PluginSetTest {
 protected:
  CheckedLoadTest() { setenv("TMPDIR", root_.c_str(), 1); }
  ~CheckedLoadTest() override { unsetenv("TMPDIR"); }

  // Names of private folders that were left.
  [[nodiscard]] size_t leftovers() const {
    size_t count = 0;
    for (const auto& entry : fs::directory_iterator(root_))
      if (entry.path().filename().string().starts_with("tenon-plugin-")) ++count;
    return count;
  }
  [[nodiscard]] static size_t maps_of(const std::string& name) {
    const std::string maps = content("/proc/self/maps");
    size_t count = 0;
    for (size_t at = maps.find(name); at != std::string::npos; at = maps.find(name, at + 1)) ++count;
    return count;
  }
};

TEST_F(CheckedLoadTest, LoadsAPrivateCopyAndRemovesIt) {
  const fs::path file = install("good", "good.so");
  Registry found = registry(locked("good", file));
  EXPECT_EQ(ran(), "");
  EXPECT_EQ(found.layer("good").plugin, "tenon.test.good");
  EXPECT_EQ(ran(), "good\n");
  EXPECT_EQ(maps_of(file.string()), 0U);
  EXPECT_EQ(leftovers(), 0U);
  EXPECT_EQ(found.list().at(0)["status"], "loaded");
}

// Each test has a version of its own: an image that another made of the same bytes would be used again.
TEST_F(CheckedLoadTest, AFileSwappedAfterTheScanIsRefused) {
  const fs::path file = install("good", "good.so", "1.2.4");
  const std::string text = locked("good", file, "1.2.4");
  Registry found = registry(text);
  fs::remove(file);
  install("bad_type", "good.so");
  const Error error = error_of([&] { (void)found.layer("good"); });
  EXPECT_EQ(error.code(), TN_REFUSED);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("it has changed since it was checked: its SHA-256 is " + sha256(file)),
                                     HasSubstr(file.string())));
  EXPECT_EQ(ran(), "");
  EXPECT_EQ(leftovers(), 0U);
}

// The moments at which a loader that opens the path again would take the other bytes.
TEST_F(CheckedLoadTest, AFileSwappedAtAnyMomentNeverRuns) {
  const fs::path other = install("bad_type", "other/bad_type.so");
  const std::string evil = content(other);
  char digit = '0';
  const auto run = [&](const std::string& plugin, bool same_inode, const std::function<bool(const fs::path&)>& when,
                       bool after) {
    const std::string version = std::string("2.0.") + digit++;
    const fs::path file = install(plugin, plugin + ".so", version);
    const auto files = std::make_shared<HookedFiles>();
    Registry found = registry(locked(plugin, file, version), files);
    bool done = false;
    (after ? files->after : files->before) = [&, same_inode](const fs::path& path) {
      if (done || !when(path)) return;
      done = true;
      if (!same_inode) fs::remove(file);
      write(file, evil);
    };
    const Error error = error_of([&] { (void)found.layer(plugin); });
    EXPECT_TRUE(done);
    EXPECT_TRUE(content(file) == evil);
    return error;
  };
  const auto original = [](const std::string& name) {
    return [name](const fs::path& path) { return path.filename() == name; };
  };
  const auto copy = [](const fs::path& path) { return CheckedCopy::is_name_of(path.string(), "", {}); };
  for (const bool same_inode : {false, true}) {
    EXPECT_EQ(run("good", same_inode, original("good.so"), false).code(), TN_REFUSED);
    EXPECT_EQ(run("good", true, original("good.so"), true).code(), TN_REFUSED) << "the open file is overwritten";
    EXPECT_EQ(ran(), "");
  }
  // Once the bytes are copied, the file does not matter.
  EXPECT_EQ(run("good", false, copy, false).message(), "");
  EXPECT_EQ(ran(), "good\n");
  EXPECT_EQ(run("bad_plan", true, copy, true).message(), "");
  EXPECT_EQ(ran(), "good\nbad_plan\n");
}

TEST_F(CheckedLoadTest, HostsShareOneImage) {
  const fs::path file = install("newer", "newer.so");
  const std::string text = locked("newer", file);
  const void* first = nullptr;
  size_t maps = 0;
  for (int i = 0; i < 5; ++i) {
    Registry found = registry(text);
    const LayerType& layer = found.layer("newer_good");
    if (i == 0) maps = maps_of("newer.so");
    if (i == 0) first = reinterpret_cast<const void*>(layer.table.plan);
    EXPECT_EQ(reinterpret_cast<const void*>(layer.table.plan), first);
    EXPECT_EQ(maps_of("newer.so"), maps);
  }
  EXPECT_GT(maps, 0U);
}

// In a process of its own, since the library stays loaded, and before the next test loads its copy.
TEST_F(CheckedLoadTest, RefusesALibraryThatIsLoadedFromElsewhere) {
  const fs::path file = install("brings", "brings.so");
  const fs::path library = install("brings", "libtenon_test_brought.so", "1.2.3", "libtenon_test_brought.so");
  const std::string text = locked("brings", file);
  EXPECT_EXIT(
      {
        fs::create_directory(root_ / "elsewhere");
        const fs::path elsewhere = root_ / "elsewhere" / library.filename();
        fs::copy_file(library, elsewhere);
        if (dlopen(elsewhere.c_str(), RTLD_NOW) == nullptr) _exit(1);
        Registry found = registry(text);
        const Error error = error_of([&] { (void)found.layer("brings"); });
        const std::string wanted = "its library libtenon_test_brought.so is loaded in this process already, from " +
                                   elsewhere.string() + ", and is not the checked copy of " + library.string();
        if (error.message().find(wanted) == std::string::npos) std::fputs(error.what(), stderr);
        _exit(error.message().find(wanted) == std::string::npos ? 2 : 0);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(CheckedLoadTest, BringsItsLibraries) {
  const fs::path file = install("brings", "brings.so");
  const fs::path library = install("brings", "libtenon_test_brought.so", "1.2.3", "libtenon_test_brought.so");
  const std::string text = locked("brings", file);
  EXPECT_THAT(text, HasSubstr("{ file = \"plugins/libtenon_test_brought.so\", sha256 = \"" + sha256(library)));

  {  // a changed library is refused when it is found, and one that changes later when the plugin is loaded
    Registry late = registry(text);
    change_bit(library);
    EXPECT_THAT(error_of([&] { (void)late.layer("brings"); }).message(),
                HasSubstr("its library " + library.string() + " has changed since it was checked"));
    Registry early = registry(text);
    EXPECT_THAT(early.list().at(0)["reason"].get<std::string>(),
                HasSubstr("the SHA-256 of its library " + library.string()));
    change_bit(library);
  }
  {  // one that is not listed
    std::string without = text;
    const size_t at = without.find("libraries = ["), end = without.find("]\n", at);
    without.erase(at, end + 2 - at);
    Registry found = registry(without);
    EXPECT_THAT(error_of([&] { (void)found.layer("brings"); }).message(),
                AllOf(HasSubstr("it needs the library libtenon_test_brought.so, which "),
                      HasSubstr("names neither in \"libraries\" nor in \"system\"")));
  }
  {  // the library of the system that is not named
    std::string without = text;
    const std::string libc = "\"libc.so.6\"";
    ASSERT_NE(without.find(libc), std::string::npos);
    without.replace(without.find(libc), libc.size(), "\"libother.so\"");
    Registry found = registry(without);
    EXPECT_THAT(found.list().at(0)["reason"].get<std::string>(), HasSubstr("needs the library libc.so.6"));
  }
  EXPECT_EQ(ran(), "");
  Registry found = registry(text);
  EXPECT_EQ(found.layer("brings").plugin, "tenon.test.brings");
  EXPECT_EQ(ran(), "brought\nbrings\n");
  EXPECT_EQ(maps_of(library.string()), 0U) << "$ORIGIN is the folder of the copy";
  EXPECT_GT(maps_of("libtenon_test_brought.so"), 0U);

  // Another plugin of another set with the same library takes the loaded one.
  const fs::path second = install("brings", "second/brings.so", "1.2.4");
  install("brings", "second/libtenon_test_brought.so", "1.2.3", "libtenon_test_brought.so");
  Registry other =
      Registry({}, system_files(), nullptr,
               set(lock_text({lock_plugin("tenon.test.brings", "1.2.4", second, *system_files())}, root_)));
  EXPECT_EQ(other.layer("brings").version, "1.2.4");
  EXPECT_EQ(ran(), "brought\nbrings\nbrings\n");
}

TEST_F(CheckedLoadTest, NamesAFolderThatCannotTakeCopies) {
  const fs::path file = install("bad_null", "bad_null.so");
  const std::string text = locked("bad_null", file);
  Registry found = registry(text);
  setenv("TMPDIR", (root_ / "gone").c_str(), 1);
  const Error error = error_of([&] { (void)found.layer("bad_null"); });
  EXPECT_EQ(error.code(), TN_IO);
  EXPECT_THAT(error.message(), HasSubstr((root_ / "gone").string() + ": the folder for temporary files: No such file"));
  setenv("TMPDIR", root_.c_str(), 1);  // it may be loaded later
  EXPECT_THAT(error_of([&] { (void)found.layer("bad_null"); }).message(), HasSubstr("returned no descriptor"));
}

// ---- folders that killed processes left

class LeftoverTest : public CheckedLoadTest {
 protected:
  // Makes what a process that was killed leaves, with a file, a folder and a link to a file outside.
  fs::path left(const std::string& name, mode_t mode = 0700) {
    const fs::path folder = root_ / name;
    fs::create_directories(folder / "digest" / "lib");
    write(folder / "digest" / "lib" / "copy.so", "x");
    fs::create_symlink(outside_, folder / "digest" / "link");
    fs::create_directory_symlink(outside_.parent_path(), folder / "digest" / "folder");
    EXPECT_EQ(chmod(folder.c_str(), mode), 0);
    return folder;
  }
  void load(const std::string& version) {
    const fs::path file = install("good", "good.so", version);
    EXPECT_NO_THROW((void)registry(locked("good", file, version)).layer("good"));
  }

  const fs::path outside_ = [this] {
    fs::create_directory(root_ / "kept");
    write(root_ / "kept" / "file", "kept");
    return root_ / "kept" / "file";
  }();
};

TEST_F(LeftoverTest, AreRemovedByTheNextLoad) {
  const fs::path gone = left("tenon-plugin-abcdef");
  load("3.0.0");
  EXPECT_FALSE(fs::exists(gone));
  EXPECT_EQ(content(outside_), "kept") << "links are not followed";
}

TEST_F(LeftoverTest, OfAProcessThatIsKilled) {
  const fs::path file = install("good", "good.so", "3.0.1");
  const SetPlugin entry = set(locked("good", file, "3.0.1"))->plugins.at(0);
  const pid_t child = fork();
  if (child == 0) {
    const CheckedCopy copy(Bundle(entry, file, entry.sha256), *system_files());
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(leftovers(), 1U);
  load("3.0.2");
  EXPECT_EQ(leftovers(), 0U);
}

TEST_F(LeftoverTest, OnlyThoseThatNobodyOwns) {
  const fs::path used = left("tenon-plugin-000000"), open = left("tenon-plugin-000001", 0755),
                 longer = left("tenon-plugin-0000001"), file = root_ / "tenon-plugin-000002",
                 link = root_ / "tenon-plugin-000003";
  write(file, "");
  fs::create_directory_symlink(outside_.parent_path(), link);
  const int lock = ::open(used.c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(flock(lock, LOCK_EX), 0);
  const CheckedCopy copy(Bundle(SetPlugin{}, outside_, sha256(outside_)), *system_files());
  load("3.0.3");
  for (const fs::path& path : {used, open, longer, file, link, copy.files().front()}) EXPECT_TRUE(fs::exists(path));
  EXPECT_EQ(content(outside_), "kept");
  close(lock);
  load("3.0.4");
  EXPECT_FALSE(fs::exists(used));
  EXPECT_TRUE(fs::exists(copy.files().front())) << "of a living host of this process";
}

// Who may rename the folder of the copies could put another one in its place before it is loaded.
TEST_F(CheckedLoadTest, NobodyElseMayRenameCopies) {
  const fs::path shared = root_ / "shared", file = install("good", "good.so", "3.0.5");
  fs::create_directory(shared);
  setenv("TMPDIR", shared.c_str(), 1);
  ASSERT_EQ(chmod(shared.c_str(), 0777), 0);
  Registry found = registry(locked("good", file, "3.0.5"));
  const Error error = error_of([&] { (void)found.layer("good"); });
  EXPECT_EQ(error.code(), TN_IO);
  EXPECT_THAT(error.message(), HasSubstr("the folder for temporary files: " + shared.string() + " has mode 0777"));
  EXPECT_EQ(ran(), "");
  ASSERT_EQ(chmod(shared.c_str(), 01777), 0);
  EXPECT_NO_THROW((void)found.layer("good"));
}

TEST_F(LeftoverTest, FoldersAreForTheirUserAlone) {
  const CheckedCopy copy(Bundle(SetPlugin{}, outside_, sha256(outside_)), *system_files());
  struct stat found = {};
  ASSERT_EQ(stat(copy.files().front().parent_path().parent_path().c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777U, 0700U);
}

}  // namespace
}  // namespace tenon_tests
