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

// Whether libraries need each other in a circle, so that none of them can be loaded before the others.
class Circle {
 public:
  explicit Circle(const std::vector<BroughtLibrary>& libraries) : libraries_(libraries), state_(libraries.size()) {}
  bool exists() {
    for (size_t i = 0; i < libraries_.size(); ++i)
      if (visit(i)) return true;
    return false;
  }

 private:
  enum class State : uint8_t { kNew, kOpen, kDone };
  bool visit(size_t i) {
    if (state_[i] != State::kNew) return state_[i] == State::kOpen;
    state_[i] = State::kOpen;
    for (const std::string& name : libraries_[i].links.needed)
      for (size_t j = 0; j < libraries_.size(); ++j)
        if (j != i && libraries_[j].links.soname == name && visit(j)) return true;
    state_[i] = State::kDone;
    return false;
  }

  const std::vector<BroughtLibrary>& libraries_;
  std::vector<State> state_;
};

// Loads the copies of libraries and the libraries of the system before the plugin, whose needs the system's loader then
// finds loaded by their sonames: no search path and no LD_LIBRARY_PATH has a say.
class Libraries {
 public:
  // from: the libraries of the bundle; copies: their copies; system: the others.
  Libraries(const Admitted& plugin, std::vector<BroughtLibrary> from, std::vector<fs::path> copies,
            std::vector<NeededFile> system, LibrarySearch& search, FileSystem& files)
      : plugin_(plugin),
        from_(std::move(from)),
        copies_(std::move(copies)),
        system_(std::move(system)),
        search_(search),
        files_(files),
        begun_(from_.size()),
        begun_system_(system_.size()) {
    for (size_t i = 0; i < from_.size(); ++i) load(i);
    for (size_t i = 0; i < system_.size(); ++i) load_system(i);
  }

 private:
  void load_needs(const Links& links) {
    for (const std::string& name : links.needed) {
      for (size_t i = 0; i < from_.size(); ++i)
        if (from_[i].links.soname == name) load(i);
      for (size_t i = 0; i < system_.size(); ++i)
        if (system_[i].name == name) load_system(i);
    }
  }

  // Loads library i after those that it needs; libraries may need each other in a circle.
  void load(size_t i) {
    if (begun_[i]) return;
    begun_[i] = true;
    load_needs(from_[i].links);
    std::string name;
    if (Handle loaded = loaded_library(from_[i].links.soname, name)) {
      if (!is_copy(name, i))
        fail(TN_REFUSED, "its library ", from_[i].links.soname, " is loaded in this process already, from ", name,
             ", and is not the checked copy of ", from_[i].file.string());
      handles_.push_back(std::move(loaded));
      return;
    }
    open(copies_[i], from_[i].file);
  }

  // Does the same for a library of the system, which is taken from its place.
  void load_system(size_t i) {
    if (begun_system_[i]) return;
    begun_system_[i] = true;
    load_needs(system_[i].links);
    const NeededFile& library = system_[i];
    std::string name;
    if (Handle loaded = loaded_library(library.name, name)) {
      std::error_code error;
      if (!search_.is_of_process(library.name) && !fs::equivalent(name, library.file, error))
        fail(TN_REFUSED, "its library ", library.name, " is loaded in this process already, from ", name,
             ", and is not ", library.file.string(), " of the system");
      handles_.push_back(std::move(loaded));
      return;
    }
    open(library.file, library.file);
  }

  // file: that which messages name.
  void open(const fs::path& copy, const fs::path& file) {
    const std::string path = copy.string(), from = file.string();
    const PluginCall record = {plugin_.entry.id.c_str(), from.c_str(), "dlopen", tag_text(Tag::kLoad)};
    const PluginCallMark mark(&record);
    Handle handle(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
    if (!handle) {
      const char* const given = ::dlerror();
      std::string reason = given == nullptr ? "no reason given" : given;
      if (reason.starts_with(path + ": ")) reason.erase(0, path.size() + 2);
      fail(TN_REFUSED, "its library ", from, " could not be loaded: ", reason);
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
  const std::vector<NeededFile> system_;
  LibrarySearch& search_;
  FileSystem& files_;
  std::vector<bool> begun_, begun_system_;
  std::vector<Handle> handles_;  // until the plugin, which keeps them, is loaded
};

// Returns the libraries of the bundle, as they were copied.
std::vector<BroughtLibrary> libraries_of(const Bundle& bundle, const CheckedCopy& copy, FileSystem& files) {
  std::vector<BroughtLibrary> result;
  for (size_t i = 1; i < bundle.files().size(); ++i)
    result.push_back({bundle.files()[i].from, bundle.files()[i].sha256, read_links(*files.open(copy.files()[i]))});
  return result;
}

// Copies to a folder, if need be because code cannot be loaded from memory for the reason `why`.
std::unique_ptr<CheckedCopy> copy_to_folder(const Bundle& bundle, FileSystem& files, const std::string& why) {
  try {
    return std::make_unique<CheckedCopy>(bundle, files, CopyPlace::kFolder);
  } catch (const Error& failure) {
    if (failure.code() != TN_IO) throw;
    fail(TN_IO, SubjectName{failure.subject()}, failure.message(), " (nor from memory: ", why, ")");
  }
}

// In a folder $ORIGIN has a meaning: nothing but copies may be found by it, and of a circle nothing by another path.
void check_search_in_folder(const CheckedCopy& copy, const Links& plugin, const std::vector<BroughtLibrary>& libraries,
                            bool circle) {
  const auto check = [&](const Links& links, const fs::path& file, const std::string& who) {
    check_search(links, file.parent_path(), copy.root(), who);
    for (const std::string& entry : links.search)
      if (circle && !entry.starts_with('$'))
        fail(TN_REFUSED, who, " has the search path \"", entry,
             "\", and its libraries need each other in a circle; such paths begin with $ORIGIN");
  };
  check(plugin, copy.files().front(), "it");
  for (size_t i = 0; i < libraries.size(); ++i)
    check(libraries[i].links, copy.files()[i + 1], "its library " + libraries[i].file.string());
}

}  // namespace

const tn_plugin& load_checked(const Admitted& plugin, const std::shared_ptr<FileSystem>& system, ThreadTags* tags) {
  FileSystem& files = *system;
  const Bundle bundle(plugin.entry, plugin.file, plugin.sha256);
  if (const std::string image = loaded_image(bundle); !image.empty())
    return load_plugin({plugin.file, image, true}, plugin.manifest, tags);
  std::string why = memory_fault();
  auto copy = why.empty() ? std::make_unique<CheckedCopy>(bundle, files, CopyPlace::kMemory)
                          : copy_to_folder(bundle, files, why);
  const bool circle = Circle(libraries_of(bundle, *copy, files)).exists();
  if (circle && why.empty()) {
    why = "its libraries need each other in a circle";
    copy = copy_to_folder(bundle, files, why);
  }
  const std::unique_ptr<InputFile> opened = files.open(copy->files().front());
  if (read_note(*opened) != plugin.note)
    fail(TN_REFUSED, "it has changed since it was found; make a new host to use the new file");
  const Links links = read_links(*opened);
  std::vector<BroughtLibrary> libraries = libraries_of(bundle, *copy, files);
  LibrarySearch search(system);
  std::vector<NeededFile> others = check_libraries(plugin.set, plugin.entry, links, libraries, search);
  if (!why.empty()) check_search_in_folder(*copy, links, libraries, circle);
  const Libraries loaded(plugin, std::move(libraries), {copy->files().begin() + 1, copy->files().end()},
                         std::move(others), search, files);
  return load_plugin({plugin.file, copy->files().front(), false}, plugin.manifest, tags);
}

}  // namespace tenon::host
