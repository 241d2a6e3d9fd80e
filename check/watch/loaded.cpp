// SPDX-License-Identifier: Apache-2.0
#include "check/watch/loaded.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "check/cases/fault.h"

namespace tenon::check {

namespace {

// The tables of a loaded file, by its dynamic section.
struct Dynamic {
  const char* names = nullptr;
  const ElfW(Sym) * symbols = nullptr;
  const uint32_t* gnu_hash = nullptr;
  const ElfW(Word) * hash = nullptr;
  const ElfW(Rela) * relocations[2] = {nullptr, nullptr};  // DT_RELA, DT_JMPREL
  size_t bytes[2] = {0, 0};

  explicit Dynamic(const link_map& map) {
    for (const ElfW(Dyn)* entry = map.l_ld; entry->d_tag != DT_NULL; ++entry) {
      // The loader of glibc has made the addresses absolute.
      const auto address = reinterpret_cast<const void*>(entry->d_un.d_ptr);  // NOLINT(performance-no-int-to-ptr)
      if (entry->d_tag == DT_STRTAB) names = static_cast<const char*>(address);
      if (entry->d_tag == DT_SYMTAB) symbols = static_cast<const ElfW(Sym)*>(address);
      if (entry->d_tag == DT_GNU_HASH) gnu_hash = static_cast<const uint32_t*>(address);
      if (entry->d_tag == DT_HASH) hash = static_cast<const ElfW(Word)*>(address);
      if (entry->d_tag == DT_RELA) relocations[0] = static_cast<const ElfW(Rela)*>(address);
      if (entry->d_tag == DT_RELASZ) bytes[0] = entry->d_un.d_val;
      if (entry->d_tag == DT_JMPREL) relocations[1] = static_cast<const ElfW(Rela)*>(address);
      if (entry->d_tag == DT_PLTRELSZ) bytes[1] = entry->d_un.d_val;
    }
  }

  // The number of symbols: of DT_HASH its second word; of DT_GNU_HASH one more than the last of all chains.
  [[nodiscard]] size_t count() const {
    if (hash != nullptr) return hash[1];
    if (gnu_hash == nullptr) return 0;
    const uint32_t buckets = gnu_hash[0], first = gnu_hash[1], words = gnu_hash[2];
    const uint32_t* const bucket = gnu_hash + 4 + words * (sizeof(ElfW(Addr)) / 4);
    const uint32_t last = buckets == 0 ? 0 : *std::max_element(bucket, bucket + buckets);
    if (last < first) return first;
    const uint32_t* chain = bucket + buckets + (last - first);
    size_t result = last + 1;
    for (; (*chain & 1U) == 0; ++chain) ++result;
    return result;
  }
};

const link_map& map_of(void* handle) {
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr)
    throw Fault("the loader does not describe the file");
  return *map;
}

}  // namespace

Loaded::Loaded(const std::string& file) : handle_(dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ == nullptr) {
    const char* const reason = dlerror();
    throw Fault(std::string("it cannot be loaded: ") + (reason == nullptr ? "the loader gives no reason" : reason));
  }
}

const tn_plugin* Loaded::descriptor() const {
  const auto entry = reinterpret_cast<tn_entry>(dlsym(handle_, TN_ENTRY_NAME));
  if (entry == nullptr) throw Fault("it does not export the symbol " TN_ENTRY_NAME);
  const tn_plugin* const plugin = entry();
  if (plugin == nullptr) throw Fault(TN_ENTRY_NAME " returns null");
  return plugin;
}

Loaded::Symbols Loaded::symbols() const {
  const Dynamic dynamic(map_of(handle_));
  Symbols result;
  for (size_t i = 1; i < dynamic.count(); ++i) {
    const ElfW(Sym)& symbol = dynamic.symbols[i];
    const unsigned binding = ELF64_ST_BIND(symbol.st_info);
    if (binding != STB_GLOBAL && binding != STB_WEAK && binding != STB_GNU_UNIQUE) continue;
    const std::string name = dynamic.names + symbol.st_name;
    if (symbol.st_shndx == SHN_UNDEF)
      result.imported.push_back(name);
    else if (symbol.st_shndx != SHN_ABS)
      result.exported.push_back(name);  // SHN_ABS: the name of a version
  }
  return result;
}

void Loaded::imports(const std::function<void(const char* name, void** place)>& visit) const {
  const link_map& map = map_of(handle_);
  const Dynamic dynamic(map);
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  for (size_t table = 0; table < 2; ++table)
    for (size_t i = 0; i < dynamic.bytes[table] / sizeof(ElfW(Rela)); ++i) {
      const ElfW(Rela)& relocation = dynamic.relocations[table][i];
      const size_t symbol = ELF64_R_SYM(relocation.r_info);
      if (symbol == 0 || dynamic.symbols[symbol].st_shndx != SHN_UNDEF) continue;
      const auto place_address = map.l_addr + relocation.r_offset;
      auto** const place = reinterpret_cast<void**>(place_address);              // NOLINT(performance-no-int-to-ptr)
      auto* const begin = reinterpret_cast<void*>(place_address / page * page);  // NOLINT(performance-no-int-to-ptr)
      // The loader has made these pages read-only (RELRO).
      if (mprotect(begin, page, PROT_READ | PROT_WRITE) != 0) continue;
      visit(dynamic.names + dynamic.symbols[symbol].st_name, place);
    }
}

}  // namespace tenon::check
