// SPDX-License-Identifier: Apache-2.0
#include "process/exit_handlers.h"

#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <tenon/plugin.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/alignment.h"

namespace tenon::process {

namespace {

// Handlers of signals read it, which have no argument. It points to a text that lives as long as it is set.
std::atomic<const char*> exiting_plugin = nullptr;

struct Plugin {
  uintptr_t address = 0;
  std::string id;
  ElfW(Dyn) * dynamic = nullptr;
};

template <typename T>
T* at(uintptr_t address) {
  return reinterpret_cast<T*>(address);  // NOLINT: the system's loader has mapped the object there
}

// Returns the id in the Tenon note of a mapped segment of notes, "" if it has none.
std::string id_in(const char* begin, size_t bytes, size_t alignment) {
  for (size_t place = 0; place + sizeof(ElfW(Nhdr)) <= bytes;) {
    ElfW(Nhdr) note;
    std::memcpy(&note, begin + place, sizeof note);
    const size_t text = base::round_up(sizeof note + note.n_namesz, alignment), end = text + note.n_descsz;
    if (end > bytes - place) return "";
    const std::string owner(begin + place + sizeof note, note.n_namesz);
    if (note.n_type == TN_NOTE_TYPE && owner == std::string(TN_NOTE_OWNER, sizeof TN_NOTE_OWNER)) {
      const std::string content(begin + place + text, note.n_descsz);
      const auto manifest = nlohmann::json::parse(content.substr(0, content.find('\0')), nullptr, false);
      const bool has_id = manifest.is_object() && manifest.contains("id") && manifest["id"].is_string();
      return has_id ? manifest["id"].get<std::string>() : "";
    }
    place += base::round_up(end, alignment);
  }
  return "";
}

Plugin plugin_of(const dl_phdr_info& info) {
  Plugin result;
  result.address = info.dlpi_addr;
  for (size_t i = 0; i < info.dlpi_phnum; ++i) {
    const auto& segment = info.dlpi_phdr[i];
    const uintptr_t begin = info.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_DYNAMIC) result.dynamic = at<ElfW(Dyn)>(begin);
    if (segment.p_type == PT_NOTE && result.id.empty())
      result.id = id_in(at<const char>(begin), segment.p_memsz, segment.p_align == 8 ? 8 : 4);
  }
  return result;
}

// Returns the shared objects that have a note of a plugin, in the order in which they were loaded.
std::vector<Plugin> loaded_plugins() {
  std::vector<Plugin> result;
  const auto add = [](dl_phdr_info* info, size_t, void* to) {
    try {
      Plugin plugin = plugin_of(*info);
      if (!plugin.id.empty()) static_cast<std::vector<Plugin>*>(to)->push_back(std::move(plugin));
    } catch (const std::exception&) {  // without memory: the loader can pass none on
      return 1;
    }
    return 0;
  };
  dl_iterate_phdr(add, &result);
  return result;
}

// Sets the value of an entry of the dynamic segment, which the loader has made read-only.
bool set_value(ElfW(Dyn) & entry, ElfW(Xword) value) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = reinterpret_cast<uintptr_t>(&entry) / page * page,
                  end = reinterpret_cast<uintptr_t>(&entry + 1);
  if (mprotect(at<void>(begin), end - begin, PROT_READ | PROT_WRITE) != 0) return false;
  entry.d_un.d_val = value;
  return true;
}

// Calls the functions that the loader calls when it unloads the plugin, the first of which run what atexit has
// registered.
void run_handlers(const Plugin& plugin) {
  using Function = void (*)();
  const Function* functions = nullptr;
  ElfW(Dyn)* bytes = nullptr;
  for (ElfW(Dyn)* entry = plugin.dynamic; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_FINI_ARRAY) functions = at<const Function>(plugin.address + entry->d_un.d_ptr);
    if (entry->d_tag == DT_FINI_ARRAYSZ) bytes = entry;
  }
  if (functions == nullptr || bytes == nullptr) return;
  const size_t count = bytes->d_un.d_val / sizeof(Function);
  if (!set_value(*bytes, 0)) return;  // exit() runs them
  for (size_t i = count; i > 0; --i) functions[i - 1]();
}

}  // namespace

void run_exit_handlers(void (*enter)(const char* plugin)) {
  const std::vector<Plugin> plugins = loaded_plugins();
  for (auto plugin = plugins.rbegin(); plugin != plugins.rend(); ++plugin) {
    exiting_plugin = plugin->id.c_str();
    enter(plugin->id.c_str());
    run_handlers(*plugin);
    exiting_plugin = nullptr;
  }
}

const char* exiting() noexcept { return exiting_plugin; }

}  // namespace tenon::process
