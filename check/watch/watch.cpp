// SPDX-License-Identifier: Apache-2.0
#include "check/watch/watch.h"

#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <tenon/tenon.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <new>

#include "base/text.h"

namespace tenon::check {

namespace {

// The functions that replace those of libc have no argument for an object, so what they see is in static variables of a
// process that exists for the checks of one component.
enum Seen { kMalloc, kMmap, kThread, kLock, kWait, kFutex, kOutput, kSeenCount };
constexpr const char* kNames[] = {
    "allocates memory",    "maps memory",  "starts a thread or process", "locks", "waits or sleeps",
    "makes a system call", "writes output"};
std::atomic<int64_t> seen[kSeenCount];
std::atomic<int64_t> allocations, threads;
std::atomic<int64_t> refused{-1};
constexpr size_t kMostLarge = 64;
std::atomic<int64_t> large[kMostLarge];
std::atomic<size_t> large_count;

bool ends_with(const char* text, const char* end) {
  const size_t length = std::strlen(text), ending = std::strlen(end);
  return length >= ending && std::strcmp(text + length - ending, end) == 0;
}

enum class Place { kOutside, kCall, kRun };
Place place() {
  char text[1024];
  if (tn_plugin_call(text, sizeof text) == 0) return Place::kOutside;
  return ends_with(text, "[run]") ? Place::kRun : Place::kCall;
}

void note(Seen what) {
  const Place where = place();
  if (where == Place::kRun) ++seen[what];
  if (where == Place::kCall && what == kThread) ++threads;
}

// Returns whether this allocation is to be refused.
bool refuses(size_t bytes) {
  const Place where = place();
  if (where == Place::kOutside) return false;
  if (where == Place::kRun) ++seen[kMalloc];
  const int64_t number = allocations++;
  if (bytes >= kLarge)
    if (const size_t at = large_count++; at < kMostLarge) large[at] = number;
  return number == refused.load();
}

void* watched_malloc(size_t bytes) { return refuses(bytes) ? nullptr : std::malloc(bytes); }
void* watched_calloc(size_t count, size_t bytes) {
  return refuses(count * bytes) ? nullptr : std::calloc(count, bytes);
}
void* watched_realloc(void* memory, size_t bytes) { return refuses(bytes) ? nullptr : std::realloc(memory, bytes); }
void* watched_aligned(size_t alignment, size_t bytes) {
  return refuses(bytes) ? nullptr : std::aligned_alloc(alignment, bytes);
}
int watched_posix_memalign(void** memory, size_t alignment, size_t bytes) {
  return refuses(bytes) ? ENOMEM : posix_memalign(memory, alignment, bytes);
}
void* watched_new(size_t bytes) {
  if (refuses(bytes)) throw std::bad_alloc();
  return ::operator new(bytes);
}
void* watched_new_array(size_t bytes) {
  if (refuses(bytes)) throw std::bad_alloc();
  return ::operator new[](bytes);
}
void* watched_mmap(void* at, size_t bytes, int protection, int flags, int file, off_t offset) {
  note(kMmap);
  return mmap(at, bytes, protection, flags, file, offset);
}
int watched_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument) {
  note(kThread);
  return pthread_create(thread, attributes, start, argument);
}
pid_t watched_fork() {
  note(kThread);
  return fork();
}
int watched_mutex_lock(pthread_mutex_t* mutex) {
  note(kLock);
  return pthread_mutex_lock(mutex);
}
int watched_mutex_trylock(pthread_mutex_t* mutex) {
  note(kLock);
  return pthread_mutex_trylock(mutex);
}
int watched_rdlock(pthread_rwlock_t* lock) {
  note(kLock);
  return pthread_rwlock_rdlock(lock);
}
int watched_wrlock(pthread_rwlock_t* lock) {
  note(kLock);
  return pthread_rwlock_wrlock(lock);
}
int watched_once(pthread_once_t* once, void (*routine)()) {
  note(kLock);
  return pthread_once(once, routine);
}
int watched_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  note(kWait);
  return pthread_cond_wait(condition, mutex);
}
int watched_join(pthread_t thread, void** result) {
  note(kWait);
  return pthread_join(thread, result);
}
int watched_sem_wait(sem_t* semaphore) {
  note(kWait);
  return sem_wait(semaphore);
}
int watched_nanosleep(const timespec* duration, timespec* left) {
  note(kWait);
  return nanosleep(duration, left);
}
int watched_usleep(useconds_t time) {
  note(kWait);
  return usleep(time);
}
unsigned watched_sleep(unsigned seconds) {
  note(kWait);
  return sleep(seconds);
}
long watched_syscall(long number, long a, long b, long c, long d, long e, long f) {
  note(kFutex);
  return syscall(number, a, b, c, d, e, f);
}
ssize_t watched_write(int to, const void* bytes, size_t count) {
  note(kOutput);
  return write(to, bytes, count);
}
int watched_puts(const char* text) {
  note(kOutput);
  return std::puts(text);
}
int watched_printf(const char* format, ...) {  // NOLINT(cert-dcl50-cpp): it stands for that of C
  note(kOutput);
  va_list arguments;
  va_start(arguments, format);
  const int result = std::vprintf(format, arguments);
  va_end(arguments);
  return result;
}
int watched_fputs(const char* text, FILE* to) {
  note(kOutput);
  return std::fputs(text, to);
}
size_t watched_fwrite(const void* bytes, size_t size, size_t count, FILE* to) {
  note(kOutput);
  return std::fwrite(bytes, size, count, to);
}

struct Redirection {
  const char* name;
  void* to;
};
template <typename Function>
void* address(Function function) {
  return reinterpret_cast<void*>(function);
}
const Redirection* redirection_of(const char* name) {
  static const Redirection list[] = {
      {"malloc", address(watched_malloc)},
      {"calloc", address(watched_calloc)},
      {"realloc", address(watched_realloc)},
      {"aligned_alloc", address(watched_aligned)},
      {"memalign", address(watched_aligned)},
      {"posix_memalign", address(watched_posix_memalign)},
      {"_Znwm", address(watched_new)},
      {"_Znam", address(watched_new_array)},
      {"mmap", address(watched_mmap)},
      {"pthread_create", address(watched_pthread_create)},
      {"fork", address(watched_fork)},
      {"pthread_mutex_lock", address(watched_mutex_lock)},
      {"pthread_mutex_trylock", address(watched_mutex_trylock)},
      {"pthread_rwlock_rdlock", address(watched_rdlock)},
      {"pthread_rwlock_wrlock", address(watched_wrlock)},
      {"pthread_once", address(watched_once)},
      {"pthread_cond_wait", address(watched_cond_wait)},
      {"pthread_join", address(watched_join)},
      {"sem_wait", address(watched_sem_wait)},
      {"nanosleep", address(watched_nanosleep)},
      {"usleep", address(watched_usleep)},
      {"sleep", address(watched_sleep)},
      {"syscall", address(watched_syscall)},
      {"write", address(watched_write)},
      {"puts", address(watched_puts)},
      {"printf", address(watched_printf)},
      {"fputs", address(watched_fputs)},
      {"fwrite", address(watched_fwrite)},
  };
  for (const Redirection& each : list)
    if (std::strcmp(each.name, name) == 0) return &each;
  return nullptr;
}

}  // namespace

void watch(const Loaded& loaded) {
  loaded.imports([](const char* name, void** place_of) {
    if (const Redirection* const to = redirection_of(name)) *place_of = to->to;
  });
  watch_again();
}

void watch_again() {
  for (std::atomic<int64_t>& each : seen) each = 0;
  allocations = 0;
  threads = 0;
  large_count = 0;
}

std::string seen_in_run() {
  std::string result;
  for (int what = 0; what < kSeenCount; ++what)
    if (const int64_t times = seen[what]; times > 0)
      base::append(result,
                   std::string(kNames[what]) + " (" + std::to_string(times) + (times == 1 ? " time)" : " times)"));
  return result;
}

int64_t threads_seen() { return threads; }

int64_t allocations_seen() { return allocations; }
std::vector<int64_t> large_allocations_seen() { return {large, large + std::min<size_t>(large_count, kMostLarge)}; }

void refuse_allocation(int64_t number) {
  watch_again();
  refused = number;
}

}  // namespace tenon::check
