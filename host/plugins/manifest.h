// A plugin's manifest: the contents of its JSON note in owning structs. Nothing here runs plugin code.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/plugin.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "host/plugins/note_tree.h"
#include "host/plugins/offered_table.h"
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
  uint16_t minor = 0;              // as of a layer type
  std::string refused;             // as of a layer type
  bool operator==(const KernelDescription&) const = default;
};
struct ProviderDescription {
  std::string device;  // kind
  std::string id;      // of the table
  std::string name;
  int32_t score = 0;
  bool operator==(const ProviderDescription&) const = default;
};
struct NeededLibrary {
  std::string name;
  std::string hint;
  bool operator==(const NeededLibrary&) const = default;
};

struct Manifest {
  AbiInterval abi;
  std::string id, version, doc, license, isa;
  bool is_native = false;  // its providers are for hosts of native arithmetic
  std::vector<LayerDescription> layers;
  std::vector<UpdaterDescription> updaters;
  std::vector<ReaderDescription> readers;
  std::vector<DeviceDescription> devices;
  std::vector<KernelDescription> kernels;
  std::vector<NeededLibrary> libraries;
  std::vector<ProviderDescription> providers;
  std::vector<Attribute> options;  // what a plugin set may set
  std::vector<CommDescription> comms;
  std::vector<Draft> drafts;
  bool operator==(const Manifest&) const = default;
};

// The functions below throw TN_REFUSED; the messages name the place in the JSON or the component, not the file.

// Reads the versions alone. Every future form of the note keeps them in this place.
[[nodiscard]] AbiInterval abi_from(const NoteTree& note);
// Reads the whole manifest. Ignores unknown keys; refuses wrong types and malformed names. A component with an unknown
// value, which a newer interface may have, is only marked as refused.
[[nodiscard]] Manifest manifest_from(const NoteTree& note);

// The version of the plugin interface that a host has, and the oldest minor version of major 0 whose plugins it runs.
struct HostAbi {
  int major = TN_ABI_MAJOR, minor = TN_ABI_MINOR, oldest = TN_ABI_OLDEST;
};
// Accepts a plugin of the host's major version that requires at most the host's minor version and was built with
// headers that this host still supports. A host of 1.x accepts those of 0.x as well: 1.0 is the last 0.x under another
// number (docs/interface-1.0.md). The message gives both versions and what to do.
void check_abi(const AbiInterval& abi, const HostAbi& host = {});
// Accepts a comma-separated list of features that are all known and present in this CPU.
void check_isa(const std::string& isa);
// Whether this host knows the kind of an attribute, TN_ATTR_*. The rest of an attribute of another kind is not read.
[[nodiscard]] bool is_known_kind(int32_t kind);
// The traits of readers that this host knows (TN_TRAIT_*), those of calls, and those of communicators (TN_COMM_*).
inline constexpr uint32_t kKnownTraits =
    TN_TRAIT_OWN_THREADS | TN_TRAIT_HOST_CALLBACK | TN_TRAIT_CAPTURABLE | TN_TRAIT_NONDETERMINISTIC;
inline constexpr uint32_t kKnownCallTraits = kKnownTraits | TN_TRAIT_HOST_SIZES | TN_TRAIT_BATCH_VARIANT |
                                             TN_TRAIT_ANY_ALIGNMENT | TN_TRAIT_PORTABLE | TN_TRAIT_BLOCKING;
inline constexpr uint32_t kKnownCommTraits =
    TN_COMM_SURVIVES | TN_COMM_AUTHENTICATED | TN_COMM_ENCRYPTED | TN_COMM_ONE_PER_PROCESS;
// Whether a name consists of lower case letters, digits and underscores, and begins with a letter.
[[nodiscard]] bool is_word(std::string_view name);
// Returns why a component with this value is refused: "its <what> is unknown to this host, ...".
[[nodiscard]] std::string unknown_value(const std::string& what);
// Checks that names are well-formed and unique, ranges finite and not empty. Marks the components as refused that have
// a role, kind, flag, trait, compute type or length that this host does not know.
void check_manifest(Manifest& manifest);
// Returns the first difference of two manifests as a sentence, "" if they are equal. Of components that are refused it
// compares the names alone. A note lists the tables and drafts that its writer knew: the code must have these of them
// that this host knows.
[[nodiscard]] std::string difference(Manifest note, Manifest plugin);

}  // namespace tenon::host
