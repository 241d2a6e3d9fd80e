// SPDX-License-Identifier: Apache-2.0
#include "host/plugins/set/lock.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.h"
#include "base/utf8.h"
#include "host/plugins/elf_note.h"
#include "host/plugins/registry.h"
#include "host/plugins/set/admission.h"
#include "host/plugins/set/library_search.h"
#include "host/plugins/set/signature.h"

namespace tenon::host {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Adds the libraries that are loaded with a plugin: those of the system by their names, the others with their digests.
void add_libraries(LockedPlugin& to, const Links& links, const std::shared_ptr<FileSystem>& files) {
  LibrarySearch search(files);
  const std::vector<NeededFile> found = search.needed_by(to.file, links);
  std::set<std::string> needed(links.needed.begin(), links.needed.end());  // by the plugin and by `to.libraries`
  const auto is_of_system = [&](const NeededFile& each) { return each.of_system || search.is_of_process(each.name); };
  for (const NeededFile& each : found) {
    if (is_of_system(each)) continue;
    if (each.file.empty())
      fail(TN_REFUSED, each.by == to.file ? "it" : each.by.string(), " needs the library ", each.name,
           each.name.find('/') == std::string::npos ? ", which is not found"
                                                    : " by its path, at which any bytes may be");
    to.libraries.push_back({each.file, digest_of(*files->open(each.file))});
    needed.insert(each.links.needed.begin(), each.links.needed.end());
  }
  for (const NeededFile& each : found)
    if (is_of_system(each) && needed.contains(each.name)) to.system.push_back(each.name);
  std::sort(to.system.begin(), to.system.end());
}

// Throws what a host with the set would throw.
void check_locked(const LockedPlugin& plugin, const Links& links, const std::shared_ptr<FileSystem>& files) {
  PluginSet set;
  set.mode = SetMode::kLocked;
  SetPlugin entry;
  entry.place = "the set";
  entry.libraries = plugin.libraries;
  entry.system = plugin.system;
  std::vector<BroughtLibrary> libraries;
  for (const SetLibrary& library : plugin.libraries)
    libraries.push_back({library.file, library.sha256, read_links(*files->open(library.file))});
  LibrarySearch search(files);
  (void)check_libraries(set, entry, links, libraries, search);
}

// Returns a text as TOML: as JSON, but for the character DEL.
std::string quoted(const std::string& text) {
  if (!base::is_utf8(text)) fail(TN_INVALID, "a set cannot state the path ", text, ", which is not UTF-8");
  std::string result;
  for (const char c : json(text).dump()) result += c == '\x7f' ? "\\u007f" : std::string(1, c);
  return result;
}

std::string options_of(const LockedPlugin& plugin) {
  std::string result;
  for (const auto& [name, option] : plugin.options) {
    const auto* const text = std::get_if<std::string>(&option.value);
    base::append(result, quoted(name) + " = " + (text != nullptr ? quoted(*text) : to_json(option.value).dump()));
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

std::string names_of(const std::vector<std::string>& names) { return "[" + base::joined(names, quoted) + "]"; }

}  // namespace

LockedPlugin lock_plugin(const std::string& id, const std::string& version, const fs::path& file,
                         const std::shared_ptr<FileSystem>& files) {
  LockedPlugin result{id, version, file, "", {}, {}, {}, false};
  const std::unique_ptr<InputFile> opened = files->open(file);
  result.sha256 = digest_of(*opened);
  const Links links = read_links(*opened);
  add_libraries(result, links, files);
  check_locked(result, links, files);
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

namespace {

// Returns what an entry leaves open, "" if nothing.
std::string open_end(const PluginSet& set, const SetPlugin& entry) {
  if (entry.application || set.mode == SetMode::kLocked) return "";
  if (!entry.names_bytes() && set.mode == SetMode::kAllow)
    return text(entry.place, ": plugin \"", entry.id,
                "\" has neither \"sha256\" nor \"signed_by\": any bytes with this id are admitted ",
                entry.file.empty() ? "from the folders that the set searches" : "in its file");
  if (entry.sha256.empty() && !entry.signed_by.empty() && entry.version.text().empty())
    return text(entry.place, ": plugin \"", entry.id,
                "\" has \"signed_by\" without \"version\": every older file that was signed is admitted, too");
  return "";
}

}  // namespace

json verify_plugin_set(const fs::path& path, const std::shared_ptr<FileSystem>& files) {
  const auto set = std::make_shared<const PluginSet>(read_plugin_set(path, *files));
  const json found = Registry({}, files, nullptr, set).list();
  json result = json::array();
  for (const SetPlugin& entry : set->plugins) {
    const std::string warning = open_end(*set, entry);
    if (entry.file.empty() && warning.empty()) continue;
    const auto item = std::find_if(found.begin(), found.end(),
                                   [&](const json& each) { return each.at("file") == entry.file.string(); });
    const json manifest = item == found.end() ? json() : item->at("manifest");
    std::string reason;
    if (!entry.file.empty()) reason = item == found.end() ? "it was not found" : item->at("reason").get<std::string>();
    if (!manifest.is_null() && reason.empty() && manifest.at("id") != entry.id)
      reason = text(entry.file.string(), ": its id is \"", manifest.at("id").get<std::string>(), "\"");
    result.push_back({{"id", entry.id},
                      {"file", entry.file.string()},
                      {"version", manifest.is_null() ? json("") : manifest.at("version")},
                      {"sha256", entry.sha256},
                      {"status", reason.empty() ? "ok" : "refused"},
                      {"reason", reason},
                      {"warning", warning}});
  }
  return result;
}

}  // namespace tenon::host
