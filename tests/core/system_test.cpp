// The system interfaces, and the faulty ones of tests/support/faults.h. SPDX-License-Identifier: Apache-2.0
#include "core/system.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <vector>

#include "core/error.h"
#include "tests/support/faults.h"
#include "tests/support/memory_system.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

using namespace tenon::core;

namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class Seams : public ::testing::Test {
 protected:
  static void put(const fs::path& path, const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
  }
  static std::string get(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  [[nodiscard]] int64_t entries() const {
    return std::distance(fs::directory_iterator(folder_), fs::directory_iterator());
  }
  void replace(const fs::path& path, const std::string& content) {
    const auto output = files_->replace(path);
    output->write(content.data(), content.size());
    output->commit();
  }

  const tenon_tests::TemporaryFolder temporary_;
  const fs::path folder_ = temporary_.path();
  std::shared_ptr<FileSystem> files_ = system_files();
};

TEST_F(Seams, MemoryIsAlignedAndRefusalNamesTheBytes) {
  const auto allocator = system_allocator();
  for (const uint64_t bytes : {1u, 63u, 64u, 65u, 1000000u}) {
    const Buffer buffer(allocator, bytes);
    ASSERT_NE(buffer.data(), nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 64, 0u);
    std::memset(buffer.data(), 1, bytes);
  }
  EXPECT_EQ(allocator->allocate(0), nullptr);
  const Error error = error_of([&] { Buffer(allocator, UINT64_MAX - 5); });
  EXPECT_EQ(error.code(), TN_OUT_OF_MEMORY);
  EXPECT_THAT(error.message(), HasSubstr("18446744073709551610"));
}

TEST_F(Seams, ABufferReleasesOnceAndMoves) {
  const auto counted = std::make_shared<FaultyAllocator>();
  {
    Buffer a(counted, 100);
    std::byte* const memory = a.data();
    Buffer b(std::move(a));
    EXPECT_EQ(b.data(), memory);
    EXPECT_EQ(a.data(), nullptr);  // NOLINT(bugprone-use-after-move): a moved-from buffer is empty
    EXPECT_EQ(a.size(), 0u);
    Buffer c(counted, 50);
    EXPECT_EQ(counted->held, 150u);
    c = std::move(b);
    EXPECT_EQ(counted->held, 100u);
    EXPECT_EQ(c.data(), memory);
    Buffer& same = c;
    c = std::move(same);
    EXPECT_EQ(c.data(), memory);
  }
  EXPECT_EQ(counted->held, 0u);
  counted->fail_at = counted->calls;
  EXPECT_EQ(error_of([&] { Buffer(counted, 1); }).code(), TN_OUT_OF_MEMORY);
  EXPECT_EQ(counted->held, 0u);
}

TEST_F(Seams, ReadsAnyRangeAndNothingBeyond) {
  put(folder_ / "a", "0123456789");
  const auto input = files_->open(folder_ / "a");
  EXPECT_EQ(input->size(), 10u);
  char three[3];
  input->read(7, three, 3);
  EXPECT_EQ(std::string(three, 3), "789");
  input->read(10, three, 0);
  const Error error = error_of([&] { input->read(8, three, 3); });
  EXPECT_EQ(error.code(), TN_BAD_DATA);
  EXPECT_THAT(error.message(),
              HasSubstr((folder_ / "a").string() + ": expected 3 bytes at byte 8; the file ends at byte 10"));
  EXPECT_EQ(error_of([&] { input->read(UINT64_MAX, three, 2); }).code(), TN_BAD_DATA);
  fs::resize_file(folder_ / "a", 5);  // while it is open
  EXPECT_EQ(error_of([&] { input->read(4, three, 3); }).code(), TN_BAD_DATA);
}

TEST_F(Seams, OpenSaysWhyNot) {
  const auto code_of = [&](const fs::path& path) {
    const Error error = error_of([&] { files_->open(path); });
    EXPECT_THAT(error.message(), HasSubstr(path.string()));
    return error.code();
  };
  EXPECT_EQ(code_of(folder_ / "absent"), TN_NOT_FOUND);
  put(folder_ / "file", "");
  EXPECT_EQ(code_of(folder_ / "file" / "below"), TN_NOT_FOUND);
  EXPECT_EQ(code_of(folder_), TN_INVALID);
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(code_of(folder_ / "pipe"), TN_INVALID);
  fs::create_symlink("loop", folder_ / "loop");
  EXPECT_EQ(code_of(folder_ / "loop"), TN_IO);
}

TEST_F(Seams, AFileAppearsWholeOrNotAtAll) {
  put(folder_ / "model", "old");
  {
    const auto output = files_->replace(folder_ / "model");
    output->write("new ", 4);
    output->write("content", 7);
    EXPECT_EQ(get(folder_ / "model"), "old");
    EXPECT_EQ(entries(), 2);
  }
  EXPECT_EQ(get(folder_ / "model"), "old");
  EXPECT_EQ(entries(), 1);
  replace(folder_ / "model", "new content");
  EXPECT_EQ(get(folder_ / "model"), "new content");
  EXPECT_EQ(entries(), 1);
}

TEST_F(Seams, TwoWritersOfOneFileDoNotMix) {
  const auto one = files_->replace(folder_ / "model"), other = files_->replace(folder_ / "model");
  one->write("one", 3);
  other->write("other", 5);
  one->commit();
  EXPECT_EQ(get(folder_ / "model"), "one");
  other->commit();
  EXPECT_EQ(get(folder_ / "model"), "other");
}

TEST_F(Seams, ReplaceKeepsPermissionsAndLinks) {
  put(folder_ / "private", "old");
  ASSERT_EQ(::chmod((folder_ / "private").c_str(), 0600), 0);
  fs::create_symlink("private", folder_ / "link");
  replace(folder_ / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(get(folder_ / "private"), "new");
  EXPECT_EQ(fs::status(folder_ / "private").permissions(), fs::perms(0600));
  replace(folder_ / std::string(255, 'n'), "long");
  EXPECT_EQ(get(folder_ / std::string(255, 'n')), "long");
}

TEST_F(Seams, ReplaceRefusesWhatIsNoFile) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(error_of([&] { files_->replace(folder_ / "pipe"); }).code(), TN_INVALID);
  EXPECT_EQ(error_of([&] { files_->replace(folder_); }).code(), TN_INVALID);
  EXPECT_EQ(error_of([&] { files_->replace("/dev/null"); }).code(), TN_INVALID);
  EXPECT_EQ(error_of([&] { files_->replace(folder_ / "no" / "model"); }).code(), TN_NOT_FOUND);
  EXPECT_EQ(error_of([&] { files_->replace(""); }).code(), TN_INVALID);
  EXPECT_EQ(entries(), 1);
}

TEST_F(Seams, AFileThatIsTooLargeLeavesTheOldOne) {
  put(folder_ / "model", "old");
  const auto output = files_->replace(folder_ / "model");
  // Runs in a child process with a limit on the size of files, beyond which a write ends the process (SIGXFSZ).
  const auto write_too_much = [&] {
    const rlimit limit = {5000, 5000};
    setrlimit(RLIMIT_FSIZE, &limit);
    const std::string part(2500, 'x');
    for (int i = 0; i < 2; ++i) output->write(part.data(), part.size());  // as much as is allowed
    const Error error = error_of([&] { output->write(part.data(), 1); });
    const tn_status committed = error_of([&] { output->commit(); }).code();
    std::fputs(error.message().c_str(), stderr);
    std::_Exit(error.code() == TN_IO && committed == TN_MISUSE ? 0 : 1);
  };
  EXPECT_EXIT(
      write_too_much(), ::testing::ExitedWithCode(0),
      "model: cannot write it: File too large: it needs 5001 bytes, and this process may write files of at most "
      "5000 .RLIMIT_FSIZE.; raise that limit, with ulimit -f");
  EXPECT_EQ(get(folder_ / "model"), "old");
}

class Leftovers : public Seams {
 protected:
  // Kills a process that is saving `name`. Returns the temporary file that it leaves.
  fs::path leave(const std::string& name) {
    const auto names = [&] {
      std::set<fs::path> all;
      for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) all.insert(entry.path());
      return all;
    };
    const std::set<fs::path> before = names();
    const auto killed = [&] {
      const auto output = files_->replace(folder_ / name);
      output->write("half", 4);
      ::raise(SIGKILL);
    };
    EXPECT_EXIT(killed(), ::testing::KilledBySignal(SIGKILL), "");
    for (const fs::path& path : names())
      if (!before.contains(path)) return path;
    ADD_FAILURE() << "no temporary file is left";
    return {};
  }
};

TEST_F(Leftovers, OfAKilledSaveGoWithTheNextOne) {
  const fs::path half = leave("model"), other = leave("other");
  ASSERT_EQ(get(half), "half");
  replace(folder_ / "model", "new");
  EXPECT_FALSE(fs::exists(half));
  EXPECT_TRUE(fs::exists(other)) << "a temporary file for another path";
  EXPECT_EQ(get(folder_ / "model"), "new");
  const std::string long_name(255, 'n');
  const fs::path of_long = leave(long_name);
  replace(folder_ / long_name, "new");
  EXPECT_FALSE(fs::exists(of_long));
}

// A file is removed only if it is a temporary file of this machine whose process has ended.
TEST_F(Leftovers, ThatMayBeAnothersStay) {
  const fs::path locked = leave("model");
  const int lock = ::open(locked.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(::flock(lock, LOCK_EX | LOCK_NB), 0);
  const std::string name = locked.filename().string();  // .model.HOST-PROCESS-0.tmp
  const size_t host = name.find('.', 1) + 1, process = name.find('-') + 1, number = name.rfind('-');
  const auto renamed = [&](size_t from, size_t to, const std::string& with) {
    const fs::path path = folder_ / (name.substr(0, from) + with + name.substr(to));
    put(path, "theirs");
    return path;
  };
  const std::vector<fs::path> others = {
      renamed(host, process - 1, "0123abcd"),                                  // of another machine
      renamed(process, number, std::to_string(::getppid())),                   // of a running process
      renamed(process, number, "0" + name.substr(process, number - process)),  // a number with a leading zero
      renamed(name.size(), name.size(), "~"), folder_ / ".model.tmp"};
  put(others.back(), "theirs");
  const fs::path linked = renamed(number, name.size(), "-7.tmp");
  fs::create_hard_link(linked, folder_ / "their_model");
  const fs::path symbolic = folder_ / (name.substr(0, number) + "-8.tmp");
  fs::create_symlink("their_model", symbolic);

  const auto pending = files_->replace(folder_ / "model");
  replace(folder_ / "model", "new");
  pending->commit();  // this process's temporary file was not removed
  for (const fs::path& path : others) EXPECT_EQ(get(path), "theirs") << path;
  EXPECT_TRUE(fs::exists(locked));
  EXPECT_TRUE(fs::exists(linked));
  EXPECT_TRUE(fs::is_symlink(symbolic));
  ::close(lock);
  replace(folder_ / "model", "newer");
  EXPECT_FALSE(fs::exists(locked));
}

TEST_F(Seams, ACommittedFileIsClosed) {
  const auto output = files_->replace(folder_ / "model");
  output->commit();
  EXPECT_EQ(error_of([&] { output->write("x", 1); }).code(), TN_MISUSE);
  EXPECT_EQ(error_of([&] { output->commit(); }).code(), TN_MISUSE);
}

TEST_F(Seams, EveryCallCanBeMadeToFail) {
  put(folder_ / "model", "old");
  const auto faulty = std::make_shared<FaultyFiles>();
  files_ = faulty;
  for (int64_t call = 0; call < 3; ++call) {
    faulty->calls = 0;
    faulty->fail_at = call;
    EXPECT_EQ(error_of([&] { replace(folder_ / "model", "new"); }).code(), TN_IO) << call;
    EXPECT_EQ(get(folder_ / "model"), "old");
    EXPECT_EQ(entries(), 1);
  }
  faulty->fail_at = -1;
  replace(folder_ / "model", "new");
  EXPECT_EQ(get(folder_ / "model"), "new");
}

// In seconds, as fast as time, to the microsecond.
TEST_F(Seams, TheClockGoesForward) {
  const auto clock = system_clock();
  const auto seconds = [](const timespec& time) {
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  timespec around = {}, inside = {}, slept = {}, ended = {};
  ASSERT_EQ(clock_gettime(CLOCK_MONOTONIC, &around), 0);
  const double before = clock->now();
  ASSERT_EQ(clock_gettime(CLOCK_MONOTONIC, &inside), 0);
  ::usleep(2000);
  ASSERT_EQ(clock_gettime(CLOCK_MONOTONIC, &slept), 0);
  const double after = clock->now();
  ASSERT_EQ(clock_gettime(CLOCK_MONOTONIC, &ended), 0);
  EXPECT_GE(after - before, seconds(slept) - seconds(inside) - 1e-6);
  EXPECT_LE(after - before, seconds(ended) - seconds(around) + 1e-6);
  for (double last = after; last < after + 1e-3;) {
    const double now = clock->now();
    ASSERT_GE(now, last);
    last = now;
  }
}

}  // namespace
}  // namespace tenon_tests
