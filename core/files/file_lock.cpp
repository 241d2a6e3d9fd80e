// SPDX-License-Identifier: Apache-2.0
#include "core/files/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include <csignal>
#include <cstdio>
#include <string>

#include "base/files.h"
#include "base/not_copied.h"
#include "core/files/failure.h"

namespace tenon::core {

using base::Descriptor;
using base::uninterrupted;

namespace {

namespace fs = std::filesystem;

// Returns the first line of a small file or the target of a link, of /proc; "-" if there is none.
std::string first_word(const char* file, bool link) {
  char text[128] = {};
  ssize_t length = -1;
  if (link) {
    length = ::readlink(file, text, sizeof text - 1);
  } else if (const Descriptor open(::open(file, O_RDONLY | O_CLOEXEC)); open.get() >= 0) {
    length = ::read(open.get(), text, sizeof text - 1);
  }
  const std::string word(text, length < 0 ? 0 : static_cast<size_t>(length));
  const std::string first = word.substr(0, word.find_first_of(" \n"));
  return first.empty() ? "-" : first;
}

// Returns what the number of a process belongs to: this start of the system, and the namespace of processes.
std::string numbering() {
  return first_word("/proc/sys/kernel/random/boot_id", false) + " " + first_word("/proc/self/ns/pid", true);
}

// The process that a lock file names.
struct Holder {
  int process = 0;         // 0: unknown
  std::string numbering_;  // of that process
  std::string host;

  static Holder read(int file) {
    char text[512] = {}, boot[128] = {}, space[128] = {}, host[128] = {};
    Holder holder;
    if (::pread(file, text, sizeof text - 1, 0) <= 0 ||
        // NOLINTNEXTLINE(cert-err34-c): nine digits fit
        std::sscanf(text, "%9d %127s %127s %127s", &holder.process, boot, space, host) != 4)
      return {};
    holder.numbering_ = std::string(boot) + " " + space;
    holder.host = host;
    return holder;
  }
  // Whether the process has ended. False where its number means nothing here.
  [[nodiscard]] bool has_ended() const {
    return process > 0 && numbering_ == numbering() && numbering_.find("- ") != 0 && !numbering_.ends_with(" -") &&
           ::kill(process, 0) != 0 && errno == ESRCH;
  }
  [[nodiscard]] std::string name() const {
    if (process <= 0) return "another process";
    const std::string number = text("process ", process);
    if (numbering_ == numbering()) return process == ::getpid() ? "another call of this process" : number;
    return number + " of the host \"" + host + "\"";
  }
};

bool is_file_of(const Descriptor& file, const fs::path& path) {
  struct stat open = {}, named = {};
  return ::fstat(file.get(), &open) == 0 && ::lstat(path.c_str(), &named) == 0 && open.st_dev == named.st_dev &&
         open.st_ino == named.st_ino;
}

// Opens the file of a lock. Sets `own` to whether it can be written.
Descriptor open_file(const fs::path& path, bool& own) {
  constexpr int kFlags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  Descriptor file(uninterrupted([&] { return ::open(path.c_str(), O_RDWR | O_CREAT | kFlags, 0666); }));
  own = file.get() >= 0;
  if (!own && errno == EACCES)
    file = Descriptor(uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | kFlags); }));
  struct stat status = {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0) fail_system(path, "open it", errno);
  if (!S_ISREG(status.st_mode)) fail(TN_INVALID, SubjectName{path.string()}, path.string(), ": not a regular file");
  return file;
}

// Returns the locked file, closed if the file system has no locks. Between the look at a file and its removal another
// process may replace it: require() finds that.
Descriptor acquire(const fs::path& path) {
  constexpr int kMostTries = 100;
  for (int tries = 0; tries < kMostTries; ++tries) {
    bool own = false;
    Descriptor file = open_file(path, own);
    if (uninterrupted([&] { return ::flock(file.get(), LOCK_EX | LOCK_NB); }) != 0) {
      if (errno != EWOULDBLOCK) {  // a file system without locks
        ::unlink(path.c_str());
        return Descriptor();
      }
      const Holder holder = Holder::read(file.get());
      if (!holder.has_ended())
        fail(TN_IO, SubjectName{path.string()}, path.string(), ": ", holder.name(), " holds this lock");
      if (is_file_of(file, path)) ::unlink(path.c_str());
      continue;
    }
    if (!is_file_of(file, path)) continue;  // its holder has removed it
    if (!own) {                             // another user left it
      if (::unlink(path.c_str()) != 0) fail_system(path, "remove it", errno);
      continue;
    }
    struct utsname system = {};
    static_cast<void>(::uname(&system));
    const std::string line = text(::getpid(), " ", numbering(), " ", system.nodename, "\n");
    // If the disk is full, the lock holds all the same, and others see no number.
    const bool written = ::ftruncate(file.get(), 0) == 0 &&
                         ::pwrite(file.get(), line.data(), line.size(), 0) == static_cast<ssize_t>(line.size());
    static_cast<void>(written);
    return file;
  }
  fail(TN_IO, SubjectName{path.string()}, path.string(), ": other processes take this lock again and again");
}

class SystemLock final : public FolderFiles::Lock, base::NotCopied {
 public:
  SystemLock(fs::path path, Descriptor file) : path_(std::move(path)), process_(::getpid()), file_(std::move(file)) {}
  ~SystemLock() override {
    if (::getpid() == process_ && is_file_of(file_, path_)) ::unlink(path_.c_str());
  }

  void require() override {
    if (is_file_of(file_, path_)) return;
    file_ = acquire(path_);  // somebody removed the file: the lock is free, or another process has it
    if (file_.get() < 0) fail(TN_IO, SubjectName{path_.string()}, path_.string(), ": the lock was lost");
  }

 private:
  const fs::path path_;
  const pid_t process_;
  Descriptor file_;
};

}  // namespace

std::unique_ptr<FolderFiles::Lock> lock_file(const fs::path& path) {
  Descriptor file = acquire(path);
  if (file.get() < 0) return nullptr;
  return std::make_unique<SystemLock>(path, std::move(file));
}

}  // namespace tenon::core
