// Whether a plugin set admits a plugin. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "host/plugins/elf_note.h"
#include "host/plugins/set/plugin_set.h"

namespace tenon::host {

// A plugin that was found, as far as a set asks for it.
struct Candidate {
  std::string id, version;
  std::filesystem::path file;  // empty: the application adds it
  std::string sha256;          // of the file; "" unless the set names its bytes
  std::string signature;       // bytes; "" if it has none
  std::string unsigned_why;    // why it has none
};

// Returns why the set does not admit the plugin, "" if it does. Pure: looks at its arguments alone.
[[nodiscard]] std::string refusal(const PluginSet& set, const Candidate& candidate);

// A library that a plugin brings, as its file was found.
struct BroughtLibrary {
  std::filesystem::path file;
  std::string sha256;
  Links links;
};

// Throws TN_REFUSED unless the libraries are those of the entry; in a set of mode "locked" also unless every library
// that the plugin and they need is among them or among the system's libraries of the entry.
void check_libraries(const PluginSet& set, const SetPlugin& entry, const Links& plugin,
                     const std::vector<BroughtLibrary>& libraries);

// Throws TN_REFUSED unless the file's plugin is admitted. Returns the SHA-256 of its file, "" if the set does not name
// its bytes. Reads `file`, the signature beside it and the libraries that the entry lists.
[[nodiscard]] std::string admit_file(const PluginSet& set, const std::string& id, const std::string& version,
                                     const std::filesystem::path& path, InputFile& file, FileSystem& files);

}  // namespace tenon::host
