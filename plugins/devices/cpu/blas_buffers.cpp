// OpenBLAS's own buffers will not do: without threads it hands them out without a lock, so that two products at once
// can get the same one; it ends the process when 128 calls overlap; and where the system gives no 128 MiB for one, it
// asks for ever. So the plugin is linked with `--wrap=blas_memory_alloc` and OpenBLAS gets the buffers that are made
// here. A call is not begun before a buffer is there for it, since OpenBLAS cannot be told that there is none. They are
// shared by all hosts in the process, as the image of OpenBLAS is, and stay until it ends.
// SPDX-License-Identifier: Apache-2.0
#include "blas_buffers.h"

#include <openblas_config.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <string_view>
#include <thread>

#include "blas_core.h"

extern "C" {
// Names that the linker's --wrap prescribes.
void* __wrap_blas_memory_alloc(int position);  // NOLINT
void __wrap_blas_memory_free(void* buffer);    // NOLINT
}

namespace tenon::cpu {

namespace {

// Where buffers lie that no call uses, and how many of them no call has been promised.
std::atomic<void*> idle_buffers[kMostBlasCalls];
std::atomic<int> unpromised{0};

std::mutex making;
std::atomic<int> made{0};

// Other versions of OpenBLAS may pack more at a time.
uint64_t buffer_bytes() {
  constexpr bool kMeasured = std::string_view(OPENBLAS_VERSION) == " OpenBLAS 0.3.21 ";
  return kMeasured && knows_core() ? kKnownCoreBytes : kAnyCoreBytes;
}

// With a page behind it that may not be touched: packing too much would end the process, not change another's memory.
void* map_buffer() {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t bytes = buffer_bytes();
  void* memory =
      mmap(nullptr, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  if (mprotect(static_cast<uint8_t*>(memory) + bytes, page, PROT_NONE) == 0) return memory;
  munmap(memory, bytes + page);
  return nullptr;
}

void put(void* buffer) {
  while (true)
    for (std::atomic<void*>& idle : idle_buffers) {
      void* nothing = nullptr;
      if (idle.compare_exchange_strong(nothing, buffer, std::memory_order_release)) return;
    }
}

// One that the caller was promised, so it is there, though others may take the one that was just seen.
void* get() {
  while (true)
    for (std::atomic<void*>& idle : idle_buffers)
      if (idle.load(std::memory_order_relaxed) != nullptr)
        if (void* const buffer = idle.exchange(nullptr, std::memory_order_acquire)) return buffer;
}

bool promise_one() {
  int count = unpromised.load(std::memory_order_relaxed);
  while (count > 0)
    if (unpromised.compare_exchange_weak(count, count - 1, std::memory_order_acquire)) return true;
  return false;
}

// A new buffer, promised to the caller.
bool make_one() {
  const std::lock_guard<std::mutex> lock(making);
  if (made.load() == kMostBlasCalls) return false;
  void* const buffer = map_buffer();
  if (buffer == nullptr) return false;
  made.fetch_add(1);
  put(buffer);
  return true;
}

bool promise() {
  if (promise_one() || make_one()) return true;
  while (made.load() > 0) {  // others are using them
    if (promise_one()) return true;
    std::this_thread::yield();
  }
  return false;
}

}  // namespace

BlasCall::BlasCall() : has_buffer_(promise()) {}
BlasCall::~BlasCall() {
  if (has_buffer_) unpromised.fetch_add(1, std::memory_order_release);
}

}  // namespace tenon::cpu

extern "C" void* __wrap_blas_memory_alloc(int) {  // NOLINT(bugprone-reserved-identifier)
  return tenon::cpu::get();
}
extern "C" void __wrap_blas_memory_free(void* buffer) {  // NOLINT(bugprone-reserved-identifier)
  tenon::cpu::put(buffer);
}
