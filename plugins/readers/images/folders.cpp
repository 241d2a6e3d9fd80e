// Lists folders of images. SPDX-License-Identifier: Apache-2.0
#include "folders.h"

#include <dirent.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <memory>
#include <set>
#include <system_error>
#include <tenon/plugin.hpp>

#include "file.h"
#include "vocabulary.h"

namespace tenon::images {

namespace fs = std::filesystem;

namespace {

constexpr const char* kEndings[] = {".bmp", ".dib", ".gif", ".jfif", ".jpe", ".jpeg",
                                    ".jpg", ".png", ".tif", ".tiff", ".webp"};

std::string ending_of(const fs::path& path) {
  std::string ending = path.extension().string();
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return ending;
}

[[noreturn]] void fail_system(const fs::path& path, const std::error_code& error) {
  const bool absent = error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory;
  throw tn::Failure(absent ? TN_NOT_FOUND : TN_IO, path.string(), "cannot list it: " + error.message());
}

// The paths of everything in a folder, unsorted. The iterators of std::filesystem end the process if memory runs out.
std::vector<fs::path> entries_of(const fs::path& folder) {
  const auto close = [](DIR* open) { closedir(open); };
  const std::unique_ptr<DIR, decltype(close)> open(opendir(folder.c_str()), close);
  std::vector<fs::path> entries;
  if (open) errno = 0;
  while (const dirent* const entry = open ? readdir(open.get()) : nullptr) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") entries.push_back(folder / name);
    errno = 0;  // readdir returns null at the end, with errno unchanged, and on failure
  }
  if (errno != 0) fail_system(folder, std::error_code(errno, std::generic_category()));
  return entries;
}

bool is_hidden(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.front() == '.' || name == "__MACOSX";
}

// Whether the entry is a file or a link to one. Anything else with the name of an image would fail whenever it is read.
bool is_file(const fs::path& entry) {
  std::error_code error;
  const fs::file_status status = fs::status(entry, error);
  const bool broken_link =
      error == std::errc::too_many_symbolic_link_levels || status.type() == fs::file_type::not_found;
  if (error && !broken_link) fail_system(entry, error);
  return fs::is_regular_file(status);
}

}  // namespace

std::vector<std::string> Folders::classes() const {
  std::set<std::string> names;
  for (const fs::path& entry : entries_of(folder_)) {
    std::error_code unknown;
    if (is_hidden(entry) || !fs::is_directory(entry, unknown)) continue;
    names.insert(entry.filename().string());
  }
  return files::in_order(names);
}

void Folders::add_images(const fs::path& folder, bool below, std::vector<std::string>& paths) {
  for (const fs::path& entry : entries_of(folder)) {
    files::check_cancel(cancel_, folder.string());
    std::error_code unknown;
    const bool hidden = is_hidden(entry),
               folder_itself = fs::symlink_status(entry, unknown).type() == fs::file_type::directory;
    const std::string ending = ending_of(entry);
    const bool image = std::find(std::begin(kEndings), std::end(kEndings), ending) != std::end(kEndings);
    if (folder_itself) {
      if (below && !hidden) add_images(entry, below, paths);
    } else if (hidden) {
      skip("whose names begin with a dot");
    } else if (image && is_file(entry)) {
      paths.push_back(entry.string());
    } else if (image && !fs::is_directory(entry, unknown)) {
      skip("that are not regular files");
    } else if (!fs::is_directory(entry, unknown)) {
      skip(ending.empty() ? "without an extension" : files::quoted(ending));
    }
  }
}

std::vector<std::string> Folders::images_of(const std::string& class_name) {
  std::vector<std::string> paths;
  add_images(folder_ + "/" + class_name, true, paths);
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::vector<std::string> Folders::images_beside() {
  std::vector<std::string> paths;
  add_images(folder_, false, paths);
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string Folders::skipped() const {
  constexpr size_t kMost = 12;
  if (skipped_.empty()) return "";
  std::string text = folder_ + ": files that are not read: ";
  size_t kinds = 0;
  for (auto kind = skipped_.begin(); kind != skipped_.end() && kinds <= kMost; ++kind, ++kinds)
    text += (kinds == 0 ? "" : ", ") + (kinds == kMost ? "..." : std::to_string(kind->second) + " " + kind->first);
  text += "; the names of images end in";
  for (const char* const ending : kEndings) text += std::string(" ") + ending;
  return text;
}

}  // namespace tenon::images
