// SPDX-License-Identifier: Apache-2.0
#include "host/cli/external.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>
#include <system_error>

namespace tenon::cli {

namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "tenon-";

// The folders that are searched. A relative folder of PATH is left out: where a command runs is no reason to trust it.
std::vector<fs::path> folders() {
  std::vector<fs::path> result;
  if (const fs::path own = this_program(); !own.empty()) result.push_back(own.parent_path());
  const char* const path = std::getenv("PATH");
  std::istringstream parts(path == nullptr ? "" : path);
  for (std::string folder; std::getline(parts, folder, ':');)
    if (fs::path(folder).is_absolute()) result.emplace_back(folder);
  return result;
}

bool is_name(const std::string& name) {
  return !name.empty() && name.front() != '-' && std::all_of(name.begin(), name.end(), [](unsigned char letter) {
    return std::islower(letter) != 0 || std::isdigit(letter) != 0 || letter == '-' || letter == '_';
  });
}

bool is_program(const fs::path& file) {
  std::error_code failed;
  return fs::is_regular_file(file, failed) && access(file.c_str(), X_OK) == 0;
}

}  // namespace

fs::path this_program() {
  std::error_code failed;
  return fs::read_symlink("/proc/self/exe", failed);
}

std::string hyphenated(std::string words) {
  std::replace(words.begin(), words.end(), ' ', '-');
  return words;
}

std::vector<ExternalVerb> external_verbs() {
  std::vector<ExternalVerb> result;
  for (const fs::path& folder : folders()) {
    std::error_code failed;
    for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed)) {
      const std::string file = entry->path().filename().string();
      const std::string name = file.rfind(kPrefix, 0) == 0 ? file.substr(std::strlen(kPrefix)) : "";
      const auto is_same = [&](const ExternalVerb& verb) { return verb.name == name; };
      if (is_name(name) && is_program(entry->path()) && std::none_of(result.begin(), result.end(), is_same))
        result.push_back({name, entry->path().string()});
    }
  }
  std::sort(result.begin(), result.end(), [](const ExternalVerb& a, const ExternalVerb& b) { return a.name < b.name; });
  return result;
}

std::optional<ExternalVerb> external_verb(const std::string& words) {
  const std::string name = hyphenated(words);
  if (!is_name(name)) return std::nullopt;
  for (const fs::path& folder : folders())
    if (const fs::path file = folder / (kPrefix + name); is_program(file)) return ExternalVerb{name, file.string()};
  return std::nullopt;
}

void run_external(const ExternalVerb& verb, const Arguments& arguments) {
  std::vector<std::string> words = {verb.file};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  setenv("TENON_PROGRAM", this_program().c_str(), 1);
  std::cout.flush();
  execv(verb.file.c_str(), pointers.data());
  throw Failure(kNotFound, verb.file + ": " + std::strerror(errno));
}

}  // namespace tenon::cli
