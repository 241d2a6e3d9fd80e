// SPDX-License-Identifier: Apache-2.0
#include "host/plugins/set/plugin_set.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/nearest.h"
#include "base/utf8.h"
#include "core/attribute.h"
#include "host/plugins/set/hex.h"
#include "host/toml/section.h"

namespace tenon::host {

namespace {

namespace fs = std::filesystem;
using toml_file::Node;
using toml_file::Place;
using toml_file::Section;

constexpr uint64_t kLargestSet = uint64_t{4} << 20;
constexpr size_t kDigestBytes = 32, kKeyBytes = 32;

std::exception_ptr failure(const std::string& message) {
  return std::make_exception_ptr(Error(TN_BAD_CONFIG, message));
}

class SetReader {
 public:
  SetReader(const fs::path& path, FileSystem& files) { read(path, files); }

  [[nodiscard]] PluginSet take() { return std::move(set_); }

 private:
  void read(const fs::path& path, FileSystem& files) {
    std::error_code error;
    set_.path = fs::canonical(path, error);
    if (error == std::errc::not_enough_memory) fail(TN_OUT_OF_MEMORY, path.string(), ": ", error.message());
    if (error)
      fail(error == std::errc::no_such_file_or_directory ? TN_NOT_FOUND : TN_IO, SubjectName{path.string()},
           "the plugin set ", path.string(), ": ", error.message());
    check_guarded(fs::absolute(path));
    const std::unique_ptr<InputFile> file = files.open(set_.path);
    if (file->size() > kLargestSet)
      fail(TN_BAD_CONFIG, "the plugin set ", set_.path.string(), " has ", file->size(), " bytes; at most ", kLargestSet,
           " are allowed");
    std::string text(file->size(), '\0');
    file->read(0, text.data(), text.size());
    const Node tree = toml_file::parse(text, set_.path.string(), failure);
    Section top(tree, "", failure);
    set_.mode = read_mode(top);
    const bool locked = set_.mode == SetMode::kLocked;
    const auto installed = top.boolean("installed");
    const auto folders = top.strings("folders");
    if (locked && installed.value_or(false))
      top.fail(top.find("installed")->place, "key \"installed\": a set of mode \"locked\" searches no folder");
    if (locked && folders)
      top.fail(top.find("folders")->place, "key \"folders\": a set of mode \"locked\" searches no folder");
    set_.installed = installed.value_or(!locked);
    if (folders)
      for (const std::string& folder : *folders)
        set_.folders.push_back(existing(top, *top.find("folders"), folder, true));
    read_keys(top);
    read_plugins(top);
    top.finish();
    if (folders)
      for (const std::string& folder : *folders) check_guarded(whole(folder));
  }

  SetMode read_mode(Section& top) {
    const auto mode = top.string("mode");
    if (!mode) {
      top.finish();  // reports an unknown key first
      top.missing("mode");
    }
    for (const SetMode each : {SetMode::kDev, SetMode::kAllow, SetMode::kLocked})
      if (*mode == mode_name(each)) return each;
    top.wrong("mode", *top.find("mode"), "\"dev\", \"allow\" or \"locked\"");
  }

  void read_keys(Section& top) {
    const Node* node = top.find("key");
    if (node == nullptr) return;
    if (!node->is_list_of_tables()) top.wrong("key", *node, "[[key]] tables");
    for (const Node& table : *node->get<Node::List>()) {
      Section section(table, "[[key]]", failure);
      const auto name = section.string("name");
      const std::string digits = hex(section, "public", kKeyBytes, "a public key");
      if (!name) section.missing("name");
      if (digits.empty()) section.missing("public");
      section.finish();
      if (!key_names_.insert(*name).second)
        section.fail(section.place(), "the name \"" + *name + "\" is that of another key");
      set_.keys.push_back({*name, bytes_of(digits)});
    }
  }

  void read_plugins(Section& top) {
    const Node* node = top.find("plugin");
    if (node == nullptr) return;
    if (!node->is_list_of_tables()) top.wrong("plugin", *node, "[[plugin]] tables");
    for (const Node& table : *node->get<Node::List>()) read_plugin(table);
  }

  void read_plugin(const Node& table) {
    const std::string* const given = table.text("id");
    Section section(table, given != nullptr ? "plugin \"" + *given + "\"" : "[[plugin]]", failure);
    SetPlugin plugin;
    plugin.place = table.place;
    const auto id = section.string("id");
    if (!id) section.missing("id");
    plugin.id = *id;
    if (const auto [other, first] = places_.emplace(plugin.id, plugin.place); !first)
      section.fail(section.place(), "the id is listed already, at " + other->second);
    if (const auto version = section.string("version")) try {
        plugin.version = VersionInterval(*version);
      } catch (const Error& error) {
        if (error.code() != TN_BAD_CONFIG) throw;
        section.fail(section.find("version")->place, "key \"version\": " + error.message());
      }
    read_bytes(section, plugin);
    plugin.application = section.boolean("application").value_or(false);
    read_options(section, plugin);
    section.finish();
    check_plugin(section, plugin);
    set_.plugins.push_back(std::move(plugin));
  }

  void read_bytes(Section& section, SetPlugin& plugin) {
    if (const auto file = section.string("file")) {
      plugin.file = existing(section, *section.find("file"), *file, false);
      plugin.named = whole(*file);
    }
    plugin.sha256 = hex(section, "sha256", kDigestBytes, "a SHA-256");
    if (const auto keys = section.strings("signed_by")) {
      if (keys->empty())
        section.wrong("signed_by", *section.find("signed_by"), "the name of a key, or a list of at least one");
      plugin.signed_by = *keys;
      for (const std::string& key : *keys)
        if (!key_names_.contains(key))
          section.fail(
              section.find("signed_by")->place,
              "the set has no key \"" + key + "\"" + base::suggestion(key, {key_names_.begin(), key_names_.end()}));
    }
    read_libraries(section, plugin);
    if (const auto names = section.strings("system")) plugin.system = *names;
  }

  void read_libraries(Section& section, SetPlugin& plugin) {
    const Node* node = section.find("libraries");
    if (node == nullptr) return;
    if (const auto* list = node->get<Node::List>(); list != nullptr && list->empty()) return;
    if (!node->is_list_of_tables()) section.wrong("libraries", *node, "a list of tables with \"file\" and \"sha256\"");
    for (const Node& table : *node->get<Node::List>()) {
      Section library(table, "plugin \"" + plugin.id + "\": libraries", failure);
      SetLibrary result;
      const auto file = library.string("file");
      if (!file) library.missing("file");
      result.file = existing(library, *library.find("file"), *file, false);
      result.sha256 = hex(library, "sha256", kDigestBytes, "a SHA-256");
      if (result.sha256.empty()) library.missing("sha256");
      library.finish();
      if (set_.mode == SetMode::kLocked) check_guarded(whole(*file));
      plugin.libraries.push_back(std::move(result));
    }
  }

  // Which options there are, the plugin's manifest says.
  static void read_options(Section& section, SetPlugin& plugin) {
    const Node* const table = section.find("options");
    if (table == nullptr) return;
    const auto* const members = table->get<Node::Members>();
    if (members == nullptr) section.wrong("options", *table, "a table of names and values");
    for (const auto& [name, node] : *members) {
      Value value;
      if (const auto* text = node.get<std::string>()) {
        if (toml_file::has_nul(*text)) section.fail(node.place, "option \"" + name + "\": the text has a NUL in it");
        value = *text;
      } else if (const auto* integer = node.get<int64_t>()) {
        value = *integer;
      } else if (const auto* number = node.get<double>()) {
        value = *number;
      } else if (const auto* flag = node.get<bool>()) {
        value = *flag;
      } else {
        section.fail(node.place, "option \"" + name + "\": expected a text, a number, true or false");
      }
      plugin.options.emplace(name, SetOption{std::move(value), node.place});
    }
  }

  void check_plugin(Section& section, const SetPlugin& plugin) {
    const bool locked = set_.mode == SetMode::kLocked;
    if (plugin.application) {
      if (!plugin.file.empty() || plugin.names_bytes() || !plugin.libraries.empty() || !plugin.system.empty())
        section.fail(section.place(),
                     "a plugin of the application has no key \"file\", \"sha256\", \"signed_by\", \"libraries\" or "
                     "\"system\"");
      return;
    }
    if (locked && plugin.file.empty()) section.missing("file");
    if (locked && plugin.sha256.empty()) section.missing("sha256");
    if (!plugin.libraries.empty() && !plugin.names_bytes())
      section.fail(section.place(), "key \"libraries\" needs key \"sha256\" or \"signed_by\" of the plugin itself");
    if (locked) check_guarded(plugin.named);
  }

  // Returns the absolute path of one that the set names.
  [[nodiscard]] fs::path whole(const std::string& path) const { return set_.path.parent_path() / path; }
  // Returns an existing path without links.
  fs::path existing(const Section& section, const Node& node, const std::string& path, bool folder) const {
    const fs::path named = whole(path);
    std::error_code error;
    fs::path result = fs::canonical(named, error);
    if (error == std::errc::not_enough_memory) fail(TN_OUT_OF_MEMORY, named.string(), ": ", error.message());
    if (error)
      throw Error(error == std::errc::no_such_file_or_directory ? TN_NOT_FOUND : TN_IO,
                  text(node.place, ": the ", folder ? "folder" : "file", " ", named.lexically_normal().string(), ": ",
                       error.message()),
                  {}, named.string());
    if (!base::is_utf8(result.string()))
      section.fail(node.place, text("the path \"", path, "\" leads to one that is not UTF-8"));
    if (folder ? !fs::is_directory(result, error) : !fs::is_regular_file(result, error))
      section.fail(node.place, text(result.string(), " is not a ", folder ? "folder" : "regular file"));
    return result;
  }

  // Reads a key of so many bytes in hex; "" if it is absent.
  static std::string hex(Section& section, const std::string& key, size_t bytes, const char* what) {
    const auto given = section.string(key);
    if (!given) return "";
    const Place& place = section.find(key)->place;
    if (given->size() != 2 * bytes)
      section.fail(place,
                   text("key \"", key, "\": ", what, " has ", 2 * bytes, " hexadecimal digits, got ", given->size()));
    if (!is_hex(*given))
      section.fail(place, text("key \"", key, "\": ", what, " has hexadecimal digits (0-9, a-f) alone"));
    return *given;
  }

  PluginSet set_;
  // A set may have many entries, so each is found without a look at all others.
  std::set<std::string> key_names_;
  std::map<std::string, std::string> places_;  // by id
};

}  // namespace

const char* mode_name(SetMode mode) {
  constexpr const char* kNames[] = {"dev", "allow", "locked"};
  return kNames[static_cast<size_t>(mode)];
}

const SetPlugin* PluginSet::find(const std::string& id) const {
  const auto found = std::find_if(plugins.begin(), plugins.end(), [&](const SetPlugin& each) { return each.id == id; });
  return found == plugins.end() ? nullptr : &*found;
}

PluginSet read_plugin_set(const fs::path& path, FileSystem& files) { return SetReader(path, files).take(); }

}  // namespace tenon::host
