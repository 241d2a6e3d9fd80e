// SPDX-License-Identifier: Apache-2.0
#include "host/plugins/set/lock.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "host/plugins/elf_note.h"
#include "host/plugins/registry.h"
#include "host/plugins/set/signature.h"

namespace tenon::host {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Returns a library that is found by a search path of `by` that begins with $ORIGIN, "" if there is none.
fs::path brought(const fs::path& by, const Links& links, const std::string& name) {
  for (const std::string& search : links.search) {
    for (const std::string_view origin : {"$ORIGIN", "${ORIGIN}"}) {
      if (!search.starts_with(origin)) continue;
      std::error_code error;
      const std::string rest = search.substr(origin.size());
      const fs::path found = fs::canonical(by.parent_path().string() + rest + "/" + name, error);
      if (!error) return found;
    }
  }
  return {};
}

class Locking {
 public:
  Locking(LockedPlugin& to, FileSystem& files) : to_(to), files_(files) {}

  // Adds the libraries that a file needs, and those that these need.
  void add(const fs::path& file, const Links& links) {
    for (const std::string& name : links.needed) {
      if (!names_.insert(name).second) continue;
      const fs::path found = brought(file, links, name);
      if (found.empty()) {
        to_.system.push_back(name);
        continue;
      }
      const std::unique_ptr<InputFile> opened = files_.open(found);
      to_.libraries.push_back({found, digest_of(*opened)});
      add(found, read_links(*opened));
    }
  }

 private:
  LockedPlugin& to_;
  FileSystem& files_;
  std::set<std::string> names_;
};

// Returns a text as TOML: as JSON, but for the character DEL.
std::string quoted(const std::string& text) {
  if (!is_utf8(text)) fail(TN_INVALID, "a set cannot state the path ", text, ", which is not UTF-8");
  std::string result;
  for (const char c : json(text).dump()) result += c == '\x7f' ? "\\u007f" : std::string(1, c);
  return result;
}

std::string options_of(const LockedPlugin& plugin) {
  std::string result;
  for (const auto& [name, option] : plugin.options) {
    const auto* const text = std::get_if<std::string>(&option.value);
    result += (result.empty() ? "" : ", ") + quoted(name) + " = ";
    result += text != nullptr ? quoted(*text) : to_json(option.value).dump();
  }
  return result.empty() ? "" : "options = { " + result + " }\n";
}

// Returns a path relative to the folder, unless both have only the root in common.
std::string place_of(const fs::path& file, const fs::path& folder) {
  const auto second = [](const fs::path& path) {
    auto part = path.begin();
    if (part != path.end()) ++part;
    return part == path.end() ? fs::path() : *part;
  };
  return second(file) == second(folder) ? file.lexically_relative(folder).string() : file.string();
}

std::string names_of(const std::vector<std::string>& names) {
  std::string result;
  for (const std::string& name : names) result += (result.empty() ? "" : ", ") + quoted(name);
  return "[" + result + "]";
}

}  // namespace

LockedPlugin lock_plugin(const std::string& id, const std::string& version, const fs::path& file, FileSystem& files) {
  LockedPlugin result{id, version, file, "", {}, {}, {}, false};
  const std::unique_ptr<InputFile> opened = files.open(file);
  result.sha256 = digest_of(*opened);
  Locking(result, files).add(file, read_links(*opened));
  std::sort(result.system.begin(), result.system.end());
  return result;
}

std::string lock_text(const std::vector<LockedPlugin>& plugins, const fs::path& folder) {
  std::string result = "mode = \"locked\"\n";
  for (const LockedPlugin& plugin : plugins) {
    result += "\n[[plugin]]\nid = " + quoted(plugin.id) + "\n";
    if (VersionInterval::is_version(plugin.version)) result += "version = " + quoted("=" + plugin.version) + "\n";
    result += options_of(plugin);
    if (plugin.application) {
      result += "application = true\n";
      continue;
    }
    result += "file = " + quoted(place_of(plugin.file, folder)) + "\nsha256 = " + quoted(plugin.sha256) + "\n";
    std::string libraries;
    for (const SetLibrary& library : plugin.libraries)
      libraries +=
          "  { file = " + quoted(place_of(library.file, folder)) + ", sha256 = " + quoted(library.sha256) + " },\n";
    if (!libraries.empty()) result += "libraries = [\n" + libraries + "]\n";
    if (!plugin.system.empty()) result += "system = " + names_of(plugin.system) + "\n";
  }
  return result;
}

json verify_plugin_set(const fs::path& path, std::shared_ptr<FileSystem> files) {
  const auto set = std::make_shared<const PluginSet>(read_plugin_set(path, *files));
  const json found = Registry({}, files, nullptr, set).list();
  json result = json::array();
  for (const SetPlugin& entry : set->plugins) {
    if (entry.file.empty()) continue;
    const auto item = std::find_if(found.begin(), found.end(),
                                   [&](const json& each) { return each.at("file") == entry.file.string(); });
    const json manifest = item == found.end() ? json() : item->at("manifest");
    std::string reason = item == found.end() ? "it was not found" : item->at("reason").get<std::string>();
    if (reason.empty() && manifest.at("id") != entry.id)
      reason = text(entry.file.string(), ": its id is \"", manifest.at("id").get<std::string>(), "\"");
    result.push_back({{"id", entry.id},
                      {"file", entry.file.string()},
                      {"version", manifest.is_null() ? json("") : manifest.at("version")},
                      {"sha256", entry.sha256},
                      {"status", reason.empty() ? "ok" : "refused"},
                      {"reason", reason}});
  }
  return result;
}

}  // namespace tenon::host
