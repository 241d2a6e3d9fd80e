// SPDX-License-Identifier: Apache-2.0
#include "host/plugins/set/admission.h"

#include <algorithm>

#include "host/plugins/set/signature.h"

namespace tenon::host {

namespace {

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

void check_libraries(const PluginSet& set, const SetPlugin& entry, const Links& plugin,
                     const std::vector<BroughtLibrary>& libraries) {
  for (size_t i = 0; i < libraries.size(); ++i) {
    const BroughtLibrary& library = libraries[i];
    if (library.sha256 != entry.libraries[i].sha256)
      fail(TN_REFUSED, "the SHA-256 of its library ", library.file.string(), " is ", library.sha256, "; ", entry.place,
           " names ", entry.libraries[i].sha256);
    if (library.links.soname.empty())
      fail(TN_REFUSED, "its library ", library.file.string(),
           " has no soname (DT_SONAME), by which the system's loader finds the checked copy");
  }
  if (set.mode != SetMode::kLocked) return;
  const auto check = [&](const Links& links, const std::string& who) {
    for (const std::string& name : links.needed) {
      const auto brought = [&](const BroughtLibrary& library) { return library.links.soname == name; };
      if (std::find(entry.system.begin(), entry.system.end(), name) != entry.system.end() ||
          std::any_of(libraries.begin(), libraries.end(), brought))
        continue;
      fail(TN_REFUSED, who, " needs the library ", name, ", which ", entry.place,
           " names neither in \"libraries\" nor in \"system\"");
    }
  };
  check(plugin, "it");
  for (const BroughtLibrary& library : libraries) check(library.links, "its library " + library.file.string());
}

std::string admit_file(const PluginSet& set, const std::string& id, const std::string& version,
                       const std::filesystem::path& path, InputFile& file, FileSystem& files) {
  Candidate candidate{id, version, path, "", "", ""};
  const SetPlugin* const entry = set.find(id);
  const bool names_bytes = entry != nullptr && entry->names_bytes();
  if (names_bytes) candidate.sha256 = digest_of(file);
  if (names_bytes && !entry->signed_by.empty()) try {
      candidate.signature = read_signature(path, files);
    } catch (const Error& error) {
      if (error.code() != TN_REFUSED) throw;
      candidate.unsigned_why = error.message();
    }
  if (const std::string why = refusal(set, candidate); !why.empty()) fail(TN_REFUSED, why);
  if (!names_bytes) return "";
  std::vector<BroughtLibrary> libraries;
  for (const SetLibrary& library : entry->libraries) {
    const std::unique_ptr<InputFile> opened = files.open(library.file);
    libraries.push_back({library.file, digest_of(*opened), read_links(*opened)});
  }
  check_libraries(set, *entry, read_links(file), libraries);
  return candidate.sha256;
}

}  // namespace tenon::host
