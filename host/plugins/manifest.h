// A plugin's manifest: the contents of its JSON note in owning structs. Nothing here runs plugin code.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/plugin.h>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "host/plugins/registry.h"

namespace tenon::host {

// The versions of the plugin interface that a plugin was built with and requires, as in tn_abi.
struct AbiInterval {
  uint16_t major = 0;
  uint16_t built = 0;
  uint16_t required = 0;
  bool operator==(const AbiInterval&) const = default;
};
struct DeviceDescription {
  std::string kind;
  std::string doc;
  int32_t dlpack_type = 0;
  std::vector<std::string> tables;  // ids for which its extension() returns a table
  bool operator==(const DeviceDescription&) const = default;
};
struct KernelDescription {
  std::string type;
  std::string device;
  std::string name;
  std::vector<tn_dtype> dtypes;
  int32_t score = 0;
  std::vector<std::string> chain;  // fused layer types; empty: the kernel is for `type` alone
  bool operator==(const KernelDescription&) const = default;
};
struct NeededLibrary {
  std::string name;
  std::string hint;
  bool operator==(const NeededLibrary&) const = default;
};

struct Manifest {
  AbiInterval abi;
  std::string id, version, doc, license, isa;
  std::vector<LayerDescription> layers;
  std::vector<UpdaterDescription> updaters;
  std::vector<ReaderDescription> readers;
  std::vector<DeviceDescription> devices;
  std::vector<KernelDescription> kernels;
  std::vector<NeededLibrary> libraries;
  bool operator==(const Manifest&) const = default;
};

// The functions below throw TN_REFUSED; the messages name the place in the JSON or the component, not the file.

// Parses untrusted text: bounds size and depth, refuses duplicate keys.
[[nodiscard]] nlohmann::json parse_note(const std::string& note);
// Reads the versions alone. Every future form of the note keeps them in this place.
[[nodiscard]] AbiInterval abi_from(const nlohmann::json& note);
// Reads the whole manifest. Ignores unknown keys; refuses wrong types, unknown kinds and malformed names.
[[nodiscard]] Manifest manifest_from(const nlohmann::json& note);

// Accepts a plugin of the host's major version that requires at most the host's minor version and was built with
// headers that this host still supports. The message gives both versions and what to do.
void check_abi(const AbiInterval& abi);
// Accepts a comma-separated list of features that are all known and present in this CPU.
void check_isa(const std::string& isa);
// Checks that names are well-formed and unique, ranges finite and not empty, roles and compute types known.
void check_manifest(const Manifest& manifest);
// Returns the first difference of two manifests as a sentence, "" if they are equal.
[[nodiscard]] std::string difference(const Manifest& note, const Manifest& plugin);

}  // namespace tenon::host
