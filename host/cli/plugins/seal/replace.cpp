// SPDX-License-Identifier: Apache-2.0
#include "host/cli/plugins/seal/replace.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <system_error>

#include "base/files.h"
#include "host/cli/cli.h"

namespace tenon::cli {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& what, int error) {
  throw Failure(kIo, what + ": " + std::generic_category().message(error));
}

}  // namespace

TemporaryFile::TemporaryFile(const fs::path& beside, const std::string& bytes) : beside_(beside) {
  struct stat status = {};
  if (stat(beside.c_str(), &status) != 0) fail("cannot examine it", errno);
  std::string name = (base::folder_of(beside) / ("." + beside.filename().string() + ".XXXXXX")).string();
  const int file = mkstemp(name.data());
  if (file < 0) fail("cannot create a file beside it", errno);
  path_ = name;
  int failure = base::write_all(file, bytes) ? 0 : errno;
  if (failure == 0 && fchmod(file, status.st_mode & 07777) != 0) failure = errno;
  if (failure == 0 && fsync(file) != 0) failure = errno;
  if (close(file) != 0 && failure == 0) failure = errno;
  if (failure == 0) return;
  unlink(path_.c_str());
  fail("cannot write a file beside it", failure);
}

TemporaryFile::~TemporaryFile() {
  if (!path_.empty()) unlink(path_.c_str());
}

void TemporaryFile::replace() {
  if (rename(path_.c_str(), beside_.c_str()) != 0) fail("cannot replace it", errno);
  path_.clear();
  // The new name lasts through a loss of power; without it the old file would be back, which is whole as well.
  static_cast<void>(base::sync_folder(base::folder_of(beside_)));
}

std::string read_file(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) throw Failure(kIo, "it is not a regular file");
  std::ifstream file(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) throw Failure(kIo, "it cannot be read");
  return bytes;
}

}  // namespace tenon::cli
