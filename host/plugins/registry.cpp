// Finds plugins, refuses unfit ones, loads the others on demand. SPDX-License-Identifier: Apache-2.0
#include "host/plugins/registry.h"

#include <algorithm>
#include <set>

#include "base/nearest.h"
#include "core/error.h"
#include "host/plugins/elf_note.h"
#include "host/plugins/registry_state.h"
#include "host/plugins/set/admission.h"
#include "host/plugins/set/checked_load.h"
#include "host/plugins/set/lock.h"
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

// Returns whether a failure is one of the system at this moment, not of the plugin: loading may succeed later.
bool passes(const Error& failure) { return failure.code() == TN_OUT_OF_MEMORY || failure.code() == TN_IO; }

// Replaces invalid UTF-8: file names may hold any bytes, JSON strings may not.
json valid_utf8(const std::string& bytes) {
  return json::parse(json(bytes).dump(-1, ' ', false, json::error_handler_t::replace));
}

}  // namespace

const char* kind_name(Kind kind) {
  constexpr std::array<const char*, kKinds.size()> kNames = {"layer type", "updater type", "reader type", "device",
                                                             "communicator"};
  return kNames[static_cast<size_t>(kind)];
}

// Loads the plugin if needed. A refusal is final: its reason is kept and thrown again by the next call.
void Registry::State::load(Plugin& plugin) {
  if (plugin.loaded) return;
  if (!plugin.refused()) {
    try {
      const bool checked = !plugin.sha256.empty();
      const tn_plugin* made = nullptr;
      if (checked) {
        const SetPlugin& entry = *plugin.set->find(plugin.manifest->id);
        made =
            &load_checked({*plugin.set, entry, plugin.path, plugin.sha256, plugin.note, *plugin.manifest}, files, tags);
      } else {
        if (read_note(*files->open(plugin.path)) != plugin.note)
          fail(TN_REFUSED, "it has changed since it was found; make a new host to use the new file");
        made = &load_plugin({plugin.path, plugin.path}, *plugin.manifest, tags);
      }
      plugin.components = adopt(*made, *plugin.manifest, tags, &mutex);
      plugin.loaded = true;
      plugin.checked = checked;
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
    size_t used = 0, refused = 0, unused = 0;
    for (const auto& plugin : plugins) {
      if (plugin->path.empty() || plugin->folder != i) continue;
      ++(plugin->refused() ? refused : plugin->usable() ? used : unused);
    }
    result += (i ? ", " : "") + folders[i].path.string() + " (";
    result += folders[i].exists ? text(used, used == 1 ? " plugin" : " plugins") : "no such folder";
    if (refused > 0) result += text(", ", refused, " refused");
    if (unused > 0) result += text(", ", unused, " unused");
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
      if (!plugin->usable())
        fail(TN_REFUSED, ComponentName{who}, file, "the plugin that offers it is not used: ", plugin->unused);
      fail(TN_REFUSED, ComponentName{who}, file, plugin->where(), " offers it, but ", offer.refused);
    }
  }
  std::vector<std::string> known, meant;
  for (const auto& [owned, plugin] : owners[static_cast<size_t>(kind)]) {
    known.push_back(owned);
    for (const Offer& offer : offers(*plugin->manifest, kind)) {
      const std::vector<std::string> others = other_names(offer.doc);
      if (offer.name == owned && std::find(others.begin(), others.end(), name) != others.end()) meant.push_back(owned);
    }
  }
  if (set && set->mode != SetMode::kDev) {
    // What a refused file of the set offers is unknown.
    for (const auto& plugin : plugins)
      if (plugin->refused())
        throw Error(TN_REFUSED, text(who, " not found, and the plugin set refuses a file: ", plugin->reason), who,
                    plugin->path.string());
  }
  const std::string elsewhere = not_searched(kind, name);
  const std::string near = meant.empty() ? base::suggestion(name, known) : "; did you mean \"" + meant[0] + "\"?";
  throw Error(
      TN_NOT_FOUND,
      text(who, " not found", near, near.ends_with('?') ? " searched: " : "; searched: ", searched(), elsewhere), who);
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

Registry::Registry(std::vector<fs::path> paths, std::shared_ptr<FileSystem> files, ThreadTags* tags,
                   std::shared_ptr<const PluginSet> set, std::shared_ptr<OptionTable> options,
                   std::vector<fs::path> added)
    : state_(std::make_unique<State>(std::move(files))) {
  state_->options = options ? std::move(options) : std::make_shared<OptionTable>();
  state_->tags = tags;
  for (const fs::path& path : paths) {
    std::error_code error;
    if (fs::path whole = fs::canonical(path, error); !error) state_->installed.push_back(std::move(whole));
  }
  if (set) paths.insert(paths.end(), set->folders.begin(), set->folders.end());
  paths.insert(set ? paths.end() : paths.begin(), added.begin(), added.end());
  if (set && set->mode == SetMode::kLocked) state_->left_out.swap(paths);
  state_->set = std::move(set);
  for (const fs::path& path : paths) {
    std::error_code error;
    const fs::path absolute = fs::absolute(path, error);
    state_->folders.push_back({error ? path : absolute.lexically_normal(), false, false, {}});
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
  const std::string& id = added->manifest->id;
  for (const auto& other : state_->plugins)
    if (other->usable() && other->manifest->id == id)
      fail(TN_INVALID, added->where(), ": its id \"", id, "\" is also that of ", other->where(), ", which comes first");
  if (const std::string taken = state_->conflict(*added); !taken.empty()) fail(TN_INVALID, taken);
  std::string digest;
  if (state_->set)
    if (const std::string why = state_->refusal_by(*state_->set, *added, digest); !why.empty())
      fail(TN_REFUSED, "the application's plugin: ", why);
  try {
    added->options = State::options_under(state_->set.get(), *added);
  } catch (const Error& refusal) {
    throw refusal.with_component("the application's plugin");
  }
  added->components = adopt(plugin, *added->manifest, state_->tags, &state_->mutex);
  added->loaded = true;
  state_->add_plugin(std::move(added));
}

void Registry::use(std::shared_ptr<const PluginSet> set) {
  const SetupLock lock = setup();
  state_->use(std::move(set));
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

const CommType& Registry::comm(const std::string& type) {
  const SetupLock lock = setup();
  const auto& comms = state_->find(Kind::kComm, type).components.comms;
  return *std::find_if(comms.begin(), comms.end(), [&](const auto& c) { return c.description.type == type; });
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
    if (!plugin->usable()) continue;
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

std::vector<const Provider*> Registry::providers(const std::string& device, const std::string& id, bool is_native,
                                                 std::vector<RefusedProvider>& refused) {
  const SetupLock lock = setup();
  std::vector<const Provider*> result;
  for (const auto& plugin : state_->plugins) {
    if (!plugin->manifest || !plugin->unused.empty()) continue;
    const std::vector<ProviderDescription>& offered = plugin->manifest->providers;
    for (size_t i = 0; i < offered.size(); ++i) {
      if (offered[i].device != device || offered[i].id != id || offered[i].score <= 0) continue;
      if (!is_native && plugin->manifest->is_native)
        refused.push_back(
            {offered[i].name, plugin->manifest->id, "its arithmetic is native, that of the host portable"});
      else if (!plugin->refused() && state_->try_load(*plugin))
        result.push_back(&plugin->components.providers[i]);
      else  // the device itself does the same work
        refused.push_back({offered[i].name, plugin->manifest->id, "its plugin is refused: " + plugin->reason});
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
  if (kind == "comm") return describe(Kind::kComm, &Manifest::comms);
  fail(TN_INVALID, SubjectName{"kind"}, "kind is \"", kind, "\"; expected layer, updater, reader or comm");
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
  collect("comm", plugin.manifest->comms, type);
  collect("kernel", plugin.manifest->kernels, [](const auto& kernel) { return kernel.name; });
  return result;
}

const char* status_of(const Plugin& plugin) {
  if (plugin.refused()) return "refused";
  if (!plugin.usable()) return "unused";
  return plugin.loaded ? "loaded" : "found";
}

}  // namespace

json Registry::list() const {
  const SetupLock lock = setup();
  json result = json::array();
  for (const auto& plugin : state_->plugins) {
    if (plugin->path.empty()) continue;  // added by the application
    result.push_back({{"file", valid_utf8(plugin->path.string())},
                      {"status", status_of(*plugin)},
                      {"reason", valid_utf8(plugin->refused() ? plugin->reason : plugin->unused)},
                      {"admitted_by", plugin->refused() || !state_->set ? ""
                                      : plugin->sha256.empty()          ? "id"
                                                                        : "bytes"},
                      {"refused", refused_components(*plugin)},
                      {"options", plugin->options ? plugin->options->json() : json::object()},
                      {"manifest", plugin->manifest ? json::parse(plugin->note) : json()}});
  }
  for (const Folder& folder : state_->folders)
    for (const Unreadable& inner : folder.unreadable)
      result.push_back({{"file", valid_utf8(inner.path.string())},
                        {"status", "refused"},
                        {"reason", valid_utf8(inner.reason)},
                        {"admitted_by", ""},
                        {"refused", json::array()},
                        {"options", json::object()},
                        {"manifest", nullptr}});
  return result;
}

std::string Registry::lock(const fs::path& folder) const {
  const SetupLock lock = setup();
  std::vector<LockedPlugin> result;
  for (const auto& plugin : state_->plugins) {
    if (!plugin->loaded) continue;
    const std::string &id = plugin->manifest->id, &version = plugin->manifest->version;
    if (plugin->path.empty())
      result.push_back({id, version, {}, "", {}, {}, {}, true});
    else
      try {
        result.push_back(lock_plugin(id, version, plugin->path, state_->files));
      } catch (const Error& refusal) {
        if (refusal.code() != TN_REFUSED) throw;
        throw Error(TN_REFUSED, reason_of(plugin->path, refusal), {}, plugin->path.string());
      }
    if (const SetPlugin* const entry = state_->set ? state_->set->find(id) : nullptr; entry != nullptr)
      result.back().options = entry->options;
    if (plugin->path.empty()) continue;
    const bool changed = plugin->checked ? result.back().sha256 != plugin->sha256
                                         : read_note(*state_->files->open(plugin->path)) != plugin->note;
    if (changed) fail(TN_REFUSED, plugin->where(), ": it has changed since it was loaded");
  }
  return lock_text(result, folder);
}

}  // namespace tenon::host
