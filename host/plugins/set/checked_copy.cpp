// SPDX-License-Identifier: Apache-2.0
#include "host/plugins/set/checked_copy.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include "base/files.h"
#include "base/sha256.h"
#include "core/files/file_limit.h"
#include "host/plugins/set/hex.h"

namespace tenon::host {

// A new folder below that for temporary files, TMPDIR or /tmp, which only this user may enter. Removed with the object,
// with all that is in it. If the process is killed, the next folder of this user with the same prefix removes it: the
// owner of a folder holds a lock on it, which ends with the process.
class OwnFolder : base::NotCopied {
 public:
  // Its name is `prefix` and kDrawn characters. TN_IO if there can be none or if others may rename what is in
  // the folder for temporary files, TN_OUT_OF_MEMORY without memory.
  explicit OwnFolder(const std::string& prefix);
  ~OwnFolder();

  [[nodiscard]] std::filesystem::path path() const { return name_; }

  static constexpr size_t kDrawn = 6;

 private:
  // Makes and locks a folder; false if another process took it for one that nobody owns.
  bool make(const std::filesystem::path& base, const std::string& prefix);

  std::string name_;  // absolute
  int folder_ = -1;   // open and locked
};

namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "tenon-plugin-";

[[noreturn]] void fail_system(const char* what, const fs::path& path) {
  const int failure = errno;
  fail(failure == ENOMEM ? TN_OUT_OF_MEMORY : TN_IO, SubjectName{path.string()}, path.string(), ": ", what, ": ",
       std::generic_category().message(failure));
}

constexpr int kOpenFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

// Nobody else may rename what is in it: what is loaded by its path must be what was written there.
fs::path temporary_folder() {
  const char* const given = std::getenv("TMPDIR");
  const fs::path named = given != nullptr && given[0] == '/' ? given : "/tmp";
  std::error_code error;
  fs::path result = fs::canonical(named, error);
  if (error == std::errc::not_enough_memory) fail(TN_OUT_OF_MEMORY, named.string(), ": ", error.message());
  if (error)
    fail(TN_IO, SubjectName{named.string()}, named.string(), ": the folder for temporary files: ", error.message(),
         "; set TMPDIR to a folder in which this user may create files");
  try {
    check_unchangeable(result);
  } catch (const Error& refusal) {  // of this moment: the plugin itself is not refused
    fail(TN_IO, SubjectName{result.string()}, "the folder for temporary files: ", refusal.message());
  }
  return result;
}

// Calls visit(name) for each entry of a folder. Leaves `folder` open.
template <typename Visit>
void each_entry(int folder, Visit visit) {
  const int again = openat(folder, ".", kOpenFolder);
  DIR* const entries = again < 0 ? nullptr : fdopendir(again);
  if (entries == nullptr) {
    if (again >= 0) close(again);
    return;
  }
  while (const dirent* const entry = readdir(entries)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") visit(entry->d_name);
  }
  closedir(entries);
}

// Removes what is in an open folder, as far as it can. Follows no links; `depth` bounds the folders within folders.
void empty(int folder, int depth) {
  each_entry(folder, [&](const char* name) {
    if (unlinkat(folder, name, 0) == 0 || depth == 0) return;
    const int inner = openat(folder, name, kOpenFolder);
    if (inner < 0) return;
    empty(inner, depth - 1);
    close(inner);
    unlinkat(folder, name, AT_REMOVEDIR);
  });
}

constexpr int kDepth = 64;  // the path of a library below the folder that it shares with its plugin

// Removes the folder `name` in `base` if it belongs to this user and no process holds the lock on it.
void remove_unowned(int base, const char* name) {
  const int folder = openat(base, name, kOpenFolder);
  if (folder < 0) return;
  struct stat found = {};
  if (fstat(folder, &found) == 0 && found.st_uid == geteuid() && (found.st_mode & 077u) == 0 &&
      flock(folder, LOCK_EX | LOCK_NB) == 0) {
    empty(folder, kDepth);
    unlinkat(base, name, AT_REMOVEDIR);
  }
  close(folder);
}

void remove_leftovers(const fs::path& base, const std::string& prefix) {
  const int folder = open(base.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  each_entry(folder, [&](const char* name) {
    const std::string_view entry = name;
    if (entry.size() == prefix.size() + OwnFolder::kDrawn && entry.starts_with(prefix)) remove_unowned(folder, name);
  });
  close(folder);
}

// Returns the folder that contains both.
fs::path common_folder(const fs::path& folder, const fs::path& file) {
  const fs::path other = file.parent_path();
  const auto [end, ignored] = std::mismatch(folder.begin(), folder.end(), other.begin(), other.end());
  fs::path result;
  for (auto part = folder.begin(); part != end; ++part) result /= *part;
  return result;
}

// In headers since Linux 6.3; older systems refuse the flag.
constexpr unsigned kNotExecuted = 0x0008;  // MFD_NOEXEC_SEAL: mapped, but never executed as a program

// Returns a new file in memory, -1 with errno if there can be none.
int memory_file(const std::string& name) {
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  const int file = ::memfd_create(name.c_str(), kFlags | kNotExecuted);
  return file < 0 && errno == EINVAL ? ::memfd_create(name.c_str(), kFlags) : file;
}

bool seal(int file) {
  return ::fcntl(file, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) == 0;
}

// Returns the beginning of the names of a file in memory: the path of the folder of open files, in which "/." for 1 and
// "/" for 0 state the first bits of a digest.
std::string memory_prefix(const std::string& digest, const fs::path& place) {
  constexpr size_t kBytes = 8;
  base::Sha256 hash;
  const std::string text = digest + '\0' + place.string();
  hash.update(text.data(), text.size());
  std::string result = kMemory;
  for (const char byte : bytes_of(hash.finish()).substr(0, kBytes))
    for (int bit = 7; bit >= 0; --bit) result += ((static_cast<unsigned char>(byte) >> bit) & 1) != 0 ? "/." : "/";
  return result + "/";
}

}  // namespace

OwnFolder::OwnFolder(const std::string& prefix) {
  const fs::path base = temporary_folder();
  remove_leftovers(base, prefix);
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i)
    if (make(base, prefix)) return;
  fail(TN_IO, SubjectName{base.string()}, base.string(), ": other processes removed ", kTries,
       " new folders before they could be used");
}

bool OwnFolder::make(const fs::path& base, const std::string& prefix) {
  std::string name = (base / (prefix + std::string(kDrawn, 'X'))).string();
  if (mkdtemp(name.data()) == nullptr) {
    const int failure = errno;
    fail(failure == ENOMEM ? TN_OUT_OF_MEMORY : TN_IO, SubjectName{base.string()}, base.string(),
         ": cannot create a folder for the checked copy of a plugin: ", std::generic_category().message(failure),
         "; set TMPDIR to a folder in which this user may create files");
  }
  const int folder = open(name.c_str(), kOpenFolder);
  // Between the two calls another process may have found it without an owner.
  struct stat found = {};
  if (folder < 0 || flock(folder, LOCK_EX | LOCK_NB) != 0 || fstat(folder, &found) != 0 || found.st_nlink == 0 ||
      found.st_uid != geteuid()) {
    if (folder >= 0) close(folder);
    rmdir(name.c_str());
    return false;
  }
  folder_ = folder;
  name_ = std::move(name);
  return true;
}

OwnFolder::~OwnFolder() {
  empty(folder_, kDepth);
  rmdir(name_.c_str());
  close(folder_);
}

Bundle::Bundle(const SetPlugin& entry, const fs::path& plugin, const std::string& sha256) {
  fs::path folder = plugin.parent_path();
  for (const SetLibrary& library : entry.libraries) folder = common_folder(folder, library.file);
  files_.push_back({plugin, plugin.lexically_relative(folder), sha256});
  for (const SetLibrary& library : entry.libraries)
    files_.push_back({library.file, library.file.lexically_relative(folder), library.sha256});
  base::Sha256 hash;
  for (const File& file : files_) {
    const std::string line = file.place.string() + '\0' + file.sha256;
    hash.update(line.data(), line.size());
  }
  digest_ = hash.finish();
}

std::string memory_fault() {
  const int file = memory_file("tenon");
  if (file < 0) return text("memfd_create: ", std::generic_category().message(errno));
  std::string result;
  struct stat here = {}, there = {};
  const std::string name = text(kMemory, "/", file);
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  if (fstat(file, &here) != 0 || stat(name.c_str(), &there) != 0 || here.st_ino != there.st_ino ||
      here.st_dev != there.st_dev)
    result = text(kMemory, " does not show the open files of the process; mount /proc");
  else if (!seal(file))
    result = text("memory cannot be sealed: ", std::generic_category().message(errno));
  else if (void* const code = mmap(nullptr, page, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0); code == MAP_FAILED)
    result = text("its code may not run: ", std::generic_category().message(errno));
  else
    munmap(code, page);
  ::close(file);
  return result;
}

CheckedCopy::CheckedCopy(const Bundle& bundle, FileSystem& files, CopyPlace place) {
  if (place == CopyPlace::kFolder) use_folder();
  try {
    for (const Bundle::File& file : bundle.files()) {
      const int to = create(bundle, file);
      open_.push_back(to);
      copy(file, to, files);
      if (!root_ && !seal(to)) fail_system("cannot seal the copy in memory", file.from);
    }
  } catch (...) {
    for (const int file : open_) ::close(file);
    throw;
  }
  if (!root_) return;
  for (const int file : open_) ::close(file);
  open_.clear();
}

fs::path CheckedCopy::root() const { return root_ ? root_->path() : kAroundMemory; }

CheckedCopy::~CheckedCopy() {
  for (const int file : open_) ::close(file);
}

void CheckedCopy::use_folder() {
  root_ = std::make_unique<const OwnFolder>(kPrefix);
  struct statvfs system = {};
  if (statvfs(root_->path().c_str(), &system) != 0) fail_system("cannot examine the file system", root_->path());
  if ((system.f_flag & ST_NOEXEC) == 0) return;
  const std::string base = root_->path().parent_path().string();
  fail(TN_IO, SubjectName{base}, base,
       " is on a file system from which no code may run (noexec), so that the checked copy of a plugin cannot be "
       "loaded from it; set TMPDIR to a folder on another");
}

// Returns the open file of the next copy, whose name it adds.
int CheckedCopy::create(const Bundle& bundle, const Bundle::File& file) {
  open_.reserve(open_.size() + 1);
  if (root_) {
    copies_.push_back(root_->path() / bundle.digest() / file.place);
    make_folders(copies_.back().parent_path());
    const int to = ::open(copies_.back().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400);
    if (to < 0) fail_system("cannot create the file", copies_.back());
    return to;
  }
  constexpr size_t kLongest = 200;  // of the name that tools show
  const int to = memory_file("tenon " + file.from.filename().string().substr(0, kLongest));
  if (to < 0) fail_system("cannot be copied to memory", file.from);
  copies_.emplace_back(memory_prefix(bundle.digest(), file.place) + std::to_string(to));
  return to;
}

void CheckedCopy::make_folders(const fs::path& folder) const {
  if (folder == root_->path()) return;
  make_folders(folder.parent_path());
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) fail_system("cannot create the folder", folder);
}

// The bytes that are hashed are those that are written.
void CheckedCopy::copy(const Bundle::File& file, int to, FileSystem& files) const {
  constexpr uint64_t kPart = uint64_t{1} << 20;
  const std::unique_ptr<InputFile> input = files.open(file.from);
  const fs::path& subject = root_ ? copies_.back() : file.from;
  const char* const what = root_ ? "cannot write the file" : "cannot be copied to memory";
  if (const std::string fault = file_limit_fault(input->size()); !fault.empty())
    fail(TN_IO, SubjectName{subject.string()}, subject.string(), ": ", what, ": ", fault);
  base::Sha256 hash;
  std::vector<char> part(std::min(kPart, input->size()));
  for (uint64_t at = 0; at < input->size(); at += part.size()) {
    const auto bytes = static_cast<size_t>(std::min<uint64_t>(part.size(), input->size() - at));
    input->read(at, part.data(), bytes);
    hash.update(part.data(), bytes);
    if (!base::write_all(to, {part.data(), bytes})) fail_system(what, subject);
  }
  const std::string found = hash.finish();
  if (found != file.sha256)
    fail(TN_REFUSED, copies_.size() == 1 ? "it" : "its library " + file.from.string(),
         " has changed since it was checked: its SHA-256 is ", found, ", and that of the admitted file ", file.sha256);
}

bool CheckedCopy::is_name_of(const std::string& name, const std::string& digest, const fs::path& place) {
  const std::string memory = digest.empty() ? std::string(kMemory) + "/" : memory_prefix(digest, place);
  if (name.starts_with(memory))
    return digest.empty() || name.find_first_not_of("0123456789", memory.size()) == std::string::npos;
  const std::string prefix = std::string("/") + kPrefix;
  const size_t at = name.find(prefix);
  if (at == std::string::npos) return false;
  const std::string_view rest = std::string_view(name).substr(at + prefix.size());
  if (digest.empty()) return true;
  return rest.size() > OwnFolder::kDrawn && rest.substr(OwnFolder::kDrawn) == "/" + digest + "/" + place.string();
}

}  // namespace tenon::host
