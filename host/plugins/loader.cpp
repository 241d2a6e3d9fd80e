// Loads plugin files. SPDX-License-Identifier: Apache-2.0
#define BOOST_DLL_USE_STD_FS
#include "host/plugins/loader.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <boost/dll/shared_library.hpp>
#include <cerrno>
#include <new>

#include "core/error.h"

namespace tenon {

namespace {

// The loader's own words, which are all that it gives, without the file, which the caller names; and the manifest's
// hint where it is a library of its list that is missing.
std::string load_failure(const std::filesystem::path& file, const Manifest& note) {
  const char* reason = ::dlerror();  // of this thread; Boost.DLL keeps only "bad file descriptor"
  std::string result = reason == nullptr ? "the system loader gave no reason" : reason;
  if (const std::string prefix = file.string() + ": "; result.starts_with(prefix)) result.erase(0, prefix.size());
  for (const NeededLibrary& library : note.libraries)
    if (!library.hint.empty() && result.find(library.name) != std::string::npos)
      result += "; it needs " + library.name + ": " + library.hint;
  return result;
}

// Whether memory is too short to map the file and what it needs. The loader does not tell: its errno is its own, and
// what it says is the same as for a folder from which nothing may be run.
bool lacks_memory(const std::filesystem::path& file) {
  constexpr size_t kLibraries = size_t{16} << 20;
  std::error_code unknown;
  const auto size = std::filesystem::file_size(file, unknown);
  const size_t bytes = kLibraries + (unknown ? 0 : static_cast<size_t>(size));
  void* const probe = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (probe == MAP_FAILED) return errno == ENOMEM;
  munmap(probe, bytes);
  return false;
}

}  // namespace

const tn_plugin& load_plugin(const std::filesystem::path& file, const Manifest& note, ThreadTags* tags) {
  namespace dll = boost::dll;
  if (!file.is_absolute()) fail(TN_INTERNAL, "the path of plugin ", file.string(), " is not absolute");
  // RTLD_NODELETE pins the image, so that tables and strings stay when this handle goes.
  const auto mode = static_cast<dll::load_mode::type>(static_cast<unsigned>(dll::load_mode::rtld_now) |
                                                      static_cast<unsigned>(dll::load_mode::rtld_local) |
                                                      static_cast<unsigned>(RTLD_NODELETE));
  dll::fs::error_code error;
  dll::shared_library library;
  errno = 0;  // malloc's, which the loader calls too
  library.load(file, mode, error);
  const bool starved = errno == ENOMEM;
  if (error) {
    const std::string reason = load_failure(file, note);
    fail(starved || lacks_memory(file) ? TN_OUT_OF_MEMORY : TN_REFUSED, "it could not be loaded: ", reason);
  }
  if (!library.has(TN_ENTRY_NAME))
    fail(TN_REFUSED, "it does not export the symbol ", TN_ENTRY_NAME, "; a plugin is built with tenon_add_plugin");
  // A std::bad_alloc of it comes out as it is: not the file's fault, so that it may be tried again.
  const tn_entry entry = &library.get<const tn_plugin*()>(TN_ENTRY_NAME);
  const tn_plugin* const plugin = call_plugin({note.id, tags}, "the entry", {Tag::kLoad, TN_ENTRY_NAME}, entry);
  if (plugin == nullptr) fail(TN_REFUSED, "its ", TN_ENTRY_NAME, " gave no descriptor");
  if (plugin->size < offsetof(tn_plugin, abi) + sizeof plugin->abi)
    fail(TN_REFUSED, "its descriptor of ", plugin->size, " bytes ends before \"abi\"");
  check_abi({plugin->abi.major, plugin->abi.built, plugin->abi.required});
  const std::string differs = difference(note, describe(*plugin));
  if (!differs.empty())
    fail(TN_REFUSED, "its code is not what its note says: ", differs, "; build it again with tenon_add_plugin");
  return *plugin;
}

}  // namespace tenon
