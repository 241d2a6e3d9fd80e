// SPDX-License-Identifier: Apache-2.0
#include "host/cli/record/data.h"

#include <glob.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iterator>
#include <set>

#include "base/files.h"
#include "host/cli/cli.h"

namespace tenon::cli {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Calls use(key, source) with each source of a reader: itself, or its parts.
template <typename Reader, typename Use>
void for_sources(Reader& reader, const Use& use) {
  const std::string key = "reader." + reader.name;
  if (reader.parts.empty()) use(key, reader);
  for (size_t i = 0; i < reader.parts.size(); ++i) use(key + ".part " + std::to_string(i + 1), reader.parts[i]);
}

// Calls `use` with each text of an attribute; Held: a value of Value::Held, const or not.
template <typename Held, typename Use>
void for_texts(Held& value, const Use& use) {
  if (auto* const text = std::get_if<std::string>(&value)) use(*text);
  if (auto* const texts = std::get_if<std::vector<std::string>>(&value))
    for (auto& text : *texts) use(text);
}

bool is_file(const std::string& path) {
  std::error_code unknown;
  return fs::is_regular_file(path, unknown);
}

std::string home() {
  const char* const folder = std::getenv("HOME");
  return folder == nullptr ? "" : folder;
}

// Finds the files of one job as its readers do.
class Finder {
 public:
  explicit Finder(const Job& job) : directory_(job.directory) {}

  // Adds what the text of a place of data stands for: a file, a pattern or a folder.
  void add_place(const std::string& key, const std::string& name) {
    if (name == "-") return unknown(key + ": standard input, of which no record can be read again");
    const std::string path = place_of(name);
    std::error_code error;
    const bool pattern = name.find_first_of("*?[") != std::string::npos && !fs::exists(path, error);
    if (pattern) return add_pattern(key, name);
    if (fs::is_directory(path, error)) return add_folder(key, name, path);
    if (fs::exists(path, error) && !is_file(path)) return unknown(key + ": \"" + name + "\" is not a regular file");
    add(key, name, path);
  }
  // Adds the file that another text may name: all of it, or what is in brackets, as in "city:index(cities.txt)".
  void add_text(const std::string& key, const std::string& text) {
    const size_t begin = text.find('('), end = text.rfind(')');
    const bool brackets = begin != std::string::npos && end != std::string::npos && begin + 1 < end;
    for (const std::string& name : {text, brackets ? text.substr(begin + 1, end - begin - 1) : ""})
      if (!name.empty() && is_file(place_of(name))) add(key, name, place_of(name));
  }
  // Adds a path that the job's folder was put in front of already.
  void add_joined(const std::string& key, const std::string& path) {
    const std::string folder = (fs::path(directory_).lexically_normal() / "").string();
    add(key, path.starts_with(folder) ? path.substr(folder.size()) : path, path);
  }
  void unknown(const std::string& sentence) { data_.unknown.push_back(sentence); }
  [[nodiscard]] size_t count() const { return data_.files.size() + data_.unknown.size(); }
  JobData take() { return std::move(data_); }

 private:
  [[nodiscard]] std::string place_of(const std::string& name) const {
    if (name.starts_with("~/")) return home() + name.substr(1);
    return fs::path(name).is_absolute() ? name : (fs::path(directory_) / name).lexically_normal().string();
  }
  void add(const std::string& key, const std::string& path, const std::string& file) {
    if (added_.insert(path).second) data_.files.push_back({key, path, file});
  }
  void add_pattern(const std::string& key, const std::string& name) {
    std::string escaped;  // the folder, in which each character stands for itself
    for (const char c : directory_) {
      if (std::strchr("*?[]\\~", c) != nullptr) escaped += '\\';
      escaped += c;
    }
    const bool complete = name.starts_with("/") || name.starts_with("~/");
    glob_t matches = {};
    const int status =
        ::glob((complete ? name : escaped + "/" + name).c_str(), GLOB_TILDE | GLOB_MARK, nullptr, &matches);
    std::set<std::string> files;  // in the order of their bytes
    for (size_t i = 0; status == 0 && i < matches.gl_pathc; ++i) files.insert(matches.gl_pathv[i]);
    ::globfree(&matches);
    if (files.empty()) add(key, name, place_of(name));
    const size_t cut = complete ? 0 : directory_.size() + 1;
    for (const std::string& file : files) {
      if (file.back() == '/') continue;
      const bool in_home = name.starts_with("~/") && file.starts_with(home());
      add(key, in_home ? "~" + file.substr(home().size()) : file.substr(cut), file);
    }
  }
  // Hidden files belong to whoever looks at the folder.
  void add_folder(const std::string& key, const std::string& name, const std::string& path) {
    std::set<std::string> files;
    std::error_code error;
    const auto options =
        fs::directory_options::follow_directory_symlink | fs::directory_options::skip_permission_denied;
    for (fs::recursive_directory_iterator at(path, options, error), end; !error && at != end; at.increment(error)) {
      if (at->path().filename().string().starts_with(".")) {
        at.disable_recursion_pending();
      } else if (at->is_regular_file(error)) {
        files.insert(at->path().lexically_relative(path).string());
      }
    }
    if (error) unknown(key + ": \"" + name + "\": " + error.message());
    for (const std::string& file : files) add(key, (fs::path(name) / file).string(), (fs::path(path) / file).string());
  }

  const std::string directory_;
  JobData data_;
  std::set<std::string> added_;
};

void add_source(Finder& finder, const std::string& key, const JobSource& source) {
  const size_t before = finder.count();
  for (const Attribute& attribute : source.attributes) {
    if (attribute.name.starts_with("save")) continue;  // what the reader writes
    const bool place =
        std::find(std::begin(kDataPlaces), std::end(kDataPlaces), attribute.name) != std::end(kDataPlaces);
    const std::string attribute_key = key + "." + attribute.name;
    for_texts(attribute.value.held(), [&](const std::string& text) {
      if (place)
        finder.add_place(attribute_key, text);
      else
        finder.add_text(attribute_key, text);
    });
  }
  if (finder.count() == before) finder.unknown(key + ": reader \"" + source.type + "\" names no file");
}

}  // namespace

JobData data_of(const Job& job) {
  Finder finder(job);
  for (const auto* const reader : {&job.train, &job.test})
    if (*reader)
      for_sources(**reader, [&](const std::string& key, const JobSource& source) { add_source(finder, key, source); });
  if (!job.init) return finder.take();
  if (!job.init->file.empty()) finder.add_joined("init", job.init->file);
  for (const JobVectors& each : job.init->vectors)
    for (const std::string* const path : {&each.file, &each.words})
      if (!path->empty()) finder.add_joined("init.vectors." + each.name, *path);
  return finder.take();
}

std::string replaced_path(const std::string& path, const PathPairs& pairs) {
  for (const auto& [from, to] : pairs)
    if (path == from || path.starts_with(from + "/")) return to + path.substr(from.size());
  return path;
}

void replace_paths(Job& job, const PathPairs& pairs) {
  for (auto* const reader : {&job.train, &job.test})
    if (*reader)
      for_sources(**reader, [&](const std::string& /*key*/, JobSource& source) {
        for (Attribute& attribute : source.attributes) {
          Value::Held held = attribute.value.held();
          for_texts(held, [&](std::string& text) { text = replaced_path(text, pairs); });
          attribute.value = std::visit([](auto& value) { return Value(std::move(value)); }, held);
        }
      });
  if (!job.init) return;
  PathPairs joined = pairs;  // the job's folder was put in front of the paths of [init] already
  for (auto& [from, to] : joined)
    if (!fs::path(from).is_absolute()) from = (fs::path(job.directory) / from).lexically_normal().string();
  const auto replace = [&](std::string& text) { text = replaced_path(text, joined); };
  replace(job.init->file);
  for (JobVectors& each : job.init->vectors) replace(each.file), replace(each.words);
}

}  // namespace tenon::cli
