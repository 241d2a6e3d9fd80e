// Packing buffers for OpenBLAS in place of its own. OpenBLAS without threads allocates buffers without a lock, so that
// two calls at once can get the same one; it ends the process when 128 calls overlap; and it retries forever if the
// system has no 128 MiB for a buffer. Therefore the plugin is linked with `--wrap=blas_memory_alloc`, and OpenBLAS gets
// the buffers allocated here. A call reserves its buffer before it begins, since OpenBLAS does not handle a failed
// allocation. The buffers are shared by all hosts in the process, as the image of OpenBLAS is, and are never freed.
// SPDX-License-Identifier: Apache-2.0
#include "buffers.h"

#include <openblas_config.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <string_view>
#include <thread>

#include "core_type.h"

extern "C" {
// Names that the linker's --wrap prescribes.
void* __wrap_blas_memory_alloc(int position);  // NOLINT
void __wrap_blas_memory_free(void* buffer);    // NOLINT
}

namespace tenon::openblas {

namespace {

// The buffers that no call uses (null: no buffer), and the number of buffers that are not reserved by a call.
std::atomic<void*> idle_buffers[kMostBlasCalls];
std::atomic<int> unpromised{0};

std::mutex making;
std::atomic<int> allocated{0};  // buffers allocated

// kKnownCoreBytes was measured with OpenBLAS 0.3.21; other versions may pack more.
uint64_t buffer_bytes() {
  constexpr bool kMeasured = std::string_view(OPENBLAS_VERSION) == " OpenBLAS 0.3.21 ";
  return kMeasured && knows_core() ? kKnownCoreBytes : kAnyCoreBytes;
}

// Maps a buffer and an inaccessible page after it: a write beyond the buffer crashes instead of changing other memory.
// Returns null if out of memory.
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

// Adds an unused buffer. There is a place for every buffer.
void put(void* buffer) {
  while (true)
    for (std::atomic<void*>& idle : idle_buffers) {
      void* nothing = nullptr;
      if (idle.compare_exchange_strong(nothing, buffer, std::memory_order_release)) return;
    }
}

// Takes an unused buffer. The caller has reserved one, so the loop ends, although other calls may take the one just
// seen.
void* get() {
  while (true)
    for (std::atomic<void*>& idle : idle_buffers)
      if (idle.load(std::memory_order_relaxed) != nullptr)
        if (void* const buffer = idle.exchange(nullptr, std::memory_order_acquire)) return buffer;
}

// Reserves a buffer if one is not reserved.
bool promise_one() {
  int count = unpromised.load(std::memory_order_relaxed);
  while (count > 0)
    if (unpromised.compare_exchange_weak(count, count - 1, std::memory_order_acquire)) return true;
  return false;
}

// Allocates a buffer that is reserved for the caller. False if there are kMostBlasCalls already, or out of memory.
bool make_one() {
  const std::lock_guard<std::mutex> lock(making);
  if (allocated.load() == kMostBlasCalls) return false;
  void* const buffer = map_buffer();
  if (buffer == nullptr) return false;
  allocated.fetch_add(1);
  put(buffer);
  return true;
}

// Reserves a buffer; waits for other calls if need be. False if not even one buffer could be allocated.
bool promise() {
  if (promise_one() || make_one()) return true;
  while (allocated.load() > 0) {  // the calls that use them will end
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

}  // namespace tenon::openblas

extern "C" void* __wrap_blas_memory_alloc(int) {  // NOLINT(bugprone-reserved-identifier)
  return tenon::openblas::get();
}
extern "C" void __wrap_blas_memory_free(void* buffer) {  // NOLINT(bugprone-reserved-identifier)
  tenon::openblas::put(buffer);
}
