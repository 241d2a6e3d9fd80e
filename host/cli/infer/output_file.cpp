// SPDX-License-Identifier: Apache-2.0
#include "host/cli/infer/output_file.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "host/cli/cli.h"

namespace tenon::cli {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& path, int error) {
  throw Failure(error == ENOENT ? kNotFound : kIo,
                "cannot write \"" + path + "\": " + std::generic_category().message(error));
}

}  // namespace

OutputFile::OutputFile(const std::string& path) : path_(path), written_(path) {
  std::error_code unknown;
  const fs::file_status status = fs::status(path, unknown);
  if (status.type() == fs::file_type::none) fail(path, unknown.value());  // the name is too long, or links form a cycle
  if (status.type() == fs::file_type::directory) fail(path, EISDIR);
  if (!fs::exists(status) || fs::is_regular_file(status)) {
    check_file(path);
    path_ = file_target(path);
    written_ = path_ + ".part-" + std::to_string(getpid());
  }
  errno = 0;
  stream_.open(written_, std::ios::binary | std::ios::trunc);
  if (!stream_) fail(path, errno);
}

OutputFile::~OutputFile() {
  stream_.close();
  std::error_code ignored;
  if (!done_ && written_ != path_) fs::remove(written_, ignored);
}

void OutputFile::finish() {
  errno = 0;
  stream_.close();
  if (!stream_) fail(path_, errno == 0 ? EIO : errno);
  std::error_code failed;
  if (written_ != path_) fs::rename(written_, path_, failed);
  if (failed) fail(path_, failed.value());
  done_ = true;
}

}  // namespace tenon::cli
