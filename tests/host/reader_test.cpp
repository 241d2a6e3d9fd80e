// SPDX-License-Identifier: Apache-2.0
#include "host/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include "core/error.h"
#include "tests/support/faults.h"
#include "tests/support/memory_reader.h"
#include "tests/support/memory_seams.h"

namespace tenon {
namespace {

using test::error_of;
using test::FaultyAllocator;
using test::MemoryData;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Ids = std::vector<int64_t>;

const ReaderType& plain_type() {
  static const ReaderType type = test::memory_reader_type(false);
  return type;
}
const ReaderType& indexed_type() {
  static const ReaderType type = test::memory_reader_type(true);
  return type;
}

std::unique_ptr<Reader> open(MemoryData& data, bool indexed = true, uint32_t shard = 0, uint32_t shards = 1) {
  return open_reader(indexed ? indexed_type() : plain_type(), test::memory_attributes(data), ".", shard, shards,
                     nullptr);
}

Ids counted(int64_t samples) {
  Ids ids(static_cast<size_t>(samples));
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

Ids sorted(Ids ids) {
  std::sort(ids.begin(), ids.end());
  return ids;
}

// Asks for `capacity` samples once. Sees to it that both slots of every sample belong together.
Ids some(Reader& reader, int64_t capacity) {
  Ids ids(static_cast<size_t>(capacity), -7);
  std::vector<float> values(ids.size() * 3);
  void* const buffers[] = {ids.data(), values.data()};
  const int64_t count = reader.next(buffers, capacity);
  ids.resize(static_cast<size_t>(count));
  for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(values[3 * i + 1], static_cast<float>(ids[i]) + 0.25F);
  return ids;
}

// Up to `most` samples, or what is left of the pass and its end.
Ids rest(Reader& reader, int64_t capacity = 3, size_t most = SIZE_MAX) {
  Ids all;
  while (all.size() < most) {
    const Ids part =
        some(reader, std::min<int64_t>(capacity, static_cast<int64_t>(std::min<size_t>(most - all.size(), 1000))));
    if (part.empty()) break;
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

// ---- a plugin's reader

TEST(PluginReader, GivesPassesInOrder) {
  MemoryData data(7);
  const auto reader = open(data);
  ASSERT_EQ(reader->slots().size(), 2u);
  EXPECT_EQ(reader->slots()[1].name, "value");
  EXPECT_THAT(reader->slots()[1].shape, ElementsAre(3));
  EXPECT_EQ(reader->slots()[1].bytes, 12u);
  EXPECT_EQ(reader->size(), 7);
  EXPECT_THAT(some(*reader, 5), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(reader->position(), 5);
  EXPECT_THAT(some(*reader, 5), ElementsAre(5, 6));
  EXPECT_THAT(some(*reader, 5), IsEmpty());
  EXPECT_EQ(reader->position(), 0);
  EXPECT_EQ(rest(*reader), counted(7));
}

TEST(PluginReader, ShardsTogetherAreTheDataOnce) {
  for (const bool indexed : {true, false}) {
    MemoryData data(23);
    Ids all;
    for (uint32_t shard = 0; shard < 4; ++shard) {
      const auto reader = shuffle(open(data, indexed, shard, 4), 0, 1, system_allocator());
      const Ids part = rest(*reader);
      EXPECT_EQ(static_cast<int64_t>(part.size()), reader->size());
      all.insert(all.end(), part.begin(), part.end());
    }
    EXPECT_EQ(sorted(all), counted(23));
  }
  MemoryData data(3);
  EXPECT_THAT(error_of([&] { open(data, true, 2, 2); }).message(), HasSubstr("reader \"memory\": shard 2 of 2"));
}

TEST(PluginReader, ResumesAtEveryPosition) {
  MemoryData data(6);
  for (int64_t position = 0; position <= 6; ++position) {
    const auto reader = open(data);
    reader->seek(0, position);
    EXPECT_EQ(reader->position(), position);
    Ids expected = counted(6);
    expected.erase(expected.begin(), expected.begin() + position);
    EXPECT_EQ(rest(*reader), expected);
  }
  const auto reader = open(data);
  EXPECT_EQ(error_of([&] { reader->seek(0, 7); }).code(), TN_INVALID);
  EXPECT_EQ(error_of([&] { reader->seek(0, -1); }).code(), TN_INVALID);
}

TEST(PluginReader, ErrorsNameReaderAndReason) {
  MemoryData data(4);
  EXPECT_THAT(error_of([&] { open_reader(indexed_type(), {}, ".", 0, 1, nullptr); }).message(),
              AllOf(HasSubstr("reader \"memory\""), HasSubstr("data")));
  data.fail_at = 0;
  const auto reader = open(data);
  const Error error = error_of([&] { some(*reader, 2); });
  EXPECT_EQ(error.code(), TN_IO);
  EXPECT_EQ(error.message(), "reader \"memory\": records.bin: cannot read it");
  EXPECT_EQ(rest(*reader), counted(4));
  EXPECT_EQ(error_of([&] { some(*reader, 0); }).code(), TN_INVALID);
}

TEST(PluginReader, ReadsByIndexWithinTheShard) {
  MemoryData data(10);
  const auto reader = open(data, true, 1, 2);
  const int64_t indices[] = {4, 0, 4};
  Ids ids(3);
  std::vector<float> values(9);
  void* const buffers[] = {ids.data(), values.data()};
  reader->read_at(indices, 3, buffers);
  EXPECT_THAT(ids, ElementsAre(9, 1, 9));
  for (const int64_t wrong : {int64_t{-1}, int64_t{5}})
    EXPECT_EQ(error_of([&] { reader->read_at(&wrong, 1, buffers); }).code(), TN_INVALID);
  EXPECT_EQ(error_of([&] { open(data, false)->read_at(indices, 1, buffers); }).code(), TN_UNSUPPORTED);
}

// What a plugin may get wrong when it opens.
TEST(PluginReader, RefusesABrokenSchema) {
  const auto message_of = [](const std::function<void(MemoryData&)>& break_it) {
    MemoryData data(4);
    break_it(data);
    const Error error = error_of([&] { open(data); });
    EXPECT_EQ(error.code(), TN_PLUGIN_FAULT) << error.message();
    EXPECT_EQ(data.opened, 0);
    EXPECT_THAT(error.message(), HasSubstr("reader \"memory\" of plugin \"test.memory\": "));
    return error.message();
  };
  EXPECT_THAT(message_of([](MemoryData& d) { d.empty_instance = true; }), HasSubstr("no instance"));
  EXPECT_THAT(message_of([](MemoryData& d) { d.schema_given = nullptr; }), HasSubstr("schema is missing"));
  EXPECT_THAT(message_of([](MemoryData& d) { d.schema.size = 8; }), HasSubstr("too short"));
  EXPECT_THAT(message_of([](MemoryData& d) { d.schema.slots_count = 0; }), HasSubstr("0 slots"));
  EXPECT_THAT(message_of([](MemoryData& d) { d.slots[1] = nullptr; }), HasSubstr("slot 1"));
  EXPECT_THAT(message_of([](MemoryData& d) { d.value.size = 16; }), HasSubstr("slot 1"));
  EXPECT_THAT(message_of([](MemoryData& d) { d.value.name = ""; }), HasSubstr("no name"));
  EXPECT_THAT(message_of([](MemoryData& d) { d.value.name = "id"; }), HasSubstr("two slots are named \"id\""));
  EXPECT_THAT(message_of([](MemoryData& d) { d.value.dtype = TN_DTYPE(2, 24); }), HasSubstr("\"value\""));
  EXPECT_THAT(message_of([](MemoryData& d) { d.value.dtype = TN_COMPUTE; }), HasSubstr("\"value\""));
  EXPECT_THAT(message_of([](MemoryData& d) { d.value.rank = TN_MAX_RANK + 1; }), HasSubstr("rank 9"));
  EXPECT_THAT(message_of([](MemoryData& d) { d.value.shape = nullptr; }), HasSubstr("shape"));
  EXPECT_THAT(message_of([](MemoryData& d) { d.value_shape[0] = -1; }), HasSubstr("dimension 0"));
  EXPECT_THAT(message_of([](MemoryData& d) { d.value_shape[0] = INT64_MAX / 2; }), HasSubstr("overflow"));
  EXPECT_THAT(message_of([](MemoryData& d) { d.value.index_limit = 3; }), HasSubstr("index limit 3 of float32"));
  EXPECT_THAT(message_of([](MemoryData& d) { d.id.index_limit = -2; }), HasSubstr("index limit -2"));
  EXPECT_THAT(message_of([](MemoryData& d) { d.says_samples = -5; }), HasSubstr("-5"));
  MemoryData data(4);
  data.value.storage = TN_CSR;
  EXPECT_EQ(error_of([&] { open(data); }).code(), TN_UNSUPPORTED);
}

TEST(PluginReader, RefusesWrongAnswersOfNext) {
  const auto code_of = [](const std::function<void(MemoryData&)>& break_it, bool all = false) {
    MemoryData data(4);
    break_it(data);
    const auto reader = open(data);
    return error_of([&] { all ? rest(*reader) : some(*reader, 2); }).code();
  };
  EXPECT_EQ(code_of([](MemoryData& d) { d.count_offset = 1; }), TN_PLUGIN_FAULT);
  EXPECT_EQ(code_of([](MemoryData& d) { d.count_offset = -2; }), TN_PLUGIN_FAULT);
  EXPECT_EQ(code_of([](MemoryData& d) { d.count_offset = -3; }), TN_PLUGIN_FAULT);
  EXPECT_EQ(code_of([](MemoryData& d) { d.answer = 99; }), TN_PLUGIN_FAULT);
  EXPECT_EQ(code_of([](MemoryData& d) { d.answer = TN_END; }), TN_PLUGIN_FAULT);
  EXPECT_EQ(code_of([](MemoryData& d) { d.answer = TN_NEED_CAPACITY; }), TN_NEED_CAPACITY);
  EXPECT_EQ(code_of([](MemoryData& d) { d.says_samples = 3; }, true), TN_PLUGIN_FAULT);
  EXPECT_EQ(code_of([](MemoryData& d) { d.says_samples = 5; }, true), TN_PLUGIN_FAULT);
}

// ---- shuffle

struct ShuffleCase {
  const char* name;
  bool indexed;
  int64_t buffer;
};
class Shuffle : public ::testing::TestWithParam<ShuffleCase> {
 protected:
  std::unique_ptr<Reader> shuffled(uint64_t seed) {
    return shuffle(open(data_, GetParam().indexed), GetParam().buffer, seed, system_allocator());
  }
  MemoryData data_{50};
};
INSTANTIATE_TEST_SUITE_P(All, Shuffle,
                         ::testing::Values(ShuffleCase{"indexed", true, 0}, ShuffleCase{"whole", false, 0},
                                           ShuffleCase{"buffer", false, 16}, ShuffleCase{"larger", false, 1000},
                                           ShuffleCase{"single", false, 1}),
                         [](const auto& it) { return it.param.name; });

TEST_P(Shuffle, GivesEachSampleOnceInEachPass) {
  const auto reader = shuffled(1);
  EXPECT_EQ(reader->size(), 50);
  Ids before;
  for (int pass = 0; pass < 3; ++pass) {
    const Ids ids = rest(*reader);
    EXPECT_EQ(sorted(ids), counted(50));
    if (GetParam().buffer != 1) {
      EXPECT_NE(ids, counted(50));
      EXPECT_NE(ids, before);
    }
    before = ids;
  }
}

TEST_P(Shuffle, OrderFollowsFromTheSeedAlone) {
  const auto one = shuffled(1), same = shuffled(1), other = shuffled(2);
  for (int pass = 0; pass < 2; ++pass) {
    data_.most = INT64_MAX;
    const Ids ids = rest(*one, 7);
    data_.most = 2;  // other pieces, same order
    EXPECT_EQ(rest(*same, 11), ids);
    if (GetParam().buffer == 1)
      EXPECT_EQ(ids, counted(50));
    else
      EXPECT_NE(rest(*other, 7), ids);
  }
}

TEST_P(Shuffle, ResumesAtEveryPosition) {
  const auto reader = shuffled(3);
  rest(*reader);
  const Ids second = rest(*reader);
  for (int64_t position = 0; position <= 50; ++position) {
    const auto resumed = shuffled(3);
    resumed->seek(1, position);
    EXPECT_EQ(resumed->position(), position);
    EXPECT_EQ(rest(*resumed), Ids(second.begin() + position, second.end()));
    EXPECT_EQ(resumed->position(), 0);
  }
  rest(*reader, 7, 20);
  reader->seek(1, 0);
  EXPECT_EQ(rest(*reader), second);
  EXPECT_EQ(error_of([&] { reader->seek(0, 51); }).code(), TN_INVALID);
  EXPECT_EQ(error_of([&] { reader->seek(-1, 0); }).code(), TN_INVALID);
}

TEST_P(Shuffle, AFailureLosesNothing) {
  const Ids expected = rest(*shuffled(4), 7);
  data_.most = 3;
  for (int64_t call = 0; call < 8; ++call) {
    data_.calls = 0;
    data_.fail_at = call;
    const auto reader = shuffled(4);
    Ids ids;
    int failures = 0;
    for (bool more = true; more;) try {
        const Ids part = some(*reader, 7);
        ids.insert(ids.end(), part.begin(), part.end());
        EXPECT_EQ(reader->position(), static_cast<int64_t>(part.empty() ? 0 : ids.size()));
        more = !part.empty();
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), TN_IO);
        ++failures;
      }
    EXPECT_EQ(failures, data_.calls > call ? 1 : 0);
    EXPECT_EQ(ids, expected) << call;
  }
}

TEST_P(Shuffle, NoSamplesAndNoMemory) {
  const auto allocator = std::make_shared<FaultyAllocator>();
  allocator->fail_at = 0;
  EXPECT_EQ(error_of([&] { shuffle(open(data_, GetParam().indexed), GetParam().buffer, 1, allocator); }).code(),
            TN_OUT_OF_MEMORY);
  EXPECT_EQ(data_.opened, 0);
  EXPECT_EQ(allocator->held, 0u);
  data_.samples = 0;
  const auto empty = shuffled(1);
  for (int i = 0; i < 3; ++i) EXPECT_THAT(some(*empty, 4), IsEmpty());
}

TEST(ShuffleOrder, TheFirstPlaceIsFair) {
  for (const bool indexed : {true, false}) {
    MemoryData data(5);
    const auto reader = shuffle(open(data, indexed), 0, 11, system_allocator());
    std::vector<int> seen(5);
    for (int pass = 0; pass < 1000; ++pass) ++seen[static_cast<size_t>(rest(*reader, 5).front())];
    for (const int count : seen) EXPECT_NEAR(count, 200, 60);
  }
}

TEST(ShuffleOrder, AStreamWithoutEndNeedsABuffer) {
  MemoryData data(0);
  data.ends = false;
  EXPECT_EQ(error_of([&] { shuffle(open(data, false), 0, 1, system_allocator()); }).code(), TN_INVALID);
  EXPECT_EQ(error_of([&] { shuffle(open(data, false), -1, 1, system_allocator()); }).code(), TN_INVALID);
  const auto reader = shuffle(open(data, false), 8, 1, system_allocator());
  const Ids ids = rest(*reader, 10, 100);
  EXPECT_EQ(std::set<int64_t>(ids.begin(), ids.end()).size(), 100u);
  for (size_t i = 0; i < ids.size(); ++i) EXPECT_LT(ids[i], static_cast<int64_t>(i) + 8);
}

// ---- first_n

TEST(FirstN, CutsEachPass) {
  for (const bool seeks : {true, false}) {
    MemoryData data(10);
    data.seeks = seeks;
    const auto reader = first_n(open(data), 4);
    EXPECT_EQ(reader->size(), 4);
    for (int pass = 0; pass < 3; ++pass) EXPECT_EQ(rest(*reader), counted(4));
    EXPECT_EQ(rest(*first_n(open(data), 99)), counted(10));
    EXPECT_EQ(rest(*first_n(open(data), 10), 4), counted(10));
    const auto none = first_n(open(data), 0);
    for (int i = 0; i < 3; ++i) EXPECT_THAT(some(*none, 4), IsEmpty());
  }
  MemoryData data(10);
  EXPECT_EQ(error_of([&] { first_n(open(data), -1); }).code(), TN_INVALID);
}

TEST(FirstN, ComposesWithShuffle) {
  MemoryData data(30);
  const auto inside = shuffle(first_n(open(data), 10), 0, 1, system_allocator());
  EXPECT_EQ(sorted(rest(*inside)), counted(10));
  const auto outside = first_n(shuffle(open(data), 0, 1, system_allocator()), 10);
  const Ids first = rest(*outside), second = rest(*outside), third = rest(*outside);
  EXPECT_EQ(std::set<int64_t>(first.begin(), first.end()).size(), 10u);
  EXPECT_NE(first, second);
  const auto resumed = first_n(shuffle(open(data), 0, 1, system_allocator()), 10);
  resumed->seek(1, 6);
  EXPECT_EQ(rest(*resumed), Ids(second.begin() + 6, second.end()));
  EXPECT_EQ(rest(*resumed), third);
  EXPECT_EQ(error_of([&] { resumed->seek(0, 11); }).code(), TN_INVALID);
  const auto twice = shuffle(shuffle(open(data), 0, 1, system_allocator()), 0, 2, system_allocator());
  EXPECT_EQ(sorted(rest(*twice)), counted(30));
}

TEST(FirstN, AStreamWithoutEndGoesOn) {
  MemoryData data(0);
  data.ends = data.seeks = false;
  const auto reader = first_n(open(data, false), 4);
  EXPECT_EQ(reader->size(), -1);
  EXPECT_THAT(rest(*reader), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(rest(*reader), ElementsAre(4, 5, 6, 7));
}

TEST(FirstN, ReadsByIndexOnlyWhatIsThere) {
  MemoryData data(10);
  const auto reader = first_n(open(data), 4);
  int64_t id = -1;
  float value[3];
  void* const buffers[] = {&id, value};
  const int64_t last = 3, beyond = 4;
  reader->read_at(&last, 1, buffers);
  EXPECT_EQ(id, 3);
  EXPECT_EQ(error_of([&] { reader->read_at(&beyond, 1, buffers); }).code(), TN_INVALID);
}

// ---- batch

Ids batch(BatchReader& reader) {
  const int64_t count = reader.next();
  const auto* ids = static_cast<const int64_t*>(reader.data(0));
  const auto* values = static_cast<const float*>(reader.data(1));
  for (int64_t i = 0; i < count; ++i) EXPECT_EQ(values[3 * i + 2], static_cast<float>(ids[i]) + 0.5F);
  return {ids, ids + count};
}

TEST(Batch, CutsPassesAndKeepsTheShortLastOne) {
  MemoryData data(7);
  data.most = 2;  // a batch is put together from several reads
  BatchReader reader(open(data), 3, false, system_allocator());
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_THAT(batch(reader), ElementsAre(0, 1, 2));
    EXPECT_THAT(batch(reader), ElementsAre(3, 4, 5));
    EXPECT_THAT(batch(reader), ElementsAre(6));
    EXPECT_THAT(batch(reader), IsEmpty());
  }
}

TEST(Batch, DropsTheShortLastOneOnRequest) {
  MemoryData data(7);
  BatchReader reader(open(data), 3, true, system_allocator());
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_THAT(batch(reader), ElementsAre(0, 1, 2));
    EXPECT_THAT(batch(reader), ElementsAre(3, 4, 5));
    EXPECT_THAT(batch(reader), IsEmpty());
  }
  BatchReader large(open(data), 8, true, system_allocator());
  EXPECT_THAT(batch(large), IsEmpty());
  EXPECT_THAT(batch(large), IsEmpty());
}

TEST(Batch, ExactAndEmptyPasses) {
  MemoryData data(6);
  BatchReader exact(open(data), 3, false, system_allocator());
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_EQ(batch(exact).size(), 3u);
    EXPECT_EQ(batch(exact).size(), 3u);
    EXPECT_THAT(batch(exact), IsEmpty());
  }
  MemoryData none(0);
  BatchReader empty(open(none), 3, false, system_allocator());
  for (int i = 0; i < 3; ++i) EXPECT_THAT(batch(empty), IsEmpty());
}

TEST(Batch, AFailureLosesNothing) {
  for (int64_t call = 0; call < 5; ++call) {  // 2, 2 and 1 samples, 2, and the end
    MemoryData data(7);
    data.most = 2;
    data.fail_at = call;
    BatchReader reader(open(data), 5, false, system_allocator());
    Ids ids;
    int failures = 0;
    for (bool more = true; more;) try {
        const Ids part = batch(reader);
        ids.insert(ids.end(), part.begin(), part.end());
        more = !part.empty();
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), TN_IO);
        ++failures;
      }
    EXPECT_EQ(ids, counted(7)) << call;
    EXPECT_EQ(failures, 1) << call;
  }
}

TEST(Batch, BuffersAreItsOwnAlignedAndCounted) {
  MemoryData data(7);
  const auto allocator = std::make_shared<FaultyAllocator>();
  {
    const BatchReader reader(open(data), 5, false, allocator);
    EXPECT_EQ(allocator->held, 5u * (8 + 12));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(reader.data(1)) % 64, 0u);
  }
  EXPECT_EQ(allocator->held, 0u);
  for (int64_t call = 0; call < 2; ++call) {
    allocator->calls = 0;
    allocator->fail_at = call;
    EXPECT_EQ(error_of([&] { BatchReader(open(data), 5, false, allocator); }).code(), TN_OUT_OF_MEMORY);
    EXPECT_EQ(allocator->held, 0u);
  }
  EXPECT_EQ(data.opened, 0);
  EXPECT_EQ(error_of([&] { BatchReader(open(data), 0, false, allocator); }).code(), TN_INVALID);
  EXPECT_EQ(error_of([&] { BatchReader(open(data), INT64_MAX, false, allocator); }).code(), TN_INVALID);
}

}  // namespace
}  // namespace tenon
