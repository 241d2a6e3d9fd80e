// A plugin's manifest: what the JSON of its note says, in owning form. Nothing here runs plugin code.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/plugin.h>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "host/plugins/registry.h"

namespace tenon {

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
  std::vector<std::string> tables;  // ids that its extension answers
  bool operator==(const DeviceDescription&) const = default;
};
struct KernelDescription {
  std::string type;
  std::string device;
  std::string name;
  std::vector<tn_dtype> dtypes;
  int32_t score = 0;
  std::vector<std::string> claims;  // the chain of layer types; empty: the kernel is for `type` alone
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

// All of these throw TN_REFUSED; the messages name the place in the JSON or the component, not the file.

// Parses hostile text: size and depth are bounded, duplicate keys and numbers out of range refused.
[[nodiscard]] nlohmann::json parse_note(const std::string& note);
// The interval alone, which every future form of the note keeps in its place.
[[nodiscard]] AbiInterval abi_from(const nlohmann::json& note);
// Everything. Unknown keys are ignored; wrong types, unknown kinds and unsound names refused.
[[nodiscard]] Manifest manifest_from(const nlohmann::json& note);

// Accepts when the majors are equal, the plugin requires no more than this host's minor, and was built with headers
// that this host still serves. The message says both intervals and what to do.
void check_abi(const AbiInterval& abi);
// Every feature of the comma separated list must be known and present in this CPU.
void check_isa(const std::string& isa);
// Names are sound and unique, ranges are ranges.
void check_manifest(const Manifest& manifest);
// Where two manifests differ first, in a sentence; "" when they are equal.
[[nodiscard]] std::string difference(const Manifest& note, const Manifest& plugin);

}  // namespace tenon
