// Loads a plugin from the bytes that a plugin set admitted. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/plugin.h>

#include <filesystem>
#include <memory>
#include <string>

#include "host/plugins/manifest.h"
#include "host/plugins/set/plugin_set.h"

namespace tenon::host {

// A plugin as it was admitted.
struct Admitted {
  const PluginSet& set;
  const SetPlugin& entry;
  std::filesystem::path file;
  std::string sha256;
  const std::string& note;   // the text of the note, as it was found
  const Manifest& manifest;  // of that note
};

// Copies the plugin and the libraries that it brings to sealed memory, or where a process has none to a folder of their
// own, checks the copies, and loads them from there: whatever happens to the files later, what runs was checked. Takes
// the image of another host of this process, if that was made of the same bytes. Otherwise as load_plugin. Throws
// TN_REFUSED, too, if a file has changed since it was admitted, or if a library of the same name that is not such a
// copy is loaded already.
[[nodiscard]] const tn_plugin& load_checked(const Admitted& plugin, const std::shared_ptr<FileSystem>& system,
                                            ThreadTags* tags);

}  // namespace tenon::host
