// Updaters that the application implements, in steps of its own; tests/bindings/python/test_updaters.py has trainings.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <tenon/tenon_lease.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <stdexcept>
#include <tenon/tenon_machine.hpp>
#include <tenon/tenon_updater.hpp>
#include <thread>

#include "tests/support/temporary_folder.h"
#include "tests/support/update_model.h"

namespace tenon_tests {

namespace {

using Weights = std::vector<std::vector<float>>;

// Returns weights that are all w: the gradients are w / 4.
Weights all(float w) { return {std::vector<float>(20, w), std::vector<float>(48, w), std::vector<float>(4, w)}; }

Error error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return {TN_OK, ""};
}

// Momentum: v = 0.5 v + g; w -= rate v.
class Momentum final : public UpdateRule {
 public:
  explicit Momentum(Parameters parameters, double rate = 1) : parameters_(std::move(parameters)), rate_(rate) {}

  void update(const RuleStep& step) override {
    steps.push_back(step.number);
    names = step.names;
    std::map<std::string, std::vector<float>> next;
    std::vector<ParameterValues> values;
    for (const std::string& name : step.names) {
      if (name == failing) throw std::runtime_error("the rule fails");
      const Array gradient = step.machine.gradient(name), parameter = parameters_.get(name);
      std::vector<float>& velocity = velocities[name];
      velocity.resize(static_cast<size_t>(gradient.count()));
      std::vector<float>& value = next[name];
      for (size_t i = 0; i < velocity.size(); ++i) {
        velocity[i] = 0.5F * velocity[i] + static_cast<const float*>(gradient.data)[i];
        value.push_back(static_cast<const float*>(parameter.data)[i] - static_cast<float>(rate_) * velocity[i]);
      }
      values.push_back({name, {TN_F32, parameter.shape, value.data()}});
    }
    commit(step.machine, values);
  }
  [[nodiscard]] double learning_rate() const override { return rate_; }
  void set_learning_rate(double rate) override { rate_ = rate; }
  [[nodiscard]] std::vector<RuleState> states() override {
    std::vector<RuleState> result;
    for (const auto& [name, velocity] : velocities)
      result.push_back({"velocity", name, {TN_F32, parameters_.get(name).shape, velocity.data()}});
    result.push_back({state, "x0.values", {TN_I64, {}, &count}});
    return result;
  }
  void set_states(const std::vector<RuleState>& states) override {
    for (const RuleState& each : states) {
      if (each.state == "velocity") {
        const auto* const values = static_cast<const float*>(each.values.data);
        velocities[each.parameter].assign(values, values + each.values.count());
      } else {
        count = *static_cast<const int64_t*>(each.values.data);
      }
    }
  }

  std::string failing, state = "count";
  int64_t count = 7;
  std::vector<uint64_t> steps;
  std::vector<std::string> names;
  std::map<std::string, std::vector<float>> velocities;

 private:
  Parameters parameters_;
  double rate_;
};

class RuleUpdating : public testing::Test {
 protected:
  RuleUpdating() {
    for (size_t i = 0; i < 3; ++i) model_.set(i, std::vector<float>(model_.get(i).size(), 0));
  }
  void expect(const std::vector<double>& values) const {
    for (size_t i = 0; i < 3; ++i)
      for (const double got : model_.get(i)) ASSERT_NEAR(got, values[i], 1e-6) << "parameter " << i;
  }

  const UpdateModel model_ = UpdateModel(1);
  const std::shared_ptr<Momentum> rule_ = std::make_shared<Momentum>(model_.parameters());
  Updater updater_ = updater_of(model_.parameters(), "momentum", rule_);
};

TEST_F(RuleUpdating, IsCalledOnceForEachStepWithItsParameters) {
  model_.step(updater_, all(4));
  expect({-1, -1, -1});
  model_.step(updater_, all(4));
  expect({-2.5, -2.5, -2.5});
  EXPECT_EQ(rule_->steps, (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(rule_->names, (std::vector<std::string>{"x0.values", "x1.values", "x2.values"}));
  updater_.update(model_.machine());  // without gradients
  EXPECT_EQ(rule_->steps.size(), 2U);
  EXPECT_EQ(UpdaterState(updater_, model_.parameters()).steps(), 2U);
  EXPECT_EQ(updates_of(model_.parameters()), 2U);
}

TEST_F(RuleUpdating, UpdatesAPartOrOneModel) {
  const Updater plugin = model_.updater("sgd", {{"learning_rate", 0.5}});
  model_.backward(all(4));
  update_parameters(updater_, model_.machine(), {"x1"});
  EXPECT_EQ(rule_->names, (std::vector<std::string>{"x1.values"}));
  plugin.update(model_.machine());
  expect({-0.5, -1, -0.5});
  model_.backward(all(4));
  updater_.update(model_.machine(), model_.output(2));
  expect({-0.5, -1, -1.5});
}

TEST_F(RuleUpdating, ThatFailsChangesNothingAndKeepsItsException) {
  rule_->failing = "x2.values";
  model_.backward(all(4));
  EXPECT_THROW(updater_.update(model_.machine()), std::runtime_error);
  expect({0, 0, 0});
  EXPECT_EQ(updates_of(model_.parameters()), 0U);
  rule_->failing.clear();
  rule_->velocities.clear();
  updater_.update(model_.machine());  // the gradients are there still, and the machine is the application's
  expect({-1, -1, -1});
  model_.step(updater_, all(4));
  expect({-2.5, -2.5, -2.5});
}

TEST_F(RuleUpdating, IsSavedAndLoadedWithItsStates) {
  const TemporaryFolder folder;
  const std::string file = folder.file("updater.safetensors");
  for (int i = 0; i < 2; ++i) model_.step(updater_, all(4));
  updater_.set_learning_rate(0.25);
  const UpdaterState state(updater_, model_.parameters());
  state.save(file);
  EXPECT_NE(state.describe().find("\"state\":\"velocity\""), std::string::npos);
  EXPECT_NE(state.describe().find("\"dtype\":\"int64\""), std::string::npos);
  EXPECT_EQ(static_cast<const float*>(state.get("velocity", "x1.values").data)[3], 1.5F);
  const float zero = 0;
  const Error own = error_of([&] { state.set("velocity", "x2.values", {TN_F32, {1}, &zero}); });
  EXPECT_EQ(own.code(), TN_UNSUPPORTED);

  const UpdateModel other(1);
  for (size_t i = 0; i < 3; ++i) other.set(i, std::vector<float>(other.get(i).size(), 0));
  const auto restored = std::make_shared<Momentum>(other.parameters());
  restored->count = 0;
  const Updater again = updater_of(other.parameters(), "momentum", restored);
  UpdaterState(again, other.parameters()).load(file);
  EXPECT_EQ(restored->count, 7);
  EXPECT_EQ(restored->learning_rate(), 0.25);
  EXPECT_EQ(UpdaterState(again, other.parameters()).steps(), 2U);
  other.step(again, all(4));
  for (const double got : other.get(0)) EXPECT_EQ(got, -0.25 * 1.75);

  const Updater different = updater_of(other.parameters(), "momentum", restored, R"({"decay": 0.5})");
  EXPECT_NE(std::string(error_of([&] { UpdaterState(different, other.parameters()).load(file); }).what())
                .find("updater.attributes.decay: not in the checkpoint, now 0.5"),
            std::string::npos);
}

TEST_F(RuleUpdating, RefusesStatesThatNoFileCanHold) {
  const TemporaryFolder folder;
  const std::string file = folder.file("updater.safetensors");
  model_.step(updater_, all(4));
  for (const auto& [name, message] : std::map<std::string, std::string>{
           {"", "letters"},
           {"a/b", "no \"/\""},
           {"velocity", "state \"velocity\" of parameter \"x0.values\" is given twice"}}) {
    rule_->state = name;
    const Error error = error_of([&] { UpdaterState(updater_, model_.parameters()).save(file); });
    EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
    EXPECT_EQ(error.component(), "updater \"momentum\" of the application");
  }
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST_F(RuleUpdating, BelongsToOneSet) {
  model_.step(updater_, all(4));
  const UpdateModel other(1);
  other.backward(all(4));
  EXPECT_EQ(error_of([&] { updater_.update(other.machine()); }).code(), TN_MISUSE);  // of another host
}

TEST_F(RuleUpdating, IsNotForStepsInOneCall) {
  std::vector<double> costs;
  const Error error = error_of([&] { steps(model_.machine(), updater_, {}, 1, costs); });
  EXPECT_EQ(error.code(), TN_UNSUPPORTED) << error.what();
}

TEST_F(RuleUpdating, RefusesOptionsThatAreNone) {
  EXPECT_EQ(error_of([&] { static_cast<void>(updater_of(model_.parameters(), "", rule_)); }).subject(), "options.type");
  for (const char* const attributes : {"[]", "{", "1", ""})
    EXPECT_EQ(error_of([&] { static_cast<void>(updater_of(model_.parameters(), "m", rule_, attributes)); }).subject(),
              "options.attributes");
  EXPECT_EQ(error_of([&] { static_cast<void>(updater_of(model_.parameters(), "m", nullptr)); }).code(), TN_MISUSE);
}

// A rule that lets a plugin's updater compute some parameters.
class Delegating final : public UpdateRule {
 public:
  explicit Delegating(Updater inner) : inner_(std::move(inner)) {}
  void update(const RuleStep& step) override {
    update_parameters(inner_, step.machine, {"x0"});
    EXPECT_EQ(error_of([&] { update_parameters(inner_, step.machine, {"x0"}); }).code(), TN_MISUSE);
    const std::vector<float> gradient(48, 8);
    set_gradient(step.machine, "x1.values", {TN_F32, {4, 3, 4}, gradient.data()});
    inner_.update(step.machine);
    EXPECT_EQ(error_of([&] { step.machine.backward(); }).code(), TN_MISUSE);
  }

 private:
  Updater inner_;
};

TEST_F(RuleUpdating, MayUseUpdatersOfPlugins) {
  const Updater plugin = model_.updater("sgd", {{"learning_rate", 1.0}});
  const Updater delegating = updater_of(model_.parameters(), "delegating", std::make_shared<Delegating>(plugin));
  model_.step(delegating, all(4));
  expect({-1, -8, -1});
  EXPECT_EQ(updates_of(model_.parameters()), 1U);
  model_.step(delegating, all(4));
  expect({-2, -16, -2});
}

TEST_F(RuleUpdating, CannotUseAnotherOneOfTheApplication) {
  const Updater delegating = updater_of(model_.parameters(), "delegating", std::make_shared<Delegating>(updater_));
  model_.backward(all(4));
  const Error error = error_of([&] { delegating.update(model_.machine()); });
  EXPECT_EQ(error.code(), TN_MISUSE) << error.what();
  expect({0, 0, 0});
}

TEST_F(RuleUpdating, IsReleasedWithTheUpdater) {
  const std::weak_ptr<Momentum> rule = rule_;
  EXPECT_EQ(rule.use_count(), 2);
  updater_ = Updater();
  EXPECT_EQ(rule.use_count(), 1);
}

// What other threads read is always the set before a step or after it.
TEST(RuleUpdatingBesideReaders, WritesWholeSteps) {
  const UpdateModel model(1);
  for (size_t i = 0; i < 3; ++i) model.set(i, std::vector<float>(model.get(i).size(), 0));
  const Updater updater = updater_of(model.parameters(), "momentum", std::make_shared<Momentum>(model.parameters()));
  std::atomic<bool> over = false;
  std::atomic<int> mixed = 0, reads = 0;
  std::thread reader([&] {
    std::vector<float> room(48);
    while (!over) {
      const auto first = [&](const char* name) {
        uint64_t bytes = room.size() * sizeof(float);
        EXPECT_EQ(tn_parameters_read(model.parameters().host(), model.parameters().handle(), name, room.data(), &bytes,
                                     nullptr),
                  TN_OK);
        return room[0];
      };
      const float before = first("x0.values"), middle = first("x1.values"), after = first("x0.values");
      if (before == after && middle != before) ++mixed;
      ++reads;
    }
  });
  for (int i = 0; i < 300; ++i) model.step(updater, all(4));
  over = true;
  reader.join();
  EXPECT_EQ(mixed, 0);
  EXPECT_GT(reads, 0);
}

}  // namespace

}  // namespace tenon_tests
