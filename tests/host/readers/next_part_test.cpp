// Parts of minibatches: joined, they are what one process reads. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <deque>
#include <functional>

#include "core/error.h"
#include "host/threads/thread_pool.h"
#include "tests/host/readers/compositions.h"
#include "tests/support/faults.h"

namespace tenon_tests {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

MinibatchPart part_of_process(size_t shards, size_t processes, size_t process) {
  const ShardRange own = shard_range(static_cast<int64_t>(shards), processes, process);
  return {shards, static_cast<size_t>(own.first), static_cast<size_t>(own.count), false};
}

// Returns the ids of a part of the next minibatch.
Ids part_ids(Reader& reader, const MinibatchPart& part, PartRead* read) {
  SampleBlock block(reader.slots(), memory());
  *read = reader.next_part(block, reader.batch(), part);
  return ids_of(block);
}

// Reads the next minibatch with the reader of each process, expects that all agree on it, and returns the parts joined.
template <typename Processes>
Ids joined_parts(const Processes& processes, size_t shards) {
  Ids ids;
  int64_t samples = -1;
  for (size_t i = 0; i < processes.size(); ++i) {
    PartRead read;
    const Ids own = part_ids(*processes[i], part_of_process(shards, processes.size(), i), &read);
    if (i > 0) {
      EXPECT_EQ(read.samples, samples);
    }
    samples = read.samples;
    if (!own.empty()) {
      EXPECT_EQ(read.first, static_cast<int64_t>(ids.size()));
    }
    ids.insert(ids.end(), own.begin(), own.end());
  }
  EXPECT_EQ(static_cast<int64_t>(ids.size()), samples);
  return ids;
}

ReaderPtr in_minibatches(ReaderPtr reader, int64_t samples = 5, bool drop_last = false) {
  return reader->batch() > 0 ? std::move(reader) : batch(std::move(reader), samples, drop_last, memory());
}

// More compositions, and all of those for which next_part reads its part alone.
const Composition kMore[] = {
    {"first_n_of_shuffle", [](World& w) { return first_n(shuffled(open(w.all)), 13, memory()); }},
    {"choose_of_shuffle", [](World& w) { return some_slots(shuffled(open(w.all))); }},
    {"choose_of_minibatches", [](World& w) { return some_slots(batch(shuffled(open(w.all)), 6, false, memory())); }},
    {"choose_of_stream", [](World& w) { return some_slots(batch(open(w.all, false), 6, false, memory())); }},
    {"map_of_shuffle", [](World& w) { return same(shuffled(open(w.all))); }},
    {"map_of_minibatches", [](World& w) { return same(batch(shuffled(open(w.all)), 6, false, memory())); }},
    {"chain_indexed", [](World& w) { return chain(two(open(w.few), open(w.more)), memory()); }},
    {"chain_of_shuffles", [](World& w) { return chain(two(shuffled(open(w.few)), open(w.more)), memory()); }},
    {"compose_of_shuffles",
     [](World& w) { return compose(two(shuffled(open(w.all)), renamed(shuffled(open(w.all)))), memory()); }},
    {"shard_of_shuffle", [](World& w) { return shard(shuffled(open(w.all)), 1, 3, memory()); }},
    {"buffer_of_shuffle", [](World& w) { return shuffled(shuffled(open(w.all)), 3); }},
    {"drop_last", [](World& w) { return batch(shuffled(open(w.all)), 4, true, memory()); }},
    {"large_minibatch", [](World& w) { return batch(shuffled(open(w.all)), 100, false, memory()); }},
    {"ahead", [](World& w) { return buffered(batch(shuffled(open(w.all)), 4, false, memory()), 3, memory(), 0); }},
    {"ahead_of_stream",
     [](World& w) { return buffered(batch(open(w.all, false), 4, false, memory()), 3, memory(), 0); }},
    {"shuffled_shard",
     [](World& w) {
       ReaderPtr joined = chain(two(first_n(open(w.few), 3, memory()), open(w.more)), memory());
       ReaderPtr ready = batch(same(shuffled(shard(std::move(joined), 0, 2, memory()))), 3, false, memory());
       return buffered(some_slots(buffered(std::move(ready), 1, memory(), 0)), 2, memory(), 0);
     }},
};

std::vector<Composition> all_compositions() {
  std::vector<Composition> all(std::begin(kCompositions), std::end(kCompositions));
  all.insert(all.end(), std::begin(kMore), std::end(kMore));
  return all;
}

// A composition, and readers of it for each process with data of its own.
class Parts : public ::testing::TestWithParam<Composition> {
 protected:
  static constexpr size_t kMostProcesses = 4;

  ReaderPtr make() { return in_minibatches(GetParam().make(one_)); }
  std::vector<ReaderPtr> make(size_t processes) {
    std::vector<ReaderPtr> readers;
    for (size_t i = 0; i < processes; ++i) readers.push_back(in_minibatches(GetParam().make(worlds_[i])));
    return readers;
  }
  void damage(const Ids& samples) {
    const auto set = [&](World& world) { world.all.damaged = world.few.damaged = world.more.damaged = samples; };
    set(one_);
    for (World& world : worlds_) set(world);
  }

  World one_;
  std::array<World, kMostProcesses> worlds_;
};
INSTANTIATE_TEST_SUITE_P(All, Parts, ::testing::ValuesIn(all_compositions()),
                         [](const auto& it) { return std::string(it.param.name); });

TEST_P(Parts, JoinedEqualTheWholeInEveryPass) {
  for (size_t processes = 1; processes <= kMostProcesses; ++processes)
    for (const size_t shards : {processes, size_t{5}, size_t{7}}) {
      const ReaderPtr one = make();
      const std::vector<ReaderPtr> all = make(processes);
      for (int call = 0; one->pass() < 3; ++call) {
        EXPECT_EQ(joined_parts(all, shards), minibatch(*one)) << "call " << call << ", " << processes << " processes";
        for (const ReaderPtr& each : all) {
          EXPECT_EQ(each->pass(), one->pass()) << call;
          EXPECT_EQ(each->position(), one->position()) << call;
        }
      }
    }
}

TEST_P(Parts, JoinedEqualTheWholeAfterASeek) {
  const ReaderPtr one = make();
  const std::vector<ReaderPtr> all = make(3);
  for (int64_t position = one->size(); position >= 0; position -= 2) {
    one->seek(1, position);
    for (const ReaderPtr& each : all) each->seek(1, position);
    for (int call = 0; call < 3; ++call) EXPECT_EQ(joined_parts(all, 7), minibatch(*one)) << position;
  }
}

// Whole minibatches before and behind parts, as of a digest of the data.
TEST_P(Parts, MixWithWholeMinibatches) {
  const ReaderPtr one = make();
  const std::vector<ReaderPtr> all = make(2);
  for (int call = 0; call < 20; ++call) {
    const Ids expected = minibatch(*one);
    if (call % 3 < 2)
      EXPECT_EQ(joined_parts(all, 3), expected) << call;
    else
      for (const ReaderPtr& each : all) EXPECT_EQ(minibatch(*each), expected) << call;
  }
}

TEST_P(Parts, TheFirstMinibatchOfAPassIsWholeOnRequest) {
  const ReaderPtr one = make(), other = make();
  MinibatchPart part = part_of_process(2, 2, 1);
  part.whole_first = true;
  PartRead read;
  while (one->pass() < 2) {
    const bool first = one->position() == 0;
    const Ids expected = minibatch(*one), own = part_ids(*other, part, &read);
    ASSERT_EQ(read.samples, static_cast<int64_t>(expected.size()));
    const auto begin = first ? expected.begin() : expected.begin() + (read.samples + 1) / 2;
    EXPECT_EQ(own, Ids(begin, expected.end()));
    EXPECT_EQ(read.first, begin - expected.begin());
  }
}

// Returns the code of the failure of next_part; TN_OK: it has not failed.
tn_status failure_of(Reader& reader, const MinibatchPart& part) {
  SampleBlock block(reader.slots(), memory());
  try {
    reader.next_part(block, reader.batch(), part);
    return TN_OK;
  } catch (const Error& error) {
    EXPECT_EQ(block.samples(), 0);
    return error.code();
  }
}

// Where parts are read alone, only the process that has the damaged sample fails, and stays; behind the sample all
// agree again. Where all samples are read, all fail like one process.
TEST_P(Parts, DamagedSamplesFailTheirPartAndNothingElse) {
  damage({0, 3, 6, 7, 13, 22});
  const ReaderPtr one = make();
  const std::vector<ReaderPtr> all = make(3);
  const bool alone = one->whole_reason().empty();
  for (int64_t begin = 0; begin < one->size(); begin += std::max<int64_t>(one->batch(), 1)) {
    if (alone) {
      one->seek(0, begin);
      for (const ReaderPtr& each : all) each->seek(0, begin);
    }
    bool fails = false;
    const int64_t before = one->position();
    SampleBlock block(one->slots(), memory());
    try {
      one->next(block, one->batch());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), TN_BAD_DATA);
      fails = true;
    }
    int failures = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      const tn_status status = failure_of(*all[i], part_of_process(7, 3, i));
      failures += status == TN_OK ? 0 : 1;
      EXPECT_THAT(status, ::testing::AnyOf(TN_OK, TN_BAD_DATA));
      if (alone && status != TN_OK) {
        EXPECT_EQ(all[i]->position(), before);
        EXPECT_EQ(failure_of(*all[i], part_of_process(7, 3, i)), TN_BAD_DATA) << "again";
      }
    }
    EXPECT_EQ(failures > 0, fails) << begin;
    if (!alone) {
      EXPECT_THAT(failures, ::testing::AnyOf(0, 3));
    }
  }
}

TEST_P(Parts, AFailureLosesNothing) {
  const ReaderPtr one = make();
  if (!one->whole_reason().empty()) return;
  Ids expected;
  const MinibatchPart part = part_of_process(5, 2, 1);
  PartRead read;
  for (Ids own = part_ids(*one, part, &read); read.samples > 0; own = part_ids(*one, part, &read))
    expected.insert(expected.end(), own.begin(), own.end());
  World& world = worlds_[0];
  for (int64_t call = 0; call < 6; ++call) {
    world.all.calls = world.few.calls = world.more.calls = 0;
    world.all.fail_at = world.few.fail_at = world.more.fail_at = call;
    const std::vector<ReaderPtr> readers = make(1);
    Ids ids;
    for (bool more = true; more;) try {
        const Ids own = part_ids(*readers[0], part, &read);
        ids.insert(ids.end(), own.begin(), own.end());
        more = read.samples > 0;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), TN_IO) << error.message();
      }
    EXPECT_EQ(ids, expected) << call;
  }
}

// A read of a whole minibatch that failed half way has left samples in the wrappers.
TEST_P(Parts, SamplesHeldAfterAFailureAreReadAgain) {
  if (!make()->whole_reason().empty()) return;
  const MinibatchPart part = part_of_process(5, 2, 1);
  PartRead read;
  const Ids expected = part_ids(*make(), part, &read);
  World& world = worlds_[0];
  for (int64_t call = 0; call < 4; ++call) {
    world.all.most = world.few.most = world.more.most = 2;
    world.all.calls = world.few.calls = world.more.calls = 0;
    world.all.fail_at = world.few.fail_at = world.more.fail_at = call;
    const std::vector<ReaderPtr> readers = make(1);
    try {
      minibatch(*readers[0]);
      readers[0]->seek(0, 0);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), TN_IO) << error.message();
    }
    world.all.fail_at = world.few.fail_at = world.more.fail_at = -1;
    EXPECT_EQ(part_ids(*readers[0], part, &read), expected) << call;
  }
}

TEST_P(Parts, WithoutSamplesEveryPassEnds) {
  one_.all.samples = one_.few.samples = one_.more.samples = 0;
  const ReaderPtr one = make();
  PartRead read;
  for (int pass = 0; pass < 3; ++pass) {
    EXPECT_EQ(one->pass(), pass);
    EXPECT_THAT(part_ids(*one, part_of_process(3, 3, 1), &read), ElementsAre());
    EXPECT_EQ(read.samples, 0);
  }
}

// ---- who reads what

TEST(WholeReason, NamesTheReaderThatReadsAll) {
  World world;
  const auto reason = [&](const char* name) {
    for (const Composition& each : all_compositions())
      if (std::strcmp(each.name, name) == 0) return in_minibatches(each.make(world))->whole_reason();
    return std::string("there is no such composition");
  };
  for (const char* name : {"plugin", "shuffle_indexed", "shard_indexed", "split_others", "choose", "map", "batch",
                           "buffered", "first_n_of_shuffle", "choose_of_minibatches", "map_of_shuffle", "chain_indexed",
                           "compose_of_shuffles", "drop_last", "ahead", "shuffled_shard"})
    EXPECT_EQ(reason(name), "") << name;
  for (const char* name : {"first_n", "shuffle_buffer", "shard_in_order", "chain", "compose", "ahead_of_stream"})
    EXPECT_EQ(reason(name), "reader \"memory\" cannot read samples by index") << name;
  EXPECT_EQ(reason("buffer_of_shuffle"), "shuffle draws from a buffer of samples");
  EXPECT_EQ(reason("shard_of_shuffle"), "shard reads the samples of all shards in their order");
  EXPECT_EQ(reason("chain_of_shuffles"), "chain reads one reader after the other");
  EXPECT_EQ(reason("interleave"), "interleave takes the samples of its readers in turn");
  EXPECT_EQ(reason("bucket_rows"), "bucket sorts the samples of a window by length");
  EXPECT_EQ(reason("map_of_minibatches"), "map gets whole minibatches");
  world.all.sized = false;
  EXPECT_EQ(reason("plugin"), "reader \"memory\" does not know how many samples it has");
}

// Counts the samples that it reads. A sample is [index, index + 0.5].
Source counting(int64_t samples, std::vector<int64_t>& counts) {
  Source source;
  Slot slot;
  slot.name = "x", slot.dtype = TN_F32, slot.shape = {2}, slot.bytes = 8;
  source.slots = {slot};
  source.size = samples;
  counts.assign(static_cast<size_t>(samples), 0);
  source.read_at = [&counts, kept = std::deque<std::vector<float>>()](const int64_t* indices, int64_t count,
                                                                      std::vector<ArrayView>& values) mutable {
    std::vector<float>& to = kept.emplace_back();
    for (int64_t i = 0; i < count; ++i) {
      ++counts[static_cast<size_t>(indices[i])];
      to.push_back(static_cast<float>(indices[i]));
      to.push_back(static_cast<float>(indices[i]) + 0.5F);
    }
    values[0].data = to.data();
  };
  return source;
}

TEST(WholeReason, OfApplications) {
  std::vector<int64_t> counts;
  Source source = counting(4, counts);
  EXPECT_EQ(open_source(source)->whole_reason(), "");
  source.next = [](int64_t, std::vector<ArrayView>&) { return int64_t{0}; };
  EXPECT_EQ(open_source(source)->whole_reason(), "the application's reader cannot seek");
  EXPECT_EQ(shuffle(open_source(source), 0, 1, memory())->whole_reason(), "");
  source.seek = [](int64_t, int64_t) {};
  EXPECT_EQ(open_source(source)->whole_reason(), "");
  source.read_at = nullptr;
  EXPECT_EQ(open_source(source)->whole_reason(), "the application's reader cannot read samples by index");
}

TEST(OwnSamples, EachProcessReadsItsOwnSamplesOnce) {
  constexpr int64_t kSamples = 23;
  for (size_t processes = 1; processes <= 4; ++processes) {
    std::vector<std::vector<int64_t>> counts(processes);
    std::vector<ReaderPtr> readers;
    for (std::vector<int64_t>& each : counts)
      readers.push_back(batch(shuffle(open_source(counting(kSamples, each)), 0, 3, memory()), 6, false, memory()));
    for (size_t i = 0; i < processes; ++i) {
      const MinibatchPart part = part_of_process(4, processes, i);
      SampleBlock block(readers[i]->slots(), memory());
      while (readers[i]->next_part(block, 6, part).samples > 0) continue;
      EXPECT_EQ(block.samples(), 3 * part.range(6, 1).count + part.range(5, 1).count);
      EXPECT_EQ(block.samples(), std::count(counts[i].begin(), counts[i].end(), 1));
    }
    for (size_t sample = 0; sample < kSamples; ++sample) {
      int64_t reads = 0;
      for (const std::vector<int64_t>& each : counts) reads += each[sample];
      EXPECT_EQ(reads, 1) << sample;
    }
  }
}

TEST(OwnSamples, APluginBeginsEachPassOnce) {
  MemoryData data(10);
  const ReaderPtr reader = batch(open(data), 3, false, memory());
  PartRead read;
  while (reader->pass() < 2) part_ids(*reader, part_of_process(2, 2, 1), &read);
  EXPECT_THAT(data.passes, ElementsAre(0, 1, 2));
}

// ---- random changes

// A reader of four images of 3 x 3 bytes.
std::unique_ptr<Reader> images(std::vector<uint8_t>& pixels) {
  Source source;
  Slot slot;
  slot.name = "image", slot.dtype = TN_U8, slot.shape = {3, 3}, slot.bytes = 9;
  source.slots = {slot};
  source.size = 11;
  source.read_at = [&pixels](const int64_t* indices, int64_t count, std::vector<ArrayView>& values) {
    pixels.clear();
    for (int64_t i = 0; i < count; ++i)
      for (int64_t pixel = 0; pixel < 9; ++pixel) pixels.push_back(static_cast<uint8_t>(indices[i] * 20 + pixel));
    values[0].data = pixels.data();
  };
  return open_source(std::move(source));
}

std::string bytes_of(const SampleBlock& block) {
  const ArrayView view = block.columns()[0].view();
  return {static_cast<const char*>(view.data), static_cast<size_t>(block.samples()) * 9};
}

TEST(OwnSamples, RandomChangesAreThoseOfTheNumberOfTheSample) {
  AugmentOptions options;
  options.slot = "image", options.pad = 1, options.flip = true, options.brightness = 0.4, options.seed = 5;
  for (const bool behind : {false, true}) {  // the shuffle
    std::vector<uint8_t> pixels;
    const auto make = [&] {
      const auto changed = [&](ReaderPtr of) { return augment(std::move(of), options, calling_thread(), memory()); };
      ReaderPtr samples =
          behind ? changed(shuffle(images(pixels), 0, 2, memory())) : shuffle(changed(images(pixels)), 0, 2, memory());
      return batch(std::move(samples), 4, false, memory());
    };
    const ReaderPtr one = make(), first = make(), second = make();
    while (one->pass() < 3) {
      SampleBlock expected(one->slots(), memory()), own(one->slots(), memory());
      const int64_t samples = one->next(expected, 4);
      EXPECT_EQ(first->next_part(own, 4, part_of_process(3, 2, 0)).samples, samples);
      EXPECT_EQ(second->next_part(own, 4, part_of_process(3, 2, 1)).samples, samples);
      EXPECT_EQ(bytes_of(own), bytes_of(expected));
    }
  }
}

// ---- applications' functions

// The function of a map may fail; the samples of its part are read again then.
TEST(OwnSamples, AMapThatFailsLosesNothing) {
  MemoryData data(9);
  bool fails = true;
  ReaderPtr samples = open(data);
  const std::vector<Slot> slots = samples->slots();
  const ReaderPtr reader = batch(map(
                                     std::move(samples), slots,
                                     [&](const std::vector<ArrayView>& from, int64_t, std::vector<ArrayView>& to) {
                                       if (fails) fail(TN_INVALID, "not now");
                                       to = from;
                                     },
                                     memory()),
                                 4, false, memory());
  PartRead read;
  const MinibatchPart part = part_of_process(2, 2, 1);
  EXPECT_THAT(error_of([&] { part_ids(*reader, part, &read); }).message(), HasSubstr("not now"));
  EXPECT_EQ(reader->position(), 0);
  fails = false;
  EXPECT_THAT(minibatch(*reader), ElementsAre(0, 1, 2, 3));
  reader->seek(0, 0);
  EXPECT_THAT(part_ids(*reader, part, &read), ElementsAre(2, 3));
  EXPECT_EQ(read.first, 2);
  fails = true;
  EXPECT_THAT(error_of([&] { part_ids(*reader, part, &read); }).message(), HasSubstr("not now"));
  fails = false;
  EXPECT_THAT(part_ids(*reader, part, &read), ElementsAre(6, 7));
}

}  // namespace

}  // namespace tenon_tests
