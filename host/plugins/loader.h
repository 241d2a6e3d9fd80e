// One plugin's descriptor: loaded from its file, checked, described, copied into full-size tables.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/plugin.h>

#include <filesystem>
#include <vector>

#include "host/plugins/manifest.h"
#include "host/plugins/registry.h"

namespace tenon {

// Loads `file` (absolute) and gives its descriptor, which lives until the process ends: a plugin is never unmapped.
// In this order, each with its own refusal: load, find the symbol, call it, compare the interface, compare the rest
// with `note`. A load that fails for want of a library carries the hint of the manifest. TN_REFUSED. tags: null where
// nothing is checked.
[[nodiscard]] const tn_plugin& load_plugin(const std::filesystem::path& file, const Manifest& note, ThreadTags* tags);

// The manifest that a descriptor stands for, checked as one. TN_REFUSED names component and member where a table is
// too short or lacks what cannot be missing.
[[nodiscard]] Manifest describe(const tn_plugin& plugin);

// Everything that a plugin offers, ready to be called.
struct Components {
  std::vector<LayerType> layers;
  std::vector<UpdaterType> updaters;
  std::vector<ReaderType> readers;
  std::vector<DeviceType> devices;
  std::vector<Kernel> kernels;
};
// `manifest` is what describe gave for `plugin`; the components carry `tags`.
[[nodiscard]] Components adopt(const tn_plugin& plugin, const Manifest& manifest, ThreadTags* tags);

}  // namespace tenon
