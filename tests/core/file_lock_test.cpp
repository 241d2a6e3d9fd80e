// Locks of files: between processes, threads and names, over fork and kill. SPDX-License-Identifier: Apache-2.0
#include "core/files/file_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "core/error.h"
#include "tests/support/child.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

using namespace tenon::core;

namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class FileLock : public ::testing::Test {
 protected:
  [[nodiscard]] std::string refusal(const fs::path& path) const {
    try {
      (void)lock_file(path);
      return "not refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), TN_IO) << error.message();
      return error.message();
    }
  }
  // Returns a child that has the lock, and has started a child of its own if asked.
  [[nodiscard]] Child child(bool forks) const {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    Child process([&] {
      const auto lock = lock_file(path_);
      const pid_t grandchild = forks ? fork() : 1;
      const char done = lock != nullptr && grandchild >= 0 ? 'y' : 'n';
      if (grandchild != 0 && write(ready[1], &done, 1) != 1) _exit(1);
      alarm(30);
      pause();
    });
    char done = 'n';
    EXPECT_EQ(::read(ready[0], &done, 1), 1);
    EXPECT_EQ(done, 'y');
    ::close(ready[0]);
    ::close(ready[1]);
    return process;
  }
  static void end(Child& process) {
    process.send(SIGKILL);
    process.wait();
  }

  const TemporaryFolder folder_;
  const fs::path path_ = folder_.file("lock");
};

TEST_F(FileLock, OneObjectHasIt) {
  {
    const auto lock = lock_file(path_);
    ASSERT_NE(lock, nullptr);
    EXPECT_THAT(refusal(path_), HasSubstr("another call of this process holds this lock"));
    std::thread([&] { EXPECT_THAT(refusal(path_), HasSubstr("another call of this process")); }).join();
    fs::create_directory_symlink(folder_.path(), folder_.path() / "other");
    EXPECT_THAT(refusal(folder_.path() / "other" / "lock"), HasSubstr("holds this lock"));
    lock->require();
  }
  EXPECT_FALSE(fs::exists(path_)) << "the file ends with the lock";
  EXPECT_NE(lock_file(path_), nullptr);
}

TEST_F(FileLock, AnotherProcessIsNamedAndItsEndFreesTheLock) {
  Child process = child(false);
  EXPECT_THAT(refusal(path_), HasSubstr("process " + std::to_string(process.id()) + " holds this lock"));
  end(process);
  EXPECT_TRUE(fs::exists(path_)) << "as a kill leaves it";
  EXPECT_NE(lock_file(path_), nullptr);
}

// A worker that a training forked has its descriptors, and may outlive it.
TEST_F(FileLock, AForkedChildDoesNotKeepIt) {
  Child process = child(true);
  std::ifstream children("/proc/" + std::to_string(process.id()) + "/task/" + std::to_string(process.id()) +
                         "/children");
  pid_t grandchild = 0;
  children >> grandchild;
  EXPECT_THAT(refusal(path_), HasSubstr("process " + std::to_string(process.id())));
  end(process);
  const auto lock = lock_file(path_);
  ASSERT_NE(lock, nullptr);
  EXPECT_THAT(refusal(path_), HasSubstr("another call of this process"));
  lock->require();
  if (grandchild > 0) kill(grandchild, SIGKILL);
}

TEST_F(FileLock, AFileThatWasRemovedIsMadeAgain) {
  auto lock = lock_file(path_);
  fs::remove(path_);
  lock->require();
  EXPECT_THAT(refusal(path_), HasSubstr("another call"));
  fs::remove(path_);
  Child process = child(false);
  try {
    lock->require();
    ADD_FAILURE() << "another process has the lock";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("process " + std::to_string(process.id())));
  }
  lock.reset();
  EXPECT_TRUE(fs::exists(path_)) << "of the other process";
  end(process);
}

TEST_F(FileLock, LeftoversOfAnyContentAreTaken) {
  for (const char* const text : {"", "x", "-1 a b c", "999999999 a b c", "1 - - -\n"}) {
    std::ofstream(path_) << text;
    EXPECT_NE(lock_file(path_), nullptr) << text;
  }
}

TEST_F(FileLock, SpecialFilesAreRefused) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THROW((void)lock_file(path_), Error);
  fs::remove(path_);
  std::ofstream(folder_.file("target")) << "mine";
  fs::create_symlink("target", path_);
  EXPECT_THROW((void)lock_file(path_), Error) << "a link";
  EXPECT_EQ(fs::file_size(folder_.file("target")), 4U);
}

}  // namespace

}  // namespace tenon_tests
