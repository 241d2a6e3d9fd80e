// The number of an update in programs of updaters: exact beyond 2^24, where the next float is two steps away.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <tenon/plugin.hpp>

#include "host/api/host/host.h"
#include "host/training/update_calls.h"
#include "tests/support/paths.h"

namespace tenon_tests::step_count_test {

using namespace tenon::host;

namespace {

constexpr int64_t kColumns = 16;
constexpr uint64_t kFloatEnd = uint64_t{1} << 24;  // above it not every whole number is a float

// parameter - offset, where the offset is the step above 2^24, in integers or in floats.
template <bool kExact>
struct Counted {
  static void describe(tn::UpdaterDescription& d) {
    d.type(kExact ? "test.exact" : "test.rounded", "subtracts the number of the update beyond 2^24");
  }
  static void record(tn::UpdateRecorder& update) {
    const int64_t end = static_cast<int64_t>(kFloatEnd);
    const tn::Float rounded = update.step() - static_cast<double>(end);
    const tn::Float beyond = kExact ? tn::to_float(update.step_number() - end) : rounded;
    update.parameter_next(update.parameter() - beyond);
  }
};
// parameter - (step - (2^31 - 4)): the last numbers that an integer of a program holds.
struct CountedLast {
  static void describe(tn::UpdaterDescription& d) { d.type("test.last", "the step near its end"); }
  static void record(tn::UpdateRecorder& update) {
    const int64_t end = (int64_t{1} << 31) - 4;
    update.parameter_next(update.parameter() - tn::to_float(update.step_number() - end));
  }
};
// The rounded step of a program that reads the exact one, too.
struct CountedTwice {
  static void describe(tn::UpdaterDescription& d) { d.type("test.twice", "reads the step in both kinds"); }
  static void record(tn::UpdateRecorder& update) {
    const int64_t end = static_cast<int64_t>(kFloatEnd);
    const tn::Int exact = update.step_number() - end;
    const tn::Float rounded = update.step() - static_cast<double>(end);
    update.parameter_next(update.parameter() - (1000 * tn::to_float(exact) + rounded));
  }
};
void describe(tn::Plugin& plugin) {
  plugin.about("tenon.test.counted", "1.0.0", "updaters of a test", "Apache-2.0");
  plugin.updater<Counted<true>>();
  plugin.updater<Counted<false>>();
  plugin.updater<CountedTwice>();
  plugin.updater<CountedLast>();
}

// What an updater records.
struct Recorded {
  std::vector<StateDeclaration> states;
  Program program;
  std::vector<int32_t> scalars;

  static Recorded of(const UpdaterType& type, const Values& given) {
    Recorded made;
    ErrorSink sink("updater");
    const std::vector<Value> values = resolve(type.description.attributes, given);
    const AttributesView view(type.description.attributes, values);
    tn_update_recorder recorder = {};
    recorder.size = sizeof recorder;
    recorder.self = &made;
    recorder.errors = sink.get();
    recorder.attributes = view.get();
    recorder.state = [](void* self, const tn_state* state) {
      std::vector<StateDeclaration>& states = static_cast<Recorded*>(self)->states;
      states.push_back({state->name, state->initial, state->extent});
      return static_cast<int32_t>(states.size() - 1);
    };
    recorder.program = [](void* self, const tn_update* update) {
      auto& to = *static_cast<Recorded*>(self);
      to.program = Program::from(*update->program);
      to.scalars.assign(update->scalars, update->scalars + update->scalars_count);
      return tn_status{TN_OK};
    };
    EXPECT_EQ(type.table.record(&recorder), TN_OK);
    return made;
  }
};

// line = x . weight with weights of 0 and the cost (line - 1)^2 of one sample, whose gradient for the weights is -2 x.
class StepCount : public testing::Test {
 protected:
  StepCount() : host_(options()) {
    host_.registry.add(*tn::entry<describe>());
    DataSource x, label;
    x.dtype = label.dtype = TN_F32;
    x.shape = {kColumns}, label.shape = {1};
    const LayerOutput inputs = {host_.factory.data("x", x), 0}, labels = {host_.factory.data("label", label), 0};
    const LayerOutput line = host_.factory.layer("fc", "line", {inputs}, {{"size", int64_t{1}}, {"bias", false}});
    const Topology topology = Topology::trace({host_.factory.layer("square_error", "cost", {line, labels}, {})});
    set_ = ParameterSet::create(topology.declarations(), 1, host_.allocator);
    std::fill_n(set_->change("line.weight"), kColumns, 0.0F);
    MachineOptions wanted;
    wanted.max_samples = 1, wanted.training = true;
    machine_ = std::make_unique<Machine>(topology, set_, host_.registry, std::vector{host_.device("cpu")},
                                         host_.parallel, wanted);
    for (int64_t i = 0; i < kColumns; ++i) x_.push_back(0.25F * static_cast<float>(i - kColumns / 2) + 0.1F);
  }

  static HostOptions options() {
    HostOptions made;
    made.threads = 1;
    made.plugin_paths = {tenon_tests::plugin_folder()};
    return made;
  }

  // The weights after one update with fresh states, which is number `step`, and the gradients that it used.
  std::vector<float> update(const char* type, const Values& attributes, uint64_t step) {
    const float one = 1;
    machine_->forward(
        by_number(machine_->feeds(), {{"x", {TN_F32, {1, kColumns}, x_.data()}}, {"label", {TN_F32, {1, 1}, &one}}}));
    machine_->backward();
    const auto* gradient = static_cast<const float*>(machine_->step().gradient("line.weight").data);
    gradients_.assign(gradient, gradient + kColumns);
    const Recorded recorded = Recorded::of(host_.registry.updater(type), attributes);
    std::vector<SlabStates> states(1);
    for (const StateDeclaration& state : recorded.states) {
      const uint64_t elements = set_->slabs().at(0).padded_elements;
      states[0].emplace_back(host_.allocator, elements * sizeof(float));
      std::fill_n(reinterpret_cast<float*>(states[0].back().data()), elements, static_cast<float>(state.initial));
    }
    ErrorSink sink("updater");
    const UpdatePlan plan = {recorded.program, recorded.scalars, recorded.states, TN_GRAIN_ELEMENT, 0, false};
    UpdateCalls calls(machine_->step(), UsedNames(), plan, states, sink);
    EXPECT_TRUE(calls.run(machine_->step(), 0.5, step, sink));
    const float* weights = set_->values("line.weight");
    return {weights, weights + kColumns};
  }

  Host host_;
  std::shared_ptr<ParameterSet> set_;
  std::unique_ptr<Machine> machine_;
  std::vector<float> x_, gradients_;
};

TEST_F(StepCount, IsExactAsAnInteger) { EXPECT_THAT(update("test.exact", {}, kFloatEnd + 3), testing::Each(-3)); }

TEST_F(StepCount, RoundsAsAFloat) {
  EXPECT_THAT(update("test.rounded", {}, kFloatEnd + 3), testing::Each(-4));  // 2^24 + 3 lies between two floats
}

TEST_F(StepCount, IsReadInBothKinds) { EXPECT_THAT(update("test.twice", {}, kFloatEnd + 3), testing::Each(-3004)); }

// Integers of a program over floats of 32 bits have 32 bits.
TEST_F(StepCount, IsExactUpToTheLargestInteger) {
  constexpr uint64_t kLast = (uint64_t{1} << 31) - 1;
  EXPECT_THAT(update("test.last", {}, kLast - 1), testing::Each(-2));
  EXPECT_THAT(update("test.last", {}, kLast), testing::Each(-5)) << "3 more";
  EXPECT_THAT(update("test.last", {}, uint64_t{1} << 40), testing::Each(-8)) << "it stays there";
}

// Betas so near to 1 that the corrections still change after 2^24 updates: threefold up to 2^26.
TEST_F(StepCount, OfAdamFollowsTheFormula) {
  const double beta1 = 1 - 1e-8, beta2 = 1 - 3e-8, epsilon = 1e-8, rate = 0.5;
  const Values attributes = {{"beta1", beta1}, {"beta2", beta2}, {"epsilon", epsilon}};
  for (const uint64_t step : {uint64_t{1}, kFloatEnd, kFloatEnd + 3, 4 * kFloatEnd + 5}) {
    std::fill_n(set_->change("line.weight"), kColumns, 0.0F);
    const std::vector<float> weights = update("adam", attributes, step);
    const auto t = static_cast<double>(step);
    for (size_t i = 0; i < weights.size(); ++i) {
      const double g = gradients_[i];
      const double m = (1 - beta1) * g / -std::expm1(t * std::log(beta1));
      const double v = (1 - beta2) * g * g / -std::expm1(t * std::log(beta2));
      const double expected = -rate * m / (std::sqrt(v) + epsilon);
      EXPECT_NEAR(weights[i], expected, std::abs(expected) * 2e-6) << "step " << step << ", element " << i;
    }
  }
}

}  // namespace
}  // namespace tenon_tests::step_count_test
