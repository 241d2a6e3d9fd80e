// Fusion patterns: compares one kernel for several layers (tests/support/plugins/fusion) with the layers without it.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tenon/plugin.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "tests/support/bare_plugin.h"
#include "tests/support/layer_bench.h"
#include "tests/support/paths.h"
#include "tests/support/test_layers.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kFusion = tenon_tests::test_plugin_folder() + "/layers";
constexpr int64_t kSamples = 37, kClasses = 5;
const std::vector<double> kLeast = {1e-2};  // scale of gradients: differences of numbers up to 1 / kSamples

// x (a parameter) -> softmax "p" -> cross_entropy "cost" with labels. If `beside` is set, the model has a second cost,
// "beside" = sum(p * weight), which also reads p and adds to its gradient.
class Model {
 public:
  struct Wanted {
    bool fusion = true;
    bool beside = false;
    bool beside_first = false;  // `beside` comes first among the outputs
    bool training = true;
    tn_dtype compute = TN_F64;
    int threads = 2;
    Attributes softmax;
    Attributes cost;
  };

  explicit Model(const Wanted& wanted, const tn_plugin* more = nullptr)
      : wanted_(wanted), host_({wanted.threads, paths(wanted.fusion), nullptr, {}}) {
    host_.add_plugin(&test_layers());
    if (more != nullptr) host_.add_plugin(more);
    DataOptions ids, labels, weight;
    ids.name = "ids", ids.dtype = TN_I32;
    labels.name = "label", labels.dtype = TN_I32;
    weight.name = "weight", weight.dtype = TN_COMPUTE, weight.shape = {kClasses};
    x_ = host_.layer("test_input", {host_.data(ids)}, {{"rows", kSamples}, {"shape", std::vector<int64_t>{kClasses}}},
                     "x");
    p_ = host_.layer("softmax", {x_}, wanted.softmax, "p");
    cost_ = host_.layer("cross_entropy", {p_, host_.data(labels)}, wanted.cost, "cost");
    outputs_ = {cost_};
    if (wanted.beside) {
      const Layer beside = host_.layer("test_cost", {p_, host_.data(weight)}, {}, "beside");
      outputs_.insert(wanted.beside_first ? outputs_.begin() : outputs_.end(), beside);
    }
    parameters_ = host_.parameters(outputs_, 3);
    std::vector<float> values(kSamples * kClasses);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(std::sin(static_cast<double>(i)) * 3);
    parameters_.set("x.values", {TN_F32, {kSamples, kClasses}, values.data()});
  }

  [[nodiscard]] Machine machine(bool keep_all = false) const {
    MachineOptions options;
    options.max_samples = kSamples;
    options.training = wanted_.training;
    options.compute = wanted_.compute;
    options.keep_all = keep_all;
    return host_.machine(parameters_, outputs_, options);
  }
  void forward(const Machine& machine, int64_t samples = kSamples) const {
    std::vector<int32_t> ids(kSamples), labels(kSamples);
    std::iota(ids.begin(), ids.end(), 0);
    for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<int32_t>(i * i % kClasses);
    std::vector<double> wide(kSamples * kClasses);
    for (size_t i = 0; i < wide.size(); ++i) wide[i] = std::cos(static_cast<double>(i));
    const std::vector<float> narrow(wide.begin(), wide.end());
    const void* weight = wanted_.compute == TN_F64 ? static_cast<const void*>(wide.data()) : narrow.data();
    std::vector<Feed> feeds = {{"ids", {TN_I32, {samples}, ids.data()}}, {"label", {TN_I32, {samples}, labels.data()}}};
    if (wanted_.beside) feeds.push_back({"weight", {wanted_.compute, {samples, kClasses}, weight}});
    machine.forward(feeds);
  }
  // Returns the kept output of p, the cost, the output of the cost layer, and the gradient of x summed over two steps.
  [[nodiscard]] std::vector<double> step() const {
    const Machine m = machine(true);
    forward(m);
    std::vector<double> all = numbers_of(m.output(p_));
    all.push_back(m.cost());
    for (const double value : numbers_of(m.output(cost_))) all.push_back(value);
    m.backward();
    forward(m, kSamples - 3);
    m.backward();
    for (const double value : numbers_of(m.gradient("x.values"))) all.push_back(value);
    return all;
  }
  // Returns the calls of native kernels in the plan of a machine. keep_all: the machine keeps all outputs.
  [[nodiscard]] json fused_calls(bool keep_all = false) const {
    json result = json::array();
    const json plan = json::parse(machine(keep_all).plan());
    for (const json& call : plan.at("calls"))
      if (call.at("call") == "native") result.push_back(call);
    return result;
  }
  [[nodiscard]] json calls() const { return json::parse(machine().plan()).at("calls"); }
  [[nodiscard]] const Host& host() const { return host_; }

 private:
  static std::vector<std::string> paths(bool fusion) {
    std::vector<std::string> result = {tenon_tests::plugin_folder()};
    if (fusion) result.push_back(kFusion);
    return result;
  }

  Wanted wanted_;
  Host host_;
  Layer x_, p_, cost_;
  Layers outputs_;
  Parameters parameters_;
};

TEST(FusionPatterns, GiveTheSameNumbersAsTheLayersAlone) {
  for (const tn_dtype compute : {TN_F64, TN_F32})
    for (const bool beside : {false, true})
      for (const bool first : {false, true}) {
        Model::Wanted wanted;
        wanted.compute = compute;
        wanted.beside = beside;
        wanted.beside_first = first;
        const std::vector<double> fused = Model(wanted).step();
        wanted.fusion = false;
        const Model alone(wanted);
        EXPECT_TRUE(alone.fused_calls().empty());
        EXPECT_TRUE(agree(fused, alone.step(), compute == TN_F64 ? 1e-12 : 2e-6, kLeast))
            << (compute == TN_F64 ? "fp64" : "fp32") << (beside ? ", p has a second reader" : "")
            << (first ? ", the second cost comes first" : "");
      }
}

TEST(FusionPatterns, GiveTheSameBitsForAnyNumberOfThreads) {
  Model::Wanted wanted;
  wanted.compute = TN_F32;
  wanted.threads = 1;
  const std::vector<double> one = Model(wanted).step();
  for (const int threads : {2, 3, 8}) {
    wanted.threads = threads;
    EXPECT_TRUE(identical(Model(wanted).step(), one)) << threads << " threads";
  }
}

TEST(FusionPatterns, AreShownInThePlan) {
  const json calls = Model({}).fused_calls();
  ASSERT_EQ(calls.size(), 2U);
  for (const json& call : calls) {
    EXPECT_EQ(call.at("kernel"), "softmax_cross_entropy");
    EXPECT_EQ(call.at("layers"), (json{"p", "cost"}));
  }
  EXPECT_EQ(calls[0].at("phase"), "forward");
  EXPECT_EQ(calls[0].at("outputs").size(), 2U);  // p is read by backward
  EXPECT_EQ(calls[1].at("phase"), "backward");
  const json others = Model({}).calls();
  for (const json& call : others) {
    if (call.at("call") == "native") continue;
    EXPECT_THAT(call.at("layers"), testing::Not(testing::Contains("p"))) << "p is computed again: " << call;
  }
}

TEST(FusionPatterns, GiveOnlyWhatIsRead) {
  Model::Wanted wanted;
  wanted.training = false;
  const Model model(wanted);
  ASSERT_EQ(model.fused_calls().size(), 1U);
  EXPECT_EQ(model.fused_calls()[0].at("outputs").size(), 1U) << "p is not read";
  EXPECT_EQ(model.fused_calls(true)[0].at("outputs").size(), 2U) << "p is kept";
  wanted.beside = true;
  for (const bool first : {false, true}) {
    wanted.beside_first = first;
    const Model with(wanted);
    ASSERT_EQ(with.fused_calls().size(), 1U);
    EXPECT_EQ(with.fused_calls()[0].at("outputs").size(), 2U) << "p has a reader";
    const json others = with.calls();
    for (const json& call : others)
      if (call.at("call") != "native") {
        EXPECT_THAT(call.at("layers"), testing::Not(testing::Contains("p")));
      }
  }
}

TEST(FusionPatterns, AreNotTakenWhereTheyDoNotFit) {
  Model::Wanted wanted;
  wanted.cost = {{"from_logits", true}};  // not supported by the kernel
  EXPECT_TRUE(Model(wanted).fused_calls().empty());
  wanted.cost = {};
  wanted.softmax = {{"drop_rate", 0.5}};  // dropout lies between softmax and cost
  EXPECT_TRUE(Model(wanted).fused_calls().empty());
  wanted.training = false;  // dropout is off
  EXPECT_EQ(Model(wanted).fused_calls().size(), 1U);
}

// A plugin with one kernel that has a valid fusion pattern. Tests change its fields.
class OnePattern {
 public:
  OnePattern() {
    kernel.size = sizeof kernel;
    kernel.score = 20;
    kernel.type = "cross_entropy";
    kernel.device = "cpu";
    kernel.name = "odd_fusion";
    kernel.dtypes_count = 1;
    kernel.dtypes = &dtype;
    kernel.supports = [](const tn_kernel_site*, int32_t*) -> tn_status { return TN_OK; };
    kernel.query = [](const tn_kernel_site*, tn_kernel_needs*) -> tn_status { return TN_OK; };
    kernel.prepare = [](const tn_kernel_site*, int32_t, tn_prepared* prepared) -> tn_status {
      prepared->run = [](void*, const tn_execution*, const tn_call*) -> tn_status { return TN_OK; };
      return TN_OK;
    };
    kernel.fusion = &fusion;
    kernel.attributes = known;
    kernel.attributes_count = 1;
    kernel.state_version = 1;
    plugin = bare_plugin("tenon.test.odd");
    plugin.kernels_count = 1;
    plugin.kernels = kernels;
  }
  OnePattern(const OnePattern&) = delete;
  OnePattern& operator=(const OnePattern&) = delete;

  tn_dtype dtype = TN_F64;
  const char* types[9] = {"softmax", "cross_entropy"};
  const char* known[1] = {"size"};
  tn_fusion_pattern fusion = {sizeof(tn_fusion_pattern), 2, types};
  tn_kernel kernel = {};
  const tn_kernel* kernels[1] = {&kernel};
  tn_plugin plugin = {};
};

std::string refusal(const OnePattern& odd) {
  try {
    static_cast<void>(Model({}, &odd.plugin).machine());
  } catch (const tenon::Error& error) {
    return tn_status_text(error.code()) + std::string(": ") + error.what();
  }
  return "";
}

TEST(FusionPatterns, TheHighestScoreWinsAndMayChangeForASite) {
  OnePattern odd;
  EXPECT_EQ(Model({}, &odd.plugin).fused_calls()[0].at("kernel"), "odd_fusion");
  odd.kernel.score = 5;
  EXPECT_EQ(Model({}, &odd.plugin).fused_calls()[0].at("kernel"), "softmax_cross_entropy");
  odd.kernel.supports = [](const tn_kernel_site* site, int32_t* score) -> tn_status {
    const tn_fusion_site* chain = tn_fusion(site);
    const bool sound =
        chain != nullptr && chain->layers_count == 2 && site->inputs_count == 2 && site->outputs_count == 2 &&
        chain->sources[0][0].layer == -1 && chain->sources[0][0].index == 0 && chain->sources[1][0].layer == 0 &&
        chain->sources[1][0].index == 0 && chain->sources[1][1].layer == -1 && chain->sources[1][1].index == 1 &&
        chain->layers[1]->inputs_count == 2 && site->outputs[0]->rank == 2 && site->outputs[1]->rank == 1;
    *score = sound ? 11 : 0;
    return TN_OK;
  };
  EXPECT_EQ(Model({}, &odd.plugin).fused_calls()[0].at("kernel"), "odd_fusion");
  odd.kernel.supports = [](const tn_kernel_site*, int32_t* score) -> tn_status {
    *score = 0;  // the score of recorded bodies, which are preferred
    return TN_OK;
  };
  Model::Wanted wanted;
  wanted.fusion = false;
  EXPECT_TRUE(Model(wanted, &odd.plugin).fused_calls().empty());
}

// The types of the chain have four inputs, of which one is optional, two outputs, and parameters with a size.
TEST(FusionPatterns, WithoutTheInputsOfTheChainArePassedOver) {
  const auto is_used = [](const OnePattern& odd) {
    const auto calls = Model({}, &odd.plugin).fused_calls();
    return !calls.empty() && calls[0].at("kernel") == "odd_fusion";
  };
  OnePattern odd;
  EXPECT_TRUE(is_used(odd)) << "nothing stated: the optional input is not connected";
  odd.kernel.inputs_known = 4, odd.kernel.outputs_known = 2, odd.kernel.parameters_known = 8;
  EXPECT_TRUE(is_used(odd));
  odd.kernel.inputs_known = odd.kernel.outputs_known = 1;
  EXPECT_TRUE(is_used(odd)) << "what it does not know is not used";
}

TEST(FusionPatterns, LiesAreTheKernelsFault) {
  OnePattern odd;
  odd.kernel.query = [](const tn_kernel_site*, tn_kernel_needs* needs) -> tn_status {
    needs->in_place[1] = 2;
    return TN_OK;
  };
  EXPECT_THAT(refusal(odd),
              HasSubstr("layer \"p\", \"cost\" (native kernel \"odd_fusion\"): kernel \"odd_fusion\" of tenon.test.odd "
                        "shares the memory of input 2; the layer has 2"));
  EXPECT_THAT(refusal(odd), HasSubstr(tn_status_text(TN_PLUGIN_FAULT)));
  OnePattern empty;
  empty.kernel.prepare = [](const tn_kernel_site*, int32_t, tn_prepared*) -> tn_status { return TN_OK; };
  EXPECT_THAT(refusal(empty),
              HasSubstr("layer \"p\", \"cost\" (native kernel \"odd_fusion\"): odd_fusion prepared no function"));
  EXPECT_THAT(refusal(empty), HasSubstr(tn_status_text(TN_PLUGIN_FAULT)));
}

TEST(FusionPatterns, UnsoundOnesAreRefusedWithTheirPlugin) {
  OnePattern odd;
  odd.fusion.types_count = 1;
  EXPECT_THAT(refusal(odd), HasSubstr("kernel \"odd_fusion\" fuses a chain of 1 layer; expected 2 to 8"));
  odd.fusion.types_count = 2;
  odd.kernel.type = "softmax";
  EXPECT_THAT(refusal(odd), HasSubstr("the chain that it fuses ends in \"cross_entropy\""));
  odd.kernel.type = "cross_entropy";
  odd.types[0] = "Softmax";
  EXPECT_THAT(refusal(odd), HasSubstr("fuses the malformed layer type \"Softmax\""));
  odd.types[0] = nullptr;
  EXPECT_THAT(refusal(odd), HasSubstr("entry 0 of \"fusion: types\" is null"));
  odd.fusion.size = 4;
  EXPECT_THAT(refusal(odd), HasSubstr("its fusion of 4 bytes is not sound"));
}

json fusion_plugin(const Host& host) {
  for (const json& plugin : json::parse(host.plugins()))
    if (plugin.at("manifest").value("id", "") == "tenon.test.fusion") return plugin;
  return {};
}

TEST(FusionPatterns, StandInTheManifestAndAreLoadedWhereTheyMayFit) {
  const Host host(HostOptions{1, {tenon_tests::plugin_folder(), kFusion}, nullptr, {}});
  DataOptions x, label;
  x.name = "x", x.shape = {kClasses};
  label.name = "label", label.dtype = TN_I32;
  const Layer p = host.layer("softmax", {host.data(x)});
  static_cast<void>(host.machine(host.parameters({p}, 1), {p}, {}));
  EXPECT_EQ(fusion_plugin(host).at("status"), "found") << "softmax alone is not a chain";
  EXPECT_EQ(fusion_plugin(host).at("manifest").at("kernels")[0].at("fuses"), (json{"softmax", "cross_entropy"}));
  const Layer cost = host.layer("cross_entropy", {p, host.data(label)});
  static_cast<void>(host.machine(host.parameters({cost}, 1), {cost}, {}));
  EXPECT_EQ(fusion_plugin(host).at("status"), "loaded");
}

}  // namespace
}  // namespace tenon_tests
