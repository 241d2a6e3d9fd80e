// SPDX-License-Identifier: Apache-2.0
#include "host/plugins/set/admission.h"

#include <algorithm>

#include "host/plugins/manifest.h"
#include "host/plugins/set/checked_copy.h"
#include "host/plugins/set/signature.h"

namespace tenon::host {

namespace {

namespace fs = std::filesystem;

// "the plugin set /deploy/set.toml (locked)"
std::string named(const PluginSet& set) {
  return text("the plugin set ", set.path.string(), " (", mode_name(set.mode), ")");
}

std::string signature_refusal(const PluginSet& set, const SetPlugin& entry, const Candidate& candidate) {
  if (candidate.signature.empty()) return candidate.unsigned_why;
  std::string names;
  for (const SetKey& key : set.keys) {
    if (std::find(entry.signed_by.begin(), entry.signed_by.end(), key.name) == entry.signed_by.end()) continue;
    if (is_signed(candidate.sha256, candidate.signature, key.bytes)) return "";
    names += (names.empty() ? "\"" : " or \"") + key.name + "\"";
  }
  return text("its signature in ", signature_file(candidate.file).string(), " is not one of key ", names, " of ",
              entry.place, " over these bytes");
}

}  // namespace

std::string refusal(const PluginSet& set, const Candidate& candidate) {
  const SetPlugin* const entry = set.find(candidate.id);
  const bool of_application = candidate.file.empty();
  if (entry == nullptr) {
    if (set.mode == SetMode::kDev) return "";
    return text("its id \"", candidate.id, "\" is not listed in ", named(set));
  }
  if (of_application != entry->application)
    return text("its id \"", candidate.id, "\" is listed at ", entry->place, " as a plugin ",
                of_application ? "in a file, and the application adds it; such an entry has application = true"
                               : "of the application, and this is a file");
  if (!entry->version.contains(candidate.version))
    return text("its version \"", candidate.version, "\" is not in the interval \"", entry->version.text(), "\" of ",
                entry->place);
  if (!entry->file.empty() && entry->file != candidate.file)
    return text("for its id \"", candidate.id, "\" ", entry->place, " names the file ", entry->file.string());
  if (!entry->sha256.empty() && entry->sha256 != candidate.sha256)
    return text("its SHA-256 is ", candidate.sha256, "; ", entry->place, " names ", entry->sha256);
  return entry->signed_by.empty() ? "" : signature_refusal(set, *entry, candidate);
}

namespace {

// Returns the names that the plugin and the libraries need and none of the libraries has.
std::vector<std::string> others_needed(const PluginSet& set, const SetPlugin& entry, const Links& plugin,
                                       const std::vector<BroughtLibrary>& libraries) {
  std::vector<std::string> result;
  const auto add = [&](const Links& links, const std::string& who) {
    for (const std::string& name : links.needed) {
      const auto brought = [&](const BroughtLibrary& library) { return library.links.soname == name; };
      if (std::any_of(libraries.begin(), libraries.end(), brought)) continue;
      if (set.mode == SetMode::kLocked &&
          std::find(entry.system.begin(), entry.system.end(), name) == entry.system.end())
        fail(TN_REFUSED, who, " needs the library ", name, ", which ", entry.place,
             " names neither in \"libraries\" nor in \"system\"");
      if (name.find('/') != std::string::npos)
        fail(TN_REFUSED, who, " needs the library ", name,
             " by its path, at which any bytes may be; a library is named");
      result.push_back(name);
    }
  };
  add(plugin, "it");
  for (const BroughtLibrary& library : libraries) add(library.links, "its library " + library.file.string());
  return result;
}

// Throws unless a library is one that the loader may take by its name: of the system, or of this process.
void check_system(const SetPlugin& entry, const NeededFile& needed, LibrarySearch& search) {
  const auto refuse = [&](const std::string& why) {
    fail(TN_REFUSED, needed.by.empty() ? "it" : needed.by.string(), " needs the library ", needed.name,
         ", which is not in \"libraries\" of ", entry.place, ": ", why);
  };
  if (search.is_of_process(needed.name)) return;
  if (needed.file.empty()) refuse("no library of the system has that name");
  if (!needed.unguarded.empty()) refuse(needed.unguarded);
  if (!needed.of_system) refuse(needed.file.string() + " is not a library of the system");
  if (needed.links.soname != needed.name)
    refuse(text(needed.file.string(), " has the soname (DT_SONAME) \"", needed.links.soname, "\", not that name"));
}

// Libraries of a plugin whose bytes the set does not name, in the places where the loader finds them now.
void check_guarded_libraries(const fs::path& plugin, const Links& links, LibrarySearch& search) {
  check_search(links, plugin.parent_path(), {}, "it");
  for (const NeededFile& needed : search.needed_by(plugin, links)) {
    if (needed.file.empty() || needed.of_system || search.is_of_process(needed.name)) continue;
    if (!needed.unguarded.empty())
      fail(TN_REFUSED, needed.by.string(), " needs the library ", needed.name, ": ", needed.unguarded);
    check_search(needed.links, needed.place.parent_path(), {}, "its library " + needed.file.string());
  }
}

// Whether a file lies in one of the folders or in a folder of them.
bool is_below(const fs::path& file, const std::vector<fs::path>& folders) {
  return std::any_of(folders.begin(), folders.end(), [&](const fs::path& folder) { return is_within(file, folder); });
}

// In mode "allow" an id admits a file only if nobody but the deployer could put it where it is.
void check_place(const PluginSet& set, const SetPlugin& entry, const std::string& id, const fs::path& file,
                 const Surroundings& around) {
  const bool chosen = !entry.file.empty() || is_below(file, around.installed);
  if (!chosen && !is_below(file, set.folders))
    fail(TN_REFUSED, "it is in none of the folders that ", named(set), " searches");
  check_guarded(around.found);
  if (!entry.named.empty()) check_guarded(entry.named);
  if (chosen || entry.names_bytes()) return;
  if (id == "tenon" || id.starts_with("tenon."))  // a type without the name of a vendor has such an id
    fail(TN_REFUSED, "its id \"", id, "\" is one of Tenon's, and the file is not among the installed plugins; ",
         entry.place, " admits such a file with \"file\", \"sha256\" or \"signed_by\" alone");
}

}  // namespace

std::vector<NeededFile> check_libraries(const PluginSet& set, const SetPlugin& entry, const Links& plugin,
                                        const std::vector<BroughtLibrary>& libraries, LibrarySearch& search) {
  for (size_t i = 0; i < libraries.size(); ++i) {
    const BroughtLibrary& library = libraries[i];
    if (library.sha256 != entry.libraries[i].sha256)
      fail(TN_REFUSED, "the SHA-256 of its library ", library.file.string(), " is ", library.sha256, "; ", entry.place,
           " names ", entry.libraries[i].sha256);
    if (library.links.soname.empty())
      fail(TN_REFUSED, "its library ", library.file.string(),
           " has no soname (DT_SONAME), by which the system's loader finds the checked copy");
  }
  std::vector<NeededFile> result = search.of_system(others_needed(set, entry, plugin, libraries));
  std::erase_if(result, [&](const NeededFile& needed) {
    return std::any_of(libraries.begin(), libraries.end(),
                       [&](const BroughtLibrary& library) { return library.links.soname == needed.name; });
  });
  for (const NeededFile& needed : result) check_system(entry, needed, search);
  check_search(plugin, kMemory, kAroundMemory, "it");
  for (const BroughtLibrary& library : libraries)
    check_search(library.links, kMemory, kAroundMemory, "its library " + library.file.string());
  return result;
}

std::string admit_file(const PluginSet& set, const Manifest& manifest, const fs::path& path, InputFile& file,
                       const Surroundings& around) {
  Candidate candidate{manifest.id, manifest.version, path, "", "", ""};
  const SetPlugin* const entry = set.find(manifest.id);
  const bool names_bytes = entry != nullptr && entry->names_bytes();
  if (names_bytes) candidate.sha256 = digest_of(file);
  if (names_bytes && !entry->signed_by.empty()) try {
      candidate.signature = read_signature(path, *around.files);
    } catch (const Error& error) {
      if (error.code() != TN_REFUSED) throw;
      candidate.unsigned_why = error.message();
    }
  if (const std::string why = refusal(set, candidate); !why.empty()) fail(TN_REFUSED, why);
  const bool allow = set.mode == SetMode::kAllow;
  if (allow) check_place(set, *entry, manifest.id, path, around);
  if (!names_bytes) {
    if (allow) check_guarded_libraries(path, read_links(file), around.libraries);
    return "";
  }
  std::vector<BroughtLibrary> libraries;
  for (const SetLibrary& library : entry->libraries) {
    const std::unique_ptr<InputFile> opened = around.files->open(library.file);
    libraries.push_back({library.file, digest_of(*opened), read_links(*opened)});
  }
  (void)check_libraries(set, *entry, read_links(file), libraries, around.libraries);
  return candidate.sha256;
}

}  // namespace tenon::host
