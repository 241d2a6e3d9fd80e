// Writes the plugin set of mode "locked" that names the plugins of a host, and verifies sets.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "host/plugins/set/plugin_set.h"

namespace tenon::host {

// A plugin that is loaded, as an entry of a set. application: it has no file.
struct LockedPlugin {
  std::string id, version;
  std::filesystem::path file;
  std::string sha256;
  std::vector<SetLibrary> libraries;
  std::vector<std::string> system;
  std::map<std::string, SetOption> options;  // that the set of the host states
  bool application = false;
};

// Examines a plugin's file, which is loaded in this process from there: its SHA-256, the libraries beside it that the
// system's loader found by "$ORIGIN", and the names of the others.
[[nodiscard]] LockedPlugin lock_plugin(const std::string& id, const std::string& version,
                                       const std::filesystem::path& file, FileSystem& files);

// Returns the text of the set. folder: where its file will lie; absolute, without links.
[[nodiscard]] std::string lock_text(const std::vector<LockedPlugin>& plugins, const std::filesystem::path& folder);

// Checks every file that a set names, without running code: returns a list of {id, file, version, sha256, status: "ok"
// or "refused", reason}. Throws as read_plugin_set.
[[nodiscard]] nlohmann::json verify_plugin_set(const std::filesystem::path& path, std::shared_ptr<FileSystem> files);

}  // namespace tenon::host
