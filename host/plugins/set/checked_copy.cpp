// SPDX-License-Identifier: Apache-2.0
#include "host/plugins/set/checked_copy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "core/sha256.h"

namespace tenon::host {

namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "tenon-plugin-";

[[noreturn]] void fail_system(const char* what, const fs::path& path) {
  const int failure = errno;
  fail(failure == ENOMEM ? TN_OUT_OF_MEMORY : TN_IO, SubjectName{path.string()}, path.string(), ": ", what, ": ",
       std::generic_category().message(failure));
}

// Returns the folder that contains both.
fs::path common_folder(const fs::path& folder, const fs::path& file) {
  const fs::path other = file.parent_path();
  const auto [end, ignored] = std::mismatch(folder.begin(), folder.end(), other.begin(), other.end());
  fs::path result;
  for (auto part = folder.begin(); part != end; ++part) result /= *part;
  return result;
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() { ::close(number_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return number_; }

 private:
  int number_;
};

}  // namespace

Bundle::Bundle(const SetPlugin& entry, const fs::path& plugin, const std::string& sha256) {
  fs::path folder = plugin.parent_path();
  for (const SetLibrary& library : entry.libraries) folder = common_folder(folder, library.file);
  files_.push_back({plugin, plugin.lexically_relative(folder), sha256});
  for (const SetLibrary& library : entry.libraries)
    files_.push_back({library.file, library.file.lexically_relative(folder), library.sha256});
  Sha256 hash;
  for (const File& file : files_) {
    const std::string line = file.place.string() + '\0' + file.sha256;
    hash.update(line.data(), line.size());
  }
  digest_ = hash.finish();
}

CheckedCopy::CheckedCopy(const Bundle& bundle, FileSystem& files) : root_(kPrefix) {
  struct statvfs system = {};
  if (statvfs(root_.path().c_str(), &system) != 0) fail_system("cannot examine the file system", root_.path());
  if ((system.f_flag & ST_NOEXEC) != 0) {
    const std::string base = root_.path().parent_path().string();
    fail(TN_IO, SubjectName{base}, base,
         " is on a file system from which no code may run (noexec), so that the checked copy of a plugin cannot be "
         "loaded from it; set TMPDIR to a folder on another");
  }
  for (const Bundle::File& file : bundle.files()) {
    copies_.push_back(root_.path() / bundle.digest() / file.place);
    make_folders(copies_.back().parent_path());
    copy(file, files);
  }
}

void CheckedCopy::make_folders(const fs::path& folder) const {
  if (folder == root_.path()) return;
  make_folders(folder.parent_path());
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) fail_system("cannot create the folder", folder);
}

// The bytes that are hashed are those that are written.
void CheckedCopy::copy(const Bundle::File& file, FileSystem& files) {
  constexpr uint64_t kPart = uint64_t{1} << 20;
  const fs::path& to = copies_.back();
  const std::unique_ptr<InputFile> input = files.open(file.from);
  const Descriptor output(::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400));
  if (output.get() < 0) fail_system("cannot create the file", to);
  Sha256 hash;
  std::vector<char> part(std::min(kPart, input->size()));
  for (uint64_t at = 0; at < input->size(); at += part.size()) {
    const auto bytes = static_cast<size_t>(std::min<uint64_t>(part.size(), input->size() - at));
    input->read(at, part.data(), bytes);
    hash.update(part.data(), bytes);
    for (size_t done = 0; done < bytes;) {
      const ssize_t wrote = ::write(output.get(), part.data() + done, bytes - done);
      if (wrote < 0 && errno != EINTR) fail_system("cannot write the file", to);
      if (wrote > 0) done += static_cast<size_t>(wrote);
    }
  }
  const std::string found = hash.finish();
  if (found != file.sha256)
    fail(TN_REFUSED, copies_.size() == 1 ? "it" : "its library " + file.from.string(),
         " has changed since it was checked: its SHA-256 is ", found, ", and that of the admitted file ", file.sha256);
}

bool CheckedCopy::is_name_of(const std::string& name, const std::string& digest, const fs::path& place) {
  const std::string prefix = std::string("/") + kPrefix;
  const size_t at = name.find(prefix);
  if (at == std::string::npos) return false;
  const std::string_view rest = std::string_view(name).substr(at + prefix.size());
  if (digest.empty()) return true;
  return rest.size() > OwnFolder::kDrawn && rest.substr(OwnFolder::kDrawn) == "/" + digest + "/" + place.string();
}

}  // namespace tenon::host
