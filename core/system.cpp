// SPDX-License-Identifier: Apache-2.0
#include "core/system.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <system_error>
#include <utility>

#include "base/alignment.h"
#include "base/files.h"
#include "base/fnv.h"
#include "base/not_copied.h"
#include "core/alignment.h"
#include "core/error.h"
#include "core/files/destination.h"
#include "core/files/failure.h"
#include "core/files/file_limit.h"
#include "core/files/file_lock.h"
#include "core/files/folder_files.h"
#include "core/folder.h"

namespace tenon::core {

using base::Descriptor;
using base::uninterrupted;

namespace {

constexpr uint64_t kHugePage = uint64_t{1} << 21;    // bytes, on x86-64 and on arm64 with pages of 4 KiB
constexpr uint64_t kMostAtOnce = uint64_t{1} << 30;  // bytes in one system call

// Requests huge pages for large blocks: rows of large tables and samples of data sets are read in random order, and if
// pages are small, most of these reads miss the TLB.
class SystemAllocator final : public Allocator {
 public:
  void* allocate(uint64_t bytes) override {
    if (bytes == 0) return nullptr;
    const bool huge = bytes >= 2 * kHugePage;
    const uint64_t alignment = huge ? kHugePage : kCacheLine;
    void* memory = nullptr;
    if (bytes <= static_cast<uint64_t>(std::numeric_limits<ptrdiff_t>::max()) - alignment)
      memory = std::aligned_alloc(alignment, base::round_up(bytes, alignment));
    if (memory == nullptr) fail(TN_OUT_OF_MEMORY, "no memory for ", bytes, " bytes");
#ifdef MADV_HUGEPAGE
    if (huge) static_cast<void>(madvise(memory, bytes / kHugePage * kHugePage, MADV_HUGEPAGE));  // may fail
#endif
    return memory;
  }
  void release(void* memory, uint64_t) noexcept override { std::free(memory); }
};

class SystemInput final : public InputFile {
 public:
  // O_NONBLOCK: opening a named pipe must not wait for its other end.
  explicit SystemInput(const std::filesystem::path& path)
      : path_(path), file_(uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); })) {
    struct stat status = {};
    if (file_.get() < 0 || ::fstat(file_.get(), &status) != 0) fail_system(path_, "open it", errno);
    if (!S_ISREG(status.st_mode)) fail(TN_INVALID, SubjectName{path_.string()}, path_.string(), ": not a regular file");
    size_ = static_cast<uint64_t>(status.st_size);
  }

  [[nodiscard]] uint64_t size() const override { return size_; }

  void read(uint64_t offset, void* to, uint64_t bytes) override {
    if (offset > size_ || bytes > size_ - offset) fail_short(offset, bytes, size_);
    for (uint64_t done = 0; done < bytes;) {
      const auto part = static_cast<size_t>(std::min(bytes - done, kMostAtOnce));
      const ssize_t got = uninterrupted(
          [&] { return ::pread(file_.get(), static_cast<char*>(to) + done, part, static_cast<off_t>(offset + done)); });
      if (got < 0) fail_system(path_, "read it", errno);
      if (got == 0) fail_short(offset, bytes, offset + done);  // truncated since it was opened
      done += static_cast<uint64_t>(got);
    }
  }

 private:
  [[noreturn]] void fail_short(uint64_t offset, uint64_t bytes, uint64_t size) const {
    fail(TN_BAD_DATA, SubjectName{path_.string()}, path_.string(), ": expected ", bytes, " bytes at byte ", offset,
         "; the file ends at byte ", size);
  }

  std::filesystem::path path_;
  Descriptor file_;
  uint64_t size_ = 0;
};

// Names of temporary files: ".NAME.HOST-PROCESS-NUMBER.tmp". HOST distinguishes machines and containers that share a
// folder, PROCESS the processes of a machine, NUMBER the files of a process.
class TemporaryName {
 public:
  explicit TemporaryName(const std::filesystem::path& path)
      : prefix_(text(".", path.filename().string().substr(0, kMostOfTheName), mark())) {}

  [[nodiscard]] std::string of(pid_t process, int number) const { return text(prefix_, process, "-", number, kSuffix); }
  // What the names of temporary files of this path begin with.
  [[nodiscard]] const std::string& prefix() const { return prefix_; }
  // Returns the process that created a temporary file of this name; 0 if the name is not one of a temporary file of
  // this machine.
  static pid_t process_of(const std::string& name) {
    const std::string here = mark();
    const size_t at = name.rfind(here);
    int process = 0, number = 0, end = 0;
    if (at == std::string::npos || at < 2 || name[0] != '.' ||
        // NOLINTNEXTLINE(cert-err34-c): nine digits fit
        std::sscanf(name.c_str() + at + here.size(), "%9d-%9d.tmp%n", &process, &number, &end) != 2)
      return 0;
    return process > 0 && name == text(name.substr(0, at), here, process, "-", number, kSuffix) ? process : 0;
  }

 private:
  static constexpr size_t kMostOfTheName = 180;  // bytes; file names have at most 255
  static constexpr const char* kSuffix = ".tmp";

  // Returns ".HOST-": the FNV-1a hash of the host's name in hex, since the name itself may be long and contain any
  // character.
  static std::string mark() {
    struct utsname system = {};
    static_cast<void>(::uname(&system));
    char digits[11] = {};
    static_cast<void>(std::snprintf(digits, sizeof digits, ".%08x-", base::fnv1a<uint32_t>(system.nodename)));
    return digits;
  }

  std::string prefix_;
};

// Removes temporary files of killed processes whose names begin with `prefix`. Removes a file only if its name says
// that it was created on this machine by a process that has ended, if this user owns it, and if nobody holds the lock
// that its creator takes. Ignores failures: they must not fail the save.
void remove_temporaries(const std::filesystem::path& folder, const std::string& prefix) try {
  std::error_code unlisted;
  for (const std::string& name : names_in(folder, unlisted)) {
    const pid_t process = name.starts_with(prefix) ? TemporaryName::process_of(name) : 0;
    if (process == 0 || ::kill(process, 0) == 0 || errno != ESRCH) continue;
    const std::filesystem::path found = folder / name;
    const Descriptor file(::open(found.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat status = {};
    if (file.get() < 0 || ::fstat(file.get(), &status) != 0) continue;
    const bool ours = S_ISREG(status.st_mode) && status.st_nlink == 1 && status.st_uid == ::geteuid();
    if (ours && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0) ::unlink(found.c_str());
  }
} catch (const std::exception&) {  // out of memory
}

// Creates an empty temporary file in the folder of `path`. The destructor removes it unless it was renamed.
class Temporary : base::NotCopied {
 public:
  explicit Temporary(const std::filesystem::path& path) {
    const TemporaryName names(path);
    for (int number = 0; file_.get() < 0; ++number) {
      path_ = base::folder_of(path) / names.of(::getpid(), number);
      file_ = Descriptor(
          uninterrupted([&] { return ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666); }));
      if (file_.get() < 0 && (errno != EEXIST || number == 10000))
        fail_system(path, "make a temporary file beside it", errno);
    }
    static_cast<void>(::flock(file_.get(), LOCK_EX | LOCK_NB));  // for remove_leftovers; some file systems lack locks
  }
  ~Temporary() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }

  [[nodiscard]] int file() const { return file_.get(); }
  int close() { return file_.close(); }
  // anew: whether a file of this name is an error, EEXIST.
  int rename(const std::filesystem::path& to, bool anew) {
    const int result = anew ? rename_anew(to) : ::rename(path_.c_str(), to.c_str());
    if (result == 0) path_.clear();
    return result;
  }

 private:
  int rename_anew(const std::filesystem::path& to) const {
    const int result = ::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE);
    if (result == 0 || (errno != EINVAL && errno != ENOSYS)) return result;
    // A file system without this flag: a second name instead, which is refused as well if there is such a file.
    if (::link(path_.c_str(), to.c_str()) != 0) return -1;
    ::unlink(path_.c_str());
    return 0;
  }

  std::filesystem::path path_;  // empty once it is renamed
  Descriptor file_;
};

class SystemOutput final : public FileSystem::Output {
 public:
  // anew: whether a file of this name is an error when the file is renamed. check: called before that; may be empty.
  SystemOutput(const std::filesystem::path& path, bool anew, std::function<void()> check)
      : anew_(anew),
        check_(std::move(check)),
        path_(refuse_special(destination(path))),
        made_(without_leftovers(path_)) {
    struct stat old = {}, made = {};
    const bool replaces =
        ::lstat(path_.c_str(), &old) == 0 && S_ISREG(old.st_mode) && ::fstat(made_.file(), &made) == 0;
    if (replaces && old.st_mode != made.st_mode && ::fchmod(made_.file(), old.st_mode & 07777) != 0)
      fail_system(path_, "keep its permissions", errno);
  }

  void write(const void* from, uint64_t bytes) override {
    require_whole();
    if (const std::string fault = file_limit_fault(written_ + bytes); !fault.empty()) {
      whole_ = false;
      fail(TN_IO, SubjectName{path_.string()}, path_.string(), ": cannot write it: ", fault);
    }
    if (!base::write_all(made_.file(), {static_cast<const char*>(from), bytes})) fail_broken("write it");
    written_ += bytes;
  }

  void commit() override {
    require_whole();
    if (uninterrupted([&] { return ::fsync(made_.file()); }) != 0) fail_broken("write it to the disk");
    if (made_.close() != 0) fail_broken("close it");
    whole_ = false;
    if (check_) check_();
    if (made_.rename(path_, anew_) != 0)
      fail_system(path_, anew_ && errno == EEXIST ? "create it" : "rename the finished file to it", errno);
    if (!base::sync_folder(base::folder_of(path_)))
      fail_system(path_, "write its folder to the disk, after it was replaced", errno);
  }

 private:
  static std::filesystem::path refuse_special(std::filesystem::path path) {
    struct stat status = {};
    if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
      fail(TN_INVALID, SubjectName{path.string()}, path.string(), ": not a regular file");
    return path;
  }
  static const std::filesystem::path& without_leftovers(const std::filesystem::path& path) {
    remove_temporaries(base::folder_of(path), TemporaryName(path).prefix());
    return path;
  }
  void require_whole() const {
    if (!whole_)
      fail(TN_MISUSE, SubjectName{path_.string()}, path_.string(), ": already committed, or an earlier write failed");
  }
  [[noreturn]] void fail_broken(const char* what) {
    const int error = errno;
    whole_ = false;
    fail_system(path_, what, error);
  }

  const bool anew_;
  const std::function<void()> check_;
  std::filesystem::path path_;
  Temporary made_;
  uint64_t written_ = 0;  // bytes
  bool whole_ = true;     // every write so far succeeded, and the file is not renamed yet
};

class SystemFiles final : public FileSystem, public FolderFiles {
 public:
  std::unique_ptr<InputFile> open(const std::filesystem::path& path) override {
    return std::make_unique<SystemInput>(path);
  }
  std::unique_ptr<Output> replace(const std::filesystem::path& path) override {
    return std::make_unique<SystemOutput>(path, false, nullptr);
  }
  std::unique_ptr<Output> create(const std::filesystem::path& path, bool anew, std::function<void()> check) override {
    return std::make_unique<SystemOutput>(path, anew, std::move(check));
  }
  void remove_leftovers(const std::filesystem::path& folder) override { remove_temporaries(folder, "."); }
  std::unique_ptr<FolderFiles::Lock> lock(const std::filesystem::path& path) override { return lock_file(path); }
};

class SystemClock final : public Clock {
 public:
  double now() override {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
};

}  // namespace

std::shared_ptr<Allocator> system_allocator() { return std::make_shared<SystemAllocator>(); }
std::shared_ptr<FileSystem> system_files() { return std::make_shared<SystemFiles>(); }
std::shared_ptr<Clock> system_clock() { return std::make_shared<SystemClock>(); }

Buffer::Buffer(std::shared_ptr<Allocator> allocator, uint64_t bytes)
    : allocator_(std::move(allocator)), data_(static_cast<std::byte*>(allocator_->allocate(bytes))), bytes_(bytes) {}

Buffer::Buffer(Buffer&& other) noexcept
    : allocator_(std::move(other.allocator_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this == &other) return *this;
  reset();
  allocator_ = std::move(other.allocator_);
  data_ = std::exchange(other.data_, nullptr);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

void Buffer::reset() noexcept {
  if (data_ != nullptr) allocator_->release(data_, bytes_);
  allocator_.reset();
  data_ = nullptr;
  bytes_ = 0;
}

}  // namespace tenon::core
