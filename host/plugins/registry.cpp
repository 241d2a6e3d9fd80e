// Finds plugins, refuses unfit ones, loads the others on demand. SPDX-License-Identifier: Apache-2.0
#include "host/plugins/registry.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "core/error.h"
#include "core/folder.h"
#include "host/plugins/elf_note.h"
#include "host/plugins/loader.h"
#include "host/plugins/manifest.h"
#include "host/plugins/type_json.h"

namespace tenon::host {

std::string value_name(const std::vector<Port>& ports, size_t number) {
  const std::string& name = port_of(ports, number).name;
  const size_t last = ports.size() - 1;
  return is_variadic(ports) && number >= last ? text(name, "[", number - last, "]") : name;
}

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

enum class Kind : size_t { kLayer, kUpdater, kReader, kDevice };
constexpr std::array<const char*, 4> kKindNames = {"layer type", "updater type", "reader type", "device"};
constexpr std::array<Kind, 4> kKinds = {Kind::kLayer, Kind::kUpdater, Kind::kReader, Kind::kDevice};

const char* kind_name(Kind kind) { return kKindNames[static_cast<size_t>(kind)]; }

// A component of a manifest: its name, and why it is refused, "" if it is not.
struct Offer {
  std::string name;
  std::string refused;
};

std::vector<Offer> offers(const Manifest& manifest, Kind kind) {
  std::vector<Offer> result;
  const auto collect = [&result](const auto& descriptions) {
    for (const auto& description : descriptions) result.push_back({description.type, description.refused});
  };
  switch (kind) {
    case Kind::kLayer:
      collect(manifest.layers);
      break;
    case Kind::kUpdater:
      collect(manifest.updaters);
      break;
    case Kind::kReader:
      collect(manifest.readers);
      break;
    case Kind::kDevice:
      for (const DeviceDescription& device : manifest.devices) result.push_back({device.kind, ""});
      break;
  }
  return result;
}

// Returns the names of the components that can be used.
std::vector<std::string> names(const Manifest& manifest, Kind kind) {
  std::vector<std::string> result;
  for (Offer& offer : offers(manifest, kind))
    if (offer.refused.empty()) result.push_back(std::move(offer.name));
  return result;
}

// A plugin: a file, or a descriptor that the application added (then `path` is empty).
struct Plugin {
  [[nodiscard]] std::string where() const { return path.empty() ? "the application" : path.string(); }
  [[nodiscard]] bool refused() const { return !reason.empty(); }

  fs::path path;       // resolved, absolute
  size_t folder = 0;   // index of the search path
  std::string note;    // text of the note as it was found
  json manifest_json;  // null if `manifest` is absent
  std::optional<Manifest> manifest;
  std::string reason;  // why it is refused, beginning with the file
  bool loaded = false;
  Components components;  // once loaded; never changed afterwards
};

// A folder that cannot be read: a search path, or one below it.
struct Unreadable {
  fs::path path;
  std::string reason;  // beginning with the folder
};

struct Folder {
  fs::path path;
  bool exists = false;
  std::vector<Unreadable> unreadable;
};

// Adds every *.so below `path` to `found`, and the folders that cannot be read to those of `of`. Does not follow links
// to folders, so the recursion ends.
void collect(const fs::path& path, std::vector<fs::path>& found, Folder& of) {
  std::error_code error, ignored;
  for (const std::string& name : names_in(path, error)) {
    const fs::path inner = path / name;
    if (fs::symlink_status(inner, ignored).type() == fs::file_type::directory)
      collect(inner, found, of);
    else if (inner.extension() == ".so" && !fs::is_directory(inner, ignored))
      found.push_back(inner);
  }
  if (error == std::errc::not_enough_memory) fail(TN_OUT_OF_MEMORY, path.string(), ": ", error.message());
  if (error) of.unreadable.push_back({path, text(path.string(), ": the folder cannot be read: ", error.message())});
}

// Returns every *.so below the folder in sorted order.
std::vector<fs::path> shared_objects(Folder& folder) {
  std::vector<fs::path> result;
  std::error_code error;
  folder.exists = fs::is_directory(folder.path, error);
  if (folder.exists) collect(folder.path, result, folder);
  std::sort(result.begin(), result.end());
  return result;
}

// Returns whether a failure is one of the system at this moment, not of the plugin: loading may succeed later.
bool passes(const Error& failure) { return failure.code() == TN_OUT_OF_MEMORY || failure.code() == TN_IO; }

// Returns the message with the file in front of it, unless it names the file already, as system failures do.
std::string reason_of(const fs::path& file, const Error& refusal) {
  return refusal.subject() == file.string() ? refusal.message() : file.string() + ": " + refusal.message();
}

// Replaces invalid UTF-8: file names may hold any bytes, JSON strings may not.
json valid_utf8(const std::string& bytes) {
  return json::parse(json(bytes).dump(-1, ' ', false, json::error_handler_t::replace));
}

}  // namespace

struct Registry::State {
  using Owners = std::array<std::map<std::string, Plugin*>, kKinds.size()>;

  void scan();
  void examine(Plugin& plugin) const;
  void add_plugin(std::unique_ptr<Plugin> plugin);
  [[nodiscard]] std::string conflict(const Plugin& plugin) const;
  void load(Plugin& plugin);
  // Loads it; false if that fails for a reason of the plugin, which list() shows.
  bool try_load(Plugin& plugin);
  Plugin& find(Kind kind, const std::string& name);
  template <typename Wanted>
  std::vector<const Kernel*> kernels(const std::string& device, tn_dtype compute, Wanted wanted);
  [[noreturn]] void not_found(Kind kind, const std::string& name) const;
  [[nodiscard]] std::string searched() const;

  std::vector<Folder> folders;
  std::shared_ptr<FileSystem> files;
  ThreadTags* tags = nullptr;
  std::recursive_mutex mutex;
  std::vector<std::unique_ptr<Plugin>> plugins;  // in search order, then those added
  Owners owners;                                 // by name; a plugin that is refused when it is loaded stays here
};

// Examines the search paths in the given order, and the files of each in sorted order. If two plugins offer the same
// name, the second one is refused.
void Registry::State::scan() {
  std::set<fs::path> seen;
  for (size_t i = 0; i < folders.size(); ++i) {
    for (const fs::path& found : shared_objects(folders[i])) {
      auto plugin = std::make_unique<Plugin>();
      plugin->folder = i;
      std::error_code error;
      plugin->path = fs::canonical(found, error);
      if (error) plugin->path = found;
      if (!seen.insert(plugin->path).second) continue;  // the same file by another name
      try {
        if (error == std::errc::not_enough_memory) fail(TN_OUT_OF_MEMORY, found.string(), ": ", error.message());
        if (error) fail(TN_REFUSED, "it cannot be resolved: ", error.message());
        examine(*plugin);
        plugin->reason = conflict(*plugin);
      } catch (const Error& refusal) {
        if (refusal.code() == TN_OUT_OF_MEMORY) throw;
        plugin->reason = reason_of(plugin->path, refusal);
      }
      add_plugin(std::move(plugin));
    }
  }
}

// Reads and checks the note. If a check throws, a manifest that could be read stays in `plugin`, for list().
void Registry::State::examine(Plugin& plugin) const {
  const std::unique_ptr<InputFile> file = files->open(plugin.path);
  plugin.note = read_note(*file);
  json note = parse_note(plugin.note);
  const AbiInterval abi = abi_from(note);
  try {
    plugin.manifest = manifest_from(note);
    plugin.manifest_json = std::move(note);
  } catch (const Error&) {
    check_abi(abi);  // comes first: the manifest of another version may look different
    throw;
  }
  check_abi(abi);
  check_isa(plugin.manifest->isa);
  check_unwinder(*file);
}

// Returns how `plugin` conflicts with the plugins found before it, "" if it does not.
std::string Registry::State::conflict(const Plugin& plugin) const {
  for (const auto& other : plugins)
    if (!other->refused() && other->manifest->id == plugin.manifest->id)
      return text(plugin.where(), ": its id \"", plugin.manifest->id, "\" is also that of ", other->where(),
                  ", which comes first");
  for (const Kind kind : kKinds) {
    const auto& owned = owners[static_cast<size_t>(kind)];
    for (const std::string& name : names(*plugin.manifest, kind))
      if (const auto found = owned.find(name); found != owned.end())
        return text(plugin.where(), ": it offers the ", kind_name(kind), " \"", name, "\", as ", found->second->where(),
                    " does, which comes first");
  }
  return "";
}

// Adds the plugin and the names of its components that can be used; changes nothing if it throws.
void Registry::State::add_plugin(std::unique_ptr<Plugin> plugin) {
  Owners after = owners;
  if (!plugin->refused())
    for (const Kind kind : kKinds)
      for (const std::string& name : names(*plugin->manifest, kind))
        after[static_cast<size_t>(kind)].emplace(name, plugin.get());
  plugins.push_back(std::move(plugin));
  owners.swap(after);
}

// Loads the plugin if needed. A refusal is final: its reason is kept and thrown again by the next call.
void Registry::State::load(Plugin& plugin) {
  if (plugin.loaded) return;
  if (!plugin.refused()) {
    try {
      if (read_note(*files->open(plugin.path)) != plugin.note)
        fail(TN_REFUSED, "it has changed since it was found; make a new host to use the new file");
      plugin.components = adopt(load_plugin(plugin.path, *plugin.manifest, tags), *plugin.manifest, tags, &mutex);
      plugin.loaded = true;
      return;
    } catch (const Error& refusal) {
      std::string reason = reason_of(plugin.path, refusal);
      if (passes(refusal)) throw Error(refusal.code(), reason, {}, plugin.path.string());
      plugin.reason = std::move(reason);
    }
  }
  throw Error(TN_REFUSED, plugin.reason, {}, plugin.path.string());
}

std::string Registry::State::searched() const {
  std::string result;
  for (size_t i = 0; i < folders.size(); ++i) {
    size_t used = 0, refused = 0;
    for (const auto& plugin : plugins) {
      if (plugin->path.empty() || plugin->folder != i) continue;
      if (plugin->refused())
        ++refused;
      else
        ++used;
    }
    result += (i ? ", " : "") + folders[i].path.string() + " (";
    result += folders[i].exists ? text(used, used == 1 ? " plugin" : " plugins") : "no such folder";
    if (refused > 0) result += text(", ", refused, " refused");
    if (const size_t count = folders[i].unreadable.size(); count > 0)
      result += text(", ", count, count == 1 ? " folder" : " folders", " that cannot be read");
    result += ")";
  }
  return result.empty() ? "no folder" : result;
}

void Registry::State::not_found(Kind kind, const std::string& name) const {
  const std::string who = text(kind_name(kind), " \"", name, "\"");
  for (const auto& plugin : plugins) {
    if (!plugin->manifest) continue;
    for (const Offer& offer : offers(*plugin->manifest, kind)) {
      if (offer.name != name) continue;
      const SubjectName file{plugin->path.string()};
      if (plugin->refused())
        fail(TN_REFUSED, ComponentName{who}, file, "the plugin that offers it was refused: ", plugin->reason);
      fail(TN_REFUSED, ComponentName{who}, file, plugin->where(), " offers it, but ", offer.refused);
    }
  }
  std::vector<std::string> known;
  for (const auto& [owned, plugin] : owners[static_cast<size_t>(kind)]) known.push_back(owned);
  const bool asks = !nearest(name, known).empty();  // the suggestion ends with a question mark
  throw Error(TN_NOT_FOUND,
              text(who, " not found", suggestion(name, known), asks ? " searched: " : "; searched: ", searched()), who);
}

Plugin& Registry::State::find(Kind kind, const std::string& name) {
  const auto& owned = owners[static_cast<size_t>(kind)];
  const auto found = owned.find(name);
  if (found == owned.end()) not_found(kind, name);
  try {
    load(*found->second);
  } catch (const Error& refusal) {
    throw refusal.with_component(text(kind_name(kind), " \"", name, "\""));
  }
  return *found->second;
}

Registry::Registry(std::vector<fs::path> paths, std::shared_ptr<FileSystem> files, ThreadTags* tags)
    : state_(std::make_unique<State>()) {
  state_->files = std::move(files);
  state_->tags = tags;
  for (const fs::path& path : paths) {
    std::error_code error;
    const fs::path absolute = fs::absolute(path, error);
    state_->folders.push_back({error ? path : absolute.lexically_normal(), false, {}});
  }
  state_->scan();
}

Registry::~Registry() = default;

SetupLock Registry::setup() const { return SetupLock(state_->mutex); }

void Registry::add(const tn_plugin& plugin) {
  const SetupLock lock = setup();
  auto added = std::make_unique<Plugin>();
  try {
    if (TN_HAS(&plugin, tn_plugin, abi)) check_abi({plugin.abi.major, plugin.abi.built, plugin.abi.required});
    added->manifest = describe(plugin);
    check_isa(added->manifest->isa);
  } catch (const Error& refusal) {
    throw refusal.with_component("the application's plugin");
  }
  if (const std::string taken = state_->conflict(*added); !taken.empty()) fail(TN_INVALID, taken);
  added->components = adopt(plugin, *added->manifest, state_->tags, &state_->mutex);
  added->loaded = true;
  state_->add_plugin(std::move(added));
}

const LayerType& Registry::layer(const std::string& type) {
  const SetupLock lock = setup();
  const auto& layers = state_->find(Kind::kLayer, type).components.layers;
  return *std::find_if(layers.begin(), layers.end(), [&](const auto& l) { return l.description.type == type; });
}

const UpdaterType& Registry::updater(const std::string& type) {
  const SetupLock lock = setup();
  const auto& updaters = state_->find(Kind::kUpdater, type).components.updaters;
  return *std::find_if(updaters.begin(), updaters.end(), [&](const auto& u) { return u.description.type == type; });
}

const ReaderType& Registry::reader(const std::string& type) {
  const SetupLock lock = setup();
  const auto& readers = state_->find(Kind::kReader, type).components.readers;
  return *std::find_if(readers.begin(), readers.end(), [&](const auto& r) { return r.description.type == type; });
}

const DeviceType& Registry::device(const std::string& kind) {
  const SetupLock lock = setup();
  const auto& devices = state_->find(Kind::kDevice, kind).components.devices;
  return *std::find_if(devices.begin(), devices.end(), [&](const auto& d) { return d.kind == kind; });
}

bool Registry::State::try_load(Plugin& plugin) {
  try {
    load(plugin);
    return true;
  } catch (const Error& failure) {
    if (passes(failure)) throw;
    return false;
  }
}

template <typename Wanted>
std::vector<const Kernel*> Registry::State::kernels(const std::string& device, tn_dtype compute, Wanted wanted) {
  std::vector<const Kernel*> result;
  for (const auto& plugin : plugins) {
    if (plugin->refused()) continue;
    const std::vector<KernelDescription>& offered = plugin->manifest->kernels;
    for (size_t i = 0; i < offered.size(); ++i) {
      const auto& dtypes = offered[i].dtypes;
      if (!offered[i].refused.empty() || !wanted(offered[i]) || offered[i].device != device ||
          std::find(dtypes.begin(), dtypes.end(), compute) == dtypes.end())
        continue;
      if (!try_load(*plugin)) break;  // other kernels do the same work
      result.push_back(&plugin->components.kernels[i]);
    }
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const Kernel* a, const Kernel* b) { return a->table.score > b->table.score; });
  return result;
}

std::vector<const Kernel*> Registry::kernels(const std::string& type, const std::string& device, tn_dtype compute) {
  const SetupLock lock = setup();
  return state_->kernels(device, compute,
                         [&](const KernelDescription& k) { return k.type == type && k.chain.empty(); });
}

std::vector<const Provider*> Registry::providers(const std::string& device) {
  const SetupLock lock = setup();
  std::vector<const Provider*> result;
  for (const auto& plugin : state_->plugins) {
    if (plugin->refused()) continue;
    const std::vector<ProviderDescription>& offered = plugin->manifest->providers;
    for (size_t i = 0; i < offered.size(); ++i) {
      if (offered[i].device != device || offered[i].score <= 0) continue;
      if (!state_->try_load(*plugin)) break;  // the device itself does the same work
      result.push_back(&plugin->components.providers[i]);
    }
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const Provider* a, const Provider* b) { return a->table.score > b->table.score; });
  return result;
}

std::vector<const Kernel*> Registry::fusions(const std::set<std::string>& types, const std::string& device,
                                             tn_dtype compute) {
  const SetupLock lock = setup();
  return state_->kernels(device, compute, [&](const KernelDescription& k) {
    return !k.chain.empty() &&
           std::all_of(k.chain.begin(), k.chain.end(), [&](const std::string& type) { return types.contains(type); });
  });
}

json Registry::describe_type(const std::string& kind, const std::string& name) const {
  const SetupLock lock = setup();
  const auto describe = [&](Kind of, const auto list) {
    const auto& owned = state_->owners[static_cast<size_t>(of)];
    const auto found = owned.find(name);
    if (found == owned.end()) state_->not_found(of, name);
    const auto& types = *found->second->manifest.*list;
    return to_json(*std::find_if(types.begin(), types.end(), [&](const auto& type) { return type.type == name; }));
  };
  if (kind == "layer") return describe(Kind::kLayer, &Manifest::layers);
  if (kind == "updater") return describe(Kind::kUpdater, &Manifest::updaters);
  if (kind == "reader") return describe(Kind::kReader, &Manifest::readers);
  fail(TN_INVALID, SubjectName{"kind"}, "kind is \"", kind, "\"; expected layer, updater or reader");
}

namespace {

// Returns the refused components of a plugin, for list().
json refused_components(const Plugin& plugin) {
  json result = json::array();
  if (!plugin.manifest) return result;
  const auto collect = [&result](const char* kind, const auto& components, const auto& name) {
    for (size_t i = 0; i < components.size(); ++i)
      if (const auto& component = components[i]; !component.refused.empty())
        result.push_back(
            {{"kind", kind}, {"index", i}, {"name", name(component)}, {"reason", valid_utf8(component.refused)}});
  };
  const auto type = [](const auto& described) { return described.type; };
  collect("layer", plugin.manifest->layers, type);
  collect("updater", plugin.manifest->updaters, type);
  collect("reader", plugin.manifest->readers, type);
  collect("kernel", plugin.manifest->kernels, [](const auto& kernel) { return kernel.name; });
  return result;
}

}  // namespace

json Registry::list() const {
  const SetupLock lock = setup();
  json result = json::array();
  for (const auto& plugin : state_->plugins) {
    if (plugin->path.empty()) continue;  // added by the application
    result.push_back({{"file", valid_utf8(plugin->path.string())},
                      {"status", plugin->refused() ? "refused" : (plugin->loaded ? "loaded" : "found")},
                      {"reason", valid_utf8(plugin->reason)},
                      {"refused", refused_components(*plugin)},
                      {"manifest", plugin->manifest_json}});
  }
  for (const Folder& folder : state_->folders)
    for (const Unreadable& inner : folder.unreadable)
      result.push_back({{"file", valid_utf8(inner.path.string())},
                        {"status", "refused"},
                        {"reason", valid_utf8(inner.reason)},
                        {"refused", json::array()},
                        {"manifest", nullptr}});
  return result;
}

}  // namespace tenon::host
