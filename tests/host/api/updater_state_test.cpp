// The state of an updater in the public API: read, set, stored, restored, so that a hand-written training loop goes on
// with the same bits. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <tenon/tenon.hpp>
#include <tenon/tenon_updater.hpp>

#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using nlohmann::json;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kSamples = 4, kWords = 6;

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

// A table of words with a row-sparse gradient, a layer with dropout, and a hand-written loop over them.
class Loop {
 public:
  explicit Loop(const std::string& type = "adam", const Attributes& attributes = {{"learning_rate", 0.1}},
                int64_t width = 3)
      : host_(host_options()) {
    DataOptions word, target;
    word.name = "word", word.dtype = TN_I32, word.index_limit = kWords;
    target.name = "target", target.shape = {2};
    const Layer table =
        host_.layer("embedding", {host_.data(word)}, {{"vocabulary", kWords}, {"size", width}}, "table");
    const Layer line = host_.layer("fc", {table}, {{"size", 2}, {"drop_rate", 0.5}}, "line");
    outputs = {host_.layer("square_error", {line, host_.data(target)}, {}, "cost")};
    start(host_.parameters(outputs, 7), type, attributes);
  }
  // Goes on with the parameters of a model file.
  Loop(const std::string& model, const std::string& type, const Attributes& attributes) : host_(host_options()) {
    Model loaded = host_.load(model);
    outputs = loaded.outputs;
    start(loaded.parameters, type, attributes);
  }

  void run(int steps, int first = 0) const {
    for (int i = first; i < first + steps; ++i) {
      const std::vector<int32_t> words = {i % 6, (i + 1) % 6, 2, i % 3};
      std::vector<float> targets(kSamples * 2);
      for (size_t k = 0; k < targets.size(); ++k) targets[k] = static_cast<float>(k) * 0.25F - static_cast<float>(i);
      machine.forward(
          {{"word", {TN_I32, {kSamples}, words.data()}}, {"target", {TN_F32, {kSamples, 2}, targets.data()}}});
      machine.backward();
      updater.update(machine);
    }
  }
  [[nodiscard]] std::vector<float> values(const std::string& name) const { return numbers(parameters.get(name)); }
  [[nodiscard]] std::vector<float> everything() const {
    std::vector<float> all;
    for (const char* name : {"table.weight", "line.weight", "line.bias"})
      for (const float value : values(name)) all.push_back(value);
    for (const json& each : json::parse(state().describe()))
      for (const float value : numbers(state().get(each["state"], each["parameter"]))) all.push_back(value);
    return all;
  }
  static std::vector<float> numbers(const Array& array) {
    const auto* data = static_cast<const float*>(array.data);
    return {data, data + array.count()};
  }
  [[nodiscard]] UpdaterState state() const { return {updater, parameters}; }

  Layers outputs;
  Parameters parameters;
  Machine machine;
  Updater updater;

 private:
  void start(Parameters set, const std::string& type, const Attributes& attributes) {
    parameters = std::move(set);
    MachineOptions options;
    options.max_samples = kSamples, options.training = true, options.seed = 5;
    machine = host_.machine(parameters, outputs, options);
    updater = host_.updater(type, attributes);
  }
  Host host_;
};

const Attributes kRate = {{"learning_rate", 0.1}};

class UpdaterStates : public testing::Test {
 protected:
  [[nodiscard]] std::string file(const std::string& name) const { return folder_.file(name); }
  TemporaryFolder folder_;
};

TEST_F(UpdaterStates, AreListedWithTheirShapes) {
  const json expected = {{{"state", "m"}, {"parameter", "table.weight"}, {"shape", {6, 3}}, {"dtype", "float32"}},
                         {{"state", "v"}, {"parameter", "table.weight"}, {"shape", {6, 3}}, {"dtype", "float32"}},
                         {{"state", "m"}, {"parameter", "line.weight"}, {"shape", {3, 2}}, {"dtype", "float32"}},
                         {{"state", "v"}, {"parameter", "line.weight"}, {"shape", {3, 2}}, {"dtype", "float32"}},
                         {{"state", "m"}, {"parameter", "line.bias"}, {"shape", {2}}, {"dtype", "float32"}},
                         {{"state", "v"}, {"parameter", "line.bias"}, {"shape", {2}}, {"dtype", "float32"}}};
  EXPECT_EQ(json::parse(Loop().state().describe()), expected);
  EXPECT_EQ(json::parse(Loop("sgd").state().describe()), json::array());
  const json rows = json::parse(Loop("rowwise_adagrad", {}).state().describe());
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0]["shape"], json::array({6})) << "one number for each row";
}

TEST_F(UpdaterStates, AreReadAndSet) {
  const Loop loop;
  EXPECT_THAT(Loop::numbers(loop.state().get("m", "line.bias")), ElementsAre(0, 0)) << "before the first update";
  EXPECT_EQ(loop.state().steps(), 0U);
  loop.run(2);
  EXPECT_EQ(loop.state().steps(), 2U);
  EXPECT_EQ(updates_of(loop.parameters), 2U);
  EXPECT_THAT(Loop::numbers(loop.state().get("v", "line.bias")), Each(testing::Gt(0)));
  const float pair[] = {3, 0, 4, 0};
  Array strided = {TN_F32, {2}, pair};
  strided.strides = {2};
  loop.state().set("m", "line.bias", strided);
  EXPECT_THAT(Loop::numbers(loop.state().get("m", "line.bias")), ElementsAre(3, 4));
}

// An update reads the states and the step that were set: one step of sgd with a velocity.
TEST_F(UpdaterStates, ThatWereSetAreUsed) {
  const Loop loop("sgd", {{"learning_rate", 1.0}, {"momentum", 0.5}});
  loop.run(1);
  const Loop same("sgd", {{"learning_rate", 1.0}, {"momentum", 0.5}});
  same.run(1);
  const float zero[] = {0, 0};
  const std::vector<float> velocity = Loop::numbers(loop.state().get("velocity", "line.bias"));
  loop.state().set("velocity", "line.bias", {TN_F32, {2}, zero});
  loop.run(1, 1), same.run(1, 1);
  const std::vector<float> got = loop.values("line.bias"), kept = same.values("line.bias");
  for (size_t i = 0; i < 2; ++i) EXPECT_NEAR(got[i] - kept[i], 0.5 * velocity[i], 1e-5);
  EXPECT_NE(velocity, std::vector<float>({0, 0}));
}

TEST_F(UpdaterStates, StepsDetermineTheSchedule) {
  const Attributes schedule = {
      {"learning_rate", 1.0}, {"schedule.type", "step"}, {"schedule.steps", 10}, {"schedule.rate", 0.0}};
  const Loop loop("sgd", schedule);
  loop.state().set_steps(1000);
  const std::vector<float> before = loop.everything();
  loop.run(1);
  EXPECT_EQ(loop.everything(), before) << "the rate is 0 by now";
  EXPECT_EQ(loop.state().steps(), 1001U);
  EXPECT_EQ(error_of([&] { loop.state().set_steps(uint64_t{1} << 63); }).code(), TN_INVALID);
  EXPECT_EQ(loop.state().steps(), 1001U);
}

// Dropout reads the number of updates of the set.
TEST_F(UpdaterStates, UpdatesOfASetAreSet) {
  const Loop one, other;
  set_updates(other.parameters, 9);
  EXPECT_EQ(updates_of(other.parameters), 9U);
  one.run(1), other.run(1);
  EXPECT_NE(one.everything(), other.everything()) << "another mask";
  EXPECT_EQ(updates_of(other.parameters), 10U);
}

TEST_F(UpdaterStates, WithAModelContinueALoop) {
  for (const std::string type : {"adam", "rowwise_adagrad", "sgd"}) {
    SCOPED_TRACE(type);
    const Attributes& attributes = kRate;
    const Loop whole(type, attributes);
    const auto slower = [](const Loop& loop) { loop.updater.set_learning_rate(0.05); };
    whole.run(2), slower(whole), whole.run(4, 2);

    const Loop first(type, attributes);
    first.run(2), slower(first), first.run(1, 2);
    first.parameters.save(first.outputs, file("model"));
    first.state().save(file("updater"));
    first.state().save(file("both"), first.outputs);
    for (const char* model : {"model", "both"}) {
      const Loop rest(file(model), type, attributes);
      rest.state().load(file(model == std::string("both") ? "both" : "updater"));
      EXPECT_EQ(rest.state().steps(), 3U);
      EXPECT_EQ(updates_of(rest.parameters), 3U);
      EXPECT_EQ(rest.everything(), first.everything());
      rest.run(3, 3);
      EXPECT_EQ(rest.everything(), whole.everything()) << model;
    }
    const Loop without(file("model"), type, attributes);
    without.run(3, 3);
    EXPECT_NE(without.everything(), whole.everything()) << "the state matters";
  }
}

TEST_F(UpdaterStates, OfAnotherUpdaterAreRefused) {
  const Loop saved;
  saved.run(2);
  saved.state().save(file("updater"));
  const auto refused = [&](const Loop& loop) {
    loop.run(1);
    const std::vector<float> before = loop.everything();
    const Error error = error_of([&] { loop.state().load(file("updater")); });
    EXPECT_EQ(error.code(), TN_INVALID) << error.what();
    EXPECT_EQ(error.subject(), file("updater"));
    EXPECT_EQ(loop.everything(), before);
    EXPECT_EQ(loop.state().steps(), 1U);
    EXPECT_EQ(updates_of(loop.parameters), 1U);
    return std::string(error.what());
  };
  EXPECT_THAT(refused(Loop("adam", {{"learning_rate", 0.1}, {"beta1", 0.5}})),
              AllOf(HasSubstr("1 difference: updater.attributes.beta1: 0.9 in the checkpoint, 0.5 now")));
  EXPECT_THAT(refused(Loop("sgd", {{"momentum", 0.9}})),
              AllOf(HasSubstr("updater.type: \"adam\" in the checkpoint, \"sgd\" now"),
                    HasSubstr("states.m/table.weight: in the checkpoint (\"[6, 3]\"), not now"),
                    HasSubstr("states.velocity/line.bias: not in the checkpoint, now \"[2]\"")));
  EXPECT_THAT(refused(Loop("adam", kRate, 5)),
              AllOf(HasSubstr("4 differences:"),
                    HasSubstr("states.m/table.weight: \"[6, 3]\" in the checkpoint, \"[6, 5]\" now"),
                    HasSubstr("states.v/line.weight: \"[3, 2]\" in the checkpoint, \"[5, 2]\" now")));
}

TEST_F(UpdaterStates, OfNoCheckpointAreRefused) {
  const Loop loop;
  loop.run(1);
  const std::vector<float> before = loop.everything();
  loop.parameters.save(loop.outputs, file("model"));
  const Error model = error_of([&] { loop.state().load(file("model")); });
  EXPECT_EQ(model.code(), TN_BAD_DATA);
  EXPECT_THAT(model.what(), HasSubstr("not a checkpoint"));
  EXPECT_EQ(error_of([&] { loop.state().load(file("none")); }).code(), TN_NOT_FOUND);
  loop.state().save(file("updater"));
  std::fstream damaged(file("updater"), std::ios::in | std::ios::out | std::ios::binary);
  damaged.seekp(-5, std::ios::end);
  damaged.put('x');
  damaged.close();
  EXPECT_EQ(error_of([&] { loop.state().load(file("updater")); }).code(), TN_BAD_DATA);
  EXPECT_EQ(loop.everything(), before);
  EXPECT_EQ(error_of([&] { loop.state().save(file("no folder/updater")); }).code(), TN_NOT_FOUND);
}

// A file without outputs is no model, and no training resumes from it.
TEST_F(UpdaterStates, AreNoModel) {
  const Loop loop;
  loop.state().save(file("updater"));
  const Host host(host_options());
  EXPECT_EQ(error_of([&] { static_cast<void>(host.load(file("updater"))); }).code(), TN_BAD_DATA);
}

TEST_F(UpdaterStates, RefuseWrongNamesAndValues) {
  const Loop loop;
  const UpdaterState state = loop.state();
  const Error name = error_of([&] { static_cast<void>(state.get("n", "line.bias")); });
  EXPECT_EQ(name.code(), TN_NOT_FOUND);
  EXPECT_EQ(name.subject(), "n");
  EXPECT_THAT(name.what(), AllOf(HasSubstr("updater \"adam\""), HasSubstr("no state \"n\"")));
  EXPECT_EQ(error_of([&] { static_cast<void>(state.get("m", "line.bia")); }).code(), TN_NOT_FOUND);
  const float values[] = {1, 2, 3};
  const Error shape = error_of([&] { state.set("m", "line.bias", {TN_F32, {3}, values}); });
  EXPECT_EQ(shape.code(), TN_INVALID);
  EXPECT_THAT(shape.what(), HasSubstr("state \"m\" of parameter \"line.bias\" is float32 [2]; given float32 [3]"));
  EXPECT_EQ(error_of([&] { state.set("m", "line.bias", {TN_I32, {2}, values}); }).code(), TN_INVALID);
  EXPECT_EQ(error_of([&] { state.set("m", "line.bias", {TN_F32, {2}, nullptr}); }).code(), TN_MISUSE);
  EXPECT_THAT(Loop::numbers(state.get("m", "line.bias")), ElementsAre(0, 0));
  const Host host(host_options());
  DataOptions x;
  x.name = "x", x.shape = {2};
  const Parameters declared = host.declare({host.layer("fc", {host.data(x)}, {{"size", 2}}, "line")});
  const UpdaterState none(host.updater("adam"), declared);
  EXPECT_EQ(json::parse(none.describe()).size(), 4U);
  EXPECT_EQ(error_of([&] { static_cast<void>(none.get("m", "line.bias")); }).code(), TN_MISUSE);
  EXPECT_EQ(error_of([&] { none.save(file("declared")); }).code(), TN_MISUSE);
}

TEST_F(UpdaterStates, RefuseNullsAndStaleHandles) {
  const Loop loop;
  tn_host* host = loop.parameters.host();
  const tn_updater updater = loop.updater.handle();
  const tn_parameters set = loop.parameters.handle();
  tn_array array = {};
  EXPECT_EQ(tn_updater_states(host, updater, set, nullptr, nullptr, nullptr), TN_MISUSE);
  EXPECT_EQ(tn_updater_get_state(host, updater, set, "m", "line.bias", nullptr, nullptr), TN_MISUSE);
  EXPECT_EQ(tn_updater_get_state(host, updater, set, nullptr, "line.bias", &array, nullptr), TN_MISUSE);
  EXPECT_EQ(tn_updater_get_state(host, {99, 1}, set, "m", "line.bias", &array, nullptr), TN_MISUSE);
  EXPECT_EQ(tn_updater_set_state(host, updater, set, "m", "line.bias", nullptr, nullptr), TN_MISUSE);
  EXPECT_EQ(tn_updater_steps(host, updater, set, nullptr, nullptr), TN_MISUSE);
  EXPECT_EQ(tn_parameters_updates(host, {99, 1}, nullptr, nullptr), TN_MISUSE);
  EXPECT_EQ(tn_updater_save(host, updater, set, nullptr, 0, nullptr, nullptr), TN_MISUSE);
  EXPECT_EQ(tn_updater_load(host, updater, {99, 1}, "file", nullptr), TN_MISUSE);
}

}  // namespace
}  // namespace tenon_tests
