// The seconds of a training under a clock of the test, and feeds that a machine reads in place.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "host/api/host/host.h"
#include "host/training/program_updater.h"
#include "tests/support/paths.h"

namespace tenon_tests::trainer_test {

using namespace tenon::host;

namespace {

using testing::Each;
using testing::ElementsAre;

struct SetClock final : Clock {
  double time = 1000;
  double now() override { return time; }
};

constexpr int64_t kSamples = 4, kColumns = 16;

// line = x . weight with weights of 0: the gradient of a weight is its x times a constant.
class Seams : public testing::Test {
 protected:
  Seams() : host_(options(clock_)) {
    DataSource x, label;
    x.dtype = label.dtype = TN_F32;
    x.shape = {kColumns}, label.shape = {1};
    const LayerOutput inputs = {host_.factory.data("x", x), 0}, labels = {host_.factory.data("label", label), 0};
    const LayerOutput line = host_.factory.layer("fc", "line", {inputs}, {{"size", int64_t{1}}, {"bias", false}});
    const Topology topology = Topology::trace({host_.factory.layer("square_error", "cost", {line, labels}, {})});
    set_ = ParameterSet::create(topology.declarations(), 1, host_.allocator);
    std::fill_n(set_->change("line.weight"), kColumns, 0.0F);
    MachineOptions wanted;
    wanted.max_samples = kSamples, wanted.training = true;
    machine_ = std::make_unique<Machine>(topology, set_, host_.registry, std::vector{host_.device("cpu")},
                                         host_.parallel, wanted);
  }

  static HostOptions options(const std::shared_ptr<Clock>& clock) {
    HostOptions made;
    made.threads = 1;
    made.plugin_paths = {tenon_tests::plugin_folder()};
    made.clock = clock;
    return made;
  }

  std::shared_ptr<SetClock> clock_ = std::make_shared<SetClock>();
  Host host_;
  std::shared_ptr<ParameterSet> set_;
  std::unique_ptr<Machine> machine_;
};

// Two seconds pass in each event, and three in each reading of a minibatch.
TEST_F(Seams, SecondsCountFromTheBeginningOfThePass) {
  const std::vector<float> inputs(kSamples * kColumns, 1), labels(kSamples, 1);
  Source source;
  source.slots = {{"x", TN_F32, {kColumns}, -1, kColumns * sizeof(float)}, {"label", TN_F32, {1}, -1, sizeof(float)}};
  source.size = kSamples;
  source.next = [&, given = int64_t{0}](int64_t most, std::vector<ArrayView>& values) mutable {
    clock_->time += 3;
    const int64_t count = std::min(most, kSamples - given);
    values[0].data = inputs.data() + given * kColumns;
    values[1].data = labels.data() + given;
    given = count == 0 ? 0 : given + count;
    return count;
  };
  const std::unique_ptr<Reader> reader = batch(open_source(std::move(source)), kSamples, false, host_.allocator);
  SampleBlock minibatch(reader->slots(), host_.allocator);
  SetGate gate;
  const LoopInputs request{*machine_, host_.registry, *reader, minibatch, {}, *host_.clock, gate, {2}};
  const auto updater = std::make_shared<ProgramUpdater>(host_.registry.updater("sgd"), Values{{"learning_rate", 0.0}});
  std::vector<double> seconds;
  train(request, UpdaterGroups(machine_->step(), updater, {}), [&](Event& event) {
    seconds.push_back(event.seconds);
    clock_->time += 2;
  });
  EXPECT_THAT(seconds, ElementsAre(0,                 // start of the training
                                   0, 5, 7, 12,       // start of the pass, start and end of its minibatch, its end
                                   0, 5, 7, 12, 14))  // the second pass, and the end of the training
      << "the seconds of each pass start at 0";
  const double before = clock_->time;
  EXPECT_EQ(test(request).seconds, 6) << "two reads: the minibatch, and the end of the pass";
  EXPECT_EQ(clock_->time - before, 6);
}

// With FeedMode::kLent a machine reads memory in place if it is aligned like the memory of the device. It copies other
// memory, so backward uses the values that forward read.
TEST_F(Seams, LentMemoryThatIsNotAlignedIsCopied) {
  constexpr size_t kCount = kSamples * kColumns;
  alignas(64) float memory[kCount + 16];
  alignas(64) float labels[kSamples] = {1, 1, 1, 1};
  const auto gradient_after = [&](float* inputs, FeedMode mode) {
    std::fill(std::begin(memory), std::end(memory), 1.0F);
    machine_->forward(by_number(machine_->feeds(), {{"x", {TN_F32, {kSamples, kColumns}, inputs}},
                                                    {"label", {TN_F32, {kSamples, 1}, labels}}}),
                      mode);
    std::fill(std::begin(memory), std::end(memory), 2.0F);
    machine_->backward();
    const auto* const data = static_cast<const float*>(machine_->step().gradient("line.weight").data);
    std::vector<float> gradient(data, data + kColumns);
    machine_->step().commit(UsedNames());  // drops the gradients
    return gradient;
  };
  const std::vector<float> copied = gradient_after(memory, FeedMode::kCopied);
  ASSERT_NE(copied[0], 0);
  EXPECT_THAT(gradient_after(memory, FeedMode::kLent), Each(2 * copied[0])) << "backward read it in place";
  for (const size_t offset : {1, 2, 4, 8})
    EXPECT_EQ(gradient_after(memory + offset, FeedMode::kLent), copied) << offset << " floats from an aligned address";
}

}  // namespace
}  // namespace tenon_tests::trainer_test
