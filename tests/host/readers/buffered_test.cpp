// The reader `buffered`, which reads ahead on a thread of its own. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "core/error.h"
#include "tests/support/child.h"
#include "tests/support/denied_calls.h"
#include "tests/support/faults.h"
#include "tests/support/memory_system.h"
#include "tests/support/read_samples.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::shared_ptr<Allocator> memory() { return system_allocator(); }
std::unique_ptr<Reader> batched(MemoryData& data, int64_t samples = 4) {
  return batch(open(data), samples, false, memory());
}

// Returns a reader that reads ahead from the first call on, even if reading is fast.
std::unique_ptr<Reader> always_ahead(std::shared_ptr<Reader> of, int64_t minibatches,
                                     std::shared_ptr<Allocator> allocator) {
  return buffered(std::move(of), minibatches, std::move(allocator), 0);
}

// Blocks calls of next until let() permits them; a cancelled call passes without a permit.
class Turnstile {
 public:
  void pass(const volatile int32_t* cancel) {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    while (tickets_ == 0 && __atomic_load_n(cancel, __ATOMIC_RELAXED) == 0)
      changed_.wait_for(lock, std::chrono::milliseconds(1));
    --waiting_;
    if (tickets_ > 0) --tickets_;
    ++passed_;
    changed_.notify_all();
  }
  void let(int64_t calls) {
    const std::lock_guard lock(mutex_);
    tickets_ += calls;
    changed_.notify_all();
  }
  void await_waiting() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return waiting_ > 0; });
  }
  void await_passed(int64_t calls) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return passed_ >= calls; });
  }
  // Whether a call waits, or `calls` calls have passed, within kSomeTime.
  [[nodiscard]] bool comes() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kSomeTime, [this] { return waiting_ > 0; });
  }
  [[nodiscard]] bool passes(int64_t calls) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kSomeTime, [&] { return passed_ >= calls; });
  }
  void attach(MemoryData& data) {
    data.before_next = [this](const volatile int32_t* cancel) { pass(cancel); };
  }

 private:
  static constexpr std::chrono::milliseconds kSomeTime{20};

  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t waiting_ = 0, tickets_ = 0, passed_ = 0;
};

TEST(Buffered, GivesWhatIsBelowIt) {
  MemoryData data(23, true);
  data.most = 3;
  for (const int64_t ahead : {1, 2, 7}) {
    const auto reader = always_ahead(batched(data), ahead, memory());
    EXPECT_EQ(reader->batch(), 4);
    EXPECT_EQ(reader->size(), 23);
    for (int pass = 0; pass < 5; ++pass) {
      EXPECT_EQ(reader->pass(), pass);
      EXPECT_EQ(rest(*reader), counted(23));
    }
  }
  EXPECT_EQ(data.opened, 0);
}

TEST(Buffered, ReadsAheadAndNoFurther) {
  MemoryData data(0);
  data.ends = false;
  Turnstile turnstile;
  turnstile.attach(data);
  const auto reader = always_ahead(batched(data), 3, memory());
  EXPECT_FALSE(turnstile.comes());  // begins with the first call
  turnstile.let(1000);
  EXPECT_THAT(minibatch(*reader), ElementsAre(0, 1, 2, 3));
  turnstile.await_passed(4);  // the returned minibatch, and 3 ahead
  EXPECT_FALSE(turnstile.passes(5));
  EXPECT_THAT(minibatch(*reader), ElementsAre(4, 5, 6, 7));
  turnstile.await_passed(5);
  EXPECT_FALSE(turnstile.passes(6));
  EXPECT_EQ(reader->position(), 8);
}

TEST(Buffered, ReadsWhileTheCallerIsBusy) {
  MemoryData data(8);
  Turnstile turnstile;
  turnstile.attach(data);
  const auto reader = always_ahead(batched(data), 2, memory());
  turnstile.let(1);
  EXPECT_THAT(minibatch(*reader), ElementsAre(0, 1, 2, 3));
  turnstile.await_waiting();  // for the next minibatch, before it is requested
  turnstile.let(100);
  EXPECT_THAT(minibatch(*reader), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(minibatch(*reader), IsEmpty());
}

TEST(Buffered, AFailureComesInItsPlace) {
  for (int64_t call = 0; call < 8; ++call) {
    MemoryData data(15);
    data.fail_at = call;
    data.most = 4;
    const auto reader = always_ahead(batched(data), 3, memory());
    Ids ids;
    int failures = 0;
    for (bool more = true; more;) try {
        const Ids part = minibatch(*reader);
        ids.insert(ids.end(), part.begin(), part.end());
        more = !part.empty();
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), TN_IO);
        EXPECT_EQ(ids, counted(std::min<int64_t>(4 * call, 12)));  // all samples before the failure
        ++failures;
      }
    EXPECT_EQ(ids, counted(15));
    EXPECT_EQ(failures, call < 5 ? 1 : 0);
  }
}

TEST(Buffered, AnErrorThatStaysIsToldAgain) {
  MemoryData data(15);
  data.answer = TN_IO;
  const auto reader = always_ahead(batched(data), 3, memory());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(error_of([&] { minibatch(*reader); }).code(), TN_IO);
}

// The thread reads nothing after a failure until the caller has taken it, since the caller may remove its cause.
TEST(Buffered, AFailureIsQueuedOnce) {
  MemoryData data(0);
  data.ends = false;
  data.answer = TN_IO;
  Turnstile turnstile;
  turnstile.attach(data);
  const auto reader = always_ahead(batched(data), 4, memory());
  turnstile.let(1000);
  for (int64_t seen = 1; seen <= 2; ++seen) {
    EXPECT_EQ(error_of([&] { minibatch(*reader); }).code(), TN_IO);
    turnstile.await_passed(seen + 1);  // the thread tries again
    EXPECT_FALSE(turnstile.passes(seen + 2));
  }
  data.answer = TN_OK;
  SampleBlock block(reader->slots(), memory());
  if (const Error queued = error_of([&] { reader->next(block, 4); }); queued.code() != TN_OK) {
    EXPECT_EQ(queued.code(), TN_IO);  // of the call that had begun before
    EXPECT_EQ(reader->next(block, 4), 4);
  }
  EXPECT_EQ(ids_of(block), counted(4));
  EXPECT_THAT(minibatch(*reader), ElementsAre(4, 5, 6, 7));
}

// Returns the results of 60 calls of next as texts. Every seventh call of the plugin fails, and so does each read of a
// damaged sample.
std::vector<std::string> story(bool ahead, int64_t minibatches) {
  MemoryData data(0);
  data.ends = false;
  data.most = 3;
  data.damaged = {5, 6, 21, 80, 81, 82, 83, 84};
  data.before_next = [&](const volatile int32_t*) {
    if (data.calls % 7 == 3) data.fail_at = data.calls.load();
  };
  std::shared_ptr<Reader> reader = batched(data);
  if (ahead) reader = always_ahead(std::move(reader), minibatches, memory());
  std::vector<std::string> told;
  for (int i = 0; i < 60; ++i) {
    std::string what;
    try {
      for (const int64_t id : minibatch(*reader)) what += text(id, " ");
    } catch (const Error& error) {
      what = error.message();
    }
    told.push_back(text(what, "; then ", reader->pass(), ", ", reader->position()));
  }
  return told;
}

TEST(Buffered, AStreamThatFailsAndRecovers) {
  const std::vector<std::string> expected = story(false, 0);
  EXPECT_GE(std::count_if(expected.begin(), expected.end(),
                          [](const std::string& each) { return each.find("cannot read it") != std::string::npos; }),
            5);
  EXPECT_EQ(std::count_if(expected.begin(), expected.end(),
                          [](const std::string& each) { return each.find("a damaged sample") != std::string::npos; }),
            8);
  for (const int64_t minibatches : {1, 2, 5}) EXPECT_EQ(story(true, minibatches), expected) << minibatches;
}

TEST(Buffered, NoMemoryComesInItsPlaceToo) {
  MemoryData data(15, true);
  const auto allocator = std::make_shared<FaultyAllocator>();
  for (int64_t call = 0; call < 30; ++call) {
    allocator->fail_at = -1;
    auto reader = always_ahead(batched(data), 2, allocator);
    allocator->calls = 0;
    allocator->fail_at = call;  // the thread has not begun
    Ids ids;
    for (bool more = true; more;) try {
        SampleBlock block(reader->slots(), memory());
        more = reader->next(block, 4) != 0;
        const Ids part = ids_of(block);
        ids.insert(ids.end(), part.begin(), part.end());
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), TN_OUT_OF_MEMORY);
      }
    EXPECT_EQ(ids, counted(15)) << call;
  }
}

TEST(Buffered, SeekForgetsWhatWasReadAhead) {
  MemoryData data(23);
  const auto reader = always_ahead(batched(data), 5, memory());
  for (int64_t position = 0; position <= 23; ++position) {
    minibatch(*reader);
    reader->seek(position, position);
    EXPECT_EQ(reader->position(), position);
    EXPECT_EQ(rest(*reader), counted(23 - position, position));
    EXPECT_EQ(reader->pass(), position + 1);
  }
  EXPECT_EQ(error_of([&] { reader->seek(0, 24); }).code(), TN_INVALID);
  EXPECT_EQ(rest(*reader), counted(23));
}

TEST(Buffered, SeekCutsALongReadShort) {
  MemoryData data(8);
  Turnstile turnstile;
  turnstile.attach(data);
  const auto reader = always_ahead(batched(data), 3, memory());
  turnstile.let(1);
  EXPECT_THAT(minibatch(*reader), ElementsAre(0, 1, 2, 3));
  turnstile.await_waiting();
  reader->seek(0, 6);  // while the thread is in next
  turnstile.let(100);
  EXPECT_THAT(rest(*reader), ElementsAre(6, 7));
}

TEST(Buffered, WhatCannotSeekLosesNothing) {
  MemoryData data(15);
  data.seeks = false;
  Turnstile turnstile;
  turnstile.attach(data);
  const auto reader = always_ahead(batched(data), 3, memory());
  turnstile.let(1);
  EXPECT_THAT(minibatch(*reader), ElementsAre(0, 1, 2, 3));
  turnstile.await_waiting();
  EXPECT_EQ(error_of([&] { reader->seek(0, 0); }).code(), TN_UNSUPPORTED);
  EXPECT_EQ(reader->position(), 4);
  turnstile.let(100);
  EXPECT_EQ(rest(*reader), counted(11, 4));
}

// A refused seek interrupts the thread, whose call fails because of a damaged sample: the caller gets that failure.
TEST(Buffered, AFailureDuringARefusedSeekIsTold) {
  MemoryData data(0);
  data.ends = data.seeks = data.heeds_cancel = false;
  data.damaged = {4};
  Turnstile turnstile;
  turnstile.attach(data);
  const auto reader = always_ahead(batched(data), 3, memory());
  turnstile.let(1);
  EXPECT_THAT(minibatch(*reader), ElementsAre(0, 1, 2, 3));
  turnstile.await_waiting();
  EXPECT_EQ(error_of([&] { reader->seek(0, 0); }).code(), TN_UNSUPPORTED);
  turnstile.let(100);
  const Error error = error_of([&] { minibatch(*reader); });
  EXPECT_EQ(error.code(), TN_BAD_DATA);
  EXPECT_THAT(error.message(), HasSubstr("a damaged sample"));
  EXPECT_EQ(reader->position(), 5);
  EXPECT_THAT(minibatch(*reader), ElementsAre(5, 6, 7));
}

TEST(Buffered, SeekForgetsAFailureToo) {
  MemoryData data(8);
  data.fail_at = 1;
  data.heeds_cancel = false;  // the call fails even if seek comes first
  Turnstile turnstile;
  turnstile.attach(data);
  const auto reader = always_ahead(batched(data), 3, memory());
  turnstile.let(100);
  EXPECT_THAT(minibatch(*reader), ElementsAre(0, 1, 2, 3));
  turnstile.await_passed(2);  // the call that fails
  reader->seek(0, 2);
  EXPECT_EQ(rest(*reader), counted(6, 2));
}

TEST(Buffered, ADestroyedReaderStopsItsThread) {
  for (int i = 0; i < 50; ++i) {
    MemoryData data(0);
    data.ends = false;
    Turnstile turnstile;
    if (i % 2 == 0) turnstile.attach(data);
    {
      const auto reader = always_ahead(batched(data), 1 + i % 3, memory());
      turnstile.let(1);
      if (i % 5 != 0) minibatch(*reader);
      if (i % 10 == 2) turnstile.await_waiting();  // the thread waits for data that does not come
    }
    EXPECT_EQ(data.opened, 0);
  }
}

TEST(Buffered, OneOverAnother) {
  MemoryData data(23, true);
  Turnstile turnstile;
  const auto same = [](const std::vector<ArrayView>& from, int64_t, std::vector<ArrayView>& to) { to = from; };
  {
    auto inner = always_ahead(batched(data), 2, memory());
    const std::vector<Slot> slots = inner->slots();
    const auto reader = always_ahead(map(std::move(inner), slots, same, memory()), 2, memory());
    for (int pass = 0; pass < 2; ++pass) EXPECT_EQ(rest(*reader), counted(23));
    minibatch(*reader);
    reader->seek(5, 20);
    EXPECT_EQ(rest(*reader), counted(3, 20));
  }
  MemoryData slow(23);
  turnstile.attach(slow);
  {
    auto inner = always_ahead(batched(slow), 2, memory());
    const std::vector<Slot> slots = inner->slots();
    const auto reader = always_ahead(map(std::move(inner), slots, same, memory()), 2, memory());
    turnstile.let(1);
    EXPECT_THAT(minibatch(*reader), ElementsAre(0, 1, 2, 3));
    turnstile.await_waiting();
  }
  EXPECT_EQ(data.opened + slow.opened, 0);
}

TEST(Buffered, ASlowReaderAndAFastCaller) {
  MemoryData data(40);
  data.before_next = [](const volatile int32_t*) { std::this_thread::sleep_for(std::chrono::microseconds(300)); };
  const auto reader = always_ahead(batched(data, 1), 2, memory());
  for (int pass = 0; pass < 2; ++pass) EXPECT_EQ(rest(*reader), counted(40));
}

// In a child after fork the thread does not exist, and the destructor must not wait for it.
TEST(Buffered, AForkedChildLetsGo) {
#if !defined(__SANITIZE_THREAD__)
  MemoryData data(0);
  data.ends = false;
  Turnstile turnstile;
  turnstile.attach(data);
  auto reader = always_ahead(batched(data), 2, memory());
  turnstile.let(1);
  minibatch(*reader);
  turnstile.await_waiting();
  EXPECT_TRUE(run_child([&](int) { reader.reset(); }, 60).well());
#endif
}

TEST(Buffered, WhatIsReadFastIsReadByTheCaller) {
  MemoryData data(1000);
  std::set<std::thread::id> readers;
  data.before_next = [&](const volatile int32_t*) { readers.insert(std::this_thread::get_id()); };
  constexpr double kHours = 10000;
  const auto reader = buffered(batched(data), 3, memory(), kHours);
  for (int pass = 0; pass < 2; ++pass) EXPECT_EQ(rest(*reader), counted(1000));
  EXPECT_THAT(readers, ElementsAre(std::this_thread::get_id()));
  reader->seek(3, 990);
  EXPECT_EQ(rest(*reader), counted(10, 990));
  data.answer = TN_IO;
  EXPECT_EQ(error_of([&] { minibatch(*reader); }).code(), TN_IO);
}

TEST(Buffered, WithoutAThreadTheCallerReads) {
  const auto work = [](int) {
    MemoryData data(23, true);
    const auto reader = always_ahead(batched(data), 3, memory());
    if (!deny_threads()) _exit(3);
    bool right = rest(*reader) == counted(23) && rest(*reader) == counted(23);
    reader->seek(5, 13);
    right = right && rest(*reader) == counted(10, 13) && reader->pass() == 6;
    data.answer = TN_IO;
    right = right && error_of([&] { minibatch(*reader); }).code() == TN_IO;
    reader->cancel(true);
    right = right && error_of([&] { minibatch(*reader); }).code() == TN_CANCELLED;
    _exit(right ? 0 : 1);
  };
  EXPECT_EQ(run_child(work, 60).code(), 0);
}

TEST(Buffered, WhatTurnsOutSlowIsReadAhead) {
  MemoryData data(2000);
  std::set<std::thread::id> readers;
  std::atomic<bool> slow = false;
  data.before_next = [&](const volatile int32_t*) {
    readers.insert(std::this_thread::get_id());
    if (slow) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  };
  constexpr double kMillisecond = 1e-3;
  const auto reader = buffered(batched(data), 3, memory(), kMillisecond);
  Ids ids;
  for (int i = 0; i < 100; ++i) {
    slow = i >= 50;
    const Ids part = minibatch(*reader);
    ids.insert(ids.end(), part.begin(), part.end());
  }
  EXPECT_EQ(ids, counted(400));
  EXPECT_EQ(readers.size(), 2u);
}

// cancel(true) ends a running call and all later ones until cancel(false), whether the thread or the caller reads.
TEST(Buffered, CancelEndsTheCall) {
  for (const double worthwhile : {0.0, 1e6}) {
    MemoryData data(8);
    Turnstile turnstile;
    turnstile.attach(data);
    const auto reader = buffered(batched(data), 2, memory(), worthwhile);
    std::thread other([&] {
      turnstile.await_waiting();
      reader->cancel(true);
    });
    EXPECT_EQ(error_of([&] { minibatch(*reader); }).code(), TN_CANCELLED);
    other.join();
    EXPECT_EQ(error_of([&] { minibatch(*reader); }).code(), TN_CANCELLED);
    reader->cancel(false);
    turnstile.let(100);
    EXPECT_EQ(rest(*reader), counted(8));
  }
}

TEST(Buffered, NumbersThatMakeNoSense) {
  MemoryData data(4);
  for (const int64_t ahead : {int64_t{0}, int64_t{-1}, INT64_MAX})
    EXPECT_THAT(error_of([&] { always_ahead(batched(data), ahead, memory()); }).message(),
                HasSubstr("buffered: " + std::to_string(ahead) + " minibatches; expected 1 to 4096"));
  const auto reader = always_ahead(batched(data), 1, memory());
  SampleBlock block(reader->slots(), memory());
  EXPECT_THAT(error_of([&] { reader->next(block, 3); }).message(), HasSubstr("a minibatch has up to 4"));
}

}  // namespace
}  // namespace tenon_tests
