// Readers of plugins that several threads read at the same time. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <set>
#include <tenon/reader.hpp>
#include <thread>

#include "core/error.h"
#include "host/plugins/registry.h"
#include "host/readers/reader.h"
#include "host/threads/thread_pool.h"
#include "tests/support/memory_system.h"
#include "tests/support/read_samples.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What the reader of a test does, and what it saw.
struct Behaviour {
  int64_t samples = 100;
  std::set<int64_t> damaged;
  int wait_for = 1;  // threads that must be inside `read` before it returns
  std::atomic<int> inside{0};
  std::atomic<bool> met{false};
  std::atomic<int64_t> reads{0};
};

class Slow {
 public:
  static void describe(tn::ReaderDescription& d) {
    d.type("slow", "samples whose making takes long");
    d.attribute(tn::int_attribute("behaviour").required().doc("address of a Behaviour"));
  }
  explicit Slow(const tn::ReaderOpen& open)
      : it_(*reinterpret_cast<Behaviour*>(open.attributes().integer("behaviour"))), shard_(open.shard()) {}
  [[nodiscard]] const std::vector<tn::ReaderSlot>& slots() const { return slots_; }
  [[nodiscard]] int64_t samples() const { return shard_.samples(it_.samples); }
  void read(int64_t index, tn::Samples& to) const {
    const int64_t id = shard_.sample(index);
    ++it_.reads;
    ++it_.inside;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!it_.met && it_.inside < it_.wait_for && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    if (it_.inside >= it_.wait_for) it_.met = true;
    --it_.inside;
    if (it_.damaged.count(id) != 0) throw tn::Failure(TN_BAD_DATA, "data", "sample " + std::to_string(id));
    *to.dense<int64_t>(0) = id;
    *to.dense<int64_t>(1) = to.pass();
  }
  static constexpr bool parallel_reads = true;

 private:
  Behaviour& it_;
  tn::Shard shard_;
  std::vector<tn::ReaderSlot> slots_ = {{"id", TN_I64}, {"pass", TN_I64}};
};

const ReaderType& slow_type() {
  static const ReaderType type = [] {
    ReaderType made;
    made.plugin = "test.slow";
    made.description.type = "slow";
    Attribute behaviour;
    behaviour.name = "behaviour";
    behaviour.kind = TN_ATTR_INT;
    behaviour.required = true;
    made.description.attributes = {behaviour};
    made.table = *tn::reader_type<Slow>();
    return made;
  }();
  return type;
}

std::unique_ptr<Reader> open(Behaviour& behaviour, const ThreadPool& pool, const ReaderType& type = slow_type()) {
  ReaderSettings settings;
  settings.threads = pool.parallel();
  const Values attributes = {{"behaviour", static_cast<int64_t>(reinterpret_cast<intptr_t>(&behaviour))}};
  return open_reader(type, attributes, nullptr, settings);
}

TEST(ParallelRead, IsOnSeveralThreadsInTheOrderOfTheData) {
  const ThreadPool pool(3);
  Behaviour behaviour;
  behaviour.wait_for = 2;
  const auto reader = open(behaviour, pool);
  EXPECT_EQ(rest(*reader, 64), counted(100));
  EXPECT_TRUE(behaviour.met) << "no two threads read at the same time";
  const auto again = shuffle(open(behaviour, pool), 0, 1, system_allocator());
  EXPECT_EQ(sorted(rest(*again, 64)), counted(100));
}

TEST(ParallelRead, KnowsPassesAndPositions) {
  const ThreadPool pool(2);
  Behaviour behaviour;
  const auto reader = open(behaviour, pool);
  const auto passes = [&] {
    SampleBlock block(reader->slots(), system_allocator());
    reader->next(block, 9);
    const auto* const pass = static_cast<const int64_t*>(block.columns()[1].view().data);
    return std::set<int64_t>(pass, pass + block.samples());
  };
  EXPECT_THAT(passes(), ElementsAre(0));
  EXPECT_EQ(reader->position(), 9);
  EXPECT_EQ(rest(*reader, 64).size(), 91u);
  EXPECT_THAT(passes(), ElementsAre(1));
  reader->seek(5, 98);
  EXPECT_THAT(passes(), ElementsAre(5));
  EXPECT_EQ(reader->position(), 100);
  EXPECT_EQ(error_of([&] { reader->seek(0, 101); }).code(), TN_INVALID);
}

// As by one thread: the samples before a damaged one, then the error, then those after it.
TEST(ParallelRead, DamageIsReportedInOrder) {
  for (const int32_t threads : {1, 3}) {
    const ThreadPool pool(threads);
    Behaviour behaviour;
    behaviour.damaged = {10, 40};
    const auto reader = open(behaviour, pool);
    EXPECT_EQ(some(*reader, 64), counted(10));
    const Error error = error_of([&] { some(*reader, 64); });
    EXPECT_EQ(error.code(), TN_BAD_DATA);
    EXPECT_THAT(error.message(), HasSubstr("reader \"slow\": data: sample 10"));
    EXPECT_EQ(reader->position(), 11);
    EXPECT_EQ(some(*reader, 20), counted(20, 11));
    SampleBlock block(reader->slots(), system_allocator());
    const Ids both = {40, 3, 10};
    EXPECT_THAT(error_of([&] { reader->read_at(both.data(), 3, block); }).message(), HasSubstr("sample 40"));
    EXPECT_EQ(block.samples(), 0);
  }
}

TEST(ParallelRead, CanBeCancelled) {
  const ThreadPool pool(2);
  Behaviour behaviour;
  const auto reader = open(behaviour, pool);
  reader->cancel(true);
  EXPECT_EQ(error_of([&] { some(*reader, 50); }).code(), TN_CANCELLED);
  EXPECT_EQ(behaviour.reads, 0);
  reader->cancel(false);
  EXPECT_EQ(some(*reader, 50), counted(50));
}

// Tables that break the contract.
TEST(ParallelRead, TablesAreChecked) {
  const ThreadPool pool(1);
  Behaviour behaviour;
  ReaderType type = slow_type();
  type.table.extension = [](void*, const char* id) -> const void* {
    static const tn_parallel_read kShort = {8, 0, nullptr};
    return std::strcmp(id, TN_PARALLEL_READ) == 0 ? &kShort : nullptr;
  };
  const Error error = error_of([&] { open(behaviour, pool, type); });
  EXPECT_EQ(error.code(), TN_PLUGIN_FAULT);
  EXPECT_THAT(error.message(), HasSubstr("states a size of 8 bytes"));
  type.table = slow_type().table;
  type.table.read_at = nullptr;
  EXPECT_THAT(error_of([&] { open(behaviour, pool, type); }).message(), HasSubstr("needs read_at"));
}

}  // namespace
}  // namespace tenon_tests
