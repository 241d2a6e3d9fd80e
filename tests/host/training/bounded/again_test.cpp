// Trainings of the bounded mode one after the other, and processes that are lost between their minibatches.
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>

#include "tests/host/training/bounded/bounded_world.h"

namespace tenon_tests {

namespace {

using testing::Each;
using testing::HasSubstr;

std::vector<std::string> errors_of(const std::vector<BoundedOutcome>& outcomes) {
  std::vector<std::string> errors;
  for (const BoundedOutcome& outcome : outcomes) errors.push_back(outcome.error);
  return errors;
}

void expect_steps(const BoundedOutcome& outcome, int64_t passes, const std::string& what) {
  BoundedJob job;
  job.passes = passes;
  const BoundedOutcome one = train_steps(make_host(1), {}, job);
  EXPECT_EQ(outcome.dense, one.dense) << what;
  if (outcome.torn == 0) {
    EXPECT_EQ(outcome.rows, one.rows) << what;
  }
}

// Calls a function at the end of each pass of process 0, which it counts from 1 over all trainings.
using AtPass = std::function<void(int64_t pass)>;
std::function<void(TrainOptions&, const Host&, int64_t)> at_passes(const AtPass& work) {
  const auto count = std::make_shared<int64_t>(0);
  return [=](TrainOptions& options, const Host&, int64_t rank) {
    if (rank > 0) return;
    options.handler = [=, before = options.handler](Event& event) {
      before(event);
      if (event.kind() == TN_END_PASS) work(++*count);
    };
  };
}

TEST(BoundedMode, TrainingsOfOneTeamFollowOneAnother) {
  for (const bool is_exact_last : {false, true}) {
    BoundedJob job{3, 2, 3};
    job.trainings = 3;
    job.is_exact_last = is_exact_last;
    const std::vector<BoundedOutcome> all = train_bounded_steps(job);
    EXPECT_THAT(errors_of(all), Each(""));
    expect_steps(all.front(), 6, is_exact_last ? "exact last" : "bounded");
  }
}

// Adam has states, which a training in the exact mode goes on with in each process.
TEST(BoundedMode, UpdatersHaveTheirStatesInAllTrainersAfterwards) {
  BoundedJob job{3, 1, 3};
  job.trainings = 2;
  job.is_exact_last = true;
  std::vector<std::optional<Updater>> updaters(4);
  job.change = [&](TrainOptions& options, const Host& host, int64_t rank) {
    std::optional<Updater>& updater = updaters[static_cast<size_t>(rank)];
    options.verify_every = updater ? 1 : 0;  // of the training in the exact mode
    if (!updater) updater = host.updater("adam", {{"learning_rate", 0.25}});
    options.updater = *updater;
  };
  EXPECT_THAT(errors_of(train_bounded_steps(job)), Each(""));
}

// A trainer that waits is lost between two passes, in the last pass of a training, or before the next one.
TEST(BoundedMode, ATrainerThatWaitsMayBeLost) {
  for (const bool is_exact_last : {false, true})
    for (const int64_t at : {1, 2, 3}) {
      BoundedJob job{3, 2, 3};
      job.trainings = 2;
      job.is_exact_last = is_exact_last;
      job.change = at_passes([&](int64_t pass) {
        if (pass == at) job.world->lose(1);
      });
      if (is_exact_last && at == 3) continue;  // all are needed then
      const std::vector<BoundedOutcome> all = train_bounded_steps(job);
      EXPECT_EQ(all[0].error, "") << at;
      EXPECT_EQ(all[2].error, "") << at;
      EXPECT_EQ(all[4].error, "") << at;
      expect_steps(all.front(), 4, "lost at the end of pass " + std::to_string(at));
    }
}

TEST(BoundedMode, ATrainerMayReturnWhileNoMinibatchIsComputed) {
  for (const int64_t at : {1, 2, 4}) {
    BoundedJob job{3, 2, 3, 6};
    job.returns = true;
    job.script.seed = static_cast<uint64_t>(at);
    job.script.most_delay_us = 200;
    job.change = at_passes([&](int64_t pass) {
      if (pass != at) return;
      job.world->lose(2);
      std::this_thread::sleep_for(std::chrono::milliseconds(150));  // in which it joins again
    });
    const std::vector<BoundedOutcome> all = train_bounded_steps(job);
    EXPECT_THAT(errors_of(all), Each("")) << at;
    expect_steps(all.front(), 6, "lost at the end of pass " + std::to_string(at));
  }
}

class Burning {
 public:
  [[nodiscard]] static int64_t size() { return Steps::size(); }
  static void read(int64_t index, Sample& sample) {
    if (index % 9 == 5) throw std::runtime_error("the disk burns");
    Steps::read(index, sample);
  }
};

TEST(BoundedMode, AFailedTrainingLeavesTheTeamAsItIs) {
  for (const int64_t failing : {0, 2}) {
    BoundedJob job{3, 2, 3};
    job.trainings = 2;
    const auto begun = std::make_shared<std::atomic<int>>(0);
    job.change = [=](TrainOptions& options, const Host& host, int64_t rank) {
      if (rank != failing || (*begun)++ > 0) return;
      options.reader = host.reader(Steps::schema(), Burning()).shuffle(5).batch(4);
    };
    const std::vector<BoundedOutcome> all = train_bounded_steps(job);
    for (const BoundedOutcome& each : all) EXPECT_THAT(each.error, HasSubstr("the disk burns")) << failing;
    EXPECT_GE(all.front().samples, 128) << "of the second training, and of what the first one did, " << failing;
    EXPECT_FALSE(all.front().dense.empty());
  }
}

TEST(BoundedMode, AMinibatchThatHasBegunIsComputedWhenAHandlerStops) {
  for (const int32_t trainers : {1, 3}) {
    BoundedJob job{trainers, 1, 2, 100};
    const auto begun = std::make_shared<int64_t>(0);
    job.change = [=](TrainOptions& options, const Host&, int64_t rank) {
      if (rank > 0) return;
      options.handler = [=](const Event& event) {
        if (event.kind() == TN_BEGIN_ITERATION && ++*begun == 3) event.stop();
      };
    };
    EXPECT_THAT(errors_of(train_bounded_steps(job)), Each("")) << trainers;
    EXPECT_EQ(*begun, 3) << trainers;
  }
}

TEST(BoundedMode, CheckpointsByTheClockDoNotStopATraining) {
  for (const int32_t trainers : {1, 3}) {
    const TemporaryFolder folder;
    BoundedJob job{trainers, 1, 2, 12};
    int written = 0;
    job.change = [&](TrainOptions& options, const Host&, int64_t rank) {
      if (rank == 0) options.handler = [&](const Event& event) { written += event.kind() == TN_CHECKPOINT ? 1 : 0; };
      options.checkpoint = CheckpointOptions{};
      options.checkpoint->folder = folder.file("checkpoints");
      options.checkpoint->every_seconds = 0.002;
    };
    const std::vector<BoundedOutcome> all = train_bounded_steps(job);
    EXPECT_THAT(errors_of(all), Each("")) << trainers;
    EXPECT_GT(written, 2) << trainers;
    expect_steps(all.front(), 12, "checkpoints");
  }
}

TEST(BoundedMode, AServerThatIsLostAfterATrainerIsNamed) {
  BoundedJob job{3, 2, 3, 100};
  job.change = at_passes([&](int64_t pass) {
    if (pass == 1) job.world->lose(1);
    if (pass == 3) job.world->lose(4);
  });
  const std::vector<BoundedOutcome> all = train_bounded_steps(job);
  EXPECT_THAT(all[0].error, HasSubstr("process 4 is lost"));
  EXPECT_THAT(all[2].error, HasSubstr("process 4 is lost"));
}

TEST(BoundedMode, HandlersWriteNoParameters) {
  BoundedJob job{2, 1, 2};
  job.change = [](TrainOptions& options, const Host&, int64_t rank) {
    if (rank > 0) return;
    const Parameters parameters = options.parameters;
    options.handler = [=](const Event& event) {
      const std::vector<float> bias(2, 1);
      if (event.kind() == TN_END_ITERATION) parameters.set("dense.bias", {TN_F32, {2}, bias.data()});
    };
  };
  for (const std::string& error : errors_of(train_bounded_steps(job)))
    EXPECT_THAT(error, HasSubstr("a handler has written parameters, which servers have in the bounded mode"));
}

}  // namespace

}  // namespace tenon_tests
