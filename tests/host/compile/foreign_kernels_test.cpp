// Native kernels for a layer type of another plugin: they state which version of the type they know.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tenon/kernel.hpp>
#include <tenon/layer.hpp>
#include <tenon/tenon.hpp>

#include "tests/support/bare_plugin.h"
#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

namespace {

// out = in, a layer in its second state version with the attributes `old` and `later`.
struct Grown {
  static void describe(tn::LayerDescription& d) {
    d.type("test_grown", "out = in.");
    d.input("in", "any shape");
    d.output("out", "the shape of in");
    d.attribute(tn::float_attribute("old", 1).doc("known to both kernels"));
    d.attribute(tn::float_attribute("later", 1).doc("unknown to the kernel of the second version"));
    d.state_version(2);
  }
  static void plan(tn::Planner& planner) { planner.output(0, planner.input(0)); }
  static void lower(const tn::Attributes& /*attributes*/, tn::Builder& body) { body.output(0, body.input(0)); }
};

template <uint32_t kVersion>
class Kernel {
 public:
  static void describe(tn::KernelDescription& d) {
    d.kernel("test_grown", "cpu", kVersion == 1 ? "first" : kVersion == 2 ? "second" : "silent", 10 + kVersion);
    if (kVersion > 0) d.knows(kVersion, {"old"});
  }
  static bool supports(const tn::KernelSite& site, int32_t& /*score*/) { return site->state_version == 2; }
  Kernel(const tn::KernelSite& /*site*/, int32_t /*direction*/) {}
  void run(const tn::Call& /*call*/) const {}
};

// Whether a call of the machine is one of the kernel. The plan names kernels that are passed over, too.
bool computes(const Machine& machine, const std::string& kernel) {
  const nlohmann::json plan = nlohmann::json::parse(machine.plan());
  return std::any_of(plan.at("calls").begin(), plan.at("calls").end(),
                     [&](const nlohmann::json& call) { return call.at("kernel") == kernel; });
}

class ForeignKernels : public testing::Test {
 protected:
  // Returns the kernel of a layer with these attributes, "" for its body.
  std::string kernel(const Attributes& attributes, bool own = false) {
    tn_plugin layers = bare_plugin("tenon.test.grown"), kernels = bare_plugin("org.example.kernels");
    tn_plugin& offering = own ? layers : kernels;
    layers.layers = layers_;
    layers.layers_count = 1;
    offering.kernels = kernels_;
    offering.kernels_count = 3;
    const Host host({1, {plugin_folder()}, nullptr, {}});
    host.add_plugin(&layers);
    host.add_plugin(&kernels);
    DataOptions x;
    x.name = "x";
    const Layer out = host.layer("test_grown", {host.data(x)}, attributes, "out");
    const Machine machine = host.machine(host.parameters({out}, 1), {out}, {});
    for (const char* const name : {"first", "second", "silent"})
      if (computes(machine, name)) return name;
    return "";
  }

  const tn_layer_type* layers_[1] = {tn::layer_type<Grown>()};
  const tn_kernel* kernels_[3] = {tn::kernel<Kernel<0>>(), tn::kernel<Kernel<1>>(), tn::kernel<Kernel<2>>()};
};

TEST_F(ForeignKernels, ServeTheTypesThatTheyKnow) {
  EXPECT_EQ(kernel({}), "second") << "defaults change nothing";
  EXPECT_EQ(kernel({{"old", 3.0}}), "second");
  EXPECT_EQ(kernel({{"later", 1.0}}), "second") << "the default";
  EXPECT_EQ(kernel({{"later", 2.0}}), "");
}

TEST_F(ForeignKernels, OfTheTypesOwnPluginKnowAll) { EXPECT_EQ(kernel({{"later", 2.0}}, true), "second"); }

// ---- ports that a type got later

// out = in (1 - mask), or in where nothing is masked: the type of a version with the optional input `mask`, a second
// output, a parameter and a buffer if they are wanted, whose author left the state version as it was.
struct Scaled {
  static inline bool has_output, has_parameter, has_buffer, has_required, has_mask;
  static inline uint32_t version;
  static void describe(tn::LayerDescription& d) {
    d.type("a.scaled", "out = scale in (1 - mask)");
    d.input("in", "any shape");
    if (has_required) d.input("other", "the shape of in");
    if (has_mask) d.input("mask", "the shape of in; 1: the element becomes 0", TN_PORT_OPTIONAL);
    d.output("out", "the shape of in");
    if (has_output) d.output("negative", "the shape of in");
    if (has_parameter) d.parameter("scale");
    if (has_buffer) d.parameter("seen");
    d.state_version(version);
  }
  static void plan(tn::Planner& planner) {
    planner.output(0, planner.input(0));
    if (has_output) planner.output(1, planner.input(0));
    if (has_parameter) planner.parameter("scale", tn::Spec({1}), {TN_INIT_CONSTANT, 0, 1, 0});
    if (has_buffer) planner.buffer("seen", tn::Spec({1}), {TN_INIT_CONSTANT, 0, 0, 0});
  }
  static void lower(const tn::Attributes& /*attributes*/, tn::Builder& body) {
    tn::Tensor out = body.input(0);
    if (const auto mask = has_mask ? body.optional_input(has_required ? 2 : 1) : std::nullopt) {
      tn::Program program;
      const tn::Float x = program.full(), y = program.full();
      program.output(x * (1 - y));
      out = body.pointwise(program, {out, *mask})[0];
    }
    body.output(0, out);
    if (has_output) body.output(1, body.input(0));
    if (has_buffer) body.buffer_next(0, body.buffer(0));
  }
};

// The kernel of another vendor, which computes out = in.
class Plain {
 public:
  static inline uint32_t inputs, outputs, parameters;  // that it knows; all 0: not stated
  static void describe(tn::KernelDescription& d) {
    d.kernel("a.scaled", "cpu", "plain", 10);
    d.knows(1);
    d.knows_ports(inputs, outputs, parameters);
  }
  Plain(const tn::KernelSite& /*site*/, int32_t /*direction*/) {}
  void run(const tn::Call& call) const {
    for (int64_t i = 0; i < tn_elements(call.output(0)); ++i) call.out<float>(0)[i] = call.in<float>(0)[i];
  }
};

class LaterPorts : public testing::Test {
 protected:
  void SetUp() override {
    Scaled::has_output = Scaled::has_parameter = Scaled::has_buffer = Scaled::has_required = false;
    Scaled::has_mask = true;
    Scaled::version = 1;
    Plain::inputs = Plain::outputs = Plain::parameters = 0;
  }
  // Whether the kernel computes a layer, whose output must be that of the type.
  static bool is_served(bool masked, bool absent_at_the_end = false) {
    // Tables that describe the type and the kernel as they are now.
    tn::LayerDescription text;
    Scaled::describe(text);
    tn_layer_type layer = *tn::layer_type<Scaled>();
    layer.description = text.get();
    tn::KernelDescription kernel_text;
    Plain::describe(kernel_text);
    tn_kernel kernel = kernel_text.get();
    const tn_kernel* const of_class = tn::kernel<Plain>();
    kernel.supports = of_class->supports, kernel.query = of_class->query, kernel.prepare = of_class->prepare;
    tn_plugin layers = bare_plugin("org.example.a"), kernels = bare_plugin("org.example.b");
    const tn_layer_type* const layer_list[] = {&layer};
    const tn_kernel* const kernel_list[] = {&kernel};
    layers.layers = layer_list, layers.layers_count = 1;
    kernels.kernels = kernel_list, kernels.kernels_count = 1;
    const Host host({1, {plugin_folder()}, nullptr, {}});
    host.add_plugin(&layers);
    host.add_plugin(&kernels);
    DataOptions x, other, mask;
    x.name = "x", other.name = "other", mask.name = "mask";
    x.shape = other.shape = mask.shape = {2};
    Layers inputs = {host.data(x)};
    if (Scaled::has_required) inputs.push_back(host.data(other));
    if (masked) inputs.push_back(host.data(mask));
    if (absent_at_the_end) inputs.emplace_back();
    const Layer out = host.layer("a.scaled", inputs, {}, "out");
    const Machine machine = host.machine(host.parameters({out}, 1), {out}, {});
    const float values[2] = {3, 4}, masks[2] = {1, 0};
    std::vector<Feed> feeds = {{"x", {TN_F32, {1, 2}, values}}};
    if (Scaled::has_required) feeds.push_back({"other", {TN_F32, {1, 2}, values}});
    if (masked) feeds.push_back({"mask", {TN_F32, {1, 2}, masks}});
    machine.forward(feeds);
    const auto* const made = static_cast<const float*>(machine.output(out).data);
    EXPECT_EQ(made[0], masked ? 0 : 3);
    EXPECT_EQ(made[1], 4);
    return computes(machine, "plain");
  }
};

TEST_F(LaterPorts, AnInputThatTheKernelDoesNotKnowIsNotIgnored) {
  EXPECT_FALSE(is_served(true)) << "nothing stated";
  EXPECT_TRUE(is_served(false));
  Plain::inputs = Plain::outputs = 1;
  EXPECT_FALSE(is_served(true)) << "it knows one input";
  EXPECT_TRUE(is_served(false));
  Scaled::has_required = true;
  EXPECT_FALSE(is_served(false)) << "a required one";
  EXPECT_FALSE(is_served(true));
  Plain::inputs = 2;
  EXPECT_TRUE(is_served(false));
  EXPECT_FALSE(is_served(true));
}

TEST_F(LaterPorts, ATypeWithoutOptionalInputsNeedsNoStatement) {
  Scaled::has_mask = false;
  EXPECT_TRUE(is_served(false));
  Scaled::has_required = true;
  EXPECT_TRUE(is_served(false));
  Scaled::version = 2;
  EXPECT_FALSE(is_served(false)) << "the rule: the version rises with a port";
}

TEST_F(LaterPorts, AnOutputThatTheKernelDoesNotKnow) {
  Scaled::has_output = true;
  EXPECT_FALSE(is_served(false)) << "nothing stated";
  Plain::inputs = Plain::outputs = 1;
  EXPECT_FALSE(is_served(false));
}

TEST_F(LaterPorts, AParameterThatTheKernelDoesNotKnow) {
  for (bool* const later : {&Scaled::has_parameter, &Scaled::has_buffer}) {
    *later = true;
    Plain::inputs = Plain::outputs = 1, Plain::parameters = 0;
    EXPECT_FALSE(is_served(false));
    Plain::parameters = 2;
    EXPECT_TRUE(is_served(false));
    Plain::parameters = 1;
    EXPECT_EQ(is_served(false), later == &Scaled::has_parameter);
  }
}

}  // namespace

}  // namespace tenon_tests
