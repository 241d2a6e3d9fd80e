// Components by name: plugins are found through their notes, loaded on first use and never unloaded.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/draft/comm.h>
#include <tenon/plugin.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/attribute.h"
#include "core/system.h"
#include "host/plugins/thread_tags.h"

namespace tenon::host {

using namespace core;

struct Port {
  std::string name;
  std::string doc;
  uint32_t flags = 0;
  bool operator==(const Port&) const = default;
};
// Whether the last port has one or more values.
[[nodiscard]] inline bool is_variadic(const std::vector<Port>& ports) {
  return !ports.empty() && (ports.back().flags & TN_PORT_VARIADIC) != 0;
}
// Returns the port of value `number`. Values beyond the last port belong to that port, which is variadic.
[[nodiscard]] inline const Port& port_of(const std::vector<Port>& ports, size_t number) {
  return ports[std::min(number, ports.size() - 1)];
}
// Returns the name of value `number` in messages: "score", or "parts[2]" at a variadic port.
[[nodiscard]] std::string value_name(const std::vector<Port>& ports, size_t number);

// The static descriptions of types in owning structs, read from a manifest or from the tables of an added plugin.
// `refused` says why this host cannot use the type, which has a value of a newer interface; "" if it can. `tables`: the
// ids of its tables that the writer of the note knew. `minor`: the oldest minor version of a host that can use the
// type, 0 if it needs no other than its plugin.
struct LayerDescription {
  std::string type;
  std::string doc;
  int32_t role = TN_ROLE_LAYER;
  std::vector<Port> inputs, outputs;
  std::vector<Attribute> attributes;
  std::vector<std::string> parameters;
  uint32_t state_version = 0;
  std::vector<std::string> tables;
  uint16_t minor = 0;
  std::string refused;
  bool operator==(const LayerDescription&) const = default;
};
struct UpdaterDescription {
  std::string type;
  std::string doc;
  std::vector<Attribute> attributes;
  uint32_t state_version = 0;
  uint16_t minor = 0;
  std::string refused;
  bool operator==(const UpdaterDescription&) const = default;
};
struct ReaderDescription {
  std::string type;
  std::string doc;
  std::vector<Attribute> attributes;
  uint32_t traits = 0;
  std::vector<std::string> tables;
  uint16_t minor = 0;
  std::string refused;
  bool operator==(const ReaderDescription&) const = default;
};

struct CommDescription {
  std::string type;
  std::string doc;
  std::vector<Attribute> attributes;
  uint32_t traits = 0;  // TN_COMM_*
  uint16_t minor = 0;
  std::string refused;
  bool operator==(const CommDescription&) const = default;
};

// A component ready to be called: its description and a full-size copy of its table. Placeholders that return
// TN_UNSUPPORTED replace the functions that the plugin lacks, except where null has a meaning of its own: expand,
// lower, finalize, read_at, extension, destroy. Lives as long as the registry.
template <typename Description, typename Table>
struct Component : Origin {
  Description description;
  Table table = {};
};
using LayerType = Component<LayerDescription, tn_layer_type>;
using UpdaterType = Component<UpdaterDescription, tn_updater_type>;
using ReaderType = Component<ReaderDescription, tn_reader_type>;
using CommType = Component<CommDescription, tn_comm_type>;
struct DeviceType : Origin {
  std::string kind;
  tn_device_type table = {};
};
// A table of primitives for the device of another plugin.
struct Provider : Origin {
  tn_provider table = {};
};
// One that cannot be used, and why.
struct RefusedProvider {
  std::string name, plugin, reason;
};
struct Kernel : Origin {
  tn_kernel table = {};
  std::vector<std::string> chain;  // the layer types that it fuses; empty: a kernel of one layer
};

struct PluginSet;
class OptionTable;

// The plugins of a host. Its functions may be called from any thread; all of them, and every [setup] call of a plugin,
// hold one lock.
class Registry : base::NotCopied {
 public:
  // Scans `paths` (folders, with sub-folders) for *.so files and reads their notes; runs no plugin code. A file that
  // is refused stays in list() with the reason. Of several plugins with one id the newest is used, of equal versions
  // the one found first; the others stay in list(). tags: those of all components; null if checking is off. set: what
  // may load, null: everything. options: receives the options of the plugins; null: they are checked alone. added:
  // folders of users and jobs. They are searched before `paths`, those of the installed plugins; with a set after
  // these and the folders of the set, and mode "allow" refuses what is in them. Mode "locked" searches no folder.
  Registry(std::vector<std::filesystem::path> paths, std::shared_ptr<FileSystem> files, ThreadTags* tags = nullptr,
           std::shared_ptr<const PluginSet> set = nullptr, std::shared_ptr<OptionTable> options = nullptr,
           std::vector<std::filesystem::path> added = {});
  ~Registry();

  // Takes that lock, for work that must not overlap with [setup] calls.
  [[nodiscard]] SetupLock setup() const;

  // Adds the application's own components. The tables must outlive the registry. TN_REFUSED if the set does not admit
  // them.
  void add(const tn_plugin& plugin);

  // Refuses what `set` does not admit from now on, beside what is refused already; searches for nothing new. TN_REFUSED
  // if its mode is looser than that of the present set, or if it does not admit a plugin that is loaded already or sets
  // other options of one; then nothing changes.
  void use(std::shared_ptr<const PluginSet> set);

  // Return a component; load its plugin if needed. TN_NOT_FOUND for an unknown name, with a suggestion and the folders
  // searched; TN_REFUSED with the reason if the component is refused, or the only plugin that offers it was refused or
  // does not match its note.
  const LayerType& layer(const std::string& type);
  const UpdaterType& updater(const std::string& type);
  const ReaderType& reader(const std::string& type);
  const DeviceType& device(const std::string& kind);
  const CommType& comm(const std::string& type);
  // Returns the kernels for a layer type on a device kind and compute type, best score first; loads only plugins whose
  // manifest lists one.
  std::vector<const Kernel*> kernels(const std::string& type, const std::string& device, tn_dtype compute);
  // Returns the kernels that fuse chains of layers of these types, likewise.
  std::vector<const Kernel*> fusions(const std::set<std::string>& types, const std::string& device, tn_dtype compute);

  // Returns the providers of a table, by its id, for a device kind with a score above 0, best score first; likewise.
  // `refused` gets those of plugins that are refused.
  std::vector<const Provider*> providers(const std::string& device, const std::string& id, bool is_native,
                                         std::vector<RefusedProvider>& refused);

  // Returns the JSON of tn_type_describe, without the host attributes, for the type `name` of a kind ("layer",
  // "updater", "reader", "comm"). Loads no plugin. TN_NOT_FOUND and TN_REFUSED as above; TN_INVALID for another kind.
  [[nodiscard]] nlohmann::json describe_type(const std::string& kind, const std::string& name) const;
  // Returns the JSON of tn_host_plugins. Runs no plugin code.
  [[nodiscard]] nlohmann::json list() const;
  // Returns the text of a plugin set of mode "locked" with the plugins that are loaded, for a file in `folder`, which
  // is absolute and without links.
  [[nodiscard]] std::string lock(const std::filesystem::path& folder) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tenon::host
