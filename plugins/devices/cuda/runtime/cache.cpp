// SPDX-License-Identifier: Apache-2.0
#include "cache.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <vector>

namespace tenon::cuda {

namespace {

namespace files = std::filesystem;

constexpr char kMagic[8] = {'t', 'n', 'c', 'u', 'd', 'a', '0', '1'};

// What a file begins with; key and image follow.
struct Header {
  char magic[8];
  uint64_t key_bytes, image_bytes;
  uint64_t digest;  // of key and image
};

// FNV-1a. Guards against damage and names files; whether a file is the right one is decided by its whole key.
uint64_t digest(const std::string& text, uint64_t from = 0xcbf29ce484222325U) {
  for (const char byte : text) from = (from ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
  return from;
}

Header header_of(const std::string& key, const std::string& image) {
  Header header = {{}, key.size(), image.size(), digest(image, digest(key))};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  return header;
}

// Writes a new file under a name of its own; empty if that failed.
std::string write_new(const std::string& folder, const std::string& content) {
  std::string path = folder + "/new-XXXXXX";
  const int file = mkstemp(path.data());
  if (file < 0) return "";
  size_t written = 0;
  while (written < content.size()) {
    const ssize_t count = write(file, content.data() + written, content.size() - written);
    if (count <= 0) break;
    written += static_cast<size_t>(count);
  }
  const bool closed = close(file) == 0;
  if (closed && written == content.size()) return path;
  unlink(path.c_str());
  return "";
}

struct Entry {
  files::path path;
  files::file_time_type used;
  uint64_t bytes;
};

}  // namespace

std::string cache_folder() {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  if (const std::string base = variable("XDG_CACHE_HOME"); !base.empty()) return base + "/tenon/cuda";
  const std::string home = variable("HOME");
  return home.empty() ? "" : home + "/.cache/tenon/cuda";
}

std::string Cache::path_of(const std::string& key) const {
  char name[32];
  std::snprintf(name, sizeof name, "/%016llx.image", static_cast<unsigned long long>(digest(key)));
  return folder_ + name;
}

std::optional<std::string> Cache::find(const std::string& key) const {
  if (folder_.empty()) return std::nullopt;
  const std::string path = path_of(key);
  std::ifstream file(path, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  Header header = {};
  if (content.size() < sizeof header + key.size()) return std::nullopt;
  std::memcpy(&header, content.data(), sizeof header);
  const std::string image = content.substr(sizeof header + key.size());
  const Header expected = header_of(key, image);
  if (std::memcmp(&header, &expected, sizeof header) != 0 || content.compare(sizeof header, key.size(), key) != 0)
    return std::nullopt;
  std::error_code ignored;
  files::last_write_time(path, files::file_time_type::clock::now(), ignored);  // it was used
  return image;
}

void Cache::keep(const std::string& key, const std::string& image) const {
  if (folder_.empty()) return;
  std::error_code failed;
  files::create_directories(folder_, failed);
  const Header header = header_of(key, image);
  std::string content(sizeof header, '\0');
  std::memcpy(content.data(), &header, sizeof header);
  const std::string made = write_new(folder_, content + key + image);
  if (made.empty()) return;
  files::rename(made, path_of(key), failed);
  if (failed) unlink(made.c_str());
  trim();
}

void Cache::trim() const {
  std::error_code failed;
  std::vector<Entry> entries;
  uint64_t bytes = 0;
  for (files::directory_iterator at(folder_, failed), end; !failed && at != end; at.increment(failed)) {
    std::error_code gone;  // another process may delete it
    const Entry entry = {at->path(), at->last_write_time(gone), at->file_size(gone)};
    if (gone) continue;
    entries.push_back(entry);
    bytes += entry.bytes;
  }
  if (bytes <= most_bytes_) return;
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& entry : entries) {
    if (bytes <= most_bytes_ / 4 * 3) return;
    if (files::remove(entry.path, failed)) bytes -= entry.bytes;
  }
}

}  // namespace tenon::cuda
