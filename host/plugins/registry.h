// What can be used by name: plugins found through their notes, loaded when first needed and never unloaded.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/plugin.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/attribute.h"
#include "core/seams.h"
#include "host/plugins/thread_tags.h"

namespace tenon {

struct Port {
  std::string name;
  std::string doc;
  uint32_t flags = 0;
  bool operator==(const Port&) const = default;
};

// The static descriptions, in owning form: from a manifest, or from the tables of a plugin that was added.
struct LayerDescription {
  std::string type;
  std::string doc;
  int32_t role = TN_ROLE_LAYER;
  std::vector<Port> inputs, outputs;
  std::vector<Attribute> attributes;
  std::vector<std::string> parameters;
  uint32_t state_version = 0;
  bool operator==(const LayerDescription&) const = default;
};
struct UpdaterDescription {
  std::string type;
  std::string doc;
  std::vector<Attribute> attributes;
  uint32_t state_version = 0;
  bool operator==(const UpdaterDescription&) const = default;
};
struct ReaderDescription {
  std::string type;
  std::string doc;
  std::vector<Attribute> attributes;
  uint32_t traits = 0;
  bool operator==(const ReaderDescription&) const = default;
};

// A component ready to be called: its description, and a full-size copy of its table in which every function that
// the plugin lacks is a placeholder answering TN_UNSUPPORTED (null where null has a meaning of its own: expand, lower,
// finalize, read_at, extension, destroy). Lives as long as the registry.
template <typename Description, typename Table>
struct Component : Origin {
  Description description;
  Table table = {};
};
using LayerType = Component<LayerDescription, tn_layer_type>;
using UpdaterType = Component<UpdaterDescription, tn_updater_type>;
using ReaderType = Component<ReaderDescription, tn_reader_type>;
struct DeviceType : Origin {
  std::string kind;
  tn_device_type table = {};
};
struct Kernel : Origin {
  tn_kernel table = {};
  std::vector<std::string> claims;  // the chain of layer types that it stands for; empty: one layer
};

class Registry {
 public:
  // Scans `paths` (folders, with sub-folders) for *.so files and reads their notes; runs no plugin code. A file that
  // is refused is remembered with the reason. tags: of all components; null where nothing is checked.
  Registry(std::vector<std::filesystem::path> paths, std::shared_ptr<FileSystem> files, ThreadTags* tags = nullptr);
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // Adds the application's own components. The tables must outlive the registry.
  void add(const tn_plugin& plugin);

  // Each loads the plugin if needed. TN_NOT_FOUND for an unknown name: with a suggestion, and every place searched;
  // TN_REFUSED with the reason when the only plugin that offers it was refused or does not match its note.
  const LayerType& layer(const std::string& type);
  const UpdaterType& updater(const std::string& type);
  const ReaderType& reader(const std::string& type);
  const DeviceType& device(const std::string& kind);
  // Kernels for a layer type on a device kind and compute type, best score first; loads only plugins whose manifest
  // lists one.
  std::vector<const Kernel*> kernels(const std::string& type, const std::string& device, tn_dtype compute);
  // Those that claim a chain of layers of these types, likewise.
  std::vector<const Kernel*> claims(const std::set<std::string>& types, const std::string& device, tn_dtype compute);

  // Of the type `name` of a kind ("layer", "updater", "reader"), what tn_type_describe answers but for the host's own
  // attributes. Loads nothing. TN_NOT_FOUND and TN_REFUSED as above; TN_INVALID for another kind.
  [[nodiscard]] nlohmann::json describe_type(const std::string& kind, const std::string& name) const;
  // What tn_host_plugins answers. Runs no plugin code.
  [[nodiscard]] nlohmann::json list() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tenon
