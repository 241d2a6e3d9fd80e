// What the bounded mode promises. SPDX-License-Identifier: Apache-2.0
#include "tests/host/training/bounded/bounded_world.h"

namespace tenon_tests {

namespace {

using testing::HasSubstr;

LoopScript disorder(uint64_t seed) {
  LoopScript script;
  script.seed = seed;
  script.most_delay_us = 300;
  script.idle_one_in = 3;
  return script;
}

// ---- one trainer

TEST(BoundedMode, OneTrainerHasTheBitsOfTheExactMode) {
  for (const std::string updater : {"sgd", "adam", "rowwise_adagrad", "example.rprop"})
    for (const int32_t servers : {1, 3}) {
      const auto job = [&](int64_t staleness) {
        return [&, staleness](TrainOptions& options, const Host& host, int64_t) {
          if (updater == "example.rprop") host.add_plugin(tenon_plugin());  // of examples/plugins, by a third party
          options.updater = host.updater(updater, {{"learning_rate", 0.1}});
          options.test = TestOptions{host.reader(clicks(), Clicks()).batch(5), {}, {}, 0, 2};
          options.staleness = staleness;
        };
      };
      const std::vector<Outcome> exact = together(1 + servers, job(0), servers);
      const std::vector<Outcome> bounded = together(1 + servers, job(2), servers);
      for (const Outcome& each : bounded) EXPECT_EQ(each.error, "");
      EXPECT_NE(exact.front().model, "");
      EXPECT_TRUE(exact.front().model == bounded.front().model) << updater << ", servers: " << servers;
      EXPECT_EQ(exact.front().log, bounded.front().log) << updater;
    }
}

// ---- several

TEST(BoundedMode, EachSampleOfAPassCountsOnce) {
  const BoundedOutcome one = train_steps(make_host(1), {}, {});
  EXPECT_EQ(one.error, "");
  for (const auto& [trainers, servers, staleness] :
       {std::tuple{2, 1, 1}, {3, 2, 2}, {4, 3, 3}, {5, 1, 1000}, {1, 2, 1}}) {
    BoundedJob job{trainers, servers, staleness};
    job.script = disorder(static_cast<uint64_t>(trainers));
    const std::vector<BoundedOutcome> all = train_bounded_steps(job);
    for (const BoundedOutcome& each : all) EXPECT_EQ(each.error, "") << trainers << " trainers";
    EXPECT_EQ(all.front().samples, 128);
    EXPECT_EQ(all.front().dense, one.dense) << trainers << " trainers";
    EXPECT_EQ(all.front().rows, one.rows) << trainers << " trainers";
    EXPECT_EQ(all.front().repeated, 0U);
    EXPECT_EQ(all.front().torn, 0U);
  }
}

// ---- lost trainers

// The place at which a trainer is lost is drawn from all of a training, and so is whether what it sends is torn.
TEST(BoundedMode, NothingIsLostWithATrainer) {
  const BoundedOutcome one = train_steps(make_host(1), {}, {});
  uint64_t repeated = 0, torn = 0;
  for (int64_t sends = 20; sends < 90; sends += 5) {
    BoundedJob job{3, 2, 3};
    job.script = disorder(static_cast<uint64_t>(sends));
    job.script.faults = {{LoopFault::Kind::kLose, 1 + static_cast<int32_t>(sends % 2), sends, {}}};
    const std::vector<BoundedOutcome> all = train_bounded_steps(job);
    const BoundedOutcome& first = all.front();
    EXPECT_EQ(first.error, "") << sends;
    EXPECT_EQ(first.samples, 128) << sends;
    EXPECT_EQ(first.dense, one.dense) << sends;
    EXPECT_LE(first.torn, first.repeated);
    if (first.torn == 0) {
      EXPECT_EQ(first.rows, one.rows) << sends;
    } else {  // rows of one server were updated twice for one minibatch
      float difference = 0;
      for (size_t i = 0; i < first.rows.size(); ++i) difference += std::abs(first.rows[i] - one.rows[i]);
      EXPECT_LE(difference, 0.25F * 2) << sends;
    }
    repeated += first.repeated;
    torn += first.torn;
  }
  EXPECT_GT(repeated, 0U);
  EXPECT_GT(torn, 0U);
  EXPECT_LT(torn, repeated);
}

TEST(BoundedMode, ALostTrainerMayReturn) {
  const BoundedOutcome one = train_steps(make_host(1), {}, {1, 1, 3, 6});
  for (int64_t sends = 20; sends < 90; sends += 10) {
    BoundedJob job{3, 2, 3, 6};
    job.returns = true;
    job.script = disorder(static_cast<uint64_t>(sends));
    job.script.faults = {{LoopFault::Kind::kLose, 2, sends, {}}};
    const std::vector<BoundedOutcome> all = train_bounded_steps(job);
    for (const BoundedOutcome& each : all) EXPECT_EQ(each.error, "") << sends;
    EXPECT_EQ(all.front().dense, one.dense) << sends;
    EXPECT_EQ(all.front().samples, 6 * 64);
    if (all.front().torn == 0) {
      EXPECT_EQ(all.front().rows, one.rows) << sends;
    }
  }
}

TEST(BoundedMode, AllTrainersButProcess0MayBeLost) {
  const BoundedOutcome one = train_steps(make_host(1), {}, {});
  BoundedJob job{4, 1, 3};
  job.script.faults = {
      {LoopFault::Kind::kLose, 1, 20, {}}, {LoopFault::Kind::kLose, 2, 26, {}}, {LoopFault::Kind::kCut, 3, 32, {3}}};
  const std::vector<BoundedOutcome> all = train_bounded_steps(job);
  EXPECT_EQ(all.front().error, "");
  EXPECT_EQ(all.front().dense, one.dense);
  EXPECT_EQ(all.front().rows, one.rows);
}

TEST(BoundedMode, ALostServerEndsTheTraining) {
  BoundedJob job{2, 2, 3};
  job.script.faults = {{LoopFault::Kind::kLose, 3, 40, {}}};
  const std::vector<BoundedOutcome> all = train_bounded_steps(job);
  EXPECT_THAT(all[0].error, HasSubstr("process 3 is lost"));
  EXPECT_THAT(all[1].error, HasSubstr("is lost"));
  EXPECT_THAT(all[2].error, HasSubstr("is lost"));
  EXPECT_NE(all[3].error, "");
}

}  // namespace

}  // namespace tenon_tests
