// Properties of every composition of readers. SPDX-License-Identifier: Apache-2.0
#include "tests/host/readers/compositions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "core/error.h"
#include "tests/support/faults.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
Ids by_index(Reader& reader, const Ids& indices) {
  SampleBlock block(reader.slots(), memory());
  reader.read_at(indices.data(), static_cast<int64_t>(indices.size()), block);
  return ids_of(block);
}

// ---- every composition

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

// Returns the rest of the pass and the number of failures by damaged samples.
std::pair<Ids, int> rest_but_damaged(Reader& reader) {
  std::pair<Ids, int> result;
  for (int calls = 0; calls < 1000; ++calls) try {
      const Ids part = some(reader, std::max<int64_t>(reader.batch(), 3));
      if (part.empty()) return result;
      result.first.insert(result.first.end(), part.begin(), part.end());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), TN_BAD_DATA) << error.message();
      ++result.second;
    }
  ADD_FAILURE() << "the pass does not end";
  return result;
}

TEST_P(Composed, DamagedSamplesArePassedOverAndNothingElse) {
  const Ids ids = rest(*make()), damaged = {0, 3, 6, 7, 13, 22};
  Ids left;
  for (const int64_t id : ids)
    if (std::count(damaged.begin(), damaged.end(), id) == 0) left.push_back(id);
  world_.all.damaged = world_.few.damaged = world_.more.damaged = damaged;
  const ReaderPtr reader = make();
  for (int pass = 0; pass < 2; ++pass) {
    const auto [given, failures] = rest_but_damaged(*reader);
    EXPECT_EQ(sorted(given), sorted(left));
    EXPECT_EQ(failures > 0, left.size() < ids.size());
    EXPECT_EQ(reader->pass(), pass + 1);
  }
}

// seek restores the position behind damaged samples. Readers that must read the samples before it may fail, and then
// stay at the beginning of the pass.
TEST_P(Composed, ResumesBehindDamagedSamples) {
  world_.all.damaged = world_.few.damaged = world_.more.damaged = {0, 3, 6, 7, 13, 22};
  for (int calls = 0; calls < 12; ++calls) {
    const ReaderPtr reader = make(), resumed = make();
    for (int call = 0; call < calls; ++call) try {
        some(*reader, std::max<int64_t>(reader->batch(), 2));
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), TN_BAD_DATA);
      }
    try {
      resumed->seek(reader->pass(), reader->position());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), TN_BAD_DATA);
      EXPECT_EQ(resumed->position(), 0);
      EXPECT_THAT(GetParam().name, ::testing::AnyOf(HasSubstr("shuffle"), HasSubstr("bucket"), HasSubstr("pipeline")));
      continue;
    }
    EXPECT_EQ(rest_but_damaged(*resumed).first, rest_but_damaged(*reader).first) << calls;
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

// ---- positions

// Wrappers that depend on the beginning of a pass refuse a reader within a pass.
TEST(Wrappers, ReadersThatWereReadInPart) {
  MemoryData data(9), other(9);
  const auto begun = [&] {
    ReaderPtr reader = open(data, false);
    some(*reader, 2);
    return reader;
  };
  const auto refused = [&](const std::function<void(ReaderPtr)>& wrap, const char* who) {
    const Error error = error_of([&] { wrap(begun()); });
    EXPECT_EQ(error.code(), TN_MISUSE);
    EXPECT_EQ(error.message(), std::string(who) +
                                   ": the reader has given 2 samples of its pass; seek to the beginning "
                                   "of a pass before it is wrapped");
  };
  refused([](ReaderPtr it) { first_n(std::move(it), 3, memory()); }, "first_n");
  refused([](ReaderPtr it) { shuffle(std::move(it), 3, 1, memory()); }, "shuffle");
  refused([](ReaderPtr it) { shard(std::move(it), 0, 2, memory()); }, "shard");
  refused([](ReaderPtr it) { split(std::move(it), {0.3, 1, false}, memory()); }, "split");
  refused([&](ReaderPtr it) { chain(two(open(other), std::move(it)), memory()); }, "chain");
  refused([&](ReaderPtr it) { interleave(two(open(other), std::move(it)), memory()); }, "interleave");
  refused([&](ReaderPtr it) { compose(two(open(other), std::move(it)), memory()); }, "compose");
  EXPECT_EQ(rest(*batch(begun(), 4, false, memory())), counted(7, 2));
  ReaderPtr later = begun();
  later->seek(3, 0);
  const ReaderPtr first = first_n(std::move(later), 4, memory());
  EXPECT_EQ(first->pass(), 3);
  EXPECT_EQ(rest(*first), counted(4));
}

// If the size is unknown, seek notices a position behind the end only while reading. The reader keeps its old position.
TEST(Wrappers, AFailedSeekChangesNothing) {
  const std::pair<const char*, std::function<ReaderPtr(MemoryData&, MemoryData&)>> wrappers[] = {
      {"shuffle", [](MemoryData& a, MemoryData&) { return shuffled(open(a, false), 3); }},
      {"batch", [](MemoryData& a, MemoryData&) { return batch(shuffled(open(a, false), 3), 2, false, memory()); }},
      {"buffered",
       [](MemoryData& a, MemoryData&) {
         return buffered(batch(shuffled(open(a, false), 3), 2, false, memory()), 2, memory(), 0);
       }},
      {"bucket", [](MemoryData& a, MemoryData&) { return buckets(shuffled(open(a, false), 3)); }},
      {"chain", [](MemoryData& a, MemoryData& b) { return chain(two(open(a, false), open(b, false)), memory()); }},
      {"interleave",
       [](MemoryData& a, MemoryData& b) { return interleave(two(open(a, false), open(b, false)), memory()); }},
  };
  for (const auto& [name, make] : wrappers) {
    MemoryData a(13, true), b(5, true);
    a.sized = b.sized = false;
    const Ids expected = rest(*make(a, b));
    const ReaderPtr reader = make(a, b);
    Ids ids = some(*reader, std::max<int64_t>(reader->batch(), 3));
    const int64_t position = reader->position();
    EXPECT_EQ(error_of([&] { reader->seek(0, 100); }).code(), TN_INVALID) << name;
    EXPECT_EQ(reader->pass(), 0) << name;
    EXPECT_EQ(reader->position(), position) << name;
    for (const int64_t id : rest(*reader)) ids.push_back(id);
    EXPECT_EQ(ids, expected) << name;
  }
}

// A reader that cannot seek continues in the next pass of first_n, so its position is not that of the wrapper.
TEST(Wrappers, FirstOfAStreamGoesOnAfterAFailure) {
  MemoryData data(0);
  data.ends = data.seeks = false;
  const ReaderPtr reader = first_n(open(data, false), 5, memory());
  EXPECT_EQ(rest(*reader), counted(5));
  EXPECT_EQ(some(*reader, 2), counted(2, 5));
  data.fail_at = data.calls.load();
  EXPECT_EQ(error_of([&] { some(*reader, 2); }).code(), TN_IO);
  EXPECT_EQ(reader->pass(), 1);
  EXPECT_EQ(reader->position(), 2);
  EXPECT_EQ(rest(*reader), counted(3, 7));
}

TEST(Wrappers, TheEndOfAShardIsAPlace) {
  MemoryData data(7);
  data.sized = false;
  for (int64_t number = 0; number < 3; ++number) {
    const ReaderPtr reader = shard(open(data, false), number, 3, memory());
    const Ids ids = rest(*reader);
    for (size_t i = 0; i <= ids.size(); ++i) {
      reader->seek(4, static_cast<int64_t>(i));
      EXPECT_EQ(rest(*reader), Ids(ids.begin() + static_cast<std::ptrdiff_t>(i), ids.end()));
    }
  }
}

TEST(Wrappers, PlacesFarAway) {
  MemoryData data(4);
  data.sized = false;
  const ReaderPtr reader = open(data, false);
  EXPECT_EQ(error_of([&] { reader->seek(INT64_MAX, 0); }).code(), TN_INVALID);
  EXPECT_EQ(error_of([&] { reader->seek(0, INT64_MAX); }).code(), TN_INVALID);
}

// Memory is allocated for the samples that exist, not for the number that is requested.
TEST(Wrappers, RoomForWhatThereIs) {
  MemoryData data(9), unknown(9);
  unknown.sized = false;
  const int64_t many = int64_t{1} << 45;
  EXPECT_EQ(rest(*batch(open(data), many, false, memory())), counted(9));
  EXPECT_EQ(rest(*batch(open(unknown, false), many, false, memory())), counted(9));
  EXPECT_EQ(sorted(rest(*shuffled(open(unknown, false), many))), counted(9));
  MemoryData lines(9, true);
  lines.sized = false;
  EXPECT_EQ(sorted(rest(*bucket(open(lines, false), {"words", many, 4, 0, 1}, memory()))), counted(9));
  MemoryData endless(0);
  endless.ends = false;
  int64_t asked = 0;
  endless.before_write = [&](const tn_reader_buffers& buffers) { asked = std::max(asked, buffers.capacity); };
  EXPECT_THAT(some(*shard(open(endless, false), 1, 100000, memory()), 8), ::testing::ElementsAre(1));
  EXPECT_LE(asked, 1024);
}

// ---- memory

// A failed allocation loses no samples and no memory.
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
}  // namespace tenon_tests
