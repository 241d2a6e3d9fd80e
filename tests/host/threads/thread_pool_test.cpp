// SPDX-License-Identifier: Apache-2.0
#include "host/threads/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>

#include <atomic>
#include <cfenv>
#include <chrono>
#include <csignal>
#include <functional>
#include <limits>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "base/usable_cores.h"
#include "host/threads/worker_count.h"
#include "tests/support/child.h"
#include "tests/support/denied_calls.h"
#include "tests/support/memory_system.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

using Body = std::function<void(int64_t index, int32_t worker)>;

void for_each(const ThreadPool& pool, int64_t count, Body body) {
  const tn_parallel* parallel = pool.parallel();
  parallel->for_each(
      parallel->self, count,
      [](void* argument, int64_t index, int32_t worker) { (*static_cast<Body*>(argument))(index, worker); }, &body);
}

using PhaseBody = std::function<void(int32_t phase, int64_t index, int32_t worker)>;

void phases(const ThreadPool& pool, const std::vector<int64_t>& sizes, PhaseBody body) {
  const tn_parallel* parallel = pool.parallel();
  parallel->phases(
      parallel->self, static_cast<int32_t>(sizes.size()), sizes.data(),
      [](void* argument, int32_t phase, int64_t index, int32_t worker) {
        (*static_cast<PhaseBody*>(argument))(phase, index, worker);
      },
      &body);
}

TEST(ThreadPool, RunsEachIndexOnce) {
  for (const int32_t threads : {1, 2, 3, 8}) {
    const ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    EXPECT_EQ(pool.parallel()->workers, threads);
    for (const int64_t count : {0, 1, 2, 7, 100, 10000}) {
      std::vector<std::atomic<int>> runs(static_cast<size_t>(count));
      std::atomic<bool> known_worker{true};
      for_each(pool, count, [&](int64_t index, int32_t worker) {
        if (worker < 0 || worker >= threads) known_worker = false;
        ++runs[static_cast<size_t>(index)];
      });
      EXPECT_TRUE(known_worker);
      for (const auto& run : runs) ASSERT_EQ(run.load(), 1) << threads << " threads, " << count << " tasks";
    }
  }
}

// The caller sees the writes of a region after it, and the next region may overwrite them. Runs many short regions,
// some of them after a pause in which the workers park.
TEST(ThreadPool, RegionsFollowEachOther) {
  const ThreadPool pool(4);
  int64_t total = 0;  // not atomic: the pool orders it
  std::vector<int64_t> parts(64);
  for (int region = 0; region < 3000; ++region) {
    for_each(pool, 64, [&](int64_t index, int32_t) { parts[static_cast<size_t>(index)] = index + region; });
    for (const int64_t part : parts) total += part;
    if (region % 100 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(total, 3000 * (63 * 64 / 2) + 64LL * (2999 * 3000 / 2));
}

TEST(ThreadPool, CountsTheWorkersThatComputed) {
  const ThreadPool pool(2);
  EXPECT_EQ(pool.workers_computed(), 0u);
  for_each(pool, 1, [](int64_t, int32_t worker) { EXPECT_EQ(worker, 0); });
  EXPECT_EQ(pool.workers_computed(), 1u);
  // Each task waits until the other one runs, so two workers must take them.
  std::atomic<int> present{0};
  std::mutex mutex;
  std::set<std::thread::id> ids;
  for_each(pool, 2, [&](int64_t, int32_t) {
    ++present;
    while (present.load() < 2) std::this_thread::yield();
    const std::lock_guard<std::mutex> lock(mutex);
    ids.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(ids.size(), 2u);
  EXPECT_EQ(ids.count(std::this_thread::get_id()), 1u);
  EXPECT_EQ(pool.workers_computed(), 2u);
}

TEST(ThreadPool, OneSlowTaskDoesNotHoldTheOthersBack) {
  const ThreadPool pool(2);
  constexpr int64_t kTasks = 20;
  std::atomic<int64_t> done{0};
  for_each(pool, kTasks, [&](int64_t index, int32_t) {
    if (index == 0)  // ends after all others; with a fixed half of the tasks per worker, never
      while (done.load() < kTasks - 1) std::this_thread::yield();
    ++done;
  });
  EXPECT_EQ(done.load(), kTasks);
}

TEST(ThreadPool, NoPhaseBeginsBeforeTheOneBeforeItIsDone) {
  for (const int32_t threads : {1, 2, 3, 8}) {
    const ThreadPool pool(threads);
    for (const std::vector<int64_t>& sizes : std::vector<std::vector<int64_t>>{
             {}, {0, 0}, {1, 1, 1}, {5}, {2, 3, 1, 0, 100, 1, 1, 1000, 7, 0}, std::vector<int64_t>(300, 2)}) {
      std::vector<std::vector<int64_t>> runs;  // not atomic: the barriers order tasks of different phases
      for (const int64_t size : sizes) runs.emplace_back(size, 0);
      std::atomic<int64_t> too_early{0};
      for (int repeat = 1; repeat <= 3; ++repeat)
        phases(pool, sizes, [&](int32_t phase, int64_t index, int32_t worker) {
          const auto p = static_cast<size_t>(phase);
          ++runs[p][static_cast<size_t>(index)];
          if (worker < 0 || worker >= threads) ++too_early;
          if (phase > 0)
            for (const int64_t run : runs[p - 1]) too_early += run == repeat ? 0 : 1;
        });
      EXPECT_EQ(too_early.load(), 0) << threads << " threads";
      for (const auto& phase : runs)
        for (const int64_t run : phase) ASSERT_EQ(run, 3) << threads << " threads";
    }
  }
}

// Sums over a fixed division into shares do not depend on the number of threads.
TEST(ThreadPool, PhasesGiveTheSameBitsForAnyNumberOfThreads) {
  constexpr int64_t kShares = 37, kLength = 101;
  const auto sum = [](int32_t threads) {
    const ThreadPool pool(threads);
    std::vector<float> partial(kShares), result(kShares);
    float mean = 0;
    phases(pool, {kShares, 1, kShares}, [&](int32_t phase, int64_t index, int32_t) {
      const auto i = static_cast<size_t>(index);
      if (phase == 0)
        for (int64_t k = 0; k < kLength; ++k) partial[i] += 1.0F / static_cast<float>(index * kLength + k + 1);
      if (phase == 1)
        for (const float share : partial) mean += share / kShares;
      if (phase == 2) result[i] = partial[i] - mean;
    });
    return result;
  };
  const std::vector<float> one = sum(1);
  for (const int32_t threads : {2, 3, 8}) EXPECT_EQ(sum(threads), one) << threads << " threads";
}

TEST(ThreadPool, PhasesInsideATaskRunInline) {
  const ThreadPool pool(3);
  std::atomic<int64_t> inner{0}, wrong{0};
  phases(pool, {4, 20}, [&](int32_t, int64_t, int32_t worker) {
    const std::thread::id self = std::this_thread::get_id();
    int64_t mine = 0;
    phases(pool, {5, 1, 5}, [&](int32_t phase, int64_t index, int32_t inner_worker) {
      if (inner_worker != worker || std::this_thread::get_id() != self) ++wrong;
      if (mine++ != (phase == 0 ? index : phase == 1 ? 5 : 6 + index)) ++wrong;
    });
    inner += mine;
  });
  EXPECT_EQ(inner.load(), 24 * 11);
  EXPECT_EQ(wrong.load(), 0);
}

using Clock = std::chrono::steady_clock;

// Whether `count` tasks of one region all run at the same time. Each waits for the others, but at most for `patience`,
// and then calls `then` with the number of its worker.
bool meet(const ThreadPool& pool, int64_t count, std::chrono::milliseconds patience,
          const std::function<void(int32_t worker)>& then = nullptr) {
  std::atomic<int64_t> present{0};
  std::atomic<bool> met{false};
  const auto until = Clock::now() + patience;
  for_each(pool, count, [&](int64_t, int32_t worker) {
    if (++present == count) met = true;
    while (!met && Clock::now() < until) std::this_thread::yield();
    if (then) then(worker);
    if (!met) --present;
  });
  return met;
}

// Repeats meet, since a worker that has lost its core is left out for a while, 400 ms at most.
bool meet_at_last(const ThreadPool& pool, int64_t count) {
  for (int attempt = 0; attempt < 10; ++attempt) {
    std::this_thread::sleep_for(std::chrono::milliseconds(attempt == 0 ? 2 : 450));  // all park
    if (meet(pool, count, std::chrono::milliseconds(500))) return true;
  }
  return false;
}

// A region that begins while the workers are parked wakes as many of them as it has tasks.
TEST(ThreadPool, WakesTheWorkersThatItNeeds) {
  for (const int32_t threads : {2, 3, 8}) {
    const ThreadPool pool(threads);
    for (int64_t tasks = 2; tasks <= threads; ++tasks)
      ASSERT_TRUE(meet_at_last(pool, tasks)) << tasks << " tasks, " << threads << " threads";
  }
}

// A worker that loses its core in the middle of a task is left out for a while. A sleep simulates the loss.
TEST(ThreadPool, NoticesAWorkerThatLostItsCore) {
  using std::chrono::milliseconds;
  const ThreadPool pool(2);
  bool left_out = false;
  for (int attempt = 0; attempt < 10 && !left_out; ++attempt) {  // the caller may have lost its core instead
    if (attempt > 0) std::this_thread::sleep_for(milliseconds(500));
    ASSERT_TRUE(meet(pool, 2, std::chrono::seconds(10), [](int32_t worker) {
      if (worker == 1) std::this_thread::sleep_for(milliseconds(30));
    }));
    left_out = !meet(pool, 2, milliseconds(200));
  }
  EXPECT_TRUE(left_out);
  EXPECT_TRUE(meet_at_last(pool, 2)) << "the worker must take part again";
}

// Runs one busy process per core.
class BusyCores {
 public:
  BusyCores() {
    for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) {
      children_.emplace_back([] {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (volatile bool busy = true; busy;) continue;
      });
    }
  }

 private:
  std::vector<Child> children_;
};

TEST(ThreadPool, IsRightBesideBusyProcesses) {
  const ThreadPool pool(2);
  const BusyCores busy;
  std::vector<int64_t> parts(64);
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(600);
  for (int64_t region = 0; std::chrono::steady_clock::now() < until; ++region) {
    for_each(pool, 64, [&](int64_t index, int32_t) {
      for (int i = 0; i < 500; ++i) parts[static_cast<size_t>(index)] = index + region + i;
    });
    for (int64_t i = 0; i < 64; ++i) ASSERT_EQ(parts[static_cast<size_t>(i)], i + region + 499) << "region " << region;
    std::atomic<int64_t> wrong{0};
    phases(pool, {64, 2, 64}, [&](int32_t phase, int64_t index, int32_t) {
      if (phase == 0) parts[static_cast<size_t>(index)] = region;
      if (phase == 2 && parts[static_cast<size_t>(63 - index)] != region) ++wrong;
    });
    ASSERT_EQ(wrong.load(), 0) << "region " << region;
  }
}

TEST(WorkerCount, FallsAfterAStallAndComesBack) {
  using std::chrono::milliseconds;
  static WorkerCount::Clock::time_point now;
  now = WorkerCount::Clock::now();
  WorkerCount worker_count(3, [] { return now; });
  EXPECT_EQ(worker_count.next(), 3);
  worker_count.stalled();
  EXPECT_EQ(worker_count.next(), 2);
  now += milliseconds(50);
  EXPECT_EQ(worker_count.next(), 3);
  worker_count.stalled();  // soon after: 100 ms
  worker_count.stalled();  // 200 ms
  worker_count.stalled();  // 400 ms, which is the longest
  worker_count.stalled();
  EXPECT_EQ(worker_count.next(), 1);  // the caller always takes part
  now += milliseconds(399);
  EXPECT_EQ(worker_count.next(), 1);
  now += milliseconds(1);
  EXPECT_EQ(worker_count.next(), 2);  // workers return one at a time
  EXPECT_EQ(worker_count.next(), 2);
  now += milliseconds(400);
  EXPECT_EQ(worker_count.next(), 3);
  now += std::chrono::seconds(1);
  worker_count.stalled();  // long after: 50 ms again
  now += milliseconds(50);
  EXPECT_EQ(worker_count.next(), 3);
}

TEST(ThreadPool, NestedCallsRunInlineAsTheSameWorker) {
  const ThreadPool pool(3);
  std::atomic<int64_t> inner{0};
  std::atomic<bool> same{true};
  for (const int64_t outer : {1, 50}) {
    inner = 0;
    for_each(pool, outer, [&](int64_t, int32_t worker) {
      const std::thread::id self = std::this_thread::get_id();
      for_each(pool, 10, [&](int64_t, int32_t inner_worker) {
        if (inner_worker != worker || std::this_thread::get_id() != self) same = false;
        ++inner;
      });
    });
    EXPECT_EQ(inner.load(), outer * 10);
  }
  EXPECT_TRUE(same);
}

// Whether denormals are kept, as results and as operands.
bool keeps_denormals() {
  const volatile float smallest = std::numeric_limits<float>::min(),
                       denormal = std::numeric_limits<float>::denorm_min();
  return smallest / 2 != 0.0f && denormal * 0x1p30f != 0.0f;
}

TEST(ThreadPool, SetsAndRestoresTheFloatingPointMode) {
  const ThreadPool pool(2);
  const int before = std::fegetround();
  for (const int64_t count : {1, 64}) {
    ASSERT_EQ(std::fesetround(FE_DOWNWARD), 0);
    for_each(pool, count, [](int64_t, int32_t) { std::fesetround(FE_UPWARD); });  // tasks that do not restore it
    EXPECT_EQ(std::fegetround(), FE_DOWNWARD);
    std::atomic<int> wrong{0};
    for_each(pool, count, [&](int64_t, int32_t) {
      const volatile float one = 1.0f, tiny = 1e-10f;
      if (std::fegetround() != FE_TONEAREST || one - tiny != 1.0f || !keeps_denormals()) ++wrong;
    });
    EXPECT_EQ(wrong.load(), 0);
    EXPECT_EQ(std::fegetround(), FE_DOWNWARD);
    EXPECT_TRUE(keeps_denormals());
  }
  std::fesetround(before);
}

TEST(ThreadPool, RefusesABadNumberOfThreads) {
  EXPECT_EQ(error_of([] { const ThreadPool pool(-1); }).message(), "threads must be between 0 and 4096, got -1");
  EXPECT_EQ(error_of([] { const ThreadPool pool(1 << 20); }).code(), TN_INVALID);
  const ThreadPool pool(0);
  EXPECT_GE(pool.threads(), 1);
}

// As under RLIMIT_NPROC, or where a filter forbids clone3.
TEST(ThreadPool, ComputesWithTheThreadsThatCouldBeStarted) {
  std::vector<double> whole(1000);
  const auto compute = [](const ThreadPool& pool, std::vector<double>& to) {
    phases(pool, {1000, 10, 1000}, [&](int32_t phase, int64_t index, int32_t) {
      double& value = to[static_cast<size_t>(index)];
      value = phase == 1 ? value * 3 : value + 0.1 * static_cast<double>(index);
    });
  };
  compute(ThreadPool(8), whole);
  for (const int most : {0, 1, 3, 6}) {
    int started = 0;
    const ThreadPool pool(8, [&](std::function<void()> body) {
      if (started == most) throw std::system_error(EAGAIN, std::generic_category());
      ++started;
      return start_thread(std::move(body));
    });
    EXPECT_EQ(pool.threads(), most + 1);
    EXPECT_EQ(pool.parallel()->workers, most + 1) << "kernels divide their work by it";
    EXPECT_EQ(pool.shortage(), "the system started only " + std::to_string(most + 1) +
                                   " of 8 compute threads: Resource temporarily unavailable");
    EXPECT_EQ(pool.reason(), pool.shortage());
    for (int repeat = 0; repeat < 50; ++repeat) {
      std::vector<double> values(1000);
      compute(pool, values);
      ASSERT_EQ(values, whole);
    }
    EXPECT_LE(pool.workers_computed(), static_cast<uint64_t>(most) + 1);
  }
  EXPECT_EQ(ThreadPool(2).shortage(), "");
  EXPECT_EQ(ThreadPool(2).reason(), "stated");
  EXPECT_EQ(ThreadPool(0).reason(), tenon::base::usable_cores().reason);
  EXPECT_EQ(ThreadPool(0).threads(), tenon::base::usable_cores().count);
}

TEST(ThreadPool, TheSystemMayRefuseAllThreads) {
  const auto work = [](int to) {
    if (!deny_threads()) _exit(3);
    const ThreadPool pool(4);
    int64_t tasks = 0;
    for_each(pool, 100, [&](int64_t, int32_t worker) { tasks += worker == 0 ? 1 : 1000; });
    const std::string text = pool.shortage() + "; " + std::to_string(pool.threads()) + ", " + std::to_string(tasks);
    _exit(write(to, text.data(), text.size()) < 0 ? 2 : 0);
  };
  const ChildEnd end = run_child(work, 60);
  EXPECT_EQ(end.code(), 0);
  EXPECT_EQ(end.text, "the system started only 1 of 4 compute threads: Operation not permitted; 1, 100");
}

TEST(ThreadPool, AChildAfterForkCanDropIt) {
  auto pool = std::make_unique<ThreadPool>(3);
  for_each(*pool, 10, [](int64_t, int32_t) {});
  EXPECT_TRUE(run_child([&](int) { pool.reset(); }, 20).well()) << "threads that do not exist there must not be joined";
}

}  // namespace
}  // namespace tenon_tests
