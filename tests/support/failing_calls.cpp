// The functions below take precedence over those of the C library, since the dynamic linker looks names up in the
// program first.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/failing_calls.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TENON_SANITIZED 1
#else
#define TENON_SANITIZED 0
#endif

#define TENON_REPLACES __attribute__((visibility("default")))

namespace tenon_tests {

namespace {

// Constant-initialised, since malloc is called before any constructor runs.
std::atomic<int> armed{-1};  // a Calls
std::atomic<int64_t> counted{0}, first_failure{0};
std::atomic<bool> all_from_there{false};
std::atomic<int64_t> held{0};

// The range of the dynamic linker's code.
std::atomic<uintptr_t> linker_begin{0}, linker_end{0};

void find_linker() {
  const auto visit = [](dl_phdr_info* info, size_t, void*) {
    if (std::strstr(info->dlpi_name, "/ld-linux") == nullptr) return 0;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      if (info->dlpi_phdr[i].p_type != PT_LOAD || (info->dlpi_phdr[i].p_flags & PF_X) == 0) continue;
      linker_begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
      linker_end = linker_begin + info->dlpi_phdr[i].p_memsz;
    }
    return 1;
  };
  dl_iterate_phdr(visit, nullptr);
}

bool fails(Calls kind) {
  if (armed.load(std::memory_order_relaxed) != static_cast<int>(kind)) return false;
  const int64_t number = counted.fetch_add(1);
  return all_from_there ? number >= first_failure : number == first_failure;
}

// Whether a call fails; never for the dynamic linker. It allocates when a thread first uses a plugin's thread-local
// data, and the C library ends the process if that fails.
[[maybe_unused]] bool memory_fails(const void* caller) {
  const auto from = reinterpret_cast<uintptr_t>(caller);
  return (from < linker_begin || from >= linker_end) && fails(Calls::kMemory);
}

// The next function of this name after the one of the program.
template <typename Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

[[maybe_unused]] void* noted(void* memory) {
  if (memory != nullptr) ++held;
  return memory;
}

}  // namespace

FailingCalls::FailingCalls(Calls kind, int64_t first, bool for_good) {
  find_linker();
  counted = 0;
  first_failure = first;
  all_from_there = for_good;
  armed = static_cast<int>(kind);
}
FailingCalls::~FailingCalls() { armed = -1; }
int64_t FailingCalls::calls() { return counted; }

int64_t blocks_held() { return held; }

}  // namespace tenon_tests

using tenon_tests::Calls;
using tenon_tests::fails;
using tenon_tests::held;
using tenon_tests::memory_fails;
using tenon_tests::noted;
using tenon_tests::real;

#if TENON_SANITIZED

// Sets hooks of the sanitizer's malloc, which cannot be replaced; no header of GCC declares this function.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*malloced)(const volatile void*, size_t),
                                                         void (*freed)(const volatile void*));

namespace {

[[maybe_unused]] const int kHooks = __sanitizer_install_malloc_and_free_hooks(
    [](const volatile void*, size_t) { ++held; }, [](const volatile void* memory) { held -= memory != nullptr; });

void* new_block(size_t bytes, size_t alignment) noexcept {
  if (fails(Calls::kMemory)) return nullptr;
  if (bytes == 0) bytes = 1;
  return alignment <= alignof(std::max_align_t)
             ? std::malloc(bytes)
             : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}
void* new_or_throw(size_t bytes, size_t alignment) {
  void* const memory = new_block(bytes, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(size_t bytes) { return new_or_throw(bytes, 1); }
void* operator new[](size_t bytes) { return new_or_throw(bytes, 1); }
void* operator new(size_t bytes, std::align_val_t at) { return new_or_throw(bytes, static_cast<size_t>(at)); }
void* operator new[](size_t bytes, std::align_val_t at) { return new_or_throw(bytes, static_cast<size_t>(at)); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return new_block(bytes, 1); }
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept { return new_block(bytes, 1); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

#else

extern "C" {

// The functions of the C library, under its internal names.
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void* memory);

TENON_REPLACES void* malloc(size_t bytes) {
  if (memory_fails(__builtin_return_address(0))) return errno = ENOMEM, nullptr;
  return noted(__libc_malloc(bytes));
}
TENON_REPLACES void* calloc(size_t count, size_t bytes) {
  if (memory_fails(__builtin_return_address(0))) return errno = ENOMEM, nullptr;
  return noted(__libc_calloc(count, bytes));
}
TENON_REPLACES void* realloc(void* memory, size_t bytes) {
  if (memory_fails(__builtin_return_address(0))) return errno = ENOMEM, nullptr;
  void* const moved = __libc_realloc(memory, bytes);
  if (memory == nullptr) return noted(moved);
  if (moved == nullptr && bytes == 0) --held;
  return moved;
}
TENON_REPLACES void* memalign(size_t alignment, size_t bytes) {
  if (memory_fails(__builtin_return_address(0))) return errno = ENOMEM, nullptr;
  return noted(__libc_memalign(alignment, bytes));
}
TENON_REPLACES void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
TENON_REPLACES int posix_memalign(void** to, size_t alignment, size_t bytes) {
  void* const memory = memalign(alignment, bytes);
  if (memory == nullptr) return ENOMEM;
  *to = memory;
  return 0;
}
TENON_REPLACES void free(void* memory) {
  if (memory != nullptr) --held;
  __libc_free(memory);
}

}  // extern "C"

#endif

extern "C" {

// Returns the error of a call that fails, else the result of the real function.
#define TENON_CALL(name, ...)                               \
  if (fails(Calls::kFiles)) return errno = EIO, -1;         \
  static const auto behind = real<decltype(::name)>(#name); \
  return behind(__VA_ARGS__)

TENON_REPLACES int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const auto mode = static_cast<mode_t>((flags & O_CREAT) != 0 ? va_arg(rest, int) : 0);
  va_end(rest);
  TENON_CALL(open, path, flags, mode);
}
TENON_REPLACES ssize_t read(int file, void* to, size_t bytes) { TENON_CALL(read, file, to, bytes); }
TENON_REPLACES ssize_t pread(int file, void* to, size_t bytes, off_t at) { TENON_CALL(pread, file, to, bytes, at); }
TENON_REPLACES ssize_t write(int file, const void* from, size_t bytes) { TENON_CALL(write, file, from, bytes); }
// Does not sync: the tests write thousands of files that need not survive a loss of power.
TENON_REPLACES int fsync(int) { return fails(Calls::kFiles) ? (errno = EIO, -1) : 0; }
TENON_REPLACES int fstat(int file, struct stat* to) noexcept { TENON_CALL(fstat, file, to); }
TENON_REPLACES int rename(const char* from, const char* to) noexcept { TENON_CALL(rename, from, to); }
// Closes the file even if the call fails.
TENON_REPLACES int close(int file) {
  static const auto behind = real<decltype(::close)>("close");
  const int result = behind(file);
  if (fails(Calls::kFiles)) return errno = EIO, -1;
  return result;
}

}  // extern "C"
