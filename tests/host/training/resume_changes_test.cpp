// What a resume may change: resume_with. SPDX-License-Identifier: Apache-2.0
#include "host/training/resume_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "tests/host/training/line_model.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

using Names = std::vector<std::string>;

class ResumeChanges : public LineModel {
 protected:
  static constexpr int64_t kPasses = 4, kPass = 3;  // minibatches of a pass of 10 samples

  // What a training is made of.
  struct Plan {
    Attributes updater = {{"learning_rate", 0.125}};
    std::string type = "adam";
    int64_t batch = kBatch;
    bool drop_last = false;
    Attributes bias = {};  // of an updater for the bias alone; empty: there is none
    int64_t passes = kPasses;
    int64_t pass_batches = 0;
  };
  [[nodiscard]] TrainOptions options(const Plan& plan) const {
    TrainOptions made = training();
    made.updater = host_.updater(plan.type, plan.updater);
    if (!plan.bias.empty()) made.groups = {{host_.updater("sgd", plan.bias), {"line.bias"}}};
    made.reader = samples().shuffle(3).batch(plan.batch, plan.drop_last);
    made.passes = plan.passes;
    made.pass_batches = plan.pass_batches;
    return made;
  }
  // Trains until `stop` minibatches are done in the training as a whole; 0: to its end. Returns its options.
  TrainOptions train_until(const TemporaryFolder& folder, const Plan& plan, int stop, uint32_t start = TN_START_FRESH,
                           const Names& with = {}) {
    TrainOptions made = options(plan);
    made.checkpoint.emplace();
    made.checkpoint->folder = folder.file("saves");
    made.checkpoint->start = start;
    made.checkpoint->resume_with = with;
    made.handler = [this, stop, done = 0](const Event& event) mutable {
      if (event.kind() == TN_BEGIN_TRAINING) changes_ = event.changes(), rate_ = event.learning_rate();
      if (event.kind() == TN_CHECKPOINT) written_ = event.checkpoint();
      if (event.kind() == TN_END_ITERATION) sizes_.push_back(event.samples());
      if (event.kind() == TN_END_ITERATION && ++done == stop) event.stop();
    };
    sizes_.clear();
    train(made);
    return made;
  }
  TrainOptions resume(const TemporaryFolder& folder, const Plan& plan, const Names& with, int stop = 0) {
    return train_until(folder, plan, stop, TN_START_RESUME, with);
  }
  std::string refused(const TemporaryFolder& folder, const Plan& plan, const Names& with, tn_status code = TN_INVALID) {
    TrainOptions made = options(plan);
    made.checkpoint.emplace();
    made.checkpoint->folder = folder.file("saves");
    made.checkpoint->start = TN_START_RESUME;
    made.checkpoint->resume_with = with;
    const std::string message = refusal([&] { train(made); }, code);
    EXPECT_EQ(values(made), (Floats{1, 0})) << "nothing was read";
    return message;
  }
  [[nodiscard]] std::string history() const {
    const json metadata = json::parse(host_.describe_model(written_))["metadata"];
    return metadata.value("tenon.checkpoint.changes", "");
  }

  std::string changes_, written_;
  double rate_ = 0;             // with which the last training began
  std::vector<int64_t> sizes_;  // of the minibatches of the last training
};

// It is the training whose handler sets the rate at that place.
TEST_F(ResumeChanges, ALearningRateHoldsFromTheCheckpointOn) {
  const Plan slow, fast = {.updater = {{"learning_rate", 0.5}}};
  for (int stop = 1; stop < kPasses * kPass; ++stop) {
    TrainOptions whole = options(slow);
    int done = 0;
    whole.handler = [&](const Event& event) {
      if (event.kind() == TN_END_ITERATION && ++done == stop) event.set_learning_rate(0.5);
    };
    train(whole);
    const TemporaryFolder folder;
    train_until(folder, slow, stop);
    EXPECT_THAT(refused(folder, fast, {}), EndsWith("1 difference: updater.attributes.learning_rate: 0.125 in the "
                                                    "checkpoint, 0.5 now; resume_with accepts these: "
                                                    "updater.learning_rate"));
    EXPECT_EQ(values(resume(folder, fast, {"updater.learning_rate"})), values(whole)) << stop;
    EXPECT_EQ(changes_, "updater.attributes.learning_rate: 0.125 in the checkpoint, 0.5 now");
  }
}

// The same call resumes any number of times, and the values are then those of the checkpoint.
TEST_F(ResumeChanges, ASecondResumeHasTheNewValues) {
  const Plan slow, fast = {.updater = {{"learning_rate", 0.5}}}, fastest = {.updater = {{"learning_rate", 2.0}}};
  const TemporaryFolder plain, folder;
  train_until(plain, slow, 4);
  const TrainOptions whole = resume(plain, fast, {"updater.learning_rate"});
  train_until(folder, slow, 4);
  resume(folder, fast, {"updater.learning_rate"}, 2);
  EXPECT_EQ(history(), "checkpoint-1-1: updater.attributes.learning_rate: 0.125 in the checkpoint, 0.5 now");
  EXPECT_THAT(refused(folder, slow, {}), HasSubstr("learning_rate: 0.5 in the checkpoint, 0.125 now"));
  resume(folder, fast, {"updater.learning_rate"}, 2);
  EXPECT_EQ(changes_, "");
  EXPECT_EQ(values(resume(folder, fast, {})), values(whole));
  EXPECT_THAT(history(), HasSubstr("0.5 now")) << "later checkpoints keep it";

  // A rate that a handler has set since stays.
  const TemporaryFolder other;
  TrainOptions begun = options(fast);
  begun.checkpoint.emplace();
  begun.checkpoint->folder = other.file("saves");
  begun.passes = 2;
  begun.handler = [](const Event& event) {
    if (event.kind() == TN_END_PASS) event.set_learning_rate(0.01);
  };
  train(begun);
  resume(other, fast, {"updater.learning_rate"}, 1);
  EXPECT_EQ(rate_, 0.01);
  resume(other, fastest, {"updater.learning_rate", "updater.schedule", "reader.batch"}, 1);
  EXPECT_THAT(changes_, HasSubstr("0.5 in the checkpoint, 2"));
  EXPECT_EQ(rate_, 2);
}

TEST_F(ResumeChanges, AScheduleCountsFromTheBeginning) {
  const Plan constant, falling = {.updater = {{"learning_rate", 0.125},
                                              {"schedule.type", "exponential"},
                                              {"schedule.steps", 1},
                                              {"schedule.rate", 0.5}}};
  const TemporaryFolder folder;
  train_until(folder, constant, 5);
  EXPECT_THAT(refused(folder, falling, {"updater.learning_rate"}),
              AllOf(HasSubstr("updater.attributes.schedule.type: not in the checkpoint"), HasSubstr("3 differences")));
  TrainOptions rest = options(falling), whole = options(falling);
  std::vector<double> rates, expected;
  const auto noting = [](std::vector<double>& to) {
    return [&to](const Event& event) {
      if (event.kind() == TN_END_ITERATION) to.push_back(event.scheduled_rate());
    };
  };
  rest.checkpoint.emplace();
  rest.checkpoint->folder = folder.file("saves");
  rest.checkpoint->start = TN_START_RESUME;
  rest.checkpoint->resume_with = {"updater.schedule"};
  rest.handler = noting(rates);
  whole.handler = noting(expected);
  train(rest);
  train(whole);
  EXPECT_EQ(rates, std::vector<double>(expected.begin() + 5, expected.end()));
  EXPECT_EQ(resume(folder, constant, {"updater.schedule"}).passes, kPasses) << "and back";
}

// The weight has an exact gradient, so that an update is computed by hand.
TEST_F(ResumeChanges, WhatActsOnTheGradientHoldsFromTheCheckpointOn) {
  const double rate = 0.125;
  const std::vector<std::pair<std::string, double>> cases = {
      {"l2", 0.5}, {"l1", 0.25}, {"weight_decay", 0.5}, {"clip_value", 0.75}, {"clip_norm", 0.5}};
  for (const auto& [name, value] : cases) {
    Plan before = {.updater = {{"learning_rate", rate}, {"momentum", 0.5}}, .type = "sgd", .batch = kSamples};
    Plan after = before;
    after.updater.emplace_back(name, value);
    const TemporaryFolder folder;
    train_until(folder, before, 2);
    EXPECT_THAT(refused(folder, after, {"groups." + name, "updater.schedule"}), HasSubstr(name));
    const Floats result = values(resume(folder, after, {"updater." + name}));
    EXPECT_THAT(changes_, HasSubstr("updater.attributes." + name + ": "));
    double weight = 1, bias = 0, of_weight = 0, of_bias = 0;
    const auto step = [&](double& parameter, double& velocity, double gradient, bool changed, double scale) {
      if (changed && name == "clip_norm") gradient *= scale;
      if (changed && name == "clip_value") gradient = std::clamp(gradient, -value, value);
      if (changed && (name == "l2" || name == "weight_decay")) gradient += value * parameter;
      if (changed && name == "l1") gradient += parameter > 0 ? value : parameter < 0 ? -value : 0;
      velocity = 0.5 * velocity + gradient;
      parameter -= rate * velocity;
    };
    for (int update = 0; update < kPasses; ++update) {
      const double scale = std::min(1.0, value / std::sqrt(4.5 * 4.5 + 1));
      step(weight, of_weight, 4.5, update >= 2, scale);
      step(bias, of_bias, 1, update >= 2, scale);
    }
    EXPECT_NEAR(result[0], weight, 1e-5) << name;
    EXPECT_NEAR(result[1], bias, 1e-5) << name;
  }
}

TEST_F(ResumeChanges, GroupsAreNamedApart) {
  const Plan plain = {.bias = {{"learning_rate", 0.25}, {"momentum", 0.5}}};
  const auto changed = [&](double rate, double of_bias) {
    Plan plan = plain;
    plan.updater = {{"learning_rate", rate}};
    plan.bias = {{"learning_rate", of_bias}, {"momentum", 0.5}};
    return plan;
  };
  const TemporaryFolder folder;
  train_until(folder, plain, 5);
  EXPECT_THAT(refused(folder, changed(0.5, 1), {"updater.learning_rate"}),
              AllOf(HasSubstr("1 difference: updater.groups[0].attributes.learning_rate: 0.25 in the checkpoint, 1")));
  EXPECT_THAT(refused(folder, changed(0.5, 1), {"groups.learning_rate"}),
              HasSubstr("1 difference: updater.attributes.learning_rate: 0.125"));
  EXPECT_THAT(refused(folder, {}, {"groups.learning_rate"}), HasSubstr("updater.groups: in the checkpoint"));
  resume(folder, changed(0.125, 1), {"groups.learning_rate"}, 1);
  EXPECT_EQ(changes_, "updater.groups[0].attributes.learning_rate: 0.25 in the checkpoint, 1.0 now");
  resume(folder, changed(0.5, 2), {"groups.learning_rate", "updater.learning_rate"}, 1);
  EXPECT_EQ(history(),
            "checkpoint-1-2: updater.groups[0].attributes.learning_rate: 0.25 in the checkpoint, 1.0 now\n"
            "checkpoint-1-3: updater.attributes.learning_rate: 0.125 in the checkpoint, 0.5 now\n"
            "checkpoint-1-3: updater.groups[0].attributes.learning_rate: 1.0 in the checkpoint, 2.0 now");
}

// Minibatches end at multiples of the new number of samples, whose positions are counted in samples.
TEST_F(ResumeChanges, AnotherBatchGoesOnAtTheSameSample) {
  struct Case {
    int stop;
    int64_t batch;
    std::vector<int64_t> sizes;
  };
  const Plan plain;  // passes of 4, 4, 2
  for (const Case& each : {Case{1, 2, {2, 2, 2}}, Case{1, 3, {2, 3, 1}}, Case{2, 5, {2}}, Case{1, 100, {6}},
                           Case{2, 1, {1, 1}}, Case{4, 7, {3, 3}}}) {
    Plan other = plain;
    other.batch = each.batch;
    const TemporaryFolder folder, again;
    train_until(folder, plain, each.stop);
    EXPECT_THAT(refused(folder, other, {"updater.learning_rate"}), HasSubstr("reader.batch: 4 in the checkpoint, "));
    const TrainOptions whole = resume(folder, other, {"reader.batch"});
    EXPECT_THAT(changes_, HasSubstr("reader.batch: 4 in the checkpoint, " + std::to_string(each.batch) + " now"));
    ASSERT_GE(sizes_.size(), each.sizes.size());
    EXPECT_EQ(std::vector<int64_t>(sizes_.begin(), sizes_.begin() + static_cast<std::ptrdiff_t>(each.sizes.size())),
              each.sizes);
    EXPECT_EQ(std::accumulate(sizes_.begin(), sizes_.end(), int64_t{0}),
              kPasses * kSamples - (each.stop / kPass * kSamples + each.stop % kPass * kBatch))
        << "every sample is trained once in a pass";
    // Interrupted after the change, in any place: the data are compared by the new minibatches.
    for (int later = 1; later < 5; ++later) {
      const TemporaryFolder parts;
      train_until(parts, plain, each.stop);
      resume(parts, other, {"reader.batch"}, later);
      EXPECT_EQ(values(resume(parts, other, {})), values(whole)) << later;
    }
  }
}

// The reference has updater and parameters of one training in a second one.
TEST_F(ResumeChanges, ABatchBetweenTwoPassesIsTheTrainingWithBoth) {
  Plan small, large;
  small.passes = 1;
  large.batch = kSamples;
  const TemporaryFolder folder;
  TrainOptions reference = options(small);
  train(reference);
  reference.reader = samples().shuffle(3).batch(kSamples);
  reference.reader.seek({1, 0});
  reference.passes = kPasses - 1;
  train(reference);
  train_until(folder, small, 0);
  const TrainOptions rest = resume(folder, large, {"reader.batch"});
  EXPECT_EQ(values(rest), values(reference));
}

TEST_F(ResumeChanges, DroppedSamplesAreNoDifference) {
  Plan plain, larger, three;
  plain.drop_last = larger.drop_last = three.drop_last = true;  // 8 of 10
  larger.batch = 6;                                             // 6 of 10
  three.batch = 3;                                              // 9 of 10
  const TemporaryFolder folder;
  train_until(folder, plain, 2);  // 8 samples are read: more than a pass of minibatches of 6 has
  resume(folder, larger, {"reader.batch"});
  EXPECT_THAT(sizes_, ElementsAre(6, 6, 6)) << "the rest of the first pass is dropped";
  EXPECT_THAT(changes_, AllOf(HasSubstr("reader.batch: 4"), HasSubstr("reader.samples: 8 in the checkpoint, 6 now")));
  const TemporaryFolder other;
  train_until(other, plain, 1);
  resume(other, three, {"reader.batch"});
  EXPECT_EQ(sizes_[0], 2);
  // A data set of another size stays another one.
  TrainOptions longer = options(three);
  longer.reader = chain({samples(), samples()}).batch(3, true);
  longer.checkpoint.emplace();
  longer.checkpoint->folder = folder.file("saves");
  longer.checkpoint->start = TN_START_RESUME;
  longer.checkpoint->resume_with = {"reader.batch"};
  EXPECT_THAT(refusal([&] { train(longer); }, TN_INVALID), HasSubstr("reader.samples: 6 in the checkpoint, 18 now"));
}

TEST_F(ResumeChanges, OtherDataAreRefusedWithAnotherBatch) {
  for (const int64_t batch : {2, 3, 5, 10}) {
    const TemporaryFolder folder;
    const Plan plain;
    train_until(folder, plain, 4);
    Plan other = plain;
    other.batch = batch;
    TrainOptions changed = options(other);
    changed.reader = samples(0.5).shuffle(3).batch(batch);
    changed.checkpoint.emplace();
    changed.checkpoint->folder = folder.file("saves");
    changed.checkpoint->start = TN_START_RESUME;
    changed.checkpoint->resume_with = {"reader.batch"};
    EXPECT_THAT(refusal([&] { train(changed); }, TN_INVALID), HasSubstr("the data of the reader has changed"));
    changed.checkpoint->start = TN_START_RESUME_INEXACTLY;
    train(changed);
  }
}

TEST_F(ResumeChanges, MinibatchesOfAPass) {
  Plan short_passes, longer;
  short_passes.pass_batches = 2;
  longer.pass_batches = 5;
  const TemporaryFolder folder;
  train_until(folder, short_passes, 3);
  EXPECT_THAT(refused(folder, longer, {"reader.batch"}), HasSubstr("pass_batches: 2 in the checkpoint, 5 now"));
  resume(folder, longer, {"pass_batches", "passes"});
  EXPECT_EQ(sizes_.size(), 4U + 2 * 5);
  Plan shorter;
  shorter.pass_batches = 1;
  shorter.passes = 6;
  resume(folder, shorter, {"pass_batches"});
  EXPECT_EQ(sizes_.size(), 2U);
}

TEST_F(ResumeChanges, AllElseStaysRefused) {
  const TemporaryFolder folder;
  train_until(folder, {}, 2);
  const Names all = {"updater.learning_rate",
                     "updater.schedule",
                     "updater.weight_decay",
                     "updater.l1",
                     "updater.l2",
                     "updater.clip_norm",
                     "updater.clip_value",
                     "groups.learning_rate",
                     "reader.batch",
                     "pass_batches",
                     "passes"};
  Plan other = {.updater = {{"learning_rate", 0.125}, {"beta1", 0.5}}};
  EXPECT_THAT(refused(folder, other, all),
              AllOf(HasSubstr("1 difference: updater.attributes.beta1: 0.9"), Not(HasSubstr("resume_with accepts"))));
  other = {.updater = {{"learning_rate", 0.5}, {"beta2", 0.5}}};
  EXPECT_THAT(refused(folder, other, all),
              AllOf(HasSubstr("1 difference: updater.attributes.beta2"), Not(HasSubstr("learning_rate"))));
  other = {.updater = {{"learning_rate", 0.125}}, .type = "sgd"};
  EXPECT_THAT(refused(folder, other, all), HasSubstr("updater.type: \"adam\" in the checkpoint, \"sgd\" now"));
  TrainOptions seeded = options({});
  seeded.seed = 7;
  seeded.checkpoint.emplace();
  seeded.checkpoint->folder = folder.file("saves");
  seeded.checkpoint->start = TN_START_RESUME_OR_FRESH;
  seeded.checkpoint->resume_with = all;
  EXPECT_THAT(refusal([&] { train(seeded); }, TN_INVALID), HasSubstr("seed: 0 in the checkpoint, 7 now"));
}

TEST_F(ResumeChanges, NamesAreChecked) {
  const TemporaryFolder folder;
  train_until(folder, {}, 2);
  for (const char* name : {"", "learning_rate", "updater.beta1", "updater", "updater.", "reader.samples", "seed",
                           "topology.layers", "updater.schedule.type", "provider.device"})
    EXPECT_THAT(refused(folder, {}, {"reader.batch", name}),
                HasSubstr("resume_with is \"" + std::string(name) + "\", which a resume cannot change"));
  EXPECT_THAT(refused(folder, {}, {"updater.learning_rat"}), HasSubstr("did you mean \"updater.learning_rate\"?"));
  TrainOptions fresh = options({});
  fresh.checkpoint.emplace();
  fresh.checkpoint->folder = folder.file("others");
  fresh.checkpoint->resume_with = {"reader.batch"};
  EXPECT_THAT(refusal([&] { train(fresh); }, TN_INVALID), HasSubstr("a training that does not resume changes nothing"));
  fresh.checkpoint->start = TN_START_RESUME_OR_FRESH;
  std::string changes = "none";
  fresh.handler = [&](const Event& event) {
    if (event.kind() == TN_BEGIN_TRAINING) changes = event.changes();
  };
  train(fresh);
  EXPECT_EQ(changes, "") << "it begins anew";
}

// Averages, the state of early stopping and the best values go on as they are.
TEST_F(ResumeChanges, AveragesAndMeasurementsGoOn) {
  const auto made = [&](const TemporaryFolder& folder, double rate) {
    TrainOptions result = options({.updater = {{"learning_rate", rate}}, .passes = 10});
    result.average.emplace();
    result.average->decay = 0.5;
    result.average->parameters = parameters();
    result.early_stop = EarlyStopOptions{"average", false, 3, 0};
    result.best.emplace();
    result.best->parameters = parameters();
    result.best->metric = "cost";
    result.checkpoint.emplace();
    result.checkpoint->folder = folder.file("saves");
    return result;
  };
  const TemporaryFolder folder, plain;
  TrainOptions whole = made(plain, 0.125);
  whole.checkpoint.reset();
  int passes = 0;
  whole.handler = [&](const Event& event) {
    if (event.kind() == TN_END_PASS && ++passes == 2) event.set_learning_rate(0.5);
  };
  train(whole);
  TrainOptions first = made(folder, 0.125);
  first.passes = 2;
  train(first);
  TrainOptions rest = made(folder, 0.5);
  rest.checkpoint->start = TN_START_RESUME;
  rest.checkpoint->resume_with = {"updater.learning_rate"};
  uint32_t reason = 0;
  rest.handler = [&](const Event& event) {
    if (event.kind() == TN_END_TRAINING) reason = event.reason();
  };
  train(rest);
  EXPECT_EQ(values(rest), values(whole));
  EXPECT_EQ(values(rest.average->parameters), values(whole.average->parameters));
  EXPECT_EQ(values(rest.best->parameters), values(whole.best->parameters));
  EXPECT_EQ(reason, TN_REASON_EARLY) << "the measurements before the resume count";
}

// ---- runs as JSON

using tenon::host::accept_changes;

TEST(AcceptedChanges, OfRunsOfAnyForm) {
  const json run = {{"updater", {{"attributes", {{"learning_rate", 1}, {"schedule.type", "a"}, {"scheduled", 1}}}}},
                    {"reader", {{"batch", 4}, {"samples", 8}, {"steps", {{{"batch", 4}, {"drop_last", false}}}}}}};
  json stored = run, present = run;
  present["updater"]["attributes"] = {{"learning_rate", 2}, {"schedule.decay", 3}, {"scheduled", 2}};
  auto changes = accept_changes({"updater.schedule", "updater.learning_rate"}, stored, present);
  EXPECT_THAT(changes.lines, testing::SizeIs(3));
  EXPECT_THAT(changes.rates, ElementsAre(0));
  EXPECT_EQ(changes.batch, 0);
  EXPECT_EQ(stored["updater"]["attributes"], (json{{"learning_rate", 2}, {"schedule.decay", 3}, {"scheduled", 1}}));
  // Forms that no present version writes.
  for (const char* text : {"{}", R"({"updater": 3, "reader": []})", R"({"updater": {"attributes": 1, "groups": {}}})",
                           R"({"reader": {"steps": [[], 3]}})", R"({"reader": {"steps": [{"batch": "x"}]}})"}) {
    stored = json::parse(text);
    changes =
        accept_changes({"updater.learning_rate", "groups.learning_rate", "reader.batch", "pass_batches"}, stored, run);
    EXPECT_THAT(changes.rates, IsEmpty()) << text;
    EXPECT_EQ(changes.batch, 0) << text;
  }
}

}  // namespace
}  // namespace tenon_tests
