// What a handler and another thread can do with a running training: the machine of an event, cancelling, passes of a
// number of minibatches. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "tests/host/training/line_model.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

class Control : public LineModel {};

// ---- before the training

// Not only after the first checkpoint is due, which may be hours later.
TEST_F(Control, AFolderOfCheckpointsThatIsShutIsRefusedAtOnce) {
  train(training());  // loads all plugins
  const TemporaryFolder folder;
  const std::filesystem::path shut = folder.file("shut");
  std::filesystem::create_directory(shut);
  std::filesystem::permissions(shut, std::filesystem::perms{0555});
  TrainOptions options = training();
  options.checkpoint.emplace();
  options.checkpoint->folder = shut.string();
  const Unprivileged user;
  EXPECT_EQ(refusal([&] { train(options); }, TN_IO), shut.string() + ": cannot write to the folder: Permission denied");
  EXPECT_EQ(values(options), (Floats{1, 0})) << "nothing was trained";
}

// ---- the machine of an event

TEST_F(Control, AHandlerReadsTheMachine) {
  TrainOptions options = training();
  std::vector<Floats> lines, weights;
  std::vector<double> costs, metrics;
  Machine kept;
  options.handler = [&](const Event& event) {
    const Machine machine = event.machine();
    EXPECT_TRUE(machine.handle().generation != 0) << "every event has it";
    kept = machine;
    if (event.kind() != TN_END_ITERATION) return;
    lines.push_back(numbers(machine.output(line_)));
    weights.push_back(numbers(machine.gradient("line.weight")));
    EXPECT_THAT(numbers(machine.gradient("line.bias")), ElementsAre(1)) << "the update used it";
    EXPECT_EQ(machine.cost(), event.cost());
    EXPECT_EQ(machine.metrics().at(0).value, event.metrics().at(0).value);
    EXPECT_THAT(machine.plan(), HasSubstr("calls"));
  };
  options.updater.set_learning_rate(0);
  train(options);
  EXPECT_THAT(lines, ElementsAre(Floats{0, 1, 2, 3}, Floats{4, 5, 6, 7}, Floats{8, 9}));
  EXPECT_THAT(weights, ElementsAre(Floats{1.5}, Floats{5.5}, Floats{8.5}));
  EXPECT_THAT(refusal([&] { (void)kept.cost(); }, TN_MISUSE), HasSubstr("stale")) << "after the handler";
}

TEST_F(Control, AHandlerReadsTestsInfersAndSaves) {
  const TemporaryFolder folder;
  TrainOptions options = training();
  int calls = 0;
  options.handler = [&](const Event& event) {
    if (event.kind() != TN_END_ITERATION) return;
    TrainOptions inner = options;
    inner.handler = nullptr;
    inner.reader = samples().batch(kSamples);
    const Floats now = values(options);
    EXPECT_NEAR(tenon::test(inner).cost, 4.5 * now[0] + now[1], 1e-5);
    int64_t inferred = 0;
    inner.outputs = {line_};
    infer(inner, [&](const std::vector<Array>& outputs) { return (inferred += outputs[0].shape[0]) > 0; });
    EXPECT_EQ(inferred, kSamples);
    const std::string path = folder.file(std::to_string(calls++) + ".safetensors");
    options.parameters.save({line_}, path);
    EXPECT_EQ(numbers(host_.load(path).parameters.get("line.bias"))[0], now[1]);
  };
  train(options);
  EXPECT_EQ(calls, 3);
}

TEST_F(Control, OutputsAreThoseOfTheLastMinibatch) {
  TrainOptions options = training();
  int refused = 0;
  options.handler = [&](const Event& event) {
    if (event.kind() == TN_END_ITERATION) return;
    const Machine machine = event.machine();
    EXPECT_THAT(refusal([&] { (void)machine.output(line_); }, TN_MISUSE), HasSubstr("forward"));
    EXPECT_THAT(refusal([&] { (void)machine.gradient("line.bias"); }, TN_MISUSE), HasSubstr("no backward since"));
    EXPECT_THAT(refusal([&] { (void)machine.output(average_); }, TN_NOT_FOUND), HasSubstr("inputs"));
    ++refused;
  };
  train(options);
  EXPECT_EQ(refused, 1 + 1 + 3 + 1 + 1);
}

TEST_F(Control, AHandlerCannotChangeTheMachine) {
  TrainOptions plain = training(), options = training();
  train(plain);
  int refused = 0;
  options.handler = [&](const Event& event) {
    const Machine machine = event.machine();
    const Floats x = {1};
    const auto own = HasSubstr("belongs to a training");
    EXPECT_THAT(refusal([&] { machine.forward({{"x", {TN_F32, {1, 1}, x.data()}}}); }, TN_MISUSE), own);
    EXPECT_THAT(refusal([&] { machine.backward(); }, TN_MISUSE), own);
    EXPECT_THAT(refusal([&] { machine.reset_carried(); }, TN_MISUSE), own);
    EXPECT_THAT(refusal([&] { options.updater.update(machine); }, TN_MISUSE), own);
    EXPECT_EQ(tn_machine_release(host_.get(), machine.handle(), nullptr), TN_MISUSE);
    ++refused;
  };
  train(options);
  EXPECT_EQ(refused, 10);
  EXPECT_EQ(values(options), values(plain));
}

TEST_F(Control, GradientsStayReadableUntilTheNextForward) {
  const TrainOptions options = training(0);
  MachineOptions wanted;
  wanted.training = true;
  const Machine machine = host_.machine(options.parameters, {cost_}, wanted);
  const Floats x = {3};
  const auto forward = [&] { machine.forward({{"x", {TN_F32, {1, 1}, x.data()}}}); };
  forward();
  machine.backward();
  options.updater.update(machine);
  EXPECT_THAT(numbers(machine.gradient("line.weight")), ElementsAre(3));
  forward();
  EXPECT_THAT(refusal([&] { (void)machine.gradient("line.weight"); }, TN_MISUSE), HasSubstr("no backward since"));
  machine.backward();
  EXPECT_THAT(numbers(machine.gradient("line.weight")), ElementsAre(3)) << "the used gradient was not added to";
}

// ---- cancelling

TEST_F(Control, AnotherThreadEndsATraining) {
  TrainOptions options = training();
  options.passes = 1'000'000'000;
  options.cancel = Cancel::make();
  std::vector<uint32_t> reasons;
  std::thread other;
  options.handler = [&](const Event& event) {
    if (event.kind() == TN_BEGIN_TRAINING) other = std::thread([&] { options.cancel.request(); });
    if (event.kind() == TN_END_TRAINING) reasons.push_back(event.reason());
    if (event.kind() != TN_END_TRAINING) {
      EXPECT_EQ(event.reason(), TN_REASON_NONE);
    }
  };
  train(options);
  other.join();
  EXPECT_THAT(reasons, ElementsAre(TN_REASON_CANCEL));
  EXPECT_TRUE(options.cancel.is_requested());
}

// Between END_ITERATION and its end the training makes no further minibatch, and writes a checkpoint.
TEST_F(Control, ACancelledTrainingResumesExactly) {
  TrainOptions whole = training();
  whole.passes = 2;
  train(whole);
  for (int minibatch = 0; minibatch <= 6; ++minibatch) {
    const TemporaryFolder folder;
    TrainOptions first = training();
    first.passes = 2;
    first.cancel = Cancel::make();
    first.checkpoint.emplace();
    first.checkpoint->folder = folder.file("saved");
    int done = 0, checkpoints = 0;
    if (minibatch == 0) first.cancel.request();
    first.handler = [&](const Event& event) {
      if (event.kind() == TN_END_ITERATION && ++done == minibatch) first.cancel.request();
      if (event.kind() == TN_CHECKPOINT) ++checkpoints;
    };
    train(first);
    EXPECT_EQ(done, minibatch);
    EXPECT_EQ(checkpoints, 1);
    TrainOptions rest = training();
    rest.passes = 2;
    rest.checkpoint = first.checkpoint;
    rest.checkpoint->start = TN_START_RESUME;
    train(rest);
    EXPECT_EQ(values(rest), values(whole)) << minibatch;
  }
}

TEST_F(Control, WithoutAHandlerATrainingIsCancelledToo) {
  TrainOptions options = training();
  options.cancel = Cancel::make();
  options.cancel.request();
  train(options);
  EXPECT_THAT(values(options), ElementsAre(1, 0)) << "no update";
  options.cancel.reset();
  EXPECT_FALSE(options.cancel.is_requested());
  train(options);
  EXPECT_NE(values(options)[1], 0);
}

TEST_F(Control, CancelledTestsAndInferencesHaveNoResult) {
  TrainOptions options = training();
  options.cancel = Cancel::make();
  options.cancel.request();
  EXPECT_THAT(refusal([&] { (void)tenon::test(options); }, TN_CANCELLED), HasSubstr("after 0 minibatches"));
  options.cancel.reset();
  int blocks = 0;
  const auto sink = [&](const std::vector<Array>&) {
    ++blocks;
    options.cancel.request();
    return true;
  };
  options.outputs = {line_};
  EXPECT_THAT(refusal([&] { infer(options, sink); }, TN_CANCELLED), HasSubstr("after 1 minibatches"));
  EXPECT_EQ(blocks, 1);
  options.cancel.reset();
  options.outputs = {cost_};
  EXPECT_EQ(tenon::test(options).samples, kSamples);
}

tn_cancel* to_signal = nullptr;

TEST_F(Control, ASignalHandlerEndsATraining) {
  TrainOptions options = training();
  options.passes = 1000;
  options.cancel = Cancel::make();
  to_signal = options.cancel.get();
  const auto before = std::signal(SIGUSR1, [](int) { tn_cancel_request(to_signal); });
  int64_t batches = 0;
  options.handler = [&](const Event& event) {
    if (event.kind() != TN_END_ITERATION || ++batches != 5) return;
    ASSERT_EQ(std::raise(SIGUSR1), 0);
  };
  train(options);
  std::signal(SIGUSR1, before);
  EXPECT_EQ(batches, 5);
}

TEST(Cancel, NullIsIgnored) {
  tn_cancel_request(nullptr);
  tn_cancel_reset(nullptr);
  tn_cancel_release(nullptr);
  EXPECT_EQ(tn_cancel_is_requested(nullptr), 0);
  EXPECT_EQ(tn_cancel_create(nullptr, nullptr), TN_MISUSE);
  EXPECT_FALSE(Cancel().is_requested());
}

// The token may go while a call uses it.
TEST_F(Control, ATokenMayBeReleasedWithinTheCall) {
  TrainOptions options = training();
  options.cancel = Cancel::make();
  options.handler = [&](const Event&) { options.cancel = Cancel(); };
  train(options);
  EXPECT_NE(values(options)[1], 0);
}

TEST_F(Control, TheEndHasAReason) {
  TrainOptions options = training();
  options.cancel = Cancel::make();
  uint32_t reason = 0;
  int stop_at = -1;
  options.handler = [&](const Event& event) {
    if (event.kind() == stop_at) event.stop();
    if (event.kind() == TN_END_TRAINING) reason = event.reason();
  };
  train(options);
  EXPECT_EQ(reason, TN_REASON_PASSES);
  stop_at = TN_END_ITERATION;
  train(options);
  EXPECT_EQ(reason, TN_REASON_HANDLER);
  stop_at = TN_END_PASS;
  train(options);
  EXPECT_EQ(reason, TN_REASON_PASSES) << "the only pass is done";
}

// ---- passes of a number of minibatches

// Passes of 2 minibatches over a reader whose passes have 3: 0-3 4-7 | 8-9 0-3 | 4-7 8-9 | 0-3 ...
TEST_F(Control, PassesEndAfterTheirMinibatches) {
  TrainOptions options = training(0);
  options.passes = 4;
  options.pass_batches = 2;
  std::vector<double> costs;
  std::vector<int64_t> counts, batches;
  options.handler = [&](const Event& event) {
    if (event.kind() == TN_END_ITERATION) costs.push_back(event.cost());
    if (event.kind() != TN_END_PASS) return;
    counts.push_back(event.samples());
    batches.push_back(event.batch());
  };
  train(options);
  EXPECT_THAT(costs, ElementsAre(1.5, 5.5, 8.5, 1.5, 5.5, 8.5, 1.5, 5.5));
  EXPECT_THAT(counts, ElementsAre(8, 6, 6, 8));
  EXPECT_THAT(batches, Each(2));
}

// A stream without an end that cannot seek.
TEST_F(Control, EndlessReadersAreTrainedAndTested) {
  TrainOptions options = training(0);
  options.passes = 3;
  options.pass_batches = 5;
  int64_t read = 0;
  const auto next = [&](Sample& sample) {
    sample.set("x", {static_cast<double>(read++)});
    return true;
  };
  options.reader = host_.reader({{"x", TN_F32, {1}}}, next).batch(kBatch);
  train(options);
  EXPECT_EQ(read, 3 * 5 * kBatch);
  const TestResult tested = tenon::test(options);
  EXPECT_EQ(tested.samples, 5 * kBatch);
  EXPECT_EQ(tested.cost, 3 * 20 + 9.5) << "it continues where the stream is";
  int blocks = 0;
  options.outputs = {line_};
  infer(options, [&](const std::vector<Array>&) { return ++blocks > 0; });
  EXPECT_EQ(blocks, 5);
}

TEST_F(Control, PassesOfMinibatchesResumeExactly) {
  const auto options = [&] {
    TrainOptions made = training();
    made.reader = samples().shuffle(3).batch(kBatch);
    made.passes = 4;
    made.pass_batches = 2;
    return made;
  };
  TrainOptions whole = options();
  train(whole);
  for (int stop = 1; stop <= 8; ++stop) {
    const TemporaryFolder folder;
    TrainOptions first = options();
    first.checkpoint.emplace();
    first.checkpoint->folder = folder.file("saved");
    int done = 0;
    first.handler = [&](const Event& event) {
      if (event.kind() == TN_END_ITERATION && ++done == stop) event.stop();
    };
    train(first);
    TrainOptions rest = options();
    rest.checkpoint = first.checkpoint;
    rest.checkpoint->start = TN_START_RESUME;
    int more = 0;
    rest.handler = [&](const Event& event) { more += event.kind() == TN_END_ITERATION ? 1 : 0; };
    train(rest);
    EXPECT_EQ(done + more, 8);
    EXPECT_EQ(values(rest), values(whole)) << stop;
    rest.pass_batches = 3;
    EXPECT_THAT(refusal([&] { train(rest); }, TN_INVALID), HasSubstr("pass_batches: 2 in the checkpoint, 3 now"));
  }
}

TEST_F(Control, ReadersWithoutSamplesAndNegativeNumbersAreRefused) {
  TrainOptions options = training();
  options.pass_batches = -1;
  EXPECT_THAT(refusal([&] { train(options); }, TN_INVALID), HasSubstr("options.pass_batches is -1"));
  EXPECT_THAT(refusal([&] { (void)tenon::test(options); }, TN_INVALID), HasSubstr("options.pass_batches is -1"));
  options.pass_batches = 2;
  options.reader = host_.reader({{"x", TN_F32, {1}}}, [](Sample&) { return false; }).batch(kBatch);
  EXPECT_THAT(refusal([&] { train(options); }, TN_BAD_DATA), HasSubstr("no samples"));
}

}  // namespace
}  // namespace tenon_tests
