// One plugin's descriptor: loaded from its file, checked, described, copied into full-size tables.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/plugin.h>

#include <filesystem>
#include <string_view>
#include <vector>

#include "host/plugins/manifest.h"
#include "host/plugins/registry.h"

namespace tenon::host {

// A plugin's file and the file from which it is loaded, both absolute.
struct LoadFrom {
  std::filesystem::path file;
  std::filesystem::path from;  // the file itself, or a copy of it
  bool loaded = false;         // whether `from` is the name of an image that is loaded already
};

// Loads a file and returns its descriptor, which is valid until the process ends: a plugin is never
// unmapped. Throws TN_REFUSED if one of these steps fails, each with its own message: load the file, find the symbol,
// call it, check the interface version, compare the rest with `note`. If a library is missing, the message ends with
// the manifest's hint. Throws TN_OUT_OF_MEMORY if memory is too short to load the file. tags: null if checking is off.
[[nodiscard]] const tn_plugin& load_plugin(const LoadFrom& plugin, const Manifest& note, ThreadTags* tags);

// Returns a descriptor as a manifest, checked like one. TN_REFUSED, naming component and member, if a table is too
// short or lacks a required member.
[[nodiscard]] Manifest describe(const tn_plugin& descriptor);

// Everything that a plugin offers, ready to be called.
struct Components {
  std::vector<LayerType> layers;
  std::vector<UpdaterType> updaters;
  std::vector<ReaderType> readers;
  std::vector<DeviceType> devices;
  std::vector<CommType> comms;
  std::vector<Kernel> kernels;
  std::vector<Provider> providers;
};
// Copies the components of `plugin`. `manifest` equals describe(plugin); the components carry `tags` and `setup`.
[[nodiscard]] Components adopt(const tn_plugin& plugin, const Manifest& manifest, ThreadTags* tags,
                               std::recursive_mutex* setup);

}  // namespace tenon::host
