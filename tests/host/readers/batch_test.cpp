// Readers of minibatches: batch and bucket. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "core/error.h"
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

// ---- batch

TEST(Batch, CutsPassesAndKeepsTheShortLastOne) {
  MemoryData data(7);
  data.most = 2;  // a batch is put together from several reads
  const auto reader = batch(open(data), 3, false, memory());
  EXPECT_EQ(reader->batch(), 3);
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_THAT(minibatch(*reader), ElementsAre(0, 1, 2));
    EXPECT_THAT(minibatch(*reader), ElementsAre(3, 4, 5));
    EXPECT_THAT(minibatch(*reader), ElementsAre(6));
    EXPECT_THAT(minibatch(*reader), IsEmpty());
  }
}

TEST(Batch, DropsTheShortLastOneOnRequest) {
  MemoryData data(7);
  const auto reader = batch(open(data), 3, true, memory());
  EXPECT_EQ(reader->size(), 6);
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_THAT(minibatch(*reader), ElementsAre(0, 1, 2));
    EXPECT_THAT(minibatch(*reader), ElementsAre(3, 4, 5));
    EXPECT_THAT(minibatch(*reader), IsEmpty());
  }
  const auto large = batch(open(data), 8, true, memory());
  for (int i = 0; i < 2; ++i) EXPECT_THAT(minibatch(*large), IsEmpty());
}

TEST(Batch, KeepsToItsMinibatchesAfterSeek) {
  MemoryData data(10);
  const auto reader = batch(open(data), 4, true, memory());
  reader->seek(0, 3);
  EXPECT_THAT(minibatch(*reader), ElementsAre(3));
  EXPECT_THAT(minibatch(*reader), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(minibatch(*reader), IsEmpty());
}

TEST(Batch, AppendsToWhatIsThere) {
  MemoryData data(7, true);
  const auto reader = batch(open(data), 3, false, memory());
  SampleBlock block(reader->slots(), memory());
  while (reader->next(block, 3) != 0) {
  }
  EXPECT_EQ(ids_of(block), counted(7));
}

TEST(Batch, BuffersAreAlignedAndCounted) {
  MemoryData data(7);
  const auto allocator = std::make_shared<FaultyAllocator>();
  {
    const auto reader = batch(open(data), 5, false, allocator);
    SampleBlock block(reader->slots(), allocator);
    reader->next(block, 5);
    EXPECT_EQ(allocator->held, 5u * (8 + 12));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block.columns()[1].view().data) % 64, 0u);
  }
  EXPECT_EQ(allocator->held, 0u);
  EXPECT_EQ(error_of([&] { batch(open(data), 0, false, allocator); }).code(), TN_INVALID);
  EXPECT_EQ(error_of([&] { batch(open(data), INT64_MAX, false, allocator); }).code(), TN_INVALID);
  EXPECT_EQ(data.opened, 0);
}

TEST(Batch, MinibatchesAreNotCutAgain) {
  MemoryData data(7, true);
  const auto misuse = [&](const std::function<void(std::shared_ptr<Reader>)>& wrap, const char* who) {
    const std::shared_ptr<Reader> batched = batch(open(data), 3, false, memory());
    const Error error = error_of([&] { wrap(batched); });
    EXPECT_EQ(error.code(), TN_MISUSE);
    EXPECT_EQ(error.message(),
              std::string(who) + ": the reader yields minibatches already; put " + who + " before batch and bucket");
  };
  misuse([](auto of) { batch(of, 2, false, memory()); }, "batch");
  misuse([](auto of) { bucket(of, {"words", 4, 2, 0, 1}, memory()); }, "bucket");
  misuse([](auto of) { shuffle(of, 2, 1, memory()); }, "shuffle");
  misuse([](auto of) { first_n(of, 2, memory()); }, "first_n");
  misuse([](auto of) { shard(of, 0, 2, memory()); }, "shard");
  misuse([](auto of) { chain({of}, memory()); }, "chain");
  misuse([](auto of) { compose({of}, memory()); }, "compose");
  misuse([](auto of) { interleave({of}, memory()); }, "interleave");
  const Error error = error_of([&] { buffered(open(data), 2, memory()); });
  EXPECT_EQ(error.message(), "buffered: the reader yields samples; put buffered after batch or bucket");
}

// ---- bucket

TEST(Bucket, CutsSamplesOfSimilarLength) {
  MemoryData data(40, true);  // "words" of sample i has i % 5 rows
  const auto by_samples = bucket(open(data), {"words", 20, 4, 0, 1}, memory());
  EXPECT_EQ(by_samples->batch(), 4);
  Ids all;
  for (int i = 0; i < 10; ++i) {
    const Ids ids = minibatch(*by_samples);
    ASSERT_EQ(ids.size(), 4u);
    for (const int64_t id : ids) EXPECT_EQ(id % 5, ids[0] % 5);
    for (const int64_t id : ids) EXPECT_EQ(id / 20, ids[0] / 20);  // of one window
    all.insert(all.end(), ids.begin(), ids.end());
  }
  EXPECT_EQ(sorted(all), counted(40));
  EXPECT_THAT(minibatch(*by_samples), IsEmpty());

  const auto row_sparse = bucket(open(data, false), {"words", 40, 0, 9, 1}, memory());
  EXPECT_EQ(row_sparse->batch(), 9);
  size_t largest = 0;
  for (Ids ids = minibatch(*row_sparse); !ids.empty(); ids = minibatch(*row_sparse)) {
    int64_t rows = 0;
    for (const int64_t id : ids) rows += std::max<int64_t>(id % 5, 1);
    EXPECT_LE(rows, 9);
    largest = std::max(largest, ids.size());
  }
  EXPECT_EQ(largest, 9u);
  const auto tight = bucket(open(data), {"words", 40, 0, 3, 1}, memory());
  EXPECT_EQ(sorted(rest(*tight)), counted(40));  // a sample of 4 rows is a minibatch of its own
}

TEST(Bucket, ByInnerRowsAndEntries) {
  MemoryData data(24, true);
  for (const char* slot : {"text", "bag"}) {
    const auto reader = bucket(open(data), {slot, 24, 4, 0, 1}, memory());
    EXPECT_EQ(sorted(rest(*reader)), counted(24));
    reader->seek(1, 0);
    SampleBlock block(reader->slots(), memory());
    while (reader->next(block, 4) != 0) {
      const Column& column = block.columns()[slot[0] == 't' ? 3 : 4];
      for (int64_t i = 1; i < column.samples(); ++i) EXPECT_GE(column.length(i), column.length(i - 1));
      block.clear();
    }
  }
}

TEST(Bucket, OrderOfMinibatchesFollowsFromSeedPassAndWindow) {
  MemoryData data(60, true);
  const auto order = [&](uint64_t seed) {
    const auto reader = bucket(open(data), {"words", 30, 3, 0, seed}, memory());
    const Ids first = rest(*reader), second = rest(*reader);
    EXPECT_NE(first, second);
    const Ids window(first.begin(), first.begin() + 30), other(first.begin() + 30, first.end());
    EXPECT_EQ(sorted(window), counted(30));
    Ids moved = window;
    for (int64_t& id : moved) id += 30;
    EXPECT_NE(moved, other);
    return first;
  };
  EXPECT_EQ(order(1), order(1));
  EXPECT_NE(order(1), order(2));
}

TEST(Bucket, RefusesWhatDoesNotFit) {
  MemoryData data(6, true);
  const auto message = [&](const BucketOptions& options) {
    return error_of([&] { bucket(open(data), options, memory()); }).message();
  };
  EXPECT_EQ(message({"value", 4, 2, 0, 1}), "bucket: slot \"value\" is float32 [3]; its samples have no length");
  EXPECT_EQ(message({"word", 4, 2, 0, 1}), "bucket: the reader has no slot \"word\"; did you mean \"words\"?");
  EXPECT_THAT(message({"words", 0, 2, 0, 1}), HasSubstr("window is 0"));
  EXPECT_THAT(message({"words", 4, 0, 0, 1}), HasSubstr("0 samples and 0 rows"));
  EXPECT_THAT(message({"words", 4, -1, 3, 1}), HasSubstr("-1 samples"));
}

}  // namespace
}  // namespace tenon_tests
