// Trainings with several updaters: each parameter belongs to one, checkpoints hold the states of all.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <tenon/tenon.hpp>
#include <tenon/tenon_updater.hpp>

#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr int64_t kSamples = 24, kBatch = 4;

HostOptions host_options() {
  HostOptions options;
  options.threads = 1;
  options.plugin_paths = {plugin_folder()};
  return options;
}

Error error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return {TN_OK, ""};
}

// Points of a parabola.
struct Points {
  static std::int64_t size() { return kSamples; }
  static void read(std::int64_t index, Sample& sample) {
    const double x = static_cast<double>(index) / 12 - 1;
    sample.set("x", {x});
    sample.set("y", {x * x});
  }
};

// Two layers of three, whose parameters can have updaters of their own.
class UpdaterGroups : public testing::Test {
 protected:
  // rate: of the group's updater.
  [[nodiscard]] TrainOptions training(const std::vector<std::string>& group, const std::string& type = "sgd",
                                      double rate = 0.05) const {
    DataOptions x, y;
    x.name = "x", x.shape = {1};
    y.name = "y", y.shape = {1};
    const Layer first = host_.layer("fc", {host_.data(x)}, {{"size", 6}, {"act", "tanh"}, {"drop_rate", 0.1}}, "first");
    const Layer second = host_.layer("fc", {first}, {{"size", 4}, {"act", "tanh"}}, "second");
    const Layer fit = host_.layer("fc", {second}, {{"size", 1}}, "fit");
    TrainOptions options;
    options.outputs = {host_.layer("square_error", {fit, host_.data(y)}, {}, "cost")};
    options.parameters = host_.parameters(options.outputs, 1);
    options.updater = host_.updater("adam", {{"learning_rate", 0.02}});
    if (!group.empty()) options.groups = {{host_.updater(type, {{"learning_rate", rate}}), group}};
    options.reader = host_.reader({{"x", TN_F32, {1}}, {"y", TN_F32, {1}}}, Points()).shuffle(1).batch(kBatch);
    options.passes = 4;
    return options;
  }
  static std::vector<float> values(const TrainOptions& options, const std::string& name) {
    const Array array = options.parameters.get(name);
    const auto* data = static_cast<const float*>(array.data);
    return {data, data + array.count()};
  }
  static std::vector<float> everything(const TrainOptions& options) {
    std::vector<float> all;
    for (const char* layer : {"first", "second", "fit"})
      for (const char* suffix : {".weight", ".bias"})
        for (const float value : values(options, layer + std::string(suffix))) all.push_back(value);
    return all;
  }
  static Error refused(const TrainOptions& options) {
    const std::vector<float> before = everything(options);
    Error error = error_of([&] { train(options); });
    EXPECT_EQ(everything(options), before);
    return error;
  }

  const Host host_ = Host(host_options());
};

TEST_F(UpdaterGroups, UpdateTheirParametersOnly) {
  TrainOptions frozen = training({"second", "fit.bias"}, "sgd", 0);
  const std::vector<float> weight = values(frozen, "second.weight"), bias = values(frozen, "fit.bias"),
                           other = values(frozen, "fit.weight");
  train(frozen);
  EXPECT_EQ(values(frozen, "second.weight"), weight) << "the group's rate is 0";
  EXPECT_EQ(values(frozen, "fit.bias"), bias);
  EXPECT_NE(values(frozen, "fit.weight"), other);
  EXPECT_EQ(UpdaterState(frozen.groups[0].updater, frozen.parameters).steps(), 24U);
  EXPECT_EQ(UpdaterState(frozen.updater, frozen.parameters).steps(), 24U);
  EXPECT_EQ(updates_of(frozen.parameters), 24U);
}

// A group with an updater equal to the other changes nothing.
TEST_F(UpdaterGroups, OfEqualUpdatersGiveTheSameBits) {
  TrainOptions one = training({}), two = training({"second"}, "adam", 0.02),
               all = training({"first", "second", "fit"}, "adam", 0.02);
  train(one), train(two), train(all);
  EXPECT_EQ(everything(one), everything(two));
  EXPECT_EQ(everything(one), everything(all)) << "no parameter is left for the other updater";
  TrainOptions different = training({"second"});
  train(different);
  EXPECT_NE(everything(one), everything(different));
}

TEST_F(UpdaterGroups, ResumeToTheSameBits) {
  const auto with_momentum = [&] {
    TrainOptions options = training({"first.weight", "fit"});
    const Attributes momentum = {
        {"learning_rate", 0.1}, {"momentum", 0.9}, {"schedule.type", "exponential"}, {"schedule.steps", 10}};
    options.groups.push_back({host_.updater("sgd", momentum), {"second"}});
    return options;
  };
  TrainOptions whole = with_momentum();
  whole.handler = [&](Event& event) {
    if (event.kind() == TN_END_PASS && event.pass() == 0) whole.groups[0].updater.set_learning_rate(0.01);
  };
  train(whole);

  const TemporaryFolder folder;
  TrainOptions first = with_momentum();
  first.checkpoint.emplace();
  first.checkpoint->folder = folder.file("saves");
  first.handler = [&](Event& event) {
    if (event.kind() == TN_END_PASS && event.pass() == 0) first.groups[0].updater.set_learning_rate(0.01);
    if (event.kind() == TN_END_ITERATION && event.pass() == 2 && event.batch() == 3) event.stop();
  };
  train(first);

  TrainOptions rest = with_momentum();
  rest.checkpoint = first.checkpoint;
  rest.checkpoint->start = TN_START_RESUME;
  train(rest);
  EXPECT_EQ(everything(rest), everything(whole));
  for (size_t i = 0; i < 2; ++i)
    EXPECT_EQ(UpdaterState(rest.groups[i].updater, rest.parameters).steps(), 24U) << "group " << i;

  // Other groups are another training.
  TrainOptions other = training({"first.weight"});
  other.checkpoint = rest.checkpoint;
  EXPECT_THAT(refused(other).what(),
              AllOf(HasSubstr("updater.groups[1]: "), HasSubstr("in the checkpoint"), Not(HasSubstr("provider"))));
  TrainOptions none = training({});
  none.checkpoint = rest.checkpoint;
  EXPECT_THAT(refused(none).what(), HasSubstr("updater.groups: in the checkpoint"));
  TrainOptions moved = with_momentum();
  moved.checkpoint = rest.checkpoint;
  moved.groups[0].parameters = {"first", "fit"};
  const Error error = refused(moved);
  EXPECT_EQ(error.code(), TN_INVALID);
  EXPECT_THAT(error.what(), HasSubstr("updater.groups[0].parameters"));
}

// A loop of the application goes on with the updater of a training, unless that had groups.
TEST_F(UpdaterGroups, OfACheckpointAreNoSingleUpdater) {
  const TemporaryFolder folder;
  for (const bool grouped : {false, true}) {
    TrainOptions options = training(grouped ? std::vector<std::string>{"second"} : std::vector<std::string>());
    options.passes = 1;
    options.checkpoint.emplace();
    options.checkpoint->folder = folder.file(grouped ? "grouped" : "single");
    train(options);
    const TrainOptions next = training({});
    const UpdaterState state(next.updater, next.parameters);
    const std::string file = options.checkpoint->folder + "/checkpoint-1-0.safetensors";
    if (grouped) {
      EXPECT_THAT(error_of([&] { state.load(file); }).what(), HasSubstr("updater.groups: in the checkpoint"));
      EXPECT_EQ(state.steps(), 0U);
      continue;
    }
    state.load(file);
    EXPECT_EQ(state.steps(), 6U);
    EXPECT_EQ(updates_of(next.parameters), 6U);
    const auto numbers = [](const TrainOptions& of) {
      const Array array = UpdaterState(of.updater, of.parameters).get("m", "first.weight");
      const auto* data = static_cast<const float*>(array.data);
      return std::vector<float>(data, data + array.count());
    };
    EXPECT_EQ(numbers(next), numbers(options));
  }
}

TEST_F(UpdaterGroups, RefuseWrongNames) {
  TrainOptions unknown = training({"second", "secon", "third"});
  Error error = refused(unknown);
  EXPECT_EQ(error.code(), TN_INVALID);
  EXPECT_THAT(error.what(),
              AllOf(HasSubstr("updater group 1: "), HasSubstr("the machine trains no parameter \"secon\", \"third\"")));
  TrainOptions twice = training({"second"});
  twice.groups.push_back({host_.updater("sgd"), {"fit", "second.bias"}});
  error = refused(twice);
  EXPECT_EQ(error.code(), TN_INVALID);
  EXPECT_THAT(error.what(), HasSubstr("updater group 2: parameter \"second.bias\" is in an earlier group, too"));
  EXPECT_EQ(error.subject(), "second.bias");
  TrainOptions frozen = training({"second"});
  frozen.immutable_parameters = {"second"};
  EXPECT_EQ(refused(frozen).code(), TN_INVALID);
  TrainOptions empty = training({"second"});
  empty.groups[0].parameters.clear();
  EXPECT_THAT(refused(empty).what(), HasSubstr("updater group 1: the list of parameters is empty"));
}

TEST_F(UpdaterGroups, RefuseAnUpdaterTwice) {
  TrainOptions same = training({"second"});
  same.groups[0].updater = same.updater;
  EXPECT_THAT(refused(same).what(), HasSubstr("updater group 1: its updater has other parameters already"));
  TrainOptions stale = training({"second"});
  stale.groups[0].updater = Updater();
  EXPECT_EQ(refused(stale).code(), TN_MISUSE);
}

}  // namespace
}  // namespace tenon_tests
