// SPDX-License-Identifier: Apache-2.0
#include "temporary_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <tenon/base.hpp>
#include <utility>

namespace tenon::files {

TemporaryFile::TemporaryFile(std::string path) : path_(std::move(path)) {
  std::error_code absent;
  std::string name = (std::filesystem::temp_directory_path(absent) / "tenon-XXXXXX").string();
  descriptor_ = absent ? -1 : ::mkostemp(name.data(), O_CLOEXEC);
  if (descriptor_ >= 0)
    ::unlink(name.c_str());
  else
    descriptor_ = ::memfd_create("tenon", MFD_CLOEXEC);
  if (descriptor_ < 0) fail("cannot be kept", errno);
}

TemporaryFile::~TemporaryFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void TemporaryFile::append(const void* bytes, size_t count) const {
  const auto* from = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t put = ::write(descriptor_, from, count);
    if (put < 0 && errno != EINTR) fail("cannot be kept in the folder of temporary files, which TMPDIR names", errno);
    from += put > 0 ? put : 0;
    count -= put > 0 ? static_cast<size_t>(put) : 0;
  }
}

void TemporaryFile::become_standard_input() const {
  if (::lseek(descriptor_, 0, SEEK_SET) != 0 || ::dup2(descriptor_, STDIN_FILENO) < 0) fail("cannot be kept", errno);
}

File TemporaryFile::take() && { return {path_, std::exchange(descriptor_, -1)}; }

void TemporaryFile::fail(const char* what, int error) const {
  throw tn::Failure(TN_IO, path_, std::string(what) + ": " + std::generic_category().message(error));
}

}  // namespace tenon::files
