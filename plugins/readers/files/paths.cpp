// Finds the files of patterns. SPDX-License-Identifier: Apache-2.0
#include "paths.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>

#include "standard_input.h"

namespace tenon::files {

namespace {

class Glob {
 public:
  explicit Glob(const std::string& pattern)
      : status_(::glob(pattern.c_str(), GLOB_NOSORT | GLOB_TILDE | GLOB_MARK, nullptr, &found_)) {}
  ~Glob() { ::globfree(&found_); }
  Glob(const Glob&) = delete;
  Glob& operator=(const Glob&) = delete;

  // Without folders, in the order of their bytes.
  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> result;
    for (size_t i = 0; status_ == 0 && i < found_.gl_pathc; ++i)
      if (const std::string path = found_.gl_pathv[i]; path.back() != '/') result.push_back(path);
    std::sort(result.begin(), result.end());
    return result;
  }

 private:
  glob_t found_ = {};
  int status_ = 0;
};

// The folder of relative attributes as the beginning of a pattern, in which each character stands for itself.
std::string escaped_folder(const tn::ReaderOpen& open) {
  const char* const folder = open.get()->directory;
  std::string result;
  for (const char* c = folder == nullptr ? "" : folder; *c != '\0'; ++c) {
    if (std::string_view("*?[]\\~").find(*c) != std::string_view::npos) result += '\\';
    result += *c;
  }
  return result.empty() ? result : result + "/";
}

}  // namespace

std::vector<std::string> paths_of(const std::vector<std::string>& names, uint64_t most_input,
                                  const tn::ReaderOpen& open) {
  std::vector<std::string> paths;
  for (const std::string& name : names) {
    if (name == "-") {
      paths.push_back(standard_input(most_input, open.cancel()));
      continue;
    }
    const std::string path = open.path(name);
    std::error_code unknown;
    const bool home = name.compare(0, 2, "~/") == 0;
    if ((!home && name.find_first_of("*?[") == std::string::npos) || std::filesystem::exists(path, unknown)) {
      paths.push_back(path);
      continue;
    }
    const bool complete = home || name.compare(0, 1, "/") == 0;
    const std::vector<std::string> matches = Glob(complete ? name : escaped_folder(open) + name).files();
    if (matches.empty()) throw tn::Failure(TN_NOT_FOUND, complete ? name : path, "there is no such file");
    paths.insert(paths.end(), matches.begin(), matches.end());
  }
  return paths;
}

}  // namespace tenon::files
