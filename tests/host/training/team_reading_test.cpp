// Who reads which samples in a training of several processes. SPDX-License-Identifier: Apache-2.0
#include <array>
#include <atomic>
#include <stdexcept>

#include "tests/host/training/team_job.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

namespace {

using testing::AllOf;
using testing::HasSubstr;

// The samples, of which it counts those that are read; some may fail.
class CountedSamples : public Samples {
 public:
  explicit CountedSamples(std::atomic<int64_t>& reads, int64_t damaged = -1) : reads_(&reads), damaged_(damaged) {}
  void read(int64_t index, Sample& sample) const {
    if (index == damaged_) throw std::runtime_error("sample " + std::to_string(index) + " is damaged");
    ++*reads_;
    Samples::read(index, sample);
  }

 private:
  std::atomic<int64_t>* reads_;
  int64_t damaged_;
};

// The samples in their order, without an index.
auto stream(std::atomic<int64_t>& reads, int64_t samples = Samples::size()) {
  return [&reads, samples, next = int64_t{0}](Sample& sample) mutable {
    if (next == samples) return next = 0, false;
    ++reads;
    Samples::read(next++, sample);
    return true;
  };
}

using Counts = std::array<std::atomic<int64_t>, 7>;  // by process

// Of 7 shards with a sample each, two minibatches in each of two passes.
TEST(TeamReading, EachProcessReadsTheSamplesOfItsShards) {
  Counts reads, tested;
  Job job{sequences};
  job.change = [&](TrainOptions& options, const Host& host, int64_t rank) {
    const auto process = static_cast<size_t>(rank);
    reads[process] = tested[process] = 0;
    options.reader = host.reader(schema(), CountedSamples(reads[process])).shuffle(5).batch(7);
    options.test = TestOptions{host.reader(schema(), CountedSamples(tested[process])).batch(7), {}, {}, 1};
  };
  const Outcome one = alone(job);
  EXPECT_EQ(reads[0], 2 * Samples::size());
  for (const int32_t ranks : {2, 3, 4, 7}) {
    for (const Outcome& each : together(job, ranks, disordered(5))) EXPECT_TRUE(each.model == one.model);
    for (int32_t rank = 0; rank < ranks; ++rank) {
      const auto shards = static_cast<int64_t>(7 / ranks + (rank < 7 % ranks ? 1 : 0));
      EXPECT_EQ(reads[static_cast<size_t>(rank)], 2 * 2 * shards) << rank << " of " << ranks;
      EXPECT_EQ(tested[static_cast<size_t>(rank)], 2 * 2 * shards) << rank << " of " << ranks;
    }
  }
}

TEST(TeamReading, Process0AlsoReadsWhatTheDigestOfACheckpointNeeds) {
  Counts reads;
  Job job{dense, 2};
  const TemporaryFolder folder;
  job.change = [&](TrainOptions& options, const Host& host, int64_t rank) {
    reads[static_cast<size_t>(rank)] = 0;
    options.reader = host.reader(schema(), CountedSamples(reads[static_cast<size_t>(rank)])).shuffle(5).batch(4);
    options.checkpoint.emplace();
    options.checkpoint->folder = folder.file("checkpoints");
  };
  for (const Outcome& each : together(job, 2, {})) EXPECT_EQ(each.error, "");
  EXPECT_EQ(reads[0], Samples::size() + 2 * 2);
  EXPECT_EQ(reads[1], Samples::size());
}

TEST(TeamReading, ReadingAheadAndPassesOfMinibatchesHaveTheBitsOfOneProcess) {
  Job job{sequences};
  job.passes = 4;
  job.change = [](TrainOptions& options, const Host& host, int64_t) {
    options.reader = host.reader(schema(), Samples()).shuffle(5).batch(4).buffered(3);
    options.pass_batches = 3;
  };
  expect_bits_of_one(job);
}

TEST(TeamReading, StreamsAreReadByAllAndHaveTheBitsOfOneProcess) {
  Counts reads;
  Job job{sequences};
  job.change = [&](TrainOptions& options, const Host& host, int64_t rank) {
    reads[static_cast<size_t>(rank)] = 0;
    options.reader = host.reader(schema(), stream(reads[static_cast<size_t>(rank)])).batch(4);
  };
  expect_bits_of_one(job);
  for (const std::atomic<int64_t>& each : reads) EXPECT_EQ(each, 2 * Samples::size());
}

// Sample 9 is in the second or third minibatch of the order, and in one of the processes.
TEST(TeamReading, ADamagedSampleEndsTheTrainingOfAllAtItsMinibatch) {
  Counts reads;
  Job job{dense};
  job.change = [&](TrainOptions& options, const Host& host, int64_t rank) {
    options.reader = host.reader(schema(), CountedSamples(reads[static_cast<size_t>(rank)], 9)).shuffle(5).batch(4);
  };
  const Outcome one = alone(job);
  EXPECT_EQ(one.error, "sample 9 is damaged");
  for (const int32_t ranks : {2, 3, 4}) {
    int own = 0;
    for (const Outcome& each : together(job, ranks, disordered(6))) {
      EXPECT_TRUE(each.model == one.model) << ranks;
      if (each.error == one.error)
        ++own;  // the exception of the application
      else
        EXPECT_THAT(each.error, AllOf(testing::StartsWith("process "), HasSubstr("sample 9 is damaged")));
    }
    EXPECT_EQ(own, 1) << ranks;
  }
}

TEST(TeamReading, TheCheckpointBeforeADamagedSampleIsResumed) {
  Counts reads;
  Job job{dense};
  const TemporaryFolder folder;
  const auto train = [&](int32_t ranks, uint32_t start, int64_t damaged) {
    job.change = [&, start, damaged](TrainOptions& options, const Host& host, int64_t rank) {
      const CountedSamples samples(reads[static_cast<size_t>(rank)], damaged);
      options.reader = host.reader(schema(), samples).shuffle(5).batch(4);
      options.checkpoint.emplace();
      options.checkpoint->folder = folder.file("checkpoints");
      options.checkpoint->start = start;
    };
    return together(job, ranks, disordered(7));
  };
  for (const Outcome& each : train(3, TN_START_FRESH, 9)) EXPECT_THAT(each.error, HasSubstr("sample 9 is damaged"));
  const Outcome one = alone({dense});
  for (const Outcome& each : train(2, TN_START_RESUME, -1)) EXPECT_TRUE(each.model == one.model) << each.error;
}

TEST(TeamReading, WordsThatTheModelDoesNotKnowEndTheTrainingOfAll) {
  class Unknown : public Samples {
   public:
    static void read(int64_t index, Sample& sample) {
      Samples::read(index, sample);
      if (index == 13) sample.set("words", std::vector<int32_t>{1, 25});
    }
  };
  Job job{sequences, 4};
  job.change = [](TrainOptions& options, const Host& host, int64_t) {
    Schema wide = schema();
    wide[1].index_limit = 100;
    options.reader = host.reader(wide, Unknown()).batch(7);
  };
  for (const Outcome& each : together(job, 2, {}))
    EXPECT_THAT(each.error,
                HasSubstr("process 1: data layer \"words\": row 11 from sample 4 on of the minibatch is 25"));
}

TEST(TeamReading, StreamsThatEndElsewhereAreNoticed) {
  Counts reads;
  Job job{dense};
  job.change = [&](TrainOptions& options, const Host& host, int64_t rank) {
    options.reader = host.reader(schema(), stream(reads[static_cast<size_t>(rank)], 14 - rank)).batch(4);
  };
  for (const Outcome& each : together(job, 3, {}))
    EXPECT_THAT(each.error, HasSubstr("process 1 has read a minibatch of 1 samples, process 0 one of 2"));
}

}  // namespace

}  // namespace tenon_tests
