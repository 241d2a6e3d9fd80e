// Native kernels for a layer type of another plugin: they state which version of the type they know.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
    const std::string plan = machine.plan();
    for (const char* const name : {"first", "second", "silent"})
      if (plan.find(std::string("\"kernel\":\"") + name + "\"") != std::string::npos) return name;
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

}  // namespace

}  // namespace tenon_tests
