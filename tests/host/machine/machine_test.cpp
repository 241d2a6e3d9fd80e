// The rules of a machine's step: one backward for each forward, no gradients after a failure, and the costs that are
// trained. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <tenon/plugin.hpp>
#include <tenon/tenon.hpp>

#include "tests/support/bare_plugin.h"
#include "tests/support/paths.h"
#include "tests/support/test_layers.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using Floats = std::vector<float>;

constexpr int64_t kSamples = 4, kColumns = 3;

Floats numbers(const Array& array) {
  const auto* data = static_cast<const float*>(array.data);
  return {data, data + array.count()};
}

template <typename Action>
std::string refusal(Action action, tn_status code) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "nothing was refused";
}

// ---- a layer whose backward fails on request

struct BrittleKernel {
  static bool& broken(const tn_attributes* attributes) {
    return *reinterpret_cast<bool*>(tn_int(attributes, "broken", 0));
  }
  static tn_status copy(const tn_tensor& from, tn_tensor& to, uint8_t request) {
    int64_t count = 1;
    for (int32_t i = 0; i < to.dl.ndim; ++i) count *= to.dl.shape[i];
    const auto* x = static_cast<const float*>(from.dl.data);
    auto* y = static_cast<float*>(to.dl.data);
    for (int64_t i = 0; i < count; ++i) y[i] = x[i] + (request == TN_REQUEST_ADD ? y[i] : 0);
    return TN_OK;
  }
  static tn_status forward(void*, const tn_execution*, const tn_call* call) {
    return copy(*call->inputs[0], *call->outputs[0], call->requests[0]);
  }
  static tn_status backward(void* broken, const tn_execution* execution, const tn_call* call) {
    if (*static_cast<bool*>(broken)) return tn_fail(execution->errors, TN_IO, nullptr, "broken on request");
    return copy(*call->inputs[2], *call->outputs[0], call->requests[0]);
  }
  static tn_status supports(const tn_kernel_site*, int32_t*) { return TN_OK; }
  static tn_status query(const tn_kernel_site*, tn_kernel_needs*) { return TN_OK; }
  static tn_status prepare(const tn_kernel_site* site, int32_t direction, tn_prepared* prepared) {
    const tn_errors* const errors = site->errors;
    if (prepared->size != sizeof *prepared) return tn_fail(errors, TN_INVALID, nullptr, "a struct without its size");
    if (direction == TN_BACKWARD && broken(site->attributes))
      return tn_fail(errors, TN_IO, nullptr, "broken on request");
    prepared->binding = &broken(site->attributes);
    prepared->run = direction == TN_BACKWARD ? backward : forward;
    return TN_OK;
  }
  static const tn_kernel& table() {
    static const tn_dtype kTypes[] = {TN_F32};
    static const tn_kernel kTable = {
        sizeof(tn_kernel), 10,      "test_brittle", "cpu",   "brittle", 1, 0, kTypes, supports, query, prepare,
        nullptr,           nullptr, nullptr,        nullptr, 0,         0, 0, 0,      0,        0};
    return kTable;
  }
};

struct Brittle {
  static void describe(tn::LayerDescription& d) {
    d.type("test_brittle", "the input, whose gradient fails where the bool at the address `broken` says so");
    d.input("input", "any shape");
    d.output("output", "the shape of the input");
    d.attribute(tn::int_attribute("broken").required().doc("address"));
  }
  static void plan(tn::Planner& planner) { planner.output(0, planner.input(0)); }
};

const tn_plugin& brittle() {
  static const tn_layer_type* const kLayers[] = {tn::layer_type<Brittle>()};
  static const tn_kernel* const kKernels[] = {&BrittleKernel::table()};
  static const tn_plugin kPlugin = [] {
    tn_plugin plugin = bare_plugin("tenon.test.brittle");
    plugin.layers_count = 1;
    plugin.layers = kLayers;
    plugin.kernels_count = 1;
    plugin.kernels = kKernels;
    return plugin;
  }();
  return kPlugin;
}

class MachineRules : public testing::Test {
 protected:
  MachineRules() : host_({2, {tenon_tests::plugin_folder()}, nullptr, {}}) {
    host_.add_plugin(&test_layers());
    host_.add_plugin(&brittle());
    DataOptions ids;
    ids.name = "ids", ids.dtype = TN_I32;
    ids_ = host_.data(ids);
    DataOptions weight;
    weight.name = "weight", weight.shape = {kColumns};
    weight_ = host_.data(weight);
  }

  // Returns a cost of a parameter whose gradient is the fed weight divided by the number of samples. A layer of type
  // `type`, if given, lies between parameter and cost.
  Layer cost(const std::string& name, const std::string& type = {}, const Attributes& attributes = {}) {
    Layer x = host_.layer("test_input", {ids_}, {{"rows", kSamples}, {"shape", std::vector<int64_t>{kColumns}}}, name);
    if (!type.empty()) x = host_.layer(type, {x}, attributes, name + "_" + type);
    last_ = x;
    return host_.layer("test_cost", {x, weight_}, {}, name + "_cost");
  }
  [[nodiscard]] Machine machine(const Parameters& parameters, const Layers& outputs, uint64_t seed = 0) const {
    MachineOptions options;
    options.max_samples = kSamples, options.training = true, options.seed = seed;
    return host_.machine(parameters, outputs, options);
  }
  static void forward(const Machine& machine, float weight = 1) {
    std::vector<int32_t> ids(kSamples);
    std::iota(ids.begin(), ids.end(), 0);
    const Floats weights(kSamples * kColumns, weight);
    machine.forward(
        {{"ids", {TN_I32, {kSamples}, ids.data()}}, {"weight", {TN_F32, {kSamples, kColumns}, weights.data()}}});
  }

  Host host_;
  Layer ids_, weight_, last_;
};

TEST_F(MachineRules, OneBackwardForEachForward) {
  const Layer a = cost("a");
  const Machine m = machine(host_.parameters({a}, 1), {a});
  const std::string wants_forward = "needs a forward of its own";
  EXPECT_THAT(refusal([&] { m.backward(); }, TN_MISUSE), HasSubstr(wants_forward));
  forward(m, 4);
  m.backward();
  EXPECT_THAT(numbers(m.gradient("a.values")), Each(1));
  EXPECT_THAT(refusal([&] { m.backward(); }, TN_MISUSE), HasSubstr(wants_forward));
  EXPECT_THAT(numbers(m.gradient("a.values")), Each(1)) << "the refused backward must add nothing";
  forward(m, 8);
  m.backward();
  EXPECT_THAT(numbers(m.gradient("a.values")), Each(3));
  host_.updater("sgd", {{"learning_rate", 0.0}}).update(m);
  EXPECT_THAT(refusal([&] { m.backward(); }, TN_MISUSE), HasSubstr(wants_forward));
}

// A backward fails after it has added some of three gradients. None of the three may be used.
TEST_F(MachineRules, AFailedBackwardLeavesNoGradients) {
  bool broken = false;
  const auto address = static_cast<int64_t>(reinterpret_cast<intptr_t>(&broken));
  const Layers costs = {cost("a"), cost("b", "test_brittle", {{"broken", address}}), cost("c")};
  const Parameters parameters = host_.parameters(costs, 1);
  const Machine m = machine(parameters, costs);
  const Updater updater = host_.updater("sgd", {{"learning_rate", 1.0}});
  const auto step = [&] {
    forward(m, 4);
    m.backward();
  };
  step();
  for (const char* name : {"a.values", "b.values", "c.values"}) EXPECT_THAT(numbers(m.gradient(name)), Each(1));
  broken = true;
  forward(m, 4);
  EXPECT_THAT(refusal([&] { m.backward(); }, TN_IO), AllOf(HasSubstr("b_test_brittle"), HasSubstr("on request")));
  for (const char* name : {"a.values", "b.values", "c.values"})
    EXPECT_THAT(refusal([&] { (void)m.gradient(name); }, TN_MISUSE), HasSubstr("no backward since"));
  const Floats before = numbers(parameters.get("a.values"));
  updater.update(m);
  EXPECT_EQ(numbers(parameters.get("a.values")), before) << "there are no gradients to update with";
  EXPECT_THAT(refusal([&] { m.backward(); }, TN_MISUSE), HasSubstr("forward of its own"));
  broken = false;
  step();
  for (const char* name : {"a.values", "b.values", "c.values"})
    EXPECT_THAT(numbers(m.gradient(name)), Each(1)) << "the failed backward must leave nothing in the gradient";
  step();
  for (const char* name : {"a.values", "b.values", "c.values"}) EXPECT_THAT(numbers(m.gradient(name)), Each(2));
}

// ---- the costs that are trained

TEST_F(MachineRules, ACostThatIsListedTwiceCountsOnce) {
  const Layer a = cost("a");
  const Parameters parameters = host_.parameters({a}, 1);
  const std::vector<float> ones(kSamples * kColumns, 1.0F);
  parameters.set("a.values", {TN_F32, {kSamples, kColumns}, ones.data()});
  const Machine once = machine(parameters, {a}), twice = machine(parameters, {a, a});
  forward(once);
  forward(twice);
  EXPECT_EQ(once.cost(), kColumns);
  EXPECT_EQ(twice.cost(), kColumns);
}

// A failure of a kernel gives the same message in prepare and in run.
TEST_F(MachineRules, PrepareAndRunNameTheSameComponent) {
  bool broken = false;
  const auto address = static_cast<int64_t>(reinterpret_cast<intptr_t>(&broken));
  const Layers costs = {cost("a", "test_brittle", {{"broken", address}})};
  const Parameters parameters = host_.parameters(costs, 1);
  const auto failure = [](auto action) {
    try {
      action();
    } catch (const Error& error) {
      return error;
    }
    return Error(TN_OK, "nothing was refused");
  };
  const Machine m = machine(parameters, costs);
  forward(m);
  broken = true;
  const Error run = failure([&] { m.backward(); });
  EXPECT_STREQ(run.what(),
               "layer \"a_test_brittle\" (test_brittle, native kernel \"brittle\", backward): broken on request");
  EXPECT_EQ(run.component(), "layer \"a_test_brittle\" (test_brittle, native kernel \"brittle\", backward)");
  const Error prepare = failure([&] { (void)machine(parameters, costs); });
  EXPECT_STREQ(prepare.what(), run.what());
  EXPECT_EQ(prepare.component(), run.component());
  EXPECT_EQ(prepare.code(), run.code());
}

TEST_F(MachineRules, ACostThatAnOutputHidesIsRefused) {
  const Layer a = cost("a"), b = cost("b");
  const Layer half = host_.layer("scale_shift", {b}, {{"scale", 0.5}}, "half");
  const Layer shown = host_.layer("relu", {half}, {}, "shown");
  const Parameters parameters = host_.parameters({a, shown}, 1);
  const auto refused = [&](const Layers& outputs) {
    return refusal([&] { (void)machine(parameters, outputs); }, TN_INVALID);
  };
  const auto names_it =
      AllOf(HasSubstr("cost layer \"b_cost\" would not be trained"), HasSubstr("not among the outputs"),
            HasSubstr("layer \"half\" (scale_shift), which reads it, is not a cost"),
            HasSubstr("the costs that are outputs themselves"));
  EXPECT_THAT(refused({half}), names_it);
  EXPECT_THAT(refused({a, half}), names_it) << "together with a cost that is trained";
  EXPECT_THAT(refused({shown, a}), names_it) << "behind a second layer";
  EXPECT_THAT(refused({last_}), HasSubstr("training needs a cost among the outputs"));
}

TEST_F(MachineRules, ACostMayBeReadWhereItIsTrained) {
  const Layer a = cost("a"), b = cost("b");
  const Layer half = host_.layer("scale_shift", {b}, {{"scale", 0.5}}, "half");
  const Layer watched = host_.layer("average", {b}, {}, "watched");
  const Layer watched_half = host_.layer("average", {half}, {}, "watched_half");
  const Layer of_cost =
      host_.layer("test_cost", {b, host_.layer("scale_shift", {b}, {{"scale", 0.0}, {"shift", 3.0}})}, {}, "of_cost");
  const Parameters parameters = host_.parameters({a, of_cost, watched}, 1);
  const auto gradient_of_b = [&](const Layers& outputs) {
    const Machine m = machine(parameters, outputs);
    forward(m, 4);
    m.backward();
    return numbers(m.gradient("b.values"))[0];
  };
  EXPECT_EQ(gradient_of_b({b, half}), 1) << "read by another output";
  EXPECT_EQ(gradient_of_b({half, b}), 1);
  EXPECT_EQ(gradient_of_b({of_cost}), 3) << "part of another cost";
  EXPECT_EQ(gradient_of_b({half, of_cost}), 3);
  for (const Layer& metric : {watched, watched_half}) {
    const Machine m = machine(parameters, {a, metric});  // b is read by a metric alone and not trained
    forward(m);
    EXPECT_EQ(m.metrics().size(), 1U);
  }
  MachineOptions answering;
  answering.max_samples = kSamples;
  EXPECT_NO_THROW((void)host_.machine(parameters, {half}, answering)) << "this machine does not train";
}

}  // namespace
}  // namespace tenon_tests
