// Whether a plugin set admits a plugin. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "host/plugins/elf_note.h"
#include "host/plugins/set/library_search.h"
#include "host/plugins/set/plugin_set.h"

namespace tenon::host {

struct Manifest;

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

// Throws TN_REFUSED unless the libraries are those of the entry, which names bytes, and every other library that is
// loaded with the plugin and them is one of the system's, or of this process. In a set of mode "locked"
// also unless the entry names those of the system that the plugin and its libraries need. Returns these and what they
// need.
std::vector<NeededFile> check_libraries(const PluginSet& set, const SetPlugin& entry, const Links& plugin,
                                        const std::vector<BroughtLibrary>& libraries, LibrarySearch& search);

// Where a plugin is examined.
struct Surroundings {
  const std::shared_ptr<FileSystem>& files;
  const std::vector<std::filesystem::path>& installed;  // folders of the installed plugins; absolute, without links
  LibrarySearch& libraries;
  const std::filesystem::path& found;  // the plugin's file as it was found: absolute, with links
};

// Throws TN_REFUSED unless the file's plugin is admitted. Returns the SHA-256 of its file, "" if the set does not name
// its bytes. Reads `file`, the signature beside it and the libraries that are loaded with it.
[[nodiscard]] std::string admit_file(const PluginSet& set, const Manifest& manifest, const std::filesystem::path& path,
                                     InputFile& file, const Surroundings& around);

}  // namespace tenon::host
