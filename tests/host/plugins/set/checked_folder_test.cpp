// Checked copies in a folder, where a process can have no files in memory. SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>

#include "host/plugins/set/checked_copy.h"
#include "tests/support/child.h"
#include "tests/support/denied_calls.h"
#include "tests/support/plugin_set_test.h"

namespace tenon_tests {

namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class CheckedFolderTest : public PluginSetTest {
 protected:
  CheckedFolderTest() {
    setenv("TMPDIR", root_.c_str(), 1);
    EXPECT_TRUE(deny_memory_files());
    EXPECT_EQ(memory_fault(), "memfd_create: Operation not permitted");
  }
  ~CheckedFolderTest() override { unsetenv("TMPDIR"); }

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

TEST_F(CheckedFolderTest, LoadsAPrivateCopyAndRemovesIt) {
  const fs::path file = install("good", "good.so", "3.1.0");
  Registry found = registry(locked("good", file, "3.1.0"));
  EXPECT_EQ(found.layer("good").plugin, "tenon.test.good");
  EXPECT_EQ(ran(), "good\n");
  EXPECT_EQ(maps_of(file.string()), 0U);
  EXPECT_GT(maps_of(root_.string() + "/tenon-plugin-"), 0U);
  EXPECT_EQ(leftovers(), 0U);
}

TEST_F(CheckedFolderTest, BringsItsLibraries) {
  const fs::path file = install("brings", "brings.so");
  const fs::path library = install("brings", "libtenon_test_brought.so", "1.2.3", "libtenon_test_brought.so");
  Registry found = registry(locked("brings", file));
  EXPECT_EQ(found.layer("brings").plugin, "tenon.test.brings");
  EXPECT_EQ(ran(), "brought\nbrings\n");
  EXPECT_EQ(maps_of(library.string()), 0U) << "$ORIGIN is the folder of the copy";
}

TEST_F(CheckedFolderTest, NamesAFolderThatCannotTakeCopies) {
  const fs::path file = install("bad_null", "bad_null.so");
  const std::string text = locked("bad_null", file);
  Registry found = registry(text);
  setenv("TMPDIR", (root_ / "gone").c_str(), 1);
  const Error error = error_of([&] { (void)found.layer("bad_null"); });
  EXPECT_EQ(error.code(), TN_IO);
  EXPECT_THAT(error.message(), AllOf(HasSubstr((root_ / "gone").string() + ": the folder for temporary files: No such"),
                                     HasSubstr("(nor from memory: memfd_create: Operation not permitted)")));
  EXPECT_THAT(error.message(), HasSubstr("; set TMPDIR to a folder"));
  setenv("TMPDIR", "/proc", 1);  // it takes no folders
  EXPECT_THAT(error_of([&] { (void)found.layer("bad_null"); }).message(),
              AllOf(HasSubstr("/proc: cannot create a folder for the checked copy of a plugin: "),
                    HasSubstr("; set TMPDIR to a folder in which this user may create files (nor from memory: ")));
  setenv("TMPDIR", root_.c_str(), 1);
  const auto limited = [&] {
    rlimit limit = {};
    getrlimit(RLIMIT_FSIZE, &limit);
    const rlimit low = {100, limit.rlim_max};
    setrlimit(RLIMIT_FSIZE, &low);
    const std::string message = error_of([&] { (void)found.layer("bad_null"); }).message();
    setrlimit(RLIMIT_FSIZE, &limit);  // of the messages of the test, too
    std::fputs(message.c_str(), stderr);
    std::_Exit(0);
  };
  EXPECT_EXIT(limited(), ::testing::ExitedWithCode(0),
              "bad_null.so: cannot write the file: File too large: .* at most 100 .RLIMIT_FSIZE.*nor from memory: ");
  // It may be loaded later.
  EXPECT_THAT(error_of([&] { (void)found.layer("bad_null"); }).message(), HasSubstr("returned no descriptor"));
}

// ---- folders that killed processes left

class LeftoverTest : public CheckedFolderTest {
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
  const auto work = [&](int) {
    const CheckedCopy copy(Bundle(entry, file, entry.sha256), *system_files(), CopyPlace::kFolder);
    raise(SIGKILL);
  };
  EXPECT_EQ(run_child(work, 60).code(), 128 + SIGKILL);
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
  const CheckedCopy copy(Bundle(SetPlugin{}, outside_, sha256(outside_)), *system_files(), CopyPlace::kFolder);
  load("3.0.3");
  for (const fs::path& path : {used, open, longer, file, link, copy.files().front()}) EXPECT_TRUE(fs::exists(path));
  EXPECT_EQ(content(outside_), "kept");
  close(lock);
  load("3.0.4");
  EXPECT_FALSE(fs::exists(used));
  EXPECT_TRUE(fs::exists(copy.files().front())) << "of a living host of this process";
}

// Who may rename the folder of the copies could put another one in its place before it is loaded.
TEST_F(CheckedFolderTest, NobodyElseMayRenameCopies) {
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
  const CheckedCopy copy(Bundle(SetPlugin{}, outside_, sha256(outside_)), *system_files(), CopyPlace::kFolder);
  struct stat found = {};
  ASSERT_EQ(stat(copy.files().front().parent_path().parent_path().c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777U, 0700U);
}

class WithoutProcTest : public PluginSetTest {};

TEST_F(WithoutProcTest, TheReasonIsNamed) {
  const std::string text = locked("bad_null", install("bad_null", "bad_null.so"));
  const auto work = [&](int to) {
    if ((unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) ||
        mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", "/proc", "tmpfs", 0, nullptr) != 0)
      _exit(77);
    setenv("TMPDIR", (root_ / "gone").c_str(), 1);
    Registry found = registry(text);
    const std::string message = error_of([&] { (void)found.layer("bad_null"); }).message();
    _exit(::write(to, message.data(), message.size()) < 0 ? 1 : 0);
  };
  const ChildEnd end = run_child(work, 60);
  if (end.code() == 77) GTEST_SKIP() << "no namespaces for a container here";
  EXPECT_EQ(end.code(), 0);
  EXPECT_THAT(end.text, AllOf(HasSubstr((root_ / "gone").string() + ": the folder for temporary files: No such"),
                              HasSubstr("(nor from memory: /proc/self/fd does not show the open files of the process; "
                                        "mount /proc)")));
}

}  // namespace
}  // namespace tenon_tests
