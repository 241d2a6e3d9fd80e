// Checkpoints, handlers, errors and refusals of the bounded mode. SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cmath>
#include <thread>

#include "tests/host/training/bounded/bounded_world.h"

namespace tenon_tests {

namespace {

using testing::Each;
using testing::HasSubstr;

CheckpointOptions checkpoints_in(const TemporaryFolder& folder, uint32_t start) {
  CheckpointOptions options;
  options.folder = folder.file("checkpoints");
  options.every_batches = 5;
  options.start = start;
  return options;
}

std::vector<std::string> errors_of(const std::vector<BoundedOutcome>& outcomes) {
  std::vector<std::string> errors;
  for (const BoundedOutcome& outcome : outcomes) errors.push_back(outcome.error);
  return errors;
}

// ---- checkpoints

// Whatever was done when it ended are the first minibatches of a pass: no other sum has these values in the end.
TEST(BoundedMode, AnyNumberOfProcessesResumesWhatAHandlerHasStopped) {
  const BoundedOutcome one = train_steps(make_host(1), {}, {1, 1, 3, 3});
  for (const int64_t last : {2, 5, 9}) {
    const TemporaryFolder folder;
    BoundedJob job{3, 2, 3, 3};
    int64_t ended = 0;
    job.change = [&](TrainOptions& options, const Host&, int64_t rank) {
      options.checkpoint = checkpoints_in(folder, TN_START_FRESH);
      if (rank > 0) return;
      options.handler = [&](const Event& event) {
        if (event.kind() == TN_END_ITERATION && ++ended == last) event.stop();
      };
    };
    EXPECT_THAT(errors_of(train_bounded_steps(job)), Each("")) << last;
    EXPECT_EQ(ended, last);
    BoundedJob rest{2, 3, 2, 3};
    rest.change = [&](TrainOptions& options, const Host&, int64_t) {
      options.checkpoint = checkpoints_in(folder, TN_START_RESUME_INEXACTLY);
    };
    const std::vector<BoundedOutcome> all = train_bounded_steps(rest);
    EXPECT_THAT(errors_of(all), Each("")) << last;
    EXPECT_EQ(all.front().dense, one.dense) << last;
    EXPECT_EQ(all.front().rows, one.rows) << last;
  }
}

// ---- handlers

TEST(BoundedMode, TheLearningRateOfAHandlerIsThatOfTheServers) {
  const BoundedOutcome one = train_steps(make_host(1), {}, {});
  BoundedJob job{2, 2, 2};
  job.change = [](TrainOptions& options, const Host&, int64_t) {
    options.handler = [](const Event& event) {
      if (event.kind() == TN_BEGIN_TRAINING) event.set_learning_rate(0.125);
    };
  };
  const std::vector<BoundedOutcome> all = train_bounded_steps(job);
  EXPECT_THAT(errors_of(all), Each(""));
  for (size_t i = 0; i < one.dense.size(); ++i) EXPECT_EQ(2 * all.front().dense[i], one.dense[i]);
  for (size_t i = 0; i < one.rows.size(); ++i) EXPECT_EQ(2 * all.front().rows[i], one.rows[i]);
}

TEST(BoundedMode, ACancelInProcess0EndsAll) {
  BoundedJob job{3, 1, 3, 1000000};
  const tenon::Cancel cancel = tenon::Cancel::make();
  job.change = [&](TrainOptions& options, const Host&, int64_t rank) {
    options.cancel = cancel;
    if (rank == 0)
      options.handler = [&](const Event& event) {
        if (event.kind() == TN_END_PASS) cancel.request();
      };
  };
  EXPECT_THAT(errors_of(train_bounded_steps(job)), Each(""));
}

// ---- errors

// Of one process it fails; those of the others wait until it has, so that a minibatch is left for it.
class Breaking {
 public:
  Breaking(bool breaks, std::atomic<bool>& has_failed) : breaks_(breaks), has_failed_(has_failed) {}
  [[nodiscard]] static int64_t size() { return Steps::size(); }
  void read(int64_t index, Sample& sample) const {
    if (breaks_) {
      has_failed_ = true;
      throw std::runtime_error("the disk burns");
    }
    while (!has_failed_) std::this_thread::yield();
    Steps::read(index, sample);
  }

 private:
  bool breaks_;
  std::atomic<bool>& has_failed_;
};

TEST(BoundedMode, AnErrorOfATrainerIsOneOfAll) {
  for (const int64_t broken : {0, 2}) {
    BoundedJob job{3, 2, 2};
    std::atomic<bool> has_failed{false};
    job.change = [&](TrainOptions& options, const Host& host, int64_t rank) {
      options.reader = host.reader(Steps::schema(), Breaking(rank == broken, has_failed)).shuffle(5).batch(4);
    };
    const std::vector<std::string> errors = errors_of(train_bounded_steps(job));
    for (size_t rank = 0; rank < errors.size(); ++rank)
      EXPECT_THAT(errors[rank], HasSubstr("the disk burns")) << "process " << rank << ", broken: " << broken;
    EXPECT_THAT(errors[1], HasSubstr("process " + std::to_string(broken) + ": "));
    EXPECT_THAT(errors[4], HasSubstr("process " + std::to_string(broken) + ": "));
  }
}

TEST(BoundedMode, AProcessThatTrainsOtherwiseIsRefused) {
  for (const int64_t other : {1, 3}) {
    BoundedJob job{2, 2, 2};
    job.change = [&](TrainOptions& options, const Host& host, int64_t rank) {
      if (rank == other) options.updater = host.updater("adam", {{"learning_rate", 0.25}});
    };
    const std::vector<std::string> errors = errors_of(train_bounded_steps(job));
    EXPECT_THAT(errors[static_cast<size_t>(other)],
                HasSubstr("process " + std::to_string(other) + " has another job than process 0"));
    EXPECT_EQ(errors[0] == "", other == 1) << "the training can do without a trainer";
  }
}

// ---- other models

// A cost that falls, buffers that move, row-sparse gradients of a parameter that is no table, groups and clip_norm.
TEST(BoundedMode, ServersHaveBuffersAndParametersThatAreNoTables) {
  for (const int32_t trainers : {1, 3}) {
    BoundedJob job{trainers, 2, 3, 6};
    std::vector<double> costs;
    std::vector<float> moving;
    job.change = [&](TrainOptions& options, const Host& host, int64_t rank) {
      const Layer data = host.data(floats("x", {3})), x = host.layer("batch_norm", {data}, {}, "norm");
      const Layer vector =
          host.layer("embedding", {host.data(integers("item", Steps::kRows))},
                     {{"vocabulary", Steps::kRows}, {"size", 2}, {"parameter_name", "items"}}, "item_vector");
      const Layer wanted = host.layer("fc", {data}, {{"size", 1}}, "wanted");
      const Layer score = host.layer("fc", {x, vector}, {{"size", 1}}, "score");
      options.outputs = {host.layer("square_error", {score, wanted}, {}, "cost")};
      options.immutable_parameters = {"wanted"};
      options.parameters = host.parameters(options.outputs, 3);
      options.updater = host.updater("adam", {{"learning_rate", 0.05}, {"clip_norm", 0.5}});
      options.groups = {{host.updater("sgd", {{"learning_rate", 0.05}}), {"items"}}};
      if (rank > 0) return;
      options.handler = [&](const Event& event) {
        if (event.kind() == TN_END_PASS) costs.push_back(event.cost());
        if (event.kind() == TN_END_TRAINING) moving = values_of(options.parameters, "norm.moving_mean");
      };
    };
    const std::vector<std::string> errors = errors_of(train_bounded_steps(job));
    EXPECT_THAT(errors, Each("")) << trainers << " trainers";
    ASSERT_EQ(costs.size(), 6U);
    EXPECT_LT(costs.back(), 0.8 * costs.front()) << trainers << " trainers";
    EXPECT_NE(moving, std::vector<float>(3, 0));
  }
}

// ---- what is refused

class Standing final : public UpdateRule {
 public:
  void update(const RuleStep& /*step*/) override {}
};

TEST(BoundedMode, WhatItCannotTrainIsRefusedByName) {
  const auto refused = [](const std::function<void(TrainOptions&, const Host&)>& change, const std::string& why,
                          int32_t servers = 1) {
    BoundedJob job{2, servers, 2};
    job.change = [&](TrainOptions& options, const Host& host, int64_t) { change(options, host); };
    for (const std::string& error : errors_of(train_bounded_steps(job))) EXPECT_THAT(error, HasSubstr(why));
  };
  refused([](TrainOptions&, const Host&) {}, "staleness is 2: in the bounded mode servers have the parameters", 0);
  refused([](TrainOptions& options, const Host&) { options.pass_batches = 3; }, "staleness: pass_batches needs");
  refused([](TrainOptions& options, const Host&) { options.verify_every = 3; }, "staleness: verify_every compares");
  refused(
      [](TrainOptions& options, const Host&) {
        options.updater = updater_of(options.parameters, "standing", std::make_shared<Standing>());
      },
      "table \"items.weight\" has its rows with the processes of a team, which call no updater");
  refused(
      [](TrainOptions& options, const Host& host) {
        std::vector<Reader> two;
        for (int i = 0; i < 2; ++i) two.push_back(host.reader(Steps::schema(), Steps()));
        options.reader = interleave(std::move(two)).batch(4);
      },
      "staleness: each trainer reads minibatches by their numbers, which this reader does not offer");
  refused([](TrainOptions& options, const Host&) { options.staleness = -1; }, "staleness is -1; expected at least 0");
}

}  // namespace

}  // namespace tenon_tests
