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

// Examines a plugin's file: its SHA-256, the names of the libraries of the system and of this process that are loaded
// with it, and the files of the others with their digests, wherever the system's loader finds them now. TN_REFUSED if a
// host with such a set would refuse it.
[[nodiscard]] LockedPlugin lock_plugin(const std::string& id, const std::string& version,
                                       const std::filesystem::path& file, const std::shared_ptr<FileSystem>& files);

// Returns the text of the set. folder: where its file will lie; absolute, without links.
[[nodiscard]] std::string lock_text(const std::vector<LockedPlugin>& plugins, const std::filesystem::path& folder);

// Checks every file that a set names, without running code: returns a list of {id, file, version, sha256, status: "ok"
// or "refused", reason, warning}. An entry without a file is listed with an empty one if there is a warning: what it
// leaves open. Throws as read_plugin_set.
[[nodiscard]] nlohmann::json verify_plugin_set(const std::filesystem::path& path,
                                               const std::shared_ptr<FileSystem>& files);

}  // namespace tenon::host
