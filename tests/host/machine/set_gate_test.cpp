// Readers, writers, trainings and leases of one set. SPDX-License-Identifier: Apache-2.0
#include "host/machine/set_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace tenon_tests {

using namespace tenon::host;

namespace {

using testing::HasSubstr;

template <typename Call>
void expect_misuse(const Call& call, const char* message) {
  try {
    call();
    ADD_FAILURE() << "no error; expected: " << message;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), TN_MISUSE);
    EXPECT_THAT(error.what(), HasSubstr(message));
  }
}

// Runs `call` on a thread of its own until it ends.
template <typename Call>
void elsewhere(const Call& call) {
  std::thread(call).join();
}

TEST(SetGate, ReadersEnterTogether) {
  SetGate gate;
  const SetRead first(gate);
  elsewhere([&] { const SetRead second(gate); });  // would wait for ever
  const SetRead again(gate);
}

TEST(SetGate, AWriterIsAlone) {
  constexpr int kThreads = 4, kTimes = 2000;
  SetGate gate;
  int64_t value = 0;  // not atomic: ThreadSanitizer and the sum would tell of an overlap
  std::atomic<int64_t> odd{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kTimes; ++i) {
        const SetWrite write(gate);
        ++value;
        ++value;
      }
    });
    threads.emplace_back([&] {
      for (int i = 0; i < kTimes; ++i) {
        const SetRead read(gate);
        odd += value % 2;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(value, 2 * kThreads * kTimes);
  EXPECT_EQ(odd, 0);
}

// A thread that steps without a pause lets a reader in at the next step boundary.
TEST(SetGate, ATrainingAnswersReadersBetweenItsSteps) {
  SetGate gate;
  std::atomic<bool> stepping{false}, ended{false};
  std::thread trainer([&] {
    const SetTraining training(gate);
    while (!ended) {
      const SetWrite step(gate);
      stepping = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  while (!stepping) std::this_thread::yield();
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 20; ++i) const SetRead read(gate);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(2));
  expect_misuse([&] { gate.enter_write(); }, "while a training on another thread writes them");
  expect_misuse([&] { gate.begin_training(); }, "a training of these parameters has not ended");
  expect_misuse([&] { gate.begin_lease(false); }, "written by a training on another thread");
  ended = true;
  trainer.join();
  { const SetWrite write(gate); }
}

TEST(SetGate, NobodyWaitsForItself) {
  SetGate gate;
  {
    const SetRead read(gate);
    expect_misuse([&] { gate.enter_write(); }, "inside a call of its own thread");
  }
  {
    const SetWrite write(gate);
    expect_misuse([&] { gate.enter_write(); }, "inside a call of its own thread");
    expect_misuse([&] { gate.enter_read(); }, "inside a call of its own thread");
  }
  { const SetWrite write(gate); }
}

TEST(SetGate, ReadingLeases) {
  SetGate gate;
  const std::thread::id self = std::this_thread::get_id();
  gate.begin_lease(false);
  gate.begin_lease(false);
  expect_misuse([&] { gate.begin_lease(true); }, "in use by other leases");
  { const SetWrite own(gate); }
  elsewhere([&] { expect_misuse([&] { gate.enter_write(); }, "another thread holds a lease"); });
  elsewhere([&] {  // memory stays valid: a training may begin beside it
    const SetTraining training(gate);
    const SetWrite step(gate);
  });
  gate.end_lease(false, self);
  gate.end_lease(false, self);
  elsewhere([&] { const SetWrite write(gate); });
}

TEST(SetGate, AWritingLeaseIsAlone) {
  SetGate gate;
  const std::thread::id self = std::this_thread::get_id();
  gate.begin_lease(true);
  expect_misuse([&] { gate.begin_lease(true); }, "a writing lease of these parameters is held");
  expect_misuse([&] { gate.begin_training(); }, "cannot be trained while a writing lease");
  { const SetRead own(gate); }
  elsewhere([&] {
    expect_misuse([&] { gate.enter_read(); }, "another thread holds a writing lease");
    expect_misuse([&] { gate.enter_write(); }, "another thread holds a writing lease");
    expect_misuse([&] { gate.begin_lease(false); }, "another thread holds a writing lease");
  });
  gate.end_lease(true, self);
  elsewhere([&] { const SetWrite write(gate); });
  const SetRead read(gate);
  elsewhere([&] { expect_misuse([&] { gate.begin_lease(true); }, "in use by other leases or calls"); });
}

// A handler's writing lease must end before the next step.
TEST(SetGate, AWritingLeaseCannotOutliveItsHandler) {
  SetGate gate;
  const SetTraining training(gate);
  gate.begin_lease(true);
  expect_misuse([&] { gate.enter_write(); }, "outlives the handler");
  gate.end_lease(true, std::this_thread::get_id());
  const SetWrite step(gate);
}

TEST(SetGate, WritesAndWritingLeasesMakeNewVersions) {
  SetGate gate;
  const auto first = gate.version();
  ASSERT_TRUE(first.has_value());
  { const SetRead read(gate); }
  gate.begin_lease(false);
  gate.end_lease(false, std::this_thread::get_id());
  EXPECT_EQ(gate.version(), first);
  { const SetWrite write(gate); }
  const auto written = gate.version();
  EXPECT_GT(written, first);
  gate.begin_lease(true);
  EXPECT_FALSE(gate.version().has_value());
  gate.end_lease(true, std::this_thread::get_id());
  EXPECT_GT(gate.version(), written);
}

}  // namespace
}  // namespace tenon_tests
