// SPDX-License-Identifier: Apache-2.0
#include "host/plugins/set/checked_load.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "host/plugins/elf_note.h"
#include "host/plugins/loader.h"
#include "host/plugins/set/admission.h"
#include "host/plugins/set/checked_copy.h"

namespace tenon::host {

namespace {

namespace fs = std::filesystem;

struct Close {
  void operator()(void* handle) const { ::dlclose(handle); }
};
using Handle = std::unique_ptr<void, Close>;

// Calls visit(object) for each loaded object until it returns true. No exception may pass the system's loader.
template <typename Visit>
void find_object(Visit visit) {
  std::exception_ptr failure;
  const auto call = [&](const dl_phdr_info& object) {
    try {
      return visit(object);
    } catch (...) {
      failure = std::current_exception();
      return true;
    }
  };
  using Call = decltype(call);
  dl_iterate_phdr([](dl_phdr_info* object, size_t, void* data) { return (*static_cast<Call*>(data))(*object) ? 1 : 0; },
                  const_cast<std::remove_const_t<Call>*>(&call));
  if (failure) std::rethrow_exception(failure);
}

// Returns the name of the loaded image of the plugin of this bundle, "" if there is none.
std::string loaded_image(const Bundle& bundle) {
  std::string result;
  find_object([&](const dl_phdr_info& object) {
    if (!CheckedCopy::is_name_of(object.dlpi_name, bundle.digest(), bundle.files().front().place)) return false;
    result = object.dlpi_name;
    return true;
  });
  return result;
}

// Returns whether code and constants of a loaded object are the bytes of `file`, where they lie in segments that the
// loader does not change.
bool is_image_of(const dl_phdr_info& object, InputFile& file) {
  std::vector<char> bytes;
  for (size_t i = 0; i < object.dlpi_phnum; ++i) {
    const auto& segment = object.dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0 || (segment.p_flags & PF_R) == 0) continue;
    if (segment.p_offset > file.size() || segment.p_filesz > file.size() - segment.p_offset) return false;
    bytes.resize(segment.p_filesz);
    file.read(segment.p_offset, bytes.data(), bytes.size());
    // The system's loader has mapped the segment there.
    const auto* const mapped = reinterpret_cast<const void*>(object.dlpi_addr + segment.p_vaddr);  // NOLINT
    if (!bytes.empty() && std::memcmp(mapped, bytes.data(), bytes.size()) != 0) return false;
  }
  return true;
}

// Returns the object of this soname that is loaded, if any, and its name.
Handle loaded_library(const std::string& soname, std::string& name) {
  Handle handle(::dlopen(soname.c_str(), RTLD_LAZY | RTLD_NOLOAD));
  link_map* map = nullptr;
  if (handle && ::dlinfo(handle.get(), RTLD_DI_LINKMAP, static_cast<void*>(&map)) == 0 && map->l_name != nullptr)
    name = map->l_name;
  return handle;
}

// Loads the copies of libraries before the plugin, whose needs the system's loader then finds loaded by their sonames.
class Libraries {
 public:
  // from: the libraries of the bundle; copies: their copies.
  Libraries(const Admitted& plugin, std::vector<BroughtLibrary> from, std::vector<fs::path> copies, FileSystem& files)
      : plugin_(plugin), from_(std::move(from)), copies_(std::move(copies)), files_(files), begun_(from_.size()) {
    for (size_t i = 0; i < from_.size(); ++i) load(i);
  }

 private:
  // Loads library i after those that it needs; libraries may need each other in a circle.
  void load(size_t i) {
    if (begun_[i]) return;
    begun_[i] = true;
    for (const std::string& name : from_[i].links.needed)
      for (size_t j = 0; j < from_.size(); ++j)
        if (from_[j].links.soname == name) load(j);
    std::string name;
    if (Handle loaded = loaded_library(from_[i].links.soname, name)) {
      if (!is_copy(name, i))
        fail(TN_REFUSED, "its library ", from_[i].links.soname, " is loaded in this process already, from ", name,
             ", and is not the checked copy of ", from_[i].file.string());
      handles_.push_back(std::move(loaded));
      return;
    }
    const std::string path = copies_[i].string(), from = from_[i].file.string();
    const PluginCall record = {plugin_.entry.id.c_str(), from.c_str(), "dlopen", tag_text(Tag::kLoad)};
    const PluginCallMark mark(&record);
    Handle handle(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
    if (!handle) {
      const char* const reason = ::dlerror();
      fail(TN_REFUSED, "its library ", from, " could not be loaded: ", reason == nullptr ? "no reason given" : reason);
    }
    handles_.push_back(std::move(handle));
  }

  // Whether the loaded object of this name was made of the bytes of library i: a copy by this or another host.
  bool is_copy(const std::string& name, size_t i) {
    if (!CheckedCopy::is_name_of(name, "", {})) return false;
    const std::unique_ptr<InputFile> copy = files_.open(copies_[i]);
    bool same = false;
    find_object([&](const dl_phdr_info& object) {
      if (name != object.dlpi_name) return false;
      same = is_image_of(object, *copy);
      return true;
    });
    return same;
  }

  const Admitted& plugin_;
  const std::vector<BroughtLibrary> from_;
  const std::vector<fs::path> copies_;
  FileSystem& files_;
  std::vector<bool> begun_;
  std::vector<Handle> handles_;  // until the plugin, which keeps them, is loaded
};

}  // namespace

const tn_plugin& load_checked(const Admitted& plugin, FileSystem& files, ThreadTags* tags) {
  const Bundle bundle(plugin.entry, plugin.file, plugin.sha256);
  if (const std::string image = loaded_image(bundle); !image.empty())
    return load_plugin({plugin.file, image, true}, plugin.manifest, tags);
  const CheckedCopy copy(bundle, files);
  const std::unique_ptr<InputFile> opened = files.open(copy.files().front());
  if (read_note(*opened) != plugin.note)
    fail(TN_REFUSED, "it has changed since it was found; make a new host to use the new file");
  std::vector<BroughtLibrary> libraries;
  for (size_t i = 1; i < bundle.files().size(); ++i)
    libraries.push_back({bundle.files()[i].from, bundle.files()[i].sha256, read_links(*files.open(copy.files()[i]))});
  check_libraries(plugin.set, plugin.entry, read_links(*opened), libraries);
  const Libraries loaded(plugin, std::move(libraries), {copy.files().begin() + 1, copy.files().end()}, files);
  return load_plugin({plugin.file, copy.files().front(), false}, plugin.manifest, tags);
}

}  // namespace tenon::host
