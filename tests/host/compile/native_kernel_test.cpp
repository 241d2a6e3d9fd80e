// Native kernels: the choice among them, and every class of operands, compared with the recorded bodies of their
// layers. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <tenon/tenon.hpp>

#include "tests/support/native_layers.h"
#include "tests/support/paths.h"
#include "tests/support/test_layers.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kSamples = 6, kWidth = 3;

// x (a parameter [kSamples, kWidth]) -> a layer of native_layers.h -> test_cost with the weights 1, 2, 3, ...
class Model {
 public:
  Model(const std::string& type, const std::vector<std::string>& kernels, bool training = true, bool sparse = true,
        tn_dtype compute = TN_F32)
      : native_(kernels), host_({1, {plugin_folder()}, nullptr, {}}) {
    host_.add_plugin(&test_layers());
    host_.add_plugin(&native_.plugin());
    DataOptions ids, weight;
    ids.name = "ids", ids.dtype = TN_I32;
    weight.name = "weight", weight.shape = {kWidth};
    const Layer rows = host_.data(ids);
    const bool table = type == "native_table";
    if (!table)
      x_ = host_.layer("test_input", {rows}, {{"rows", kSamples}, {"shape", std::vector<int64_t>{kWidth}}}, "x");
    out_ = table ? host_.layer(type, {rows}, {{"height", kSamples}, {"width", kWidth}, {"param.values.sparse", sparse}},
                               "x")
                 : host_.layer(type, {x_}, {}, "out");
    cost_ = host_.layer("test_cost", {out_, host_.data(weight)}, {}, "cost");
    parameters_ = host_.parameters({cost_}, 3);
    std::vector<float> values(kSamples * kWidth);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(std::sin(static_cast<double>(i)) * 3);
    parameters_.set("x.values", {TN_F32, {kSamples, kWidth}, values.data()});
    MachineOptions options;
    options.max_samples = kSamples;
    options.training = training;
    options.keep_all = true;
    options.seed = 9;
    options.compute = compute;
    machine_ = host_.machine(parameters_, {cost_}, options);
  }

  void forward(int64_t samples = kSamples, int32_t first = 0) const {
    std::vector<int32_t> ids(static_cast<size_t>(samples));
    std::iota(ids.begin(), ids.end(), first);
    for (int32_t& id : ids) id %= kSamples;
    std::vector<float> weight(static_cast<size_t>(samples * kWidth));
    std::iota(weight.begin(), weight.end(), 1.0F);
    machine_.forward(
        {{"ids", {TN_I32, {samples}, ids.data()}}, {"weight", {TN_F32, {samples, kWidth}, weight.data()}}});
  }
  [[nodiscard]] std::vector<float> output() const { return floats(machine_.output(out_)); }
  [[nodiscard]] std::vector<float> gradient() const { return floats(machine_.gradient("x.values")); }
  // Outputs and gradients of three training steps of sgd, with varying minibatches.
  [[nodiscard]] std::vector<float> train() const {
    const Updater updater = host_.updater("sgd", {{"learning_rate", 0.01}});
    std::vector<float> all;
    for (const int64_t samples : {kSamples, kSamples - 2, kSamples}) {
      forward(samples, static_cast<int32_t>(samples));
      for (const float value : output()) all.push_back(value);
      machine_.backward();
      for (const float value : gradient()) all.push_back(value);
      updater.update(machine_);
    }
    return all;
  }
  // Returns the names of the native kernels in the plan.
  [[nodiscard]] std::vector<std::string> kernels() const {
    std::vector<std::string> names;
    const json plan = json::parse(machine_.plan());
    for (const json& call : plan.at("calls"))
      if (call.at("call") == "native") names.push_back(call.at("kernel"));
    return names;
  }
  [[nodiscard]] const Machine& machine() const { return machine_; }
  [[nodiscard]] const Parameters& parameters() const { return parameters_; }
  [[nodiscard]] const Host& host() const { return host_; }

 private:
  static std::vector<float> floats(const Array& array) {
    int64_t count = 1;
    for (const int64_t extent : array.shape) count *= extent;
    const auto* data = static_cast<const float*>(array.data);
    return {data, data + count};
  }

  NativeLayers native_;
  Host host_;
  Layer x_, out_, cost_;
  Parameters parameters_;
  Machine machine_;
};

const std::vector<std::string> kAllSquares = {"whole", "forward_only", "no_query", "no_prepare"};

// S5: a kernel that lacks what the machine needs is passed over for the next, in the order of the scores.
TEST(NativeKernel, IsPassedOverIfItDoesNotTakeTheLayer) {
  EXPECT_THAT(Model("native_square", kAllSquares).kernels(), ElementsAre("whole", "whole"));
  EXPECT_THAT(Model("native_square", kAllSquares, false).kernels(), ElementsAre("forward_only"));
  EXPECT_THAT(Model("native_square", {"forward_only", "no_query"}).kernels(), ElementsAre()) << "the body is left";
  EXPECT_THAT(Model("native_square", {"no_query", "no_prepare"}, false).kernels(), ElementsAre());
}

TEST(NativeKernel, KnowsHowExactProductsMustBe) {
  const std::vector<std::string> kernels = {"rounding", "forward_only"};
  EXPECT_THAT(Model("native_square", kernels, false).kernels(), ElementsAre("forward_only"));
  EXPECT_THAT(Model("native_square", kernels, false, true, TN_BF16).kernels(), ElementsAre("rounding"));
  EXPECT_THAT(Model("native_square", kernels, false, true, TN_TF32).kernels(), ElementsAre("forward_only"));
}

TEST(NativeKernel, EveryChoiceTrainsAlike) {
  const std::vector<float> body = Model("native_square", {}).train();
  EXPECT_EQ(Model("native_square", kAllSquares).train(), body);
  EXPECT_EQ(Model("native_square", {"forward_only"}).train(), body);
}

// S6: after a failed prepare the host frees the binding that the kernel has set, once.
TEST(NativeKernel, AFailedPrepareIsFreedByTheHost) {
  const int before = freed_bindings();
  const Model model("native_square", {"no_prepare", "whole"});
  EXPECT_EQ(freed_bindings(), before + 1);
  EXPECT_THAT(model.kernels(), ElementsAre("whole", "whole"));
}

TEST(NativeKernel, SavedTensorsAndSharedMemoryArePlanned) {
  const json plan = json::parse(Model("native_square", {"whole"}).machine().plan());
  bool saved = false;
  for (const json& value : plan.at("saved")) saved = saved || value.at("layer") == "out";
  EXPECT_TRUE(saved) << plan.at("saved");
  const json inference = json::parse(Model("native_square", {"whole"}, false).machine().plan());
  for (const json& call : inference.at("calls"))
    if (call.at("call") == "native") {
      EXPECT_EQ(call.at("outputs").size(), 1U) << "nothing is saved without training: " << call;
    }
}

// S4: the buffer of a layer with a native kernel is committed like that of a body.
TEST(NativeKernel, BuffersAreReadAndWritten) {
  for (const std::vector<std::string>& kernels : {std::vector<std::string>{}, {"count"}}) {
    const Model model("native_count", kernels);
    EXPECT_EQ(model.kernels().size(), 2 * kernels.size());
    static_cast<void>(model.train());
    EXPECT_EQ(*static_cast<const float*>(model.parameters().get("out.count").data), 3.0F);
  }
  const Model inference("native_count", {"count"}, false);
  inference.forward();
  inference.forward();
  EXPECT_EQ(*static_cast<const float*>(inference.parameters().get("out.count").data), 0.0F);
}

// S3: a kernel draws the numbers that the body draws, in forward and in backward.
TEST(NativeKernel, DrawsLikeTheBody) {
  const std::vector<float> body = Model("native_mask", {}).train();
  EXPECT_EQ(Model("native_mask", {"mask"}).train(), body);
  const Model model("native_mask", {"mask"});
  model.forward();
  const std::vector<float> out = model.output();
  model.machine().backward();
  const std::vector<float> gradient = model.gradient();
  EXPECT_GT(std::count(out.begin(), out.end(), 0.0F), 0);
  for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i] == 0, gradient[i] == 0) << i;
}

// The state goes by sample; samples that the minibatch before lacked begin with zero.
TEST(NativeKernel, CarriedStatesGoFromMinibatchToMinibatch) {
  for (const std::vector<std::string>& kernels : {std::vector<std::string>{}, {"sum"}}) {
    const Model model("native_sum", kernels, false);
    EXPECT_EQ(model.kernels(), kernels);
    model.forward();
    const std::vector<float> once = model.output();
    model.forward(kSamples - 2);
    const std::vector<float> twice = model.output();
    for (size_t i = 0; i < twice.size(); ++i) EXPECT_EQ(twice[i], 2 * once[i]);
    model.forward();
    const std::vector<float> third = model.output();
    for (size_t i = 0; i < third.size(); ++i) EXPECT_EQ(third[i], i < twice.size() ? 3 * once[i] : once[i]) << i;
    model.machine().reset_carried();
    model.forward();
    EXPECT_EQ(model.output(), once);
    model.forward(0);  // a minibatch without samples changes nothing
    model.forward();
    EXPECT_EQ(model.output()[0], 2 * once[0]);
  }
  EXPECT_EQ(Model("native_sum", {"sum"}).train(), Model("native_sum", {}).train());
}

// A gradient that a kernel writes by rows is row-sparse like that of a gather.
TEST(NativeKernel, WritesGradientsByRows) {
  const Model body("native_table", {}), native("native_table", {"table"});
  EXPECT_THAT(native.kernels(), ElementsAre("table", "table"));
  EXPECT_EQ(native.train(), body.train());
  for (const Model* model : {&body, &native}) {
    model->forward(2, 3);
    model->machine().backward();
    const Machine::Rows rows = model->machine().sparse_gradient("x.values");
    ASSERT_EQ(rows.ids.shape, std::vector<int64_t>{2});
    EXPECT_EQ(static_cast<const int64_t*>(rows.ids.data)[0], 3);
    EXPECT_EQ(static_cast<const int64_t*>(rows.ids.data)[1], 4);
  }
}

// A user may want the whole gradient: the kernel is told and may leave the layer to its body.
TEST(NativeKernel, RowsThatTheUserTurnedOffAreUnsupported) {
  const Model dense("native_table", {"table"}, true, false);
  EXPECT_THAT(dense.kernels(), ElementsAre());
  EXPECT_EQ(dense.train(), Model("native_table", {}).train());
}

}  // namespace

}  // namespace tenon_tests
