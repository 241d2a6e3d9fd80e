// Finds the plugins of a registry, and chooses among them. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "core/folder.h"
#include "host/plugins/elf_note.h"
#include "host/plugins/registry_state.h"
#include "host/plugins/set/admission.h"

namespace tenon::host {

namespace {

namespace fs = std::filesystem;

FoundFile resolve(const fs::path& path) {
  FoundFile result{path, {}, {}};
  result.resolved = fs::canonical(path, result.error);
  return result;
}

// Adds every *.so below `path` to `found`, and the folders that cannot be read to those of `of`. Does not follow links
// to folders, so the recursion ends.
void collect(const fs::path& path, std::vector<FoundFile>& found, Folder& of) {
  std::error_code error, ignored;
  const FoundFile folder = resolve(path);
  for (const std::string& name : names_in(path, error)) {
    const fs::path inner = path / name;
    const fs::file_type type = fs::symlink_status(inner, ignored).type();
    if (type == fs::file_type::directory)
      collect(inner, found, of);
    else if (inner.extension() != ".so")
      continue;
    else if (type == fs::file_type::regular && !folder.error)
      found.push_back({inner, folder.resolved / name, {}});
    else if (!fs::is_directory(inner, ignored))
      found.push_back(resolve(inner));
  }
  if (error == std::errc::not_enough_memory) fail(TN_OUT_OF_MEMORY, path.string(), ": ", error.message());
  if (error) of.unreadable.push_back({path, text(path.string(), ": the folder cannot be read: ", error.message())});
}

// Returns every *.so below the folder in sorted order.
std::vector<FoundFile> shared_objects(Folder& folder) {
  std::vector<FoundFile> result;
  std::error_code error;
  folder.exists = fs::is_directory(folder.path, error);
  if (folder.exists) collect(folder.path, result, folder);
  std::sort(result.begin(), result.end(), [](const FoundFile& a, const FoundFile& b) { return a.path < b.path; });
  return result;
}

// Returns the names of the components that can be used.
std::vector<std::string> names(const Manifest& manifest, Kind kind) {
  std::vector<std::string> result;
  for (Offer& offer : offers(manifest, kind))
    if (offer.refused.empty()) result.push_back(std::move(offer.name));
  return result;
}

}  // namespace

std::vector<Offer> offers(const Manifest& manifest, Kind kind) {
  std::vector<Offer> result;
  const auto collect = [&result](const auto& descriptions) {
    for (const auto& description : descriptions)
      result.push_back({description.type, description.doc, description.refused});
  };
  switch (kind) {
    case Kind::kLayer:
      collect(manifest.layers);
      break;
    case Kind::kUpdater:
      collect(manifest.updaters);
      break;
    case Kind::kReader:
      collect(manifest.readers);
      break;
    case Kind::kComm:
      collect(manifest.comms);
      break;
    case Kind::kDevice:
      for (const DeviceDescription& device : manifest.devices) result.push_back({device.kind, device.doc, ""});
      break;
  }
  return result;
}

// Returns the message with the file in front of it, unless it names the file already, as system failures do.
std::string reason_of(const fs::path& file, const Error& refusal) {
  return refusal.subject() == file.string() ? refusal.message() : file.string() + ": " + refusal.message();
}

void Registry::State::scan() {
  if (set) {
    folders.insert(folders.begin(), Folder{set->path, true, true, {}});
    for (const SetPlugin& entry : set->plugins)
      if (!entry.file.empty()) find_file(resolve(entry.file), 0);
  }
  for (size_t i = 0; i < folders.size(); ++i)
    if (!folders[i].is_set)
      for (const FoundFile& file : shared_objects(folders[i])) find_file(file, i);
  choose_versions();
  for (const auto& plugin : plugins) {
    if (!plugin->usable()) continue;
    plugin->reason = conflict(*plugin);
    if (!plugin->refused()) own(*plugin, owners);
  }
  OptionTable::Items used;
  for (const auto& plugin : plugins)
    if (plugin->usable()) used.emplace_back(plugin->manifest->id, plugin->options);
  options->set(used);
}

// Adds a file with the reason if it is refused, unless it was found before by another name.
void Registry::State::find_file(const FoundFile& found, size_t folder) {
  auto plugin = std::make_unique<Plugin>();
  plugin->folder = folder;
  plugin->path = found.error ? found.path : found.resolved;
  plugin->found = found.path;
  if (!paths.insert(plugin->path).second) return;
  try {
    if (found.error == std::errc::not_enough_memory)
      fail(TN_OUT_OF_MEMORY, found.path.string(), ": ", found.error.message());
    if (found.error) fail(TN_REFUSED, "it cannot be resolved: ", found.error.message());
    examine(*plugin);
  } catch (const Error& refusal) {
    if (refusal.code() == TN_OUT_OF_MEMORY) throw;
    plugin->reason = reason_of(plugin->path, refusal);
  }
  plugins.push_back(std::move(plugin));
}

// Reads and checks the note, and asks the plugin set. If a check throws, a manifest that could be read stays in
// `plugin`, for list().
void Registry::State::examine(Plugin& plugin) {
  const std::unique_ptr<InputFile> file = files->open(plugin.path);
  plugin.note = read_note(*file);
  const NoteTree note(plugin.note);
  const AbiInterval abi = abi_from(note);
  try {
    plugin.manifest = manifest_from(note);
  } catch (const Error&) {
    check_abi(abi);  // comes first: the manifest of another version may look different
    throw;
  }
  check_abi(abi);
  check_isa(plugin.manifest->isa);
  check_unwinder(*file);
  if (set)
    plugin.sha256 = admit_file(*set, *plugin.manifest, plugin.path, *file, {files, installed, libraries, plugin.found});
  plugin.set = plugin.sha256.empty() ? nullptr : set;
  plugin.options = options_under(set.get(), plugin);
}

std::string Registry::State::not_searched(Kind kind, const std::string& name) const {
  for (const fs::path& path : left_out) {
    Folder folder{path, false, false, {}};
    for (const FoundFile& file : shared_objects(folder)) try {
        const Manifest manifest = manifest_from(NoteTree(read_note(*files->open(file.path))));
        for (const Offer& offer : offers(manifest, kind))
          if (offer.name == name)
            return text("; ", file.resolved.string(), " offers it, and the plugin set does not list its id \"",
                        manifest.id, "\"");
      } catch (const Error& error) {
        if (error.code() == TN_OUT_OF_MEMORY) throw;
      }
  }
  return "";
}

void Registry::State::choose_versions() {
  std::map<std::string, Plugin*> chosen;
  for (const auto& plugin : plugins) {
    if (plugin->refused()) continue;
    const auto [place, first] = chosen.emplace(plugin->manifest->id, plugin.get());
    if (!first && std::is_gt(compare_versions(plugin->manifest->version, place->second->manifest->version)))
      place->second = plugin.get();
  }
  for (const auto& plugin : plugins) {
    if (plugin->refused()) continue;
    const Plugin& used = *chosen.at(plugin->manifest->id);
    if (&used == plugin.get()) continue;
    const bool newer = std::is_gt(compare_versions(used.manifest->version, plugin->manifest->version));
    plugin->unused =
        text(plugin->where(), ": its id \"", plugin->manifest->id, "\" is also that of ", used.where(),
             newer ? text(", whose version ", used.manifest->version, " is newer than ", plugin->manifest->version)
                   : ", which has the same version and comes first");
  }
}

std::string Registry::State::conflict(const Plugin& plugin) const {
  for (const Kind kind : kKinds) {
    const auto& owned = owners[static_cast<size_t>(kind)];
    for (const std::string& name : names(*plugin.manifest, kind))
      if (const auto found = owned.find(name); found != owned.end())
        return text(plugin.where(), ": it offers the ", kind_name(kind), " \"", name, "\", as ", found->second->where(),
                    " does, which comes first");
  }
  return "";
}

void Registry::State::own(Plugin& plugin, Owners& to) {
  for (const Kind kind : kKinds)
    for (const std::string& name : names(*plugin.manifest, kind)) to[static_cast<size_t>(kind)].emplace(name, &plugin);
}

// Changes nothing if it throws.
void Registry::State::add_plugin(std::unique_ptr<Plugin> plugin) {
  Owners after = owners;
  own(*plugin, after);
  plugins.reserve(plugins.size() + 1);
  options->set({{plugin->manifest->id, plugin->options}});
  plugins.push_back(std::move(plugin));
  owners.swap(after);
}

std::string Registry::State::refusal_by(const PluginSet& by, const Plugin& plugin, std::string& sha256) {
  const Manifest& manifest = *plugin.manifest;
  if (plugin.path.empty()) return refusal(by, {manifest.id, manifest.version, {}, "", "", ""});
  try {
    sha256 =
        admit_file(by, manifest, plugin.path, *files->open(plugin.path), {files, installed, libraries, plugin.found});
  } catch (const Error& error) {
    if (error.code() != TN_REFUSED) throw;
    return error.message();
  }
  // A set of mode "locked" names the bytes of every plugin.
  if (plugin.loaded && !sha256.empty() && (!plugin.checked || plugin.sha256 != sha256))
    return "its bytes were not checked when it was loaded, as the entry of its id wants";
  return "";
}

std::shared_ptr<const PluginOptions> Registry::State::options_under(const PluginSet* by, const Plugin& plugin) {
  return std::make_shared<const PluginOptions>(plugin.manifest->options,
                                               by == nullptr ? nullptr : by->find(plugin.manifest->id));
}

std::string Registry::State::other_options(const PluginSet& by, const Plugin& plugin,
                                           std::shared_ptr<const PluginOptions>& options) {
  try {
    options = options_under(&by, plugin);
  } catch (const Error& error) {
    if (error.code() != TN_REFUSED) throw;
    return error.message();
  }
  if (!plugin.loaded || options->values() == plugin.options->values()) return "";
  return "it was loaded with other options";
}

void Registry::State::use(std::shared_ptr<const PluginSet> next) {
  if (set && next->mode < set->mode)
    fail(TN_REFUSED, "the plugin set ", next->path.string(), " has the mode \"", mode_name(next->mode),
         "\", which is looser than the mode \"", mode_name(set->mode), "\" of this host; modes only tighten");
  std::vector<std::string> reasons, digests;
  std::vector<std::shared_ptr<const PluginOptions>> values;
  OptionTable::Items used;
  for (const auto& plugin : plugins) {
    std::string digest, why;
    std::shared_ptr<const PluginOptions> value = plugin->options;
    if (plugin->usable()) why = refusal_by(*next, *plugin, digest);
    if (plugin->usable() && why.empty()) why = other_options(*next, *plugin, value);
    if (!why.empty() && plugin->loaded)
      fail(TN_REFUSED, "the plugin set ", next->path.string(),
           " does not admit a plugin that is loaded already: ", plugin->where(), ": ", why);
    if (plugin->usable() && why.empty() && !plugin->loaded) used.emplace_back(plugin->manifest->id, value);
    reasons.push_back(why.empty() ? "" : plugin->where() + ": " + why);
    digests.push_back(std::move(digest));
    values.push_back(std::move(value));
  }
  Owners after;
  for (size_t i = 0; i < plugins.size(); ++i)
    if (plugins[i]->usable() && reasons[i].empty()) own(*plugins[i], after);
  options->set(used);
  for (size_t i = 0; i < plugins.size(); ++i) {  // none of this throws
    if (!plugins[i]->usable()) continue;
    plugins[i]->reason.swap(reasons[i]);
    plugins[i]->options.swap(values[i]);
    if (digests[i].empty()) continue;  // an earlier set may name the bytes
    plugins[i]->sha256.swap(digests[i]);
    plugins[i]->set = next;
  }
  owners.swap(after);
  set.swap(next);
}

}  // namespace tenon::host
