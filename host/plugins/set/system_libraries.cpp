// SPDX-License-Identifier: Apache-2.0
#include "host/plugins/set/system_libraries.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

#include "core/error.h"

namespace tenon::host {

namespace {

namespace fs = std::filesystem;

constexpr const char* kCacheFile = "/etc/ld.so.cache";
constexpr std::string_view kMagic = "glibc-ld.so.cache1.1";
constexpr uint64_t kLargestCache = uint64_t{64} << 20;
constexpr const char* kByProcessor = "glibc-hwcaps";  // the folder of folders for better processors

#if defined(__x86_64__)
constexpr int32_t kFlags = 0x0303;
constexpr const char* kTriplet = "x86_64-linux-gnu";
#elif defined(__aarch64__)
constexpr int32_t kFlags = 0x0a03;
constexpr const char* kTriplet = "aarch64-linux-gnu";
#else  // RISC-V, as elf_note.cpp checks
constexpr int32_t kFlags = 0x1003;
constexpr const char* kTriplet = "riscv64-linux-gnu";
#endif

// As ldconfig writes them, in the order of bytes of the machine.
struct CacheHeader {
  char magic[20];
  uint32_t entries;
  uint32_t text_bytes;
  uint8_t flags, padding[3];
  uint32_t extension, unused[3];
};
struct CacheEntry {
  int32_t flags;
  uint32_t name, file;  // offsets in the file
  uint32_t system;
  uint64_t processor;  // 0: any
};
static_assert(sizeof(CacheHeader) == 48 && sizeof(CacheEntry) == 24);

// Returns the names of the folders for processors that this one can use, the best first.
const std::vector<std::string>& levels() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
#if defined(__x86_64__)
    const bool second =
        __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
    const bool third = second && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
                       __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma");
    const bool fourth = third && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512vl");
    if (fourth) result.emplace_back("x86-64-v4");
    if (third) result.emplace_back("x86-64-v3");
    if (second) result.emplace_back("x86-64-v2");
#endif
    return result;
  }();
  return names;
}

// Returns the rank of a cached file, 0 for the best; more than the levels if this processor cannot use it.
size_t rank_of(const CacheEntry& entry, const fs::path& file) {
  if (entry.processor == 0) return levels().size();
  const fs::path folder = file.parent_path();
  if (folder.parent_path().filename() != kByProcessor) return levels().size() + 1;
  const auto found = std::find(levels().begin(), levels().end(), folder.filename().string());
  return found == levels().end() ? levels().size() + 1 : static_cast<size_t>(found - levels().begin());
}

// The default folders of loaders that are built for Debian's folders or for those of others, which may lack some.
std::vector<fs::path> default_folders() {
  const std::string both = std::string("/") + kTriplet;
  return {"/lib" + both, "/usr/lib" + both, "/lib64", "/usr/lib64", "/lib", "/usr/lib"};
}

}  // namespace

SystemLibraries::SystemLibraries(const std::string& cache, std::vector<fs::path> folders)
    : folders_(std::move(folders)) {
  CacheHeader header = {};
  if (cache.size() < sizeof header || !cache.starts_with(kMagic)) return;
  std::memcpy(&header, cache.data(), sizeof header);
  if (header.entries > (cache.size() - sizeof header) / sizeof(CacheEntry)) return;
  const auto text = [&](uint32_t at) -> std::string {
    const size_t end = at < cache.size() ? cache.find('\0', at) : std::string::npos;
    return end == std::string::npos ? "" : cache.substr(at, end - at);
  };
  std::map<std::string, std::map<size_t, fs::path>> ranked;
  for (uint32_t i = 0; i < header.entries; ++i) {
    CacheEntry entry = {};
    std::memcpy(&entry, cache.data() + sizeof header + i * sizeof entry, sizeof entry);
    const fs::path file = text(entry.file);
    if (entry.flags != kFlags || !file.is_absolute()) continue;
    if (const size_t rank = rank_of(entry, file); rank <= levels().size()) ranked[text(entry.name)].emplace(rank, file);
  }
  for (const auto& [name, files] : ranked)
    for (const auto& [rank, file] : files) cached_[name].push_back(file);
}

SystemLibraries SystemLibraries::read(FileSystem& files) {
  std::string cache;
  try {
    const std::unique_ptr<InputFile> file = files.open(kCacheFile);
    cache.resize(std::min(file->size(), kLargestCache));
    file->read(0, cache.data(), cache.size());
  } catch (const Error& error) {
    if (error.code() == TN_OUT_OF_MEMORY) throw;
    cache.clear();  // a system need not have one
  }
  return {cache, default_folders()};
}

fs::path SystemLibraries::find(const std::string& name) const {
  std::error_code error;
  if (const auto found = cached_.find(name); found != cached_.end())
    for (const fs::path& file : found->second)
      if (fs::is_regular_file(file, error)) return file;
  for (const fs::path& folder : folders_)
    if (fs::path file = library_in(folder, name); !file.empty()) return file;
  return {};
}

fs::path library_in(const fs::path& folder, const std::string& name) {
  std::error_code error;
  for (const std::string& level : levels())
    if (fs::path file = folder / kByProcessor / level / name; fs::is_regular_file(file, error)) return file;
  if (fs::path file = folder / name; fs::is_regular_file(file, error)) return file;
  return {};
}

}  // namespace tenon::host
