// Wrappers of readers that take parts, join, cut into minibatches and map. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include "core/error.h"
#include "tests/support/faults.h"
#include "tests/support/memory_seams.h"
#include "tests/support/read_samples.h"

namespace tenon {
namespace {

using test::counted;
using test::error_of;
using test::FaultyAllocator;
using test::Ids;
using test::MemoryData;
using test::minibatch;
using test::open;
using test::rest;
using test::some;
using test::sorted;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Reader_ = std::unique_ptr<Reader>;

std::shared_ptr<Allocator> memory() { return system_allocator(); }

Ids by_index(Reader& reader, const Ids& indices) {
  SampleBlock block(reader.slots(), memory());
  reader.read_at(indices.data(), static_cast<int64_t>(indices.size()), block);
  return test::ids_of(block);
}

// ---- every composition

// Several data sets, so that a composition may open as many readers as it likes.
struct World {
  MemoryData all{23, true}, few{5, true}, more{11, true};
};
struct Composition {
  const char* name;
  std::function<Reader_(World&)> make;
};
Reader_ shuffled(Reader_ of, int64_t buffer = 0) { return shuffle(std::move(of), buffer, 9, memory()); }
Reader_ buckets(Reader_ of, int64_t samples = 0, int64_t rows = 9) {
  return bucket(std::move(of), {"words", 8, samples, rows, 5}, memory());
}
Reader_ some_slots(Reader_ of) { return choose(std::move(of), {{"text", "text"}, {"id", "id"}}, memory()); }
Reader_ renamed(Reader_ of) { return choose(std::move(of), {{"bag", "other_bag"}, {"words", "other"}}, memory()); }
// Passes all slots on.
Reader_ same(Reader_ of) {
  const std::vector<Slot> slots = of->slots();
  return map(
      std::move(of), slots, [](const std::vector<ArrayView>& from, int64_t, std::vector<ArrayView>& to) { to = from; },
      memory());
}
Readers two(Reader_ a, Reader_ b) {
  Readers result;
  result.push_back(std::move(a));
  result.push_back(std::move(b));
  return result;
}

const Composition kCompositions[] = {
    {"plugin", [](World& w) { return open(w.all); }},
    {"first_n", [](World& w) { return first_n(open(w.all, false), 7, memory()); }},
    {"shuffle_indexed", [](World& w) { return shuffled(open(w.all)); }},
    {"shuffle_buffer", [](World& w) { return shuffled(open(w.all, false), 6); }},
    {"shard_indexed", [](World& w) { return shard(open(w.all), 1, 4, memory()); }},
    {"shard_in_order", [](World& w) { return shard(open(w.all, false), 1, 4, memory()); }},
    {"chain", [](World& w) { return chain(two(open(w.few), open(w.all, false)), memory()); }},
    {"interleave", [](World& w) { return interleave(two(open(w.few, false), open(w.all)), memory()); }},
    {"interleave_other", [](World& w) { return interleave(two(open(w.all), open(w.few)), memory()); }},
    {"compose", [](World& w) { return compose(two(open(w.all), renamed(open(w.all, false))), memory()); }},
    {"choose", [](World& w) { return some_slots(open(w.all)); }},
    {"map", [](World& w) { return same(open(w.all)); }},
    {"batch", [](World& w) { return batch(open(w.all), 4, false, memory()); }},
    {"batch_drop_last", [](World& w) { return batch(open(w.all), 4, true, memory()); }},
    {"bucket_rows", [](World& w) { return buckets(open(w.all, false)); }},
    {"bucket_samples", [](World& w) { return buckets(open(w.all), 3, 0); }},
    {"buffered", [](World& w) { return buffered(batch(open(w.all), 4, false, memory()), 3, memory()); }},
    {"pipeline",
     [](World& w) {
       Reader_ joined = chain(two(first_n(open(w.few), 3, memory()), open(w.more)), memory());
       Reader_ ready = buckets(same(shuffled(std::move(joined))));
       return buffered(some_slots(same(buffered(std::move(ready), 1, memory()))), 2, memory());
     }},
    {"shuffled_shard_of_interleave",
     [](World& w) {
       Reader_ joined = interleave(two(open(w.few), open(w.more)), memory());
       return batch(shuffled(shard(std::move(joined), 0, 2, memory()), 4), 3, false, memory());
     }},
};

class Composed : public ::testing::TestWithParam<Composition> {
 protected:
  Reader_ make() { return GetParam().make(world_); }
  World world_;
};
INSTANTIATE_TEST_SUITE_P(All, Composed, ::testing::ValuesIn(kCompositions),
                         [](const auto& it) { return std::string(it.param.name); });

TEST_P(Composed, PassesHaveTheSizeThatIsSaidAndNoSampleTwice) {
  const Reader_ reader = make();
  for (int pass = 0; pass < 3; ++pass) {
    EXPECT_EQ(reader->pass(), pass);
    EXPECT_EQ(reader->position(), 0);
    EXPECT_EQ(static_cast<int64_t>(rest(*reader).size()), reader->size());
  }
}

TEST_P(Composed, TheOrderDoesNotDependOnPieces) {
  const Reader_ reader = make(), other = make();
  for (int pass = 0; pass < 3; ++pass) {
    world_.all.most = world_.few.most = world_.more.most = INT64_MAX;
    const Ids ids = rest(*reader, 1);
    world_.all.most = world_.few.most = world_.more.most = 2;
    EXPECT_EQ(rest(*other, 50), ids);
  }
}

TEST_P(Composed, ResumesAtEveryPosition) {
  const Reader_ reader = make();
  rest(*reader);
  const Ids second = rest(*reader), third = rest(*reader);
  for (int64_t position = 0; position <= reader->size(); ++position) {
    const Reader_ resumed = make();
    resumed->seek(1, position);
    EXPECT_EQ(resumed->pass(), 1);
    EXPECT_EQ(resumed->position(), position);
    EXPECT_EQ(rest(*resumed, 2), Ids(second.begin() + position, second.end())) << position;
    EXPECT_EQ(resumed->pass(), 2);
    EXPECT_EQ(resumed->position(), 0);
    EXPECT_EQ(rest(*resumed), third);
    resumed->seek(1, position);  // back
    EXPECT_EQ(rest(*resumed, 5), Ids(second.begin() + position, second.end())) << position;
  }
  EXPECT_EQ(error_of([&] { reader->seek(0, reader->size() + 1); }).code(), TN_INVALID);
  EXPECT_EQ(error_of([&] { reader->seek(0, -1); }).code(), TN_INVALID);
  EXPECT_EQ(error_of([&] { reader->seek(-1, 0); }).code(), TN_INVALID);
  EXPECT_EQ(rest(*make()), rest(*make()));
}

TEST_P(Composed, AFailureLosesNothing) {
  const Ids expected = rest(*make());
  for (int64_t call = 0; call < 12; ++call) {
    world_.all.most = world_.few.most = world_.more.most = 3;
    world_.all.calls = world_.more.calls = 0;
    const Reader_ reader = make();
    world_.all.fail_at = world_.more.fail_at = call;
    Ids ids;
    for (bool more = true; more;) try {
        const Ids part = some(*reader, std::max<int64_t>(reader->batch(), 7));
        ids.insert(ids.end(), part.begin(), part.end());
        EXPECT_EQ(reader->position(), static_cast<int64_t>(part.empty() ? 0 : ids.size()));
        more = !part.empty();
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), TN_IO) << error.message();
      }
    EXPECT_EQ(ids, expected) << call;
    world_.all.fail_at = world_.more.fail_at = -1;
  }
}

TEST_P(Composed, ByIndexIsTheSameSample) {
  const Reader_ reader = make();
  if (!reader->indexed()) {
    SampleBlock block(reader->slots(), memory());
    const int64_t first = 0;
    EXPECT_EQ(error_of([&] { reader->read_at(&first, 1, block); }).code(), TN_UNSUPPORTED);
    return;
  }
  const Ids ids = rest(*reader);
  Ids indices, expected;
  for (int64_t i = 0; i < reader->size(); ++i) {
    const int64_t index = i * 7 % reader->size();
    indices.push_back(index);
    expected.push_back(ids[static_cast<size_t>(index)]);
  }
  EXPECT_EQ(by_index(*reader, indices), expected);
  EXPECT_EQ(error_of([&] { by_index(*reader, {reader->size()}); }).code(), TN_INVALID);
  EXPECT_EQ(error_of([&] { by_index(*reader, {-1}); }).code(), TN_INVALID);
}

TEST_P(Composed, ClosesWhatItWraps) {
  { const Reader_ reader = make(); }
  {
    const Reader_ reader = make();
    some(*reader, std::max<int64_t>(reader->batch(), 1));
  }
  EXPECT_EQ(world_.all.opened + world_.few.opened + world_.more.opened, 0);
}

TEST_P(Composed, NoSamplesAtAll) {
  world_.all.samples = world_.few.samples = world_.more.samples = 0;
  const Reader_ reader = make();
  for (int pass = 0; pass < 3; ++pass) EXPECT_THAT(rest(*reader), IsEmpty());
  EXPECT_EQ(reader->pass(), 3);
}

// ---- first_n

TEST(FirstN, CutsEachPass) {
  for (const bool seeks : {true, false}) {
    MemoryData data(10);
    data.seeks = seeks;
    const auto reader = first_n(open(data), 4, memory());
    EXPECT_EQ(reader->size(), 4);
    for (int pass = 0; pass < 3; ++pass) EXPECT_EQ(rest(*reader), counted(4));
    EXPECT_EQ(rest(*first_n(open(data), 99, memory())), counted(10));
    EXPECT_EQ(rest(*first_n(open(data), 10, memory()), 4), counted(10));
    const auto none = first_n(open(data), 0, memory());
    for (int i = 0; i < 3; ++i) EXPECT_THAT(some(*none, 4), IsEmpty());
  }
  MemoryData data(10);
  EXPECT_EQ(error_of([&] { first_n(open(data), -1, memory()); }).code(), TN_INVALID);
}

TEST(FirstN, ComposesWithShuffle) {
  MemoryData data(30);
  const auto inside = shuffle(first_n(open(data), 10, memory()), 0, 1, memory());
  EXPECT_EQ(sorted(rest(*inside)), counted(10));
  const auto outside = first_n(shuffle(open(data), 0, 1, memory()), 10, memory());
  const Ids first = rest(*outside), second = rest(*outside);
  EXPECT_EQ(std::set<int64_t>(first.begin(), first.end()).size(), 10u);
  EXPECT_NE(first, second);
  const auto twice = shuffle(shuffle(open(data), 0, 1, memory()), 0, 2, memory());
  EXPECT_EQ(sorted(rest(*twice)), counted(30));
}

TEST(FirstN, AStreamWithoutEndGoesOn) {
  MemoryData data(0);
  data.ends = data.seeks = false;
  const auto reader = first_n(open(data, false), 4, memory());
  EXPECT_EQ(reader->size(), -1);
  EXPECT_THAT(rest(*reader), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(rest(*reader), ElementsAre(4, 5, 6, 7));
}

// ---- shard

TEST(Shard, TogetherTheyAreTheDataOnce) {
  MemoryData data(23);
  for (const bool indexed : {true, false})
    for (const int64_t shards : {1, 4, 30}) {
      Ids by_wrapper, by_plugin;
      for (int64_t number = 0; number < shards; ++number) {
        const auto reader = shard(open(data, indexed), number, shards, memory());
        const Ids part = rest(*reader);
        EXPECT_EQ(static_cast<int64_t>(part.size()), reader->size());
        by_wrapper.insert(by_wrapper.end(), part.begin(), part.end());
        const Ids same = rest(*open(data, indexed, static_cast<uint32_t>(number), static_cast<uint32_t>(shards)));
        EXPECT_EQ(same, part);
        const Ids mixed = rest(*shuffle(
            open(data, indexed, static_cast<uint32_t>(number), static_cast<uint32_t>(shards)), 0, 1, memory()));
        EXPECT_EQ(sorted(mixed), part);
      }
      EXPECT_EQ(sorted(by_wrapper), counted(23));
    }
  for (const auto& [number, shards] : {std::pair{2, 2}, {-1, 2}, {0, 0}})
    EXPECT_THAT(error_of([&, n = number, of = shards] { shard(open(data), n, of, memory()); }).message(),
                HasSubstr("shard: shard "));
}

TEST(Shard, OfAStreamWithoutEnd) {
  MemoryData data(0);
  data.ends = data.seeks = false;
  const auto reader = shard(open(data, false), 2, 3, memory());
  EXPECT_EQ(reader->size(), -1);
  EXPECT_THAT(some(*reader, 4), ElementsAre(2, 5, 8, 11));
  EXPECT_THAT(some(*reader, 2), ElementsAre(14, 17));
  EXPECT_EQ(error_of([&] { reader->seek(0, 0); }).code(), TN_UNSUPPORTED);
  EXPECT_THAT(some(*reader, 1), ElementsAre(20));
}

// ---- chain, interleave, compose

TEST(Chain, OneAfterTheOther) {
  MemoryData a(3), b(2), none(0);
  Readers readers = two(open(a), open(none));
  readers.push_back(open(b));
  const auto reader = chain(std::move(readers), memory());
  EXPECT_EQ(reader->size(), 5);
  for (int pass = 0; pass < 2; ++pass) EXPECT_THAT(rest(*reader, 10), ElementsAre(0, 1, 2, 0, 1));
}

TEST(Chain, SizesThatAreNotKnown) {
  MemoryData a(3), b(4);
  a.sized = false;
  const auto reader = chain(two(open(a, false), open(b)), memory());
  EXPECT_EQ(reader->size(), -1);
  EXPECT_FALSE(reader->indexed());
  const Ids all = rest(*reader);
  EXPECT_THAT(all, ElementsAre(0, 1, 2, 0, 1, 2, 3));
  for (int64_t position = 0; position <= 7; ++position) {
    reader->seek(4, position);
    EXPECT_EQ(reader->position(), position);
    EXPECT_EQ(rest(*reader), Ids(all.begin() + position, all.end()));
    EXPECT_EQ(reader->pass(), 5);
  }
  EXPECT_THAT(error_of([&] { reader->seek(0, 8); }).message(), HasSubstr("chain: the pass has 1 samples less"));
}

TEST(Chain, SeekIsForAllOrNone) {
  MemoryData a(3), b(3);
  b.seeks = false;
  const auto reader = chain(two(open(a), open(b)), memory());
  EXPECT_THAT(some(*reader, 2), ElementsAre(0, 1));
  EXPECT_EQ(error_of([&] { reader->seek(0, 0); }).code(), TN_UNSUPPORTED);
  EXPECT_EQ(reader->position(), 2);
  EXPECT_THAT(rest(*reader), ElementsAre(2, 0, 1, 2));
}

TEST(Joined, SlotsMustBeTheSame) {
  MemoryData a(3), b(3), c(3, true), d(3), e(3);
  b.value.name = "other";
  d.value_shape[0] = 4;
  e.id.index_limit = 7;
  const auto message = [&](MemoryData& other, bool chained) {
    return error_of([&] {
             chained ? chain(two(open(a), open(other)), memory()) : interleave(two(open(a), open(other)), memory());
           })
        .message();
  };
  for (const bool chained : {true, false}) {
    const std::string who = chained ? "chain: " : "interleave: ";
    EXPECT_EQ(message(b, chained), who +
                                       "slot 2 is \"value\", float32 [3], in reader 1 and \"other\", float32 [3], in "
                                       "reader 2");
    EXPECT_THAT(message(c, chained), AllOf(HasSubstr(who), HasSubstr("reader 2 (slots \"id\", \"value\", \"words\"")));
    EXPECT_THAT(message(d, chained), HasSubstr("float32 [4]"));
    EXPECT_EQ(message(e, chained), "");
  }
  EXPECT_EQ(chain(two(open(e), open(e)), memory())->slots()[0].index_limit, 7);
  EXPECT_EQ(chain(two(open(e), open(a)), memory())->slots()[0].index_limit, -1);
  EXPECT_EQ(error_of([&] { chain({}, memory()); }).message(), "chain: no readers; expected at least 1");
  EXPECT_EQ(error_of([&] { interleave({}, memory()); }).code(), TN_INVALID);
  EXPECT_EQ(error_of([&] { compose({}, memory()); }).code(), TN_INVALID);
}

TEST(Interleave, OneOfEachInTurn) {
  MemoryData a(4), b(2), c(3);
  b.sized = false;
  Readers readers = two(open(a), open(b, false));
  readers.push_back(open(c));
  const auto reader = interleave(std::move(readers), memory());
  EXPECT_EQ(reader->size(), -1);
  const Ids all = rest(*reader, 5);
  EXPECT_THAT(all, ElementsAre(0, 0, 0, 1, 1, 1, 2, 2, 3));
  for (int64_t position = 0; position <= 9; ++position) {
    reader->seek(2, position);
    EXPECT_EQ(rest(*reader, 4), Ids(all.begin() + position, all.end())) << position;
  }
}

TEST(Interleave, WithAStreamWithoutEnd) {
  MemoryData a(2), b(0);
  b.ends = b.seeks = false;
  const auto reader = interleave(two(open(a), open(b, false)), memory());
  EXPECT_THAT(rest(*reader, 3, 8), ElementsAre(0, 0, 1, 1, 2, 3, 4, 5));
}

TEST(Compose, PutsSlotsSideBySide) {
  MemoryData a(6, true), b(6, true);
  b.most = 2;
  const auto reader = compose(two(choose(open(a), {{"id", "id"}, {"words", "words"}}, memory()),
                                  choose(open(b, false), {{"text", "text"}, {"bag", "bag"}}, memory())),
                              memory());
  ASSERT_EQ(reader->slots().size(), 4u);
  EXPECT_EQ(reader->slots()[3].name, "bag");
  EXPECT_EQ(reader->size(), 6);
  for (int pass = 0; pass < 2; ++pass) EXPECT_EQ(rest(*reader, 4), counted(6));
}

TEST(Compose, RefusesWhatDoesNotFit) {
  MemoryData a(6), b(5), c(5);
  c.sized = false;
  EXPECT_EQ(error_of([&] { compose(two(open(a), open(a)), memory()); }).message(),
            "compose: reader 1 (slots \"id\", \"value\") and reader 2 (slots \"id\", \"value\") both have a slot "
            "\"id\"; rename one with choose");
  const auto other = [&](MemoryData& data) { return choose(open(data, false), {{"value", "other"}}, memory()); };
  EXPECT_EQ(error_of([&] { compose(two(open(a), other(b)), memory()); }).message(),
            "compose: reader 1 (slots \"id\", \"value\") has 6 samples and reader 2 (slots \"other\") has 5");
  for (const bool longer_first : {true, false}) {
    const auto reader =
        longer_first ? compose(two(open(a), other(c)), memory()) : compose(two(other(c), open(a)), memory());
    EXPECT_EQ(rest(*reader, 3, 5), counted(5));
    for (int i = 0; i < 2; ++i) {
      const Error error = error_of([&] { some(*reader, 3); });
      EXPECT_EQ(error.code(), TN_BAD_DATA);
      EXPECT_THAT(error.message(), AllOf(HasSubstr("compose: reader "),
                                         HasSubstr(" (slots \"other\") ended after 5 samples of pass 1; "
                                                   "reader "),
                                         HasSubstr(" (slots \"id\", \"value\") goes on")));
    }
    reader->seek(0, 3);
    EXPECT_THAT(rest(*reader, 3, 2), ElementsAre(3, 4));
  }
}

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
  EXPECT_EQ(test::ids_of(block), counted(7));
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

  const auto by_rows = bucket(open(data, false), {"words", 40, 0, 9, 1}, memory());
  EXPECT_EQ(by_rows->batch(), 9);
  size_t largest = 0;
  for (Ids ids = minibatch(*by_rows); !ids.empty(); ids = minibatch(*by_rows)) {
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

// ---- map and choose

Slot sum_slot() {
  Slot slot;
  slot.name = "sum";
  slot.dtype = TN_I64;
  slot.bytes = 8;
  return slot;
}
// The sum of the words of each sample.
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
  EXPECT_THAT(message(1, [](auto& a, auto&) { a.shape[1] = 2; }), HasSubstr("another shape"));
  EXPECT_THAT(message(1, [](auto& a, auto&) { a.shape[0] = 3; }), HasSubstr("expected 4 samples, got 3"));
  EXPECT_THAT(message(2, [](auto& a, auto&) { a.storage = TN_DENSE; }), HasSubstr("expected sequences of int64 []"));
  EXPECT_THAT(message(2, [](auto& a, auto&) { a.samples = 2; }), HasSubstr("expected 4 samples, got 2"));
  EXPECT_THAT(message(2, [](auto& a, auto&) { a.offsets[0] = nullptr; }), HasSubstr("the offsets of the samples"));
  EXPECT_THAT(message(2, [](auto&, Ids& o) { o[0] = 1; }), HasSubstr("begin with 1"));
  EXPECT_THAT(message(2, [](auto&, Ids& o) { o[2] = 9; }), HasSubstr("go from 0 to 9 at 1"));
  EXPECT_THAT(message(2, [](auto&, Ids& o) { o[2] = -1; }), HasSubstr("to -1"));
  EXPECT_THAT(message(2, [](auto&, Ids& o) { o[4] = 5; }), HasSubstr("end with 5, not 6"));
  EXPECT_THAT(message(3, [](auto& a, auto&) { a.levels = 1; }), HasSubstr("with 1 levels"));
  EXPECT_THAT(message(3, [](auto& a, auto&) { a.offsets[1] = nullptr; }), HasSubstr("of the inner sequences are null"));
  EXPECT_THAT(message(3, [](auto& a, auto&) { a.shape[0] += 1; }), HasSubstr("of the inner sequences end with"));
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
  EXPECT_EQ(message({{"id", ""}}), "choose: slot \"id\" gets no name");
}

// ---- memory

// No allocation that fails loses samples, or memory.
TEST(Wrappers, NoMemoryLosesNothing) {
  MemoryData data(30, true);
  const auto allocator = std::make_shared<FaultyAllocator>();
  const auto make = [&]() -> Reader_ {
    Reader_ pair = compose(two(shuffle(open(data, false), 5, 1, allocator), renamed(open(data))), allocator);
    Reader_ all = interleave(two(std::move(pair), compose(two(open(data), renamed(open(data))), allocator)), allocator);
    return bucket(same(shard(std::move(all), 0, 2, allocator)), {"words", 16, 4, 0, 1}, allocator);
  };
  allocator->fail_at = -1;
  const Ids expected = rest(*make());
  for (int64_t call = 0; call < 400; call += 3) {
    allocator->fail_at = -1;
    const Reader_ reader = make();
    allocator->calls = 0;
    allocator->fail_at = call;
    Ids ids;
    for (bool more = true; more;) try {
        const Ids part = minibatch(*reader);
        ids.insert(ids.end(), part.begin(), part.end());
        more = !part.empty();
      } catch (const Error& error) {
        ASSERT_EQ(error.code(), TN_OUT_OF_MEMORY) << error.message();
      }
    ASSERT_EQ(ids, expected) << call;
  }
  EXPECT_EQ(allocator->held, 0u);
}

}  // namespace
}  // namespace tenon
