// What holds for every composition of readers. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "core/error.h"
#include "tests/support/faults.h"
#include "tests/support/memory_seams.h"
#include "tests/support/read_samples.h"

namespace tenon {
namespace {

using test::error_of;
using test::FaultyAllocator;
using test::Ids;
using test::MemoryData;
using test::minibatch;
using test::open;
using test::rest;
using test::some;
using ::testing::IsEmpty;
using ReaderPtr = std::unique_ptr<Reader>;

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
  std::function<ReaderPtr(World&)> make;
};
ReaderPtr shuffled(ReaderPtr of, int64_t buffer = 0) { return shuffle(std::move(of), buffer, 9, memory()); }
ReaderPtr buckets(ReaderPtr of, int64_t samples = 0, int64_t rows = 9) {
  return bucket(std::move(of), {"words", 8, samples, rows, 5}, memory());
}
ReaderPtr some_slots(ReaderPtr of) { return choose(std::move(of), {{"text", "text"}, {"id", "id"}}, memory()); }
ReaderPtr renamed(ReaderPtr of) { return choose(std::move(of), {{"bag", "other_bag"}, {"words", "other"}}, memory()); }
// Passes all slots on.
ReaderPtr same(ReaderPtr of) {
  const std::vector<Slot> slots = of->slots();
  return map(
      std::move(of), slots, [](const std::vector<ArrayView>& from, int64_t, std::vector<ArrayView>& to) { to = from; },
      memory());
}
Readers two(ReaderPtr a, ReaderPtr b) {
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
       ReaderPtr joined = chain(two(first_n(open(w.few), 3, memory()), open(w.more)), memory());
       ReaderPtr ready = buckets(same(shuffled(std::move(joined))));
       return buffered(some_slots(same(buffered(std::move(ready), 1, memory()))), 2, memory());
     }},
    {"shuffled_shard_of_interleave",
     [](World& w) {
       ReaderPtr joined = interleave(two(open(w.few), open(w.more)), memory());
       return batch(shuffled(shard(std::move(joined), 0, 2, memory()), 4), 3, false, memory());
     }},
};

class Composed : public ::testing::TestWithParam<Composition> {
 protected:
  ReaderPtr make() { return GetParam().make(world_); }
  World world_;
};
INSTANTIATE_TEST_SUITE_P(All, Composed, ::testing::ValuesIn(kCompositions),
                         [](const auto& it) { return std::string(it.param.name); });

TEST_P(Composed, PassesHaveTheSizeThatIsSaidAndNoSampleTwice) {
  const ReaderPtr reader = make();
  for (int pass = 0; pass < 3; ++pass) {
    EXPECT_EQ(reader->pass(), pass);
    EXPECT_EQ(reader->position(), 0);
    EXPECT_EQ(static_cast<int64_t>(rest(*reader).size()), reader->size());
  }
}

TEST_P(Composed, TheOrderDoesNotDependOnPieces) {
  const ReaderPtr reader = make(), other = make();
  for (int pass = 0; pass < 3; ++pass) {
    world_.all.most = world_.few.most = world_.more.most = INT64_MAX;
    const Ids ids = rest(*reader, 1);
    world_.all.most = world_.few.most = world_.more.most = 2;
    EXPECT_EQ(rest(*other, 50), ids);
  }
}

TEST_P(Composed, ResumesAtEveryPosition) {
  const ReaderPtr reader = make();
  rest(*reader);
  const Ids second = rest(*reader), third = rest(*reader);
  for (int64_t position = 0; position <= reader->size(); ++position) {
    const ReaderPtr resumed = make();
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
    const ReaderPtr reader = make();
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
  const ReaderPtr reader = make();
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
  { const ReaderPtr reader = make(); }
  {
    const ReaderPtr reader = make();
    some(*reader, std::max<int64_t>(reader->batch(), 1));
  }
  EXPECT_EQ(world_.all.opened + world_.few.opened + world_.more.opened, 0);
}

TEST_P(Composed, NoSamplesAtAll) {
  world_.all.samples = world_.few.samples = world_.more.samples = 0;
  const ReaderPtr reader = make();
  for (int pass = 0; pass < 3; ++pass) EXPECT_THAT(rest(*reader), IsEmpty());
  EXPECT_EQ(reader->pass(), 3);
}

// ---- memory

// No allocation that fails loses samples, or memory.
TEST(Wrappers, NoMemoryLosesNothing) {
  MemoryData data(30, true);
  const auto allocator = std::make_shared<FaultyAllocator>();
  const auto make = [&]() -> ReaderPtr {
    ReaderPtr pair = compose(two(shuffle(open(data, false), 5, 1, allocator), renamed(open(data))), allocator);
    ReaderPtr all =
        interleave(two(std::move(pair), compose(two(open(data), renamed(open(data))), allocator)), allocator);
    return bucket(same(shard(std::move(all), 0, 2, allocator)), {"words", 16, 4, 0, 1}, allocator);
  };
  allocator->fail_at = -1;
  const Ids expected = rest(*make());
  for (int64_t call = 0; call < 400; call += 3) {
    allocator->fail_at = -1;
    const ReaderPtr reader = make();
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
