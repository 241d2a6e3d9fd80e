// SPDX-License-Identifier: Apache-2.0
#include "host/readers/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "core/error.h"
#include "tests/support/faults.h"
#include "tests/support/memory_system.h"
#include "tests/support/read_samples.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

TEST(PluginReader, AShardMustExist) {
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

// Before 0.4 a list has names. Since then a slot may be told for its columns, type or shape alone.
TEST(PluginReader, ListsWithoutTextsAreForPluginsThatKnowColumns) {
  MemoryData data(4);
  const auto known = [](int64_t count, std::vector<std::string> texts) {
    return std::make_shared<const Names>(Names{count, "", std::move(texts)});
  };
  ReaderSettings settings;
  settings.names = {{"counted", known(2, {})}, {"written", known(2, {"a", "b"})}};
  ReaderType type = memory_type(true);
  type.built = 3;
  (void)open_reader(type, memory_attributes(data), nullptr, settings);
  EXPECT_EQ(data.names_given, std::vector<std::string>{"written"});
  type.built = 4;
  (void)open_reader(type, memory_attributes(data), nullptr, settings);
  EXPECT_EQ(data.names_given, (std::vector<std::string>{"counted", "written"}));
}

TEST(PluginReader, ErrorsNameReaderAndReason) {
  MemoryData data(4);
  EXPECT_THAT(error_of([&] { open_reader(memory_type(true), {}, nullptr); }).message(),
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
  SampleBlock block(reader->slots(), system_allocator());
  reader->read_at(indices, 3, block);
  EXPECT_THAT(ids_of(block), ElementsAre(9, 1, 9));
  for (const int64_t wrong : {int64_t{-1}, int64_t{5}})
    EXPECT_EQ(error_of([&] { reader->read_at(&wrong, 1, block); }).code(), TN_INVALID);
  EXPECT_EQ(error_of([&] { open(data, false)->read_at(indices, 1, block); }).code(), TN_UNSUPPORTED);
  EXPECT_EQ(block.samples(), 3);
}

// Refuses faults in the instance, the schema and the size that a plugin returns.
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
  EXPECT_THAT(message_of([](MemoryData& d) { d.value.name = "caf\xE9"; }),
              HasSubstr("the name of slot 1 is not UTF-8"));
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
  EXPECT_THAT(message_of([](MemoryData& d) { d.value.storage = 7; }), HasSubstr("storage 7"));
  EXPECT_THAT(message_of([](MemoryData& d) { d.value.storage = TN_RAGGED; }),
              HasSubstr("levels is 0; expected 1 or 2 with TN_RAGGED"));
  EXPECT_THAT(message_of([](MemoryData& d) { d.value.storage = TN_RAGGED, d.value.levels = 3; }),
              HasSubstr("levels is 3; expected 1 or 2 with TN_RAGGED"));
  EXPECT_THAT(message_of([](MemoryData& d) { d.value.levels = 1; }),
              HasSubstr("levels is 1; expected 0 with TN_DENSE"));
  EXPECT_THAT(message_of([](MemoryData& d) { d.id.storage = TN_CSR; }), HasSubstr("not int64 of rank 0"));
}

// The host does not close an instance that a failed open has set.
TEST(PluginReader, SaysWhyItCannotBeOpened) {
  MemoryData data(4);
  data.fails_open = true;
  const Error error = error_of([&] { open(data); });
  EXPECT_EQ(error.code(), TN_IO);
  EXPECT_THAT(error.message(), HasSubstr("cannot open it"));
  EXPECT_EQ(data.opened, 0);
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
  EXPECT_EQ(code_of([](MemoryData& d) { d.answer = TN_NEED_CAPACITY; }), TN_PLUGIN_FAULT);
  EXPECT_EQ(code_of([](MemoryData& d) { d.says_samples = 3; }, true), TN_PLUGIN_FAULT);
  EXPECT_EQ(code_of([](MemoryData& d) { d.says_samples = 5; }, true), TN_PLUGIN_FAULT);
}

// A reader that never ends returns more samples than its declared size: refused at the end of the pass.
TEST(PluginReader, RefusesSamplesBehindTheLast) {
  MemoryData data(0);
  data.ends = false;
  data.says_samples = 4;
  const auto reader = open(data);
  EXPECT_THAT(some(*reader, 9), ElementsAre(0, 1, 2, 3));
  for (int i = 0; i < 2; ++i) {
    SampleBlock block(reader->slots(), system_allocator());
    const Error error = error_of([&] { reader->next(block, 9); });
    EXPECT_EQ(error.code(), TN_PLUGIN_FAULT);
    EXPECT_THAT(error.message(), HasSubstr("next gave sample 5 of a pass; expected 4 samples"));
    EXPECT_EQ(block.samples(), 0);
    EXPECT_EQ(reader->position(), 4);
  }
  reader->seek(1, 2);
  EXPECT_THAT(some(*reader, 9), ElementsAre(2, 3));
  MemoryData empty(0);
  empty.ends = false;
  empty.says_samples = 0;
  EXPECT_EQ(error_of([&] { some(*open(empty), 1); }).code(), TN_PLUGIN_FAULT);
}

// ---- sequences and sparse samples

TEST(PluginReader, SamplesOfAnySizeEndToEnd) {
  MemoryData data(200, true);
  const auto reader = open(data);
  ASSERT_EQ(reader->slots().size(), 5u);
  EXPECT_EQ(slot_text(reader->slots()[2]), "sequences of int64 []");
  EXPECT_EQ(slot_text(reader->slots()[3]), "sequences of sequences of float32 [2]");
  EXPECT_EQ(slot_text(reader->slots()[4]), "sparse float32 [1000]");
  for (int64_t piece : {1, 7, 200}) EXPECT_EQ(rest(*reader, piece), counted(200)) << piece;
  SampleBlock block(reader->slots(), system_allocator());
  while (reader->next(block, 64) != 0) {
  }
  EXPECT_EQ(ids_of(block), counted(200));
  const ArrayView words = block.columns()[2].view(), text = block.columns()[3].view(), bag = block.columns()[4].view();
  EXPECT_THAT(words.shape, ElementsAre(400));  // 40 times 0 + 1 + 2 + 3 + 4
  EXPECT_EQ(words.samples, 200);
  EXPECT_EQ(words.levels, 1u);
  EXPECT_EQ(text.levels, 2u);
  EXPECT_EQ(text.shape[1], 2);
  EXPECT_EQ(text.shape[0], text.offsets[1][text.offsets[0][200]]);
  EXPECT_THAT(bag.shape, ElementsAre(200, 1000));
  EXPECT_EQ(bag.offsets[0][200], 300);
}

TEST(PluginReader, SequencesByIndexAreAllOrNothing) {
  MemoryData data(50, true);
  const auto reader = open(data);
  Ids indices = counted(50);
  std::reverse(indices.begin(), indices.end());
  SampleBlock block(reader->slots(), system_allocator());
  reader->read_at(indices.data(), 50, block);
  reader->read_at(indices.data(), 5, block);
  Ids expected = indices;
  expected.insert(expected.end(), indices.begin(), indices.begin() + 5);
  EXPECT_EQ(ids_of(block), expected);
}

TEST(PluginReader, WrittenLengthsAndColumnsAreChecked) {
  const auto room = [](const tn_reader_buffers& buffers, size_t slot) -> tn_sequence_room& {
    return *static_cast<tn_sequence_room*>(buffers.data[slot]);
  };
  const auto message_of = [](const std::function<void(const tn_reader_buffers&)>& spoil) {
    MemoryData data(8, true);
    data.spoil = spoil;
    const auto reader = open(data);
    const int64_t index = 3;
    SampleBlock block(reader->slots(), system_allocator());
    EXPECT_EQ(error_of([&] { reader->read_at(&index, 1, block); }).code(), TN_PLUGIN_FAULT);
    const Error error = error_of([&] {
      while (reader->next(block, 8) != 0) {
      }
    });
    EXPECT_EQ(error.code(), TN_PLUGIN_FAULT) << error.message();
    for (const Column& column : block.columns()) EXPECT_EQ(column.samples(), 0) << column.slot().name;
    return error.message();
  };
  EXPECT_THAT(message_of([&](const auto& b) { room(b, 2).lengths[0] = -1; }),
              AllOf(HasSubstr("slot \"words\""), HasSubstr("sample 0"), HasSubstr("length -1")));
  EXPECT_THAT(message_of([&](const auto& b) { room(b, 2).lengths[0] = room(b, 2).rows_capacity + 1; }),
              HasSubstr("there was room for"));
  EXPECT_THAT(message_of([&](const auto& b) { room(b, 2).lengths[0] = INT64_MAX; }), HasSubstr("\"words\""));
  EXPECT_THAT(message_of([&](const auto& b) { room(b, 3).lengths[0] = room(b, 3).inner_capacity + 1; }),
              HasSubstr("\"text\""));
  EXPECT_THAT(message_of([&](const auto& b) { room(b, 3).lengths[0] = 1, room(b, 3).inner_lengths[0] = -7; }),
              HasSubstr("inner sequence 0"));
  EXPECT_THAT(message_of([&](const auto& b) {
                room(b, 3).lengths[0] = 1, room(b, 3).inner_lengths[0] = room(b, 3).rows_capacity + 1;
              }),
              HasSubstr("inner sequence 0"));
  const auto entry = [&](const tn_reader_buffers& b, int64_t first, int64_t second) {
    room(b, 4).lengths[0] = 2;
    room(b, 4).ids[0] = first;
    room(b, 4).ids[1] = second;
  };
  EXPECT_THAT(message_of([&](const auto& b) { entry(b, -1, 3); }), HasSubstr("column -1 of 1000"));
  EXPECT_THAT(message_of([&](const auto& b) { entry(b, 0, 1000); }), HasSubstr("column 1000 of 1000"));
  EXPECT_THAT(message_of([&](const auto& b) { entry(b, 5, 5); }), HasSubstr("column 5 after 5"));
  EXPECT_THAT(message_of([&](const auto& b) { entry(b, 5, 4); }), HasSubstr("column 4 after 5"));
}

TEST(PluginReader, IntegersAreBelowTheLimitOfTheirSlot) {
  MemoryData dense(8);
  dense.id.index_limit = 5;
  const auto reader = open(dense);
  EXPECT_THAT(some(*reader, 3), ElementsAre(0, 1, 2));
  SampleBlock block(reader->slots(), system_allocator());
  const Error error = error_of([&] { reader->next(block, 8); });
  EXPECT_EQ(error.code(), TN_PLUGIN_FAULT);
  EXPECT_EQ(error.message(),
            "reader \"memory\" of plugin \"test.memory\": slot \"id\": sample 2 of those just read is 5; the slot's "
            "limit is 5 (the first of them is sample 3 of the pass)");
  EXPECT_EQ(block.samples(), 0);

  MemoryData data(8, true);
  data.words.index_limit = 70;
  const auto larger = open(data);
  SampleBlock found(larger->slots(), system_allocator());
  const int64_t indices[] = {1, 5, 7};  // sample 5 has no words, sample 7 the words 70 and 71
  EXPECT_THAT(error_of([&] { larger->read_at(indices, 3, found); }).message(),
              testing::EndsWith("slot \"words\": sample 2 of those just read is 70; the slot's limit is 70"));
  dense.spoil = [](const tn_reader_buffers& b) { *static_cast<int64_t*>(b.data[0]) = -1; };
  EXPECT_THAT(error_of([&] { open(dense)->next(block, 1); }).message(), HasSubstr("sample 0 of those just read is -1"));
}

TEST(PluginReader, RoomIsNotGivenForEver) {
  MemoryData data(8, true);
  const auto reader = open(data);
  SampleBlock block(reader->slots(), system_allocator());
  data.answer = TN_NEED_CAPACITY;  // without reporting a need
  EXPECT_THAT(error_of([&] { reader->next(block, 4); }).message(), HasSubstr("no slot reports"));
  data.before_write = [](const tn_reader_buffers& buffers) {
    auto& room = *static_cast<tn_sequence_room*>(buffers.data[2]);
    room.rows_needed = room.rows_capacity + 1;
  };
  const Error error = error_of([&] { reader->next(block, 4); });
  EXPECT_EQ(error.code(), TN_PLUGIN_FAULT);
  EXPECT_THAT(error.message(), HasSubstr("room was enlarged"));
  data.before_write = [](const tn_reader_buffers& buffers) {
    static_cast<tn_sequence_room*>(buffers.data[2])->rows_needed = INT64_MAX;
  };
  EXPECT_EQ(error_of([&] { reader->next(block, 4); }).code(), TN_INVALID);
  data.answer = TN_OK;
  data.before_write = nullptr;
  EXPECT_EQ(rest(*reader), counted(8));
}

TEST(PluginReader, IsToldOfPasses) {
  MemoryData data(4);
  const auto reader = open(data);
  reader->seek(3, 1);
  reader->begin_pass(5);
  EXPECT_THAT(data.passes, ElementsAre(3, 5));
  data.passes.clear();
  const auto shuffled = shuffle(open(data), 0, 1, system_allocator());
  for (int pass = 0; pass < 2; ++pass) rest(*shuffled);
  shuffled->seek(7, 2);
  rest(*shuffled);
  EXPECT_THAT(data.passes, ElementsAre(0, 1, 7));
}

TEST(PluginReader, StopsOnRequest) {
  MemoryData data(4);
  const auto reader = open(data);
  reader->cancel(true);
  EXPECT_EQ(error_of([&] { some(*reader, 2); }).code(), TN_CANCELLED);
  reader->cancel(false);
  EXPECT_EQ(rest(*reader), counted(4));
}

// ---- samples in memory

TEST(SampleBlock, MovesCopiesAndCuts) {
  MemoryData data(40, true);
  const auto reader = open(data);
  SampleBlock all(reader->slots(), system_allocator()), part(reader->slots(), system_allocator());
  reader->next(all, 40);
  while (all.samples() < 40) reader->next(all, 40);
  for (int64_t begin = 0; begin < 40; begin += 3)
    for (int64_t count = 0; begin + count <= 40; count += 5) {
      part.truncate(2);
      part.append(all, begin, count);
      Ids expected = part.samples() == count ? Ids{} : counted(2);
      const Ids more = counted(count, begin);
      expected.insert(expected.end(), more.begin(), more.end());
      EXPECT_EQ(ids_of(part), expected);
      part.clear();
      part.append(all, 0, 2);
    }
  all.retain({0, 1, 7, 8, 9, 30, 39});
  EXPECT_THAT(ids_of(all), ElementsAre(0, 1, 7, 8, 9, 30, 39));
  all.retain({1, 2, 6});
  EXPECT_THAT(ids_of(all), ElementsAre(1, 7, 39));
  part.clear();
  part.take(all);
  EXPECT_EQ(all.samples(), 0);
  EXPECT_THAT(ids_of(part), ElementsAre(1, 7, 39));
  all.append(part, 2, 1);
  part.take(all);
  EXPECT_THAT(ids_of(part), ElementsAre(1, 7, 39, 39));
}

TEST(SampleBlock, NoMemoryChangesNothing) {
  MemoryData data(40, true);
  const auto reader = open(data);
  SampleBlock all(reader->slots(), system_allocator());
  while (all.samples() < 40) reader->next(all, 40);
  const auto allocator = std::make_shared<FaultyAllocator>();
  for (int64_t call = 0;; ++call) {
    allocator->fail_at = -1;
    SampleBlock to(reader->slots(), allocator);
    to.append(all, 0, 1);
    allocator->calls = 0;
    allocator->fail_at = call;
    const Error error = error_of([&] { to.append(all, 0, 40); });
    EXPECT_EQ(ids_of(to).size(), error.code() == TN_OK ? 41u : 1u);
    if (error.code() == TN_OK) break;
    EXPECT_EQ(error.code(), TN_OUT_OF_MEMORY);
    EXPECT_LT(call, 100);
  }
  EXPECT_EQ(allocator->held, 0u);
}

}  // namespace
}  // namespace tenon_tests
