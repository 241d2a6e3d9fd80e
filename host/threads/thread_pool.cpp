// The host's compute threads: one region at a time, tasks from a shared counter, idle workers spin and then park. A
// thread that finds the pool busy with the region of another one computes alone, with the same bits.
//
// A worker enters a region only while the gate is open, and the caller returns only when the gate is shut and no worker
// is inside. So the caller does not wait for a worker that the system wakes late, and such a worker cannot see a
// half-written region. The caller does wait for a worker that loses its core inside a region, and measures the loss;
// WorkerCount then lets fewer workers take part for a while. Tasks come through the C interface and must not throw.
// SPDX-License-Identifier: Apache-2.0
#include "host/threads/thread_pool.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/signals_blocked.h"
#include "base/usable_cores.h"
#include "core/alignment.h"
#include "core/error.h"
#include "core/floating_point_mode.h"
#include "core/plugin_call.h"
#include "host/threads/gate.h"
#include "host/threads/own_thread.h"
#include "host/threads/phases.h"
#include "host/threads/spin.h"
#include "host/threads/worker_count.h"

namespace tenon::host {

using namespace core;

namespace {

constexpr int32_t kMostThreads = 4096;
constexpr double kStall = 0.5e-3;  // seconds without a core; more than the system's own work takes
constexpr int64_t kChunksPerThread = 16;

// Seconds on a clock of the system.
double read(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct alignas(kCacheLine) Worker {
  std::atomic<bool> computed{false};
  std::thread thread;          // empty for worker 0, the caller
  clockid_t clock = 0;         // measures the thread's time on a core
  double computed_before = 0;  // value of that clock when the caller began to wait
};

using Task = void (*)(void* argument, int32_t phase, int64_t index, int32_t worker);

}  // namespace

struct ThreadPool::State : base::NotCopied {  // NOLINT(clang-analyzer-optin.performance.Padding): lines of its own
  State(int32_t threads, int32_t cores)
      : workers(static_cast<size_t>(threads)), spin(threads <= cores), worker_count(threads), present(threads) {}
  ~State() { stop(); }

  // Starts the workers, or as many as the system allows: results do not depend on their number.
  void start(const ThreadStart& starter) {
    const base::SignalsBlocked blocked;
    for (int32_t i = 1; i < std::ssize(workers); ++i) {
      Worker& worker = workers[static_cast<size_t>(i)];
      try {
        worker.thread = starter([this, i] { work(i); });
      } catch (const std::system_error& error) {
        shortage =
            text("the system started only ", i, " of ", workers.size(), " compute threads: ", error.code().message());
        break;
      }
      pthread_setname_np(worker.thread.native_handle(), "tenon-worker");
      pthread_getcpuclockid(worker.thread.native_handle(), &worker.clock);
      started = i + 1;
    }
    worker_count = WorkerCount(started);
    present.store(started);
  }

  void stop() noexcept {
    {
      const std::lock_guard<std::mutex> lock(mutex);
      ending.store(true);
      region.fetch_add(1);
    }
    changed.notify_all();
    called.notify_all();
    for (Worker& worker : workers)
      if (worker.thread.joinable()) worker.thread.join();
  }

  void work(int32_t worker) {
    mark_own_thread();
    uint32_t seen = 0;
    for (;;) {
      sit_out(worker);
      await(seen);
      if (ending.load(std::memory_order_relaxed)) return;
      seen = region.load(std::memory_order_acquire);
      if (!gate.enter()) continue;
      run_tasks(worker);
      leave(worker);
    }
  }

  // Waits until `region` differs from `seen`.
  void await(uint32_t seen) {
    if (spin && spin_until([&] { return region.load(std::memory_order_acquire) != seen; })) return;
    std::unique_lock<std::mutex> lock(mutex);
    // The caller changes `region` and then reads `parked`; a worker changes `parked` and then reads `region`. All four
    // operations are sequentially consistent, so at least one of the two sees the other's change.
    parked.fetch_add(1);
    changed.wait(lock, [&] { return region.load() != seen; });
    parked.fetch_sub(1);
  }

  // Waits until the worker may take part in regions or the pool ends.
  void sit_out(int32_t worker) {
    if (worker < present.load(std::memory_order_relaxed)) return;
    std::unique_lock<std::mutex> lock(mutex);
    called.wait(lock, [&] { return worker < present.load() || ending.load(); });
  }

  void leave(int32_t worker) {
    if (gate.is_last()) report(worker);
    gate.leave();
  }

  // Calls `sleep`, which waits for the last worker. Reports a stall if that worker was without a core for over kStall.
  template <typename Sleep>
  void watch(Sleep sleep) {
    for (Worker& worker : workers)
      if (worker.clock != 0) worker.computed_before = read(worker.clock);
    watched_since = read(CLOCK_MONOTONIC);
    lost = 0;
    watching.store(true, std::memory_order_release);
    sleep();
    watching.store(false, std::memory_order_relaxed);
    if (lost > kStall) worker_count.stalled();
  }

  // Measures for a waiting caller how long this worker, the last one, was without a core.
  void report(int32_t worker) {
    if (!watching.load(std::memory_order_acquire)) return;
    const Worker& self = workers[static_cast<size_t>(worker)];
    lost = read(CLOCK_MONOTONIC) - watched_since - (read(self.clock) - self.computed_before);
  }

  // These two spin for a moment and then sleep: a worker may have lost its core to another process, and the system can
  // run that worker on this core once this core is idle.
  void await_phase(const Phases::TaskRange& taken, int32_t worker) {
    if (spin && spin_until([&] { return phases.may_begin(taken); })) return;
    if (worker == 0)
      watch([&] { phases.sleep_until_may_begin(taken); });
    else
      phases.sleep_until_may_begin(taken);
  }

  void await_rest() {
    if (spin && spin_until([&] { return gate.is_empty(); })) return;
    watch([&] { gate.sleep_until_empty(); });
  }

  // Lets the first `participants` workers take part.
  void call(int32_t participants) {
    const int32_t before = present.load(std::memory_order_relaxed);
    if (before == participants) return;
    {
      const std::lock_guard<std::mutex> lock(mutex);
      present.store(participants);
    }
    if (participants > before) called.notify_all();
  }

  void run_tasks(int32_t worker) {
    const FloatingPointMode mode;
    const PluginCallMark mark(plugin_call);
    Phases::TaskRange taken = phases.none();
    for (bool first = true; phases.take(taken); first = false) {
      if (first) workers[static_cast<size_t>(worker)].computed.store(true, std::memory_order_relaxed);
      if (!phases.may_begin(taken)) await_phase(taken, worker);
      for (int64_t i = taken.begin; i < taken.end; ++i) task(argument, taken.phase, i - taken.first, worker);
      if (phases.are_last(taken)) report(worker);
      phases.done(taken);
    }
  }

  // Runs all tasks on the calling thread.
  void run_here(int32_t count, const int64_t* sizes, Task what, void* with, int32_t worker) {
    workers[static_cast<size_t>(worker)].computed.store(true, std::memory_order_relaxed);
    for (int32_t phase = 0; phase < count; ++phase)
      for (int64_t i = 0; i < sizes[phase]; ++i) what(with, phase, i, worker);
  }

  // Wakes at most `most` parked workers.
  void wake(int64_t most) {
    const int32_t sleeping = parked.load();
    if (sleeping == 0) return;
    // A worker counted in `parked` holds the mutex or waits already; so after this lock none can miss the notification.
    { const std::lock_guard<std::mutex> lock(mutex); }
    if (most >= sleeping) {
      changed.notify_all();
    } else {
      for (int64_t i = 0; i < most; ++i) changed.notify_one();
    }
  }

  void run(int32_t count, const int64_t* sizes, Task what, void* with) {
    const int64_t most = count <= 0 ? 0 : *std::max_element(sizes, sizes + count);
    if (most <= 0) return;
    // Called from a task, or beside a region of another thread: this thread computes alone. For the region of its own
    // kernel it is the worker that it is, and else worker 0, as no other thread works for that kernel.
    if (running.exchange(true, std::memory_order_acquire)) {
      const FloatingPointMode mode;
      run_here(count, sizes, what, with, current_worker());
      return;
    }
    const int32_t participants = most == 1 ? 1 : worker_count.next();
    if (participants == 1) {
      const FloatingPointMode mode;
      run_here(count, sizes, what, with, 0);
    } else {
      call(participants);
      task = what;
      argument = with;
      plugin_call = current_plugin_call();
      phases.begin(count, sizes, participants * kChunksPerThread);
      gate.open();
      region.fetch_add(1);
      wake(std::min<int64_t>(most, participants) - 1);
      run_tasks(0);
      gate.shut();
      if (!gate.is_empty()) await_rest();
    }
    running.store(false, std::memory_order_release);
  }

  // Returns the worker number of the calling thread. Call it from inside a task.
  [[nodiscard]] int32_t current_worker() const {
    const std::thread::id self = std::this_thread::get_id();
    for (size_t i = 1; i < workers.size(); ++i)
      if (workers[i].thread.get_id() == self) return static_cast<int32_t>(i);
    return 0;
  }

  std::vector<Worker> workers;
  int32_t started = 1;  // the first so many of them run
  std::string reason, shortage;
  const bool spin;  // false if there are more threads than cores
  const pid_t process = getpid();
  tn_parallel parallel = {};

  // The current region. Written by the caller while the gate is shut.
  Task task = nullptr;
  void* argument = nullptr;
  const PluginCall* plugin_call = nullptr;  // that the caller is in
  std::atomic<bool> running{false};

  // Measures whether the worker that delays a region has lost its core. The caller sets these when it begins to wait,
  // and the last worker sets `lost` when it is done.
  std::atomic<bool> watching{false};
  double watched_since = 0;
  double lost = 0;  // seconds that the last worker was without a core

  WorkerCount worker_count;
  std::atomic<int32_t> present;  // workers with a lower number take part
  std::condition_variable called;

  alignas(kCacheLine) Phases phases;
  alignas(kCacheLine) Gate gate;
  alignas(kCacheLine) std::atomic<uint32_t> region{0};  // counts regions; a worker waits for a change
  std::atomic<bool> ending{false};
  std::atomic<int32_t> parked{0};
  std::mutex mutex;
  std::condition_variable changed;
};

std::thread start_thread(std::function<void()> body) { return std::thread(std::move(body)); }

ThreadPool::ThreadPool(int32_t threads, const ThreadStart& start) {
  if (threads < 0 || threads > kMostThreads)
    fail(TN_INVALID, "threads must be between 0 and ", kMostThreads, ", got ", threads);
  const base::UsableCores cores = threads == 1 ? base::UsableCores() : base::usable_cores();
  state_ = std::make_unique<State>(threads == 0 ? std::min(cores.count, kMostThreads) : threads, cores.count);
  state_->start(start);
  state_->reason = threads == 0 ? cores.reason : "stated";
  if (!state_->shortage.empty()) state_->reason = state_->shortage;
  state_->parallel.size = sizeof(tn_parallel);
  state_->parallel.workers = this->threads();
  state_->parallel.self = state_.get();
  state_->parallel.for_each = [](void* self, int64_t count, void (*task)(void*, int64_t, int32_t), void* argument) {
    struct Given {
      void (*task)(void*, int64_t, int32_t);
      void* argument;
    } given = {task, argument};
    static_cast<State*>(self)->run(
        1, &count,
        [](void* all, int32_t, int64_t index, int32_t worker) {
          const Given& of = *static_cast<const Given*>(all);
          of.task(of.argument, index, worker);
        },
        &given);
  };
  state_->parallel.phases = [](void* self, int32_t count, const int64_t* sizes, Task task, void* argument) {
    static_cast<State*>(self)->run(count, sizes, task, argument);
  };
}

ThreadPool::~ThreadPool() {
  // In a child after fork the threads do not exist, and joining them would never return. The state is leaked instead.
  if (state_->process != getpid()) static_cast<void>(state_.release());
}

int32_t ThreadPool::threads() const { return state_->started; }

const std::string& ThreadPool::reason() const { return state_->reason; }

const std::string& ThreadPool::shortage() const { return state_->shortage; }

uint64_t ThreadPool::workers_computed() const {
  uint64_t count = 0;
  for (const Worker& worker : state_->workers) count += worker.computed.load(std::memory_order_relaxed) ? 1 : 0;
  return count;
}

const tn_parallel* ThreadPool::parallel() const { return &state_->parallel; }

const tn_parallel& calling_thread() {
  static const tn_parallel alone = {sizeof(tn_parallel), 1, nullptr,
                                    [](void*, int64_t count, void (*task)(void*, int64_t, int32_t), void* argument) {
                                      const FloatingPointMode mode;
                                      for (int64_t i = 0; i < count; ++i) task(argument, i, 0);
                                    },
                                    [](void*, int32_t count, const int64_t* sizes, Task task, void* argument) {
                                      const FloatingPointMode mode;
                                      for (int32_t phase = 0; phase < count; ++phase)
                                        for (int64_t i = 0; i < sizes[phase]; ++i) task(argument, phase, i, 0);
                                    }};
  return alone;
}

}  // namespace tenon::host
