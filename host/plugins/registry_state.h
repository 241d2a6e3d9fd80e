// The plugins of a registry, for its source files alone. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/error.h"
#include "host/plugins/loader.h"
#include "host/plugins/manifest.h"
#include "host/plugins/registry.h"
#include "host/plugins/set/library_search.h"
#include "host/plugins/set/plugin_options.h"
#include "host/plugins/set/plugin_set.h"

namespace tenon::host {

enum class Kind : size_t { kLayer, kUpdater, kReader, kDevice, kComm };
constexpr std::array kKinds = {Kind::kLayer, Kind::kUpdater, Kind::kReader, Kind::kDevice, Kind::kComm};
[[nodiscard]] const char* kind_name(Kind kind);

// A component of a manifest: its name, its documentation, and why it is refused, "" if it is not.
struct Offer {
  std::string name;
  std::string doc;
  std::string refused;
};
[[nodiscard]] std::vector<Offer> offers(const Manifest& manifest, Kind kind);

// A plugin: a file, or a descriptor that the application added (then `path` is empty).
struct Plugin {
  [[nodiscard]] std::string where() const { return path.empty() ? "the application" : path.string(); }
  [[nodiscard]] bool refused() const { return !reason.empty(); }
  [[nodiscard]] bool usable() const { return reason.empty() && unused.empty(); }

  std::filesystem::path path;   // resolved, absolute
  std::filesystem::path found;  // as it was found: absolute, with links
  size_t folder = 0;            // index of the search path
  std::string note;             // text of the note as it was found
  std::optional<Manifest> manifest;
  std::string reason;                    // why it is refused, beginning with the file
  std::string unused;                    // why another plugin of its id is used instead, beginning with the file
  std::string sha256;                    // of the bytes that `set` admitted; "" if none names bytes
  std::shared_ptr<const PluginSet> set;  // the last one that names its bytes
  std::shared_ptr<const PluginOptions> options;  // once examined
  bool loaded = false;
  bool checked = false;   // whether it was loaded from bytes that were checked
  Components components;  // once loaded; never changed afterwards
};

// A folder that cannot be read: a search path, or one below it.
struct Unreadable {
  std::filesystem::path path;
  std::string reason;  // beginning with the folder
};

// Where plugins are searched: a folder, or the files that the plugin set names.
struct Folder {
  std::filesystem::path path;  // of the folder or of the set
  bool exists = false;
  bool is_set = false;
  std::vector<Unreadable> unreadable;
};

// A shared object in a folder, or one that the plugin set names.
struct FoundFile {
  std::filesystem::path path;
  std::filesystem::path resolved;  // absolute and without links, unless `error` says why that failed
  std::error_code error;
};

struct Registry::State {
  using Owners = std::array<std::map<std::string, Plugin*>, kKinds.size()>;

  explicit State(std::shared_ptr<FileSystem> system) : files(std::move(system)), libraries(files) {}
  void scan();
  void find_file(const FoundFile& found, size_t folder);
  void examine(Plugin& plugin);
  // Leaves one plugin for each id: the newest, of equal versions the first.
  void choose_versions();
  void add_plugin(std::unique_ptr<Plugin> plugin);
  // Adds the names of the plugin's components that can be used to `to`.
  static void own(Plugin& plugin, Owners& to);
  // Returns how `plugin` conflicts with the plugins that own names, "" if it does not.
  [[nodiscard]] std::string conflict(const Plugin& plugin) const;
  void load(Plugin& plugin);
  // Loads it; false if that fails for a reason of the plugin, which list() shows.
  bool try_load(Plugin& plugin);
  Plugin& find(Kind kind, const std::string& name);
  template <typename Wanted>
  std::vector<const Kernel*> kernels(const std::string& device, tn_dtype compute, Wanted wanted);
  [[noreturn]] void not_found(Kind kind, const std::string& name) const;
  [[nodiscard]] std::string searched() const;
  // Returns which plugin of a folder that the set leaves out offers a component, for messages; "" if none does.
  [[nodiscard]] std::string not_searched(Kind kind, const std::string& name) const;
  // Returns why a set does not admit a plugin that was found, added or loaded, "" if it does. sha256: as of Plugin.
  [[nodiscard]] std::string refusal_by(const PluginSet& by, const Plugin& plugin, std::string& sha256);
  // Returns the options of a plugin under a set, null for none; TN_REFUSED if it does not take them.
  [[nodiscard]] static std::shared_ptr<const PluginOptions> options_under(const PluginSet* by, const Plugin& plugin);
  // Returns why a plugin cannot have the options that a set states, "" if it can; then writes them.
  [[nodiscard]] static std::string other_options(const PluginSet& by, const Plugin& plugin,
                                                 std::shared_ptr<const PluginOptions>& options);
  void use(std::shared_ptr<const PluginSet> next);

  std::vector<Folder> folders;
  std::vector<std::filesystem::path> left_out;   // folders that a set of mode "locked" leaves out
  std::vector<std::filesystem::path> installed;  // folders of the installed plugins; absolute, without links
  std::shared_ptr<FileSystem> files;
  LibrarySearch libraries;  // for what is examined, with the lock or in the constructor
  ThreadTags* tags = nullptr;
  std::shared_ptr<const PluginSet> set;  // null: none
  std::shared_ptr<OptionTable> options;
  std::recursive_mutex mutex;
  std::vector<std::unique_ptr<Plugin>> plugins;  // in search order, then those added
  std::set<std::filesystem::path> paths;         // of the plugins that were found
  Owners owners;                                 // by name; a plugin that is refused when it is loaded stays here
};

// Returns the message with the file in front of it, unless it names the file already, as system failures do.
[[nodiscard]] std::string reason_of(const std::filesystem::path& file, const Error& refusal);

}  // namespace tenon::host
