// A plugin set: which plugins a host may load, as docs/plugin-sets.md describes the file.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/attribute.h"
#include "core/system.h"
#include "host/plugins/set/version.h"

namespace tenon::host {

// In the order in which they tighten.
enum class SetMode {
  kDev,    // every plugin that is found; an entry constrains the plugin of its id
  kAllow,  // plugins that are listed
  kLocked  // files that are listed, with their SHA-256; no folder is searched
};
[[nodiscard]] const char* mode_name(SetMode mode);

struct SetKey {
  std::string name;
  std::string bytes;  // of the public key
};

// A library that a plugin brings.
struct SetLibrary {
  std::filesystem::path file;  // absolute, without links
  std::string sha256;
};

// The value of an option of a plugin: a bool, int, float or string.
struct SetOption {
  Value value;
  std::string place;  // in the set's file, for messages
};

struct SetPlugin {
  std::string place;  // in the set's file, for messages
  std::string id;
  VersionInterval version;
  std::filesystem::path file;          // absolute, without links; empty: any
  std::filesystem::path named;         // the file as the set names it: absolute, with links
  std::string sha256;                  // in lower-case hex; empty: any
  std::vector<std::string> signed_by;  // names of keys, of which one must have signed it; empty: it need not be signed
  std::vector<SetLibrary> libraries;
  std::vector<std::string> system;           // names of libraries that the system's loader finds
  bool application = false;                  // the application itself adds it
  std::map<std::string, SetOption> options;  // by name

  // Whether only bytes that were checked may run.
  [[nodiscard]] bool names_bytes() const { return !sha256.empty() || !signed_by.empty(); }
};

struct PluginSet {
  std::filesystem::path path;  // absolute, without links
  SetMode mode = SetMode::kDev;
  bool installed = true;                       // whether the folder of the installed plugins is searched
  std::vector<std::filesystem::path> folders;  // searched, too; absolute, without links
  std::vector<SetKey> keys;
  std::vector<SetPlugin> plugins;

  // Null if the set does not list the id.
  [[nodiscard]] const SetPlugin* find(const std::string& id) const;
};

// Reads and checks a set. Every message names file and line. TN_NOT_FOUND: the set, or a file or folder that it names,
// does not exist. TN_BAD_CONFIG: the text is wrong. TN_REFUSED: others than root and the user of this process may
// change the set, a folder that it names, or in mode "locked" a file that it names, or a link on the way to one. TN_IO:
// it cannot be read.
[[nodiscard]] PluginSet read_plugin_set(const std::filesystem::path& path, FileSystem& files);

// Throws TN_REFUSED, naming the path, if others than root and the user of this process may change a file or folder: if
// its mode lets them write, or they own it; the folder around a file likewise. The other folders through which the path
// and its links lead may be such as /tmp, in which everybody may create files and nobody may rename those of others;
// then links in them must belong to root or this user. path: absolute; it may have links.
void check_guarded(const std::filesystem::path& path);
// The same for a folder that need not exist: then for that in which its path can be made.
void check_guarded_search(const std::filesystem::path& folder);
// The same for a folder in which everybody may create files, if nobody may rename those of others.
void check_unchangeable(const std::filesystem::path& folder);
// Whether a path lies in a folder or is the folder. Both absolute and without links.
[[nodiscard]] bool is_within(const std::filesystem::path& path, const std::filesystem::path& folder);

}  // namespace tenon::host
