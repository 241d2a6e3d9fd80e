// SPDX-License-Identifier: Apache-2.0
#include "host/cli/verbs/save_path.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <tenon/tenon.hpp>

#include "base/files.h"
#include "host/cli/cli.h"

namespace tenon::cli {

namespace {

namespace fs = std::filesystem;

// Creates and removes a file in the folder; returns 0 or the errno. access() ignores quotas, /proc and root's rights.
int try_to_write(const fs::path& folder) {
  std::string name = (folder / ".tenon-XXXXXX").string();
  const int file = mkstemp(name.data());
  if (file < 0) return errno;
  unlink(name.c_str());
  close(file);
  return 0;
}

}  // namespace

void check_save_path(const std::string& path) {
  const auto refuse = [&](int exit, const std::string& why) {
    throw Failure(exit, "cannot save to \"" + path + "\": " + why);
  };
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::none)
    refuse(kIo, error.message());  // the name is too long, or links form a cycle
  if (status.type() == fs::file_type::directory) refuse(kIo, "it is a folder");
  const bool there = status.type() != fs::file_type::not_found;
  if (there && status.type() != fs::file_type::regular) refuse(kIo, "it is not a regular file");
  const fs::path file = there ? fs::canonical(path) : fs::path(path);  // saving replaces the target of a link
  const fs::path folder = base::folder_of(file);
  if (!fs::is_directory(folder, error)) refuse(kNotFound, "there is no folder \"" + folder.string() + "\"");
  if (const int failure = try_to_write(folder); failure != 0)
    refuse(kIo, "folder \"" + folder.string() + "\": " + std::generic_category().message(failure));
  try {
    check_file(path);
  } catch (const Error& planted) {
    refuse(exit_code(planted.code()), planted.what());
  }
}

}  // namespace tenon::cli
