// What the bits of results may follow from: the option `arithmetic` of hosts. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "tests/support/bare_plugin.h"
#include "tests/support/fashion.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using nlohmann::json;
using testing::HasSubstr;

Host host_of(uint32_t arithmetic) {
  HostOptions options;
  options.threads = 1;
  options.plugin_paths = {plugin_folder()};
  options.arithmetic = arithmetic;
  return Host(options);
}

json plan_of(const Host& host, tn_dtype compute = TN_F32) {
  const Perceptron model = perceptron(host);
  MachineOptions options;
  options.training = true;
  options.compute = compute;
  return json::parse(host.machine(host.parameters({model.cost}, 1), {model.cost}, options).plan());
}

std::set<std::string> kernels_of(const json& plan) {
  std::set<std::string> kernels;
  for (const json& call : plan.at("calls")) kernels.insert(call.at("kernel").get<std::string>());
  return kernels;
}

std::set<std::string> reasons_of(const json& plan, const std::string& provider) {
  std::set<std::string> reasons;
  for (const json& call : plan.at("calls"))
    for (const json& each : call.value("passed_over", json::array()))
      if (each.at("kernel") == provider) reasons.insert(each.at("reason").get<std::string>());
  return reasons;
}

// The gradients of `samples` samples in a machine for up to max_samples. The layers are so wide that chunks of a few
// rows pay, whose sums are the gradients of biases.
std::vector<float> gradients_of(int64_t samples, int64_t max_samples) {
  const Host host = host_of(TN_ARITHMETIC_DEFAULT);
  DataOptions data, label;
  data.name = "x", data.shape = {64};
  label.name = "label", label.dtype = TN_U8;
  Layer layer = host.data(data);
  for (const char* name : {"first", "second", "third"})
    layer = host.layer("fc", {layer}, {{"size", 256}, {"act", "relu"}}, name);
  const Layer cost = host.layer("cross_entropy", {layer, host.data(label)}, {{"from_logits", true}}, "cost");
  MachineOptions options;
  options.training = true;
  options.max_samples = max_samples;
  const Machine machine = host.machine(host.parameters({cost}, 1), {cost}, options);
  std::vector<float> values(static_cast<size_t>(samples) * 64);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 2654435761U % 1000) / 1000;
  std::vector<uint8_t> labels(static_cast<size_t>(samples));
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<uint8_t>(i % 10);
  machine.forward({{"x", {TN_F32, {samples, 64}, values.data()}}, {"label", {TN_U8, {samples}, labels.data()}}});
  machine.backward();
  std::vector<float> all;
  for (const char* name : {"first.weight", "first.bias", "second.weight", "second.bias", "third.bias"}) {
    const Array gradient = machine.gradient(name);
    size_t count = 1;
    for (const int64_t side : gradient.shape) count *= static_cast<size_t>(side);
    const auto* const numbers = static_cast<const float*>(gradient.data);
    all.insert(all.end(), numbers, numbers + count);
  }
  return all;
}

TEST(Arithmetic, DoesNotFollowFromTheBoundsOfAMachine) {
  for (const int64_t samples : {7, 40, 130})
    for (const int64_t max_samples : {131, 300, 2000})
      EXPECT_TRUE(gradients_of(samples, max_samples) == gradients_of(samples, samples))
          << samples << " samples of at most " << max_samples;
}

TEST(Arithmetic, OfAHostIsOneOfThree) {
  try {
    (void)host_of(3);
    FAIL() << "3 is no arithmetic";
  } catch (const tenon::Error& error) {
    EXPECT_EQ(error.code(), TN_INVALID);
    EXPECT_THAT(error.what(), HasSubstr("arithmetic is 3; expected 0"));
    EXPECT_EQ(error.subject(), "options.arithmetic");
  }
}

TEST(Arithmetic, IsPortableByDefault) {
  const json plan = plan_of(host_of(TN_ARITHMETIC_DEFAULT));
  EXPECT_EQ(kernels_of(plan), std::set<std::string>{"tenon.cpu"});
  EXPECT_TRUE(plan.at("portable").get<bool>());
  EXPECT_FALSE(plan_of(host_of(TN_ARITHMETIC_DEFAULT), TN_BF16).at("portable").get<bool>());
}

TEST(Arithmetic, ThatIsPortableRefusesOtherCallsByName) {
  const Host host = host_of(TN_ARITHMETIC_PORTABLE);
  EXPECT_TRUE(plan_of(host).at("portable").get<bool>());
  try {
    (void)plan_of(host, TN_BF16);
    FAIL() << "products in bfloat16 are not portable";
  } catch (const tenon::Error& error) {
    EXPECT_EQ(error.code(), TN_UNSUPPORTED);
    EXPECT_THAT(error.what(), HasSubstr("layer \"hidden/fc\""));
    EXPECT_THAT(error.what(), HasSubstr("tenon.cpu of plugin \"tenon.cpu\" does not state that its bits are the same"));
  }
}

tn_status takes_nothing(void*, const tn_services*, const tn_errors* errors, const tn_gemm*, tn_prepared*) {
  return tn_fail(errors, TN_UNSUPPORTED, nullptr, "it takes nothing");
}

// The plugin of a provider that is native; the same that states nothing.
class NativeProvider {
 public:
  explicit NativeProvider(uint32_t arithmetic) {
    plugin_.providers = list_;
    plugin_.providers_count = 1;
    plugin_.arithmetic = arithmetic;
  }
  [[nodiscard]] const tn_plugin* get() const { return &plugin_; }

 private:
  tn_gemm_table table_ = {sizeof(tn_gemm_table), 0, &takes_nothing};
  tn_provider provider_ = {sizeof(tn_provider), 200, "cpu", TN_GEMM, "asked", &table_, nullptr};
  const tn_provider* list_[1] = {&provider_};
  tn_plugin plugin_ = bare_plugin("tenon.test.native");
};

TEST(Arithmetic, ThatIsNativeAsksProvidersThatAre) {
  const NativeProvider native(TN_ARITHMETIC_NATIVE), unstated(TN_ARITHMETIC_DEFAULT);
  const std::set<std::string> asked = {"it takes nothing"};
  for (const uint32_t arithmetic : {TN_ARITHMETIC_DEFAULT, TN_ARITHMETIC_PORTABLE, TN_ARITHMETIC_NATIVE}) {
    const Host with_native = host_of(arithmetic), with_unstated = host_of(arithmetic);
    with_native.add_plugin(native.get());
    with_unstated.add_plugin(unstated.get());
    EXPECT_EQ(reasons_of(plan_of(with_native), "asked"),
              arithmetic == TN_ARITHMETIC_NATIVE
                  ? asked
                  : std::set<std::string>{"its arithmetic is native, that of the host portable"});
    EXPECT_EQ(reasons_of(plan_of(with_unstated), "asked"), asked);
  }
  const NativeProvider wrong(TN_ARITHMETIC_PORTABLE);
  EXPECT_THROW(host_of(0).add_plugin(wrong.get()), tenon::Error);
}

TEST(Arithmetic, ThatIsNativeUsesOpenBlas) {
  if (!std::filesystem::exists(plugin_folder() + "/devices/openblas.so")) GTEST_SKIP() << "openblas is not built";
  const json plan = plan_of(host_of(TN_ARITHMETIC_NATIVE));
  EXPECT_EQ(kernels_of(plan).count("openblas_gemm"), 1U) << plan.dump(1);
  EXPECT_FALSE(plan.at("portable").get<bool>());
}

}  // namespace
}  // namespace tenon_tests
