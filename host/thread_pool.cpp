// The host's compute threads: one region at a time, tasks from a shared counter, idle workers spin and then park.
//
// A worker may take part in a region only while its gate is open, and the caller leaves only when the gate is shut
// and nobody is inside. So a worker that the system wakes late is neither waited for nor able to see a half-written
// region. Tasks come through the C interface: an exception must not leave one.
// SPDX-License-Identifier: Apache-2.0
#include "host/thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "core/error.h"
#include "host/signals_blocked.h"

#if defined(__x86_64__)
#include <immintrin.h>
#else
#include <cfenv>
#endif

namespace tenon {

namespace {

constexpr int32_t kMostThreads = 4096;
constexpr std::chrono::microseconds kSpin{40};  // longer than the gap between two regions of a step
constexpr int64_t kChunksPerThread = 16;
constexpr int64_t kLargestChunk = 64;
constexpr size_t kCacheLine = 64;

void pause_briefly() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Round to nearest, denormals kept, nothing trapped, for as long as it lives; then what was before. fesetenv would do
// it too, in ten times the time, and there is one of these around every region.
class FloatingPointMode {
 public:
#if defined(__x86_64__)
  FloatingPointMode() : sse_(_mm_getcsr()) {
    asm volatile("fnstcw %0" : "=m"(x87_));  // long double, and what fegetround looks at
    set(0x1F80, 0x037F);
  }
  ~FloatingPointMode() { set(sse_, x87_); }
#else
  FloatingPointMode() {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~FloatingPointMode() { std::fesetenv(&before_); }
#endif
  FloatingPointMode(const FloatingPointMode&) = delete;
  FloatingPointMode& operator=(const FloatingPointMode&) = delete;

 private:
#if defined(__x86_64__)
  static void set(unsigned sse, uint16_t x87) {
    _mm_setcsr(sse);
    asm volatile("fldcw %0" : : "m"(x87));
  }
  unsigned sse_;
  uint16_t x87_ = 0;
#else
  std::fenv_t before_;
#endif
};

int32_t usable_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof cores, &cores) == 0) return std::max(1, CPU_COUNT(&cores));
  return std::max(1, static_cast<int32_t>(std::thread::hardware_concurrency()));
}

struct alignas(kCacheLine) Worker {
  std::atomic<bool> computed{false};
  std::thread thread;  // none for worker 0, the caller
};

using Task = void (*)(void* argument, int64_t index, int32_t worker);

// Where workers enter: bit 31 is set while a region runs, the rest counts who is inside. A worker that finds it shut
// steps out again at once.
class Gate {
 public:
  void open() { state_.fetch_or(kOpen, std::memory_order_release); }
  bool enter() {
    if ((state_.fetch_add(1, std::memory_order_acquire) & kOpen) != 0) return true;
    leave();
    return false;
  }
  void leave() { state_.fetch_sub(1, std::memory_order_release); }
  // Waits until everyone has left. Yields, since who is inside may need this very core.
  void shut() {
    state_.fetch_and(~kOpen, std::memory_order_relaxed);
    constexpr int kTries = 1000;
    for (int i = 0; state_.load(std::memory_order_acquire) != 0; ++i)
      if (i < kTries)
        pause_briefly();
      else
        std::this_thread::yield();
  }

 private:
  static constexpr uint32_t kOpen = 1u << 31;
  std::atomic<uint32_t> state_{0};
};

}  // namespace

struct ThreadPool::State {
  explicit State(int32_t threads) : workers(static_cast<size_t>(threads)), spin(threads <= usable_cores()) {}
  ~State() { stop(); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void start();
  void stop() noexcept;
  void work(int32_t worker);
  void await(uint32_t seen);
  void run_tasks(int32_t worker);
  void run_here(int64_t count, Task what, void* with, int32_t worker);
  void wake(int64_t most);
  void for_each(int64_t count, Task what, void* with);
  [[nodiscard]] int32_t current_worker() const;

  std::vector<Worker> workers;
  const bool spin;  // not when the cores are fewer than the threads
  const pid_t process = getpid();
  tn_parallel parallel = {};

  // The region. Written by the caller while the gate is shut.
  Task task = nullptr;
  void* argument = nullptr;
  int64_t tasks = 0;
  int64_t chunk = 1;
  std::atomic<bool> running{false};

  alignas(kCacheLine) std::atomic<int64_t> next{0};
  alignas(kCacheLine) Gate gate;
  alignas(kCacheLine) std::atomic<uint32_t> region{0};  // counts regions; a worker waits for a change
  std::atomic<bool> ending{false};
  std::atomic<int32_t> parked{0};
  std::mutex mutex;
  std::condition_variable changed;
};

void ThreadPool::State::start() {
  const SignalsBlocked blocked;
  for (size_t i = 1; i < workers.size(); ++i) {
    try {
      workers[i].thread = std::thread([this, i] { work(static_cast<int32_t>(i)); });
    } catch (const std::system_error& error) {
      fail(TN_OUT_OF_MEMORY, "cannot start compute thread ", i, " of ", workers.size(), ": ", error.code().message());
    }
    pthread_setname_np(workers[i].thread.native_handle(), "tenon-worker");
  }
}

void ThreadPool::State::stop() noexcept {
  {
    const std::lock_guard<std::mutex> lock(mutex);
    ending.store(true);
    region.fetch_add(1);
  }
  changed.notify_all();
  for (Worker& worker : workers)
    if (worker.thread.joinable()) worker.thread.join();
}

void ThreadPool::State::work(int32_t worker) {
  uint32_t seen = 0;
  for (;;) {
    await(seen);
    if (ending.load(std::memory_order_relaxed)) return;
    seen = region.load(std::memory_order_acquire);
    if (!gate.enter()) continue;
    run_tasks(worker);
    gate.leave();
  }
}

// Returns when `region` is no longer `seen`.
void ThreadPool::State::await(uint32_t seen) {
  if (spin) {
    const auto until = std::chrono::steady_clock::now() + kSpin;
    do {
      constexpr int kPauses = 32;  // between two looks at the clock
      for (int i = 0; i < kPauses; ++i) {
        if (region.load(std::memory_order_acquire) != seen) return;
        pause_briefly();
      }
    } while (std::chrono::steady_clock::now() < until);
  }
  std::unique_lock<std::mutex> lock(mutex);
  // The caller changes `region` and then looks at `parked`; here it is the other way round, and both sequentially
  // consistent, so one of the two sees the other.
  parked.fetch_add(1);
  changed.wait(lock, [&] { return region.load() != seen; });
  parked.fetch_sub(1);
}

void ThreadPool::State::run_tasks(int32_t worker) {
  const FloatingPointMode mode;
  bool first = true;
  for (;;) {
    const int64_t begin = next.fetch_add(chunk, std::memory_order_relaxed);
    if (begin >= tasks) return;
    if (first) workers[static_cast<size_t>(worker)].computed.store(true, std::memory_order_relaxed);
    first = false;
    const int64_t end = std::min(tasks, begin + chunk);
    for (int64_t i = begin; i < end; ++i) task(argument, i, worker);
  }
}

void ThreadPool::State::run_here(int64_t count, Task what, void* with, int32_t worker) {
  workers[static_cast<size_t>(worker)].computed.store(true, std::memory_order_relaxed);
  for (int64_t i = 0; i < count; ++i) what(with, i, worker);
}

// Wakes parked workers, no more than `most`.
void ThreadPool::State::wake(int64_t most) {
  const int32_t sleeping = parked.load();
  if (sleeping == 0) return;
  // Whoever is counted as parked holds the mutex or waits already; so after this none can miss the notification.
  { const std::lock_guard<std::mutex> lock(mutex); }
  if (most >= sleeping) {
    changed.notify_all();
  } else {
    for (int64_t i = 0; i < most; ++i) changed.notify_one();
  }
}

// Which worker the calling thread is, asked from inside a task.
int32_t ThreadPool::State::current_worker() const {
  const std::thread::id self = std::this_thread::get_id();
  for (size_t i = 1; i < workers.size(); ++i)
    if (workers[i].thread.get_id() == self) return static_cast<int32_t>(i);
  return 0;
}

void ThreadPool::State::for_each(int64_t count, Task what, void* with) {
  if (count <= 0) return;
  if (running.load(std::memory_order_relaxed)) {  // called from a task; the mode is set already
    run_here(count, what, with, current_worker());
    return;
  }
  running.store(true, std::memory_order_relaxed);
  if (count == 1 || workers.size() == 1) {
    const FloatingPointMode mode;
    run_here(count, what, with, 0);
  } else {
    const auto threads = static_cast<int64_t>(workers.size());
    task = what;
    argument = with;
    tasks = count;
    chunk = std::clamp<int64_t>(count / (threads * kChunksPerThread), 1, kLargestChunk);
    next.store(0, std::memory_order_relaxed);
    gate.open();
    region.fetch_add(1);
    wake(std::min(count, threads) - 1);
    run_tasks(0);
    gate.shut();
  }
  running.store(false, std::memory_order_relaxed);
}

ThreadPool::ThreadPool(int32_t threads) {
  if (threads < 0 || threads > kMostThreads)
    fail(TN_INVALID, "threads must be between 0 and ", kMostThreads, ", got ", threads);
  state_ = std::make_unique<State>(threads == 0 ? std::min(usable_cores(), kMostThreads) : threads);
  state_->parallel.size = sizeof(tn_parallel);
  state_->parallel.workers = this->threads();
  state_->parallel.self = state_.get();
  state_->parallel.for_each = [](void* self, int64_t count, Task task, void* argument) {
    static_cast<State*>(self)->for_each(count, task, argument);
  };
  state_->start();
}

ThreadPool::~ThreadPool() {
  // In a child after fork the threads do not exist: joining them would never end. Their memory is given up.
  if (state_->process != getpid()) static_cast<void>(state_.release());
}

int32_t ThreadPool::threads() const { return static_cast<int32_t>(state_->workers.size()); }

uint64_t ThreadPool::workers_computed() const {
  uint64_t count = 0;
  for (const Worker& worker : state_->workers) count += worker.computed.load(std::memory_order_relaxed) ? 1 : 0;
  return count;
}

const tn_parallel* ThreadPool::parallel() const { return &state_->parallel; }

}  // namespace tenon
