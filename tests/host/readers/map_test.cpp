// Readers that change the slots: map and choose. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "core/error.h"
#include "tests/support/memory_system.h"
#include "tests/support/read_samples.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::shared_ptr<Allocator> memory() { return system_allocator(); }

Slot sum_slot() {
  Slot slot;
  slot.name = "sum";
  slot.dtype = TN_I64;
  slot.bytes = 8;
  return slot;
}
// Sums the words of each sample. `held` holds the result.
MapFunction sums(std::shared_ptr<Ids> held) {
  return [held](const std::vector<ArrayView>& from, int64_t samples, std::vector<ArrayView>& to) {
    held->assign(static_cast<size_t>(samples), 0);
    for (int64_t i = 0; i < samples; ++i)
      for (int64_t k = from[2].offsets[0][i]; k < from[2].offsets[0][i + 1]; ++k)
        (*held)[static_cast<size_t>(i)] += static_cast<const int64_t*>(from[2].data)[k];
    to[0].data = held->data();
  };
}

TEST(Map, GivesOneSampleForEach) {
  MemoryData data(10, true);
  const auto reader = batch(map(open(data), {sum_slot()}, sums(std::make_shared<Ids>()), memory()), 4, false, memory());
  EXPECT_EQ(reader->size(), 10);
  SampleBlock block(reader->slots(), memory());
  while (reader->next(block, 4) != 0) {
  }
  const auto* const sum = static_cast<const int64_t*>(block.columns()[0].view().data);
  for (int64_t i = 0; i < 10; ++i) {
    const int64_t n = i % 5;
    EXPECT_EQ(sum[i], 10 * i * n + n * (n - 1) / 2);
  }
}

TEST(Map, SeesWholeMinibatchesAfterBatch) {
  MemoryData data(10, true);
  data.most = 2;
  Ids seen;
  const auto record = [&](const std::vector<ArrayView>& from, int64_t samples, std::vector<ArrayView>& to) {
    seen.push_back(samples);
    to[0] = from[0];
  };
  const auto reader = map(batch(open(data), 4, false, memory()), {open(data)->slots()[0]}, record, memory());
  EXPECT_EQ(reader->batch(), 4);
  EXPECT_EQ(rest(*reader), counted(10));
  EXPECT_THAT(seen, ElementsAre(4, 4, 2));
}

TEST(Map, AFailureOfTheFunctionLosesNothing) {
  MemoryData data(10);
  int calls = 0;
  const auto reader = map(
      open(data), {open(data)->slots()[0]},
      [&](const std::vector<ArrayView>& from, int64_t, std::vector<ArrayView>& to) {
        if (++calls == 2) fail(TN_INVALID, "not this time");
        to[0] = from[0];
      },
      memory());
  EXPECT_THAT(some(*reader, 4), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(error_of([&] { some(*reader, 4); }).message(), "not this time");
  EXPECT_THAT(some(*reader, 1), ElementsAre(4));  // less room than before
  EXPECT_EQ(rest(*reader), counted(5, 5));
}

TEST(Map, WhatIsLentIsChecked) {
  MemoryData data(4, true);
  const std::vector<Slot> slots = open(data)->slots();
  const auto message = [&](size_t slot, const std::function<void(ArrayView&, Ids&)>& spoil) {
    Ids offsets;
    const auto reader = map(
        batch(open(data), 4, false, memory()), {slots[slot]},
        [&](const std::vector<ArrayView>& from, int64_t samples, std::vector<ArrayView>& to) {
          to[0] = from[slot];
          if (to[0].offsets[0] != nullptr) offsets.assign(to[0].offsets[0], to[0].offsets[0] + samples + 1);
          if (!offsets.empty()) to[0].offsets[0] = offsets.data();
          spoil(to[0], offsets);
        },
        memory());
    SampleBlock block(reader->slots(), memory());
    const Error error = error_of([&] { reader->next(block, 4); });
    EXPECT_EQ(error.code(), TN_INVALID);
    EXPECT_THAT(error.message(), HasSubstr("map: slot \"" + slots[slot].name + "\": "));
    return error.message();
  };
  EXPECT_THAT(message(0, [](auto& a, auto&) { a.data = nullptr; }), HasSubstr("the data is null"));
  EXPECT_THAT(message(0, [](auto& a, auto&) { a.dtype = TN_F32; }), HasSubstr("expected int64 []"));
  EXPECT_THAT(message(1, [](auto& a, auto&) { a.shape[1] = 2; }),
              HasSubstr("expected float32 [3] of each sample or row, got [4, 2] in all"));
  EXPECT_THAT(message(1, [](auto& a, auto&) { a.shape[0] = 3; }), HasSubstr("expected 4 samples, got 3"));
  EXPECT_THAT(message(2, [](auto& a, auto&) { a.storage = TN_DENSE; }), HasSubstr("expected sequences of int64 []"));
  EXPECT_THAT(message(2, [](auto& a, auto&) { a.samples = 2; }), HasSubstr("expected 4 samples, got 2"));
  EXPECT_THAT(message(2, [](auto& a, auto&) { a.offsets[0] = nullptr; }), HasSubstr("the offsets of the samples"));
  EXPECT_THAT(message(2, [](auto&, Ids& o) { o[0] = 1; }), HasSubstr("begin with 1"));
  EXPECT_THAT(message(2, [](auto&, Ids& o) { o[2] = 9; }), HasSubstr("go from 0 to 9 at 1"));
  EXPECT_THAT(message(2, [](auto&, Ids& o) { o[2] = -1; }), HasSubstr("to -1"));
  EXPECT_THAT(message(2, [](auto&, Ids& o) { o[4] = 5; }), HasSubstr("end with 5, not 6"));
  EXPECT_THAT(message(3, [](auto& a, auto&) { a.levels = 1; }), HasSubstr("got ragged float32 of 1 levels"));
  EXPECT_THAT(message(3, [](auto& a, auto&) { a.offsets[1] = nullptr; }), HasSubstr("of the inner sequences are null"));
  EXPECT_THAT(message(3, [](auto& a, auto&) { a.shape[0] += 1; }), HasSubstr("of the inner sequences end with"));
  const std::vector<int64_t> far = {0, 1, 9, 2};  // the slot "id" of `slots` has no limit
  const auto limited = [&](size_t slot, int64_t limit, std::vector<int64_t> strides) {
    Slot below = slots[slot];
    below.index_limit = limit;
    const auto reader = map(
        batch(open(data), 4, false, memory()), {below},
        [&](const std::vector<ArrayView>& from, int64_t, std::vector<ArrayView>& to) {
          to[0] = from[slot];
          if (slot == 0) to[0].data = far.data() + (strides.empty() ? 0 : 3), to[0].strides = strides;
        },
        memory());
    SampleBlock block(reader->slots(), memory());
    return error_of([&] { reader->next(block, 4); }).message();
  };
  EXPECT_EQ(limited(0, 9, {}), "map: slot \"id\": sample 2 of those just read is 9; the slot's limit is 9");
  EXPECT_THAT(limited(0, 9, {-1}), HasSubstr("sample 1 of those just read is 9"));
  EXPECT_THAT(limited(2, 31, {}), HasSubstr("\"words\": sample 3 of those just read is 31"));
  EXPECT_THAT(message(4, [](auto& a, auto&) { a.ids = nullptr; }), HasSubstr("the ids are null"));
  EXPECT_THAT(message(4, [](auto&, Ids& o) { o = {0, 0, 0, 4, 6}; }), HasSubstr("expected rising"));
}

TEST(Map, SparseWithoutValuesIsOnes) {
  MemoryData data(8, true);
  const auto reader = map(
      open(data), {open(data)->slots()[4]},
      [](const std::vector<ArrayView>& from, int64_t, std::vector<ArrayView>& to) {
        to[0] = from[4];
        to[0].data = nullptr;
      },
      memory());
  SampleBlock block(reader->slots(), memory());
  while (reader->next(block, 3) != 0) {
  }
  const ArrayView bag = block.columns()[0].view();
  ASSERT_EQ(bag.offsets[0][8], 12);
  for (int64_t i = 0; i < 12; ++i) EXPECT_EQ(static_cast<const float*>(bag.data)[i], 1.0F);
}

TEST(Choose, TakesAndRenames) {
  MemoryData data(6, true);
  const auto reader = choose(batch(open(data), 4, false, memory()), {{"bag", "features"}, {"id", "id"}}, memory());
  ASSERT_EQ(reader->slots().size(), 2u);
  EXPECT_EQ(reader->slots()[0].name, "features");
  EXPECT_EQ(reader->slots()[0].storage, TN_CSR);
  EXPECT_EQ(rest(*reader), counted(6));
  const auto message = [&](const std::vector<ChosenSlot>& slots) {
    return error_of([&] { choose(open(data), slots, memory()); }).message();
  };
  EXPECT_EQ(message({}), "choose: no slots; expected at least 1");
  EXPECT_EQ(message({{"wrods", "x"}}), "choose: the reader has no slot \"wrods\"; did you mean \"words\"?");
  EXPECT_EQ(message({{"id", "x"}, {"id", "y"}}), "choose: slot \"id\" is chosen twice");
  EXPECT_EQ(message({{"id", "x"}, {"bag", "x"}}), "choose: two slots are named \"x\"");
  EXPECT_EQ(message({{"id", ""}}), "choose: the new name of slot \"id\" is empty");
}

}  // namespace
}  // namespace tenon_tests
