// Loads plugin files. SPDX-License-Identifier: Apache-2.0
#define BOOST_DLL_USE_STD_FS
#include "host/plugins/loader.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <boost/dll/shared_library.hpp>
#include <cerrno>
#include <new>

#include "core/error.h"

namespace tenon::host {

namespace {

// Returns the text of dlerror() without the file, which the caller names, followed by the manifest's hint if the text
// names one of its libraries. The system loader gives no code, only this text.
std::string load_failure(const std::filesystem::path& file, const Manifest& note) {
  const char* reason = ::dlerror();  // of this thread; Boost.DLL keeps only "bad file descriptor"
  std::string result = reason == nullptr ? "the system loader gave no reason" : reason;
  if (const std::string prefix = file.string() + ": "; result.starts_with(prefix)) result.erase(0, prefix.size());
  for (const NeededLibrary& library : note.libraries)
    if (!library.hint.empty() && result.find(library.name) != std::string::npos)
      result += "; it needs " + library.name + ": " + library.hint;
  return result;
}

// Returns whether there is too little memory to map the file and its libraries. The system loader does not report that:
// its errno is not reliable, and its text is the same as for a folder from which nothing may be executed.
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

const tn_plugin& load_plugin(const LoadFrom& plugin, const Manifest& note, ThreadTags* tags) {
  namespace dll = boost::dll;
  const std::filesystem::path& file = plugin.from;
  if (!file.is_absolute()) fail(TN_INTERNAL, "the path of plugin ", file.string(), " is not absolute");
  // RTLD_NODELETE pins the image, so that tables and strings stay valid after this handle is closed.
  const auto mode = static_cast<dll::load_mode::type>(
      static_cast<unsigned>(dll::load_mode::rtld_now) | static_cast<unsigned>(dll::load_mode::rtld_local) |
      static_cast<unsigned>(RTLD_NODELETE) | static_cast<unsigned>(plugin.loaded ? RTLD_NOLOAD : 0));
  dll::fs::error_code error;
  dll::shared_library library;
  errno = 0;  // set by malloc, which the loader calls
  {
    const std::string path = plugin.file.string();  // a damaged file can crash the system's loader
    const PluginCall record = {note.id.c_str(), path.c_str(), "dlopen", tag_text(Tag::kLoad)};
    const PluginCallMark mark(&record);
    library.load(file, mode, error);
  }
  const bool starved = errno == ENOMEM;
  if (error) {
    const std::string reason = load_failure(file, note);
    fail(starved || lacks_memory(file) ? TN_OUT_OF_MEMORY : TN_REFUSED, "it could not be loaded: ", reason);
  }
  if (!library.has(TN_ENTRY_NAME))
    fail(TN_REFUSED, "it does not export the symbol ", TN_ENTRY_NAME, "; a plugin is built with tenon_add_plugin");
  // A std::bad_alloc of the entry is passed on unchanged: it is not the file's fault, and loading may be tried again.
  const tn_entry entry = &library.get<const tn_plugin*()>(TN_ENTRY_NAME);
  const tn_plugin* const made = call_plugin({note.id, tags}, "the entry", {Tag::kLoad, TN_ENTRY_NAME}, entry);
  if (made == nullptr) fail(TN_REFUSED, "its ", TN_ENTRY_NAME, " returned no descriptor");
  if (made->size < offsetof(tn_plugin, abi) + sizeof made->abi)
    fail(TN_REFUSED, "its descriptor of ", made->size, " bytes ends before \"abi\"");
  check_abi({made->abi.major, made->abi.built, made->abi.required});
  const std::string differs = difference(note, describe(*made));
  if (!differs.empty())
    fail(TN_REFUSED, "its code is not what its note says: ", differs, "; build it again with tenon_add_plugin");
  return *made;
}

}  // namespace tenon::host
