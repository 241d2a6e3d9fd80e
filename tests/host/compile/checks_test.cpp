// Checks of native kernels' operands, and of values that are not finite. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <tenon/kernel.hpp>
#include <tenon/layer.hpp>
#include <tenon/tenon.hpp>

#include "tests/support/bare_plugin.h"
#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

// out = 2 in, by a native kernel that breaks the rule which `how` names.
struct Evil {
  static void describe(tn::LayerDescription& d) {
    d.type("test_evil", "out = 2 in.");
    d.input("in", "[samples, n]");
    d.output("out", "the shape of in");
    d.attribute(tn::string_attribute("how", "good").doc("what the kernel does wrong"));
  }
  static void plan(tn::Planner& planner) { planner.output(0, planner.input(0)); }
};
class EvilKernel {
 public:
  static void describe(tn::KernelDescription& d) { d.kernel("test_evil", "cpu", "evil", 1); }
  static void query(const tn::KernelSite& site, tn::KernelNeeds& needs) {
    needs.save(site.input(0));
    needs.read_input(0);
    const std::string how = site.attributes().text("how");
    if (how == "shared" || how == "fit to share") needs.in_place(0, 0);
    if (how == "shared, backward" || how == "fit to share") needs.backward_in_place(0, 0);
  }
  EvilKernel(const tn::KernelSite& site, int32_t direction)
      : how_(site.attributes().text("how")), backward_(direction == TN_BACKWARD) {}
  [[nodiscard]] uint64_t workspace_bytes() const { return 100; }
  // forward: in -> out, saved; backward: in, -, saved, dout -> din
  void run(const tn::Call& call) const {
    const auto* const in = call.in<float>(backward_ ? 3 : 0);
    auto* const out = call.out<float>(0);
    const int64_t count = tn_elements(call.output(0));
    auto* const saved = backward_ ? nullptr : call.out<float>(1);
    for (int64_t i = 0; saved != nullptr && i < count && how_ != "shared"; ++i) saved[i] = in[i];
    if (how_ == "shared, backward" && backward_) std::fill_n(out, count, 0.0F);
    for (int64_t i = 0; i < count; ++i) out[i] = 2 * in[i] + (call.adds(0) ? out[i] : 0.0F);
    for (int64_t i = 0; saved != nullptr && i < count && how_ == "shared"; ++i) saved[i] = in[i];
    if (how_ == "behind" && !backward_) out[count + 1] = 1;
    if (how_ == "copied" && !backward_) out[count] = 2 * in[count];  // a loop that is one too long
    if (how_ == "before" && !backward_) out[-1] = 1;
    if (how_ == "saved" && saved != nullptr) saved[count] = 1;
    if (how_ == "gradient" && backward_) out[count] = 1;
    if (how_ == "input" && !backward_) const_cast<float*>(in)[1] = 5;
    if (how_ == "workspace") static_cast<char*>(call->workspace)[100] = 1;
    // As if the element had not been written: the bytes that the host puts there.
    const uint32_t unwritten = 0xFFFBFBFB;
    if (how_ == "unwritten" && !backward_) std::memcpy(out + 3, &unwritten, sizeof *out);
    // Reads the element behind its input, as a loop that is one too long.
    if (how_ == "outside" && !backward_) out[2] = in[count] - out[2];
    if (how_ == "outside, backward" && backward_) out[1] = 3 * in[-1];
  }

 private:
  std::string how_;
  bool backward_;
};

std::string message_of(const std::function<void()>& work, tn_status code, const std::string& subject = "") {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_EQ(error.subject(), subject) << error.what();
    return error.what();
  }
  return "nothing was refused";
}

class Checks : public testing::Test {
 protected:
  Checks() {
    plugin_.layers = layers_;
    plugin_.layers_count = 1;
    plugin_.kernels = kernels_;
    plugin_.kernels_count = 1;
  }
  // Returns the gradient of fc's weight after x [3, 2] -> fc of 2 -> test_evil -> sum_cost, forward and backward.
  std::vector<float> step(const std::string& how, uint32_t check) {
    HostOptions options{1, {plugin_folder()}, nullptr, {}, check};
    const Host host(options);
    host.add_plugin(&plugin_);
    DataOptions x;
    x.name = "x", x.shape = {2};
    const Layer y = host.layer("fc", {host.data(x)}, {{"size", 2}}, "y");
    const Layer cost = host.layer("sum_cost", {host.layer("test_evil", {y}, {{"how", how}}, "evil")}, {}, "cost");
    MachineOptions machine_options;
    machine_options.max_samples = 5;
    machine_options.training = true;
    const Machine machine = host.machine(host.parameters({cost}, 3), {cost}, machine_options);
    const float values[] = {1, 2, 3, 4, 5, 6};
    machine.forward({{"x", {TN_F32, {3, 2}, values}}});
    machine.backward();
    const auto* const gradient = static_cast<const float*>(machine.gradient("y.weight").data);
    return {gradient, gradient + 4};
  }

  const tn_layer_type* layers_[1] = {tn::layer_type<Evil>()};
  const tn_kernel* kernels_[1] = {tn::kernel<EvilKernel>()};
  tn_plugin plugin_ = bare_plugin("tenon.test.evil");
};

TEST_F(Checks, AGoodKernelComputesTheSame) { EXPECT_EQ(step("good", TN_CHECK_ON), step("good", TN_CHECK_OFF)); }

// With and without checks, also where the memory of the machine is shared.
TEST_F(Checks, AKernelMayShareMemory) {
  EXPECT_EQ(step("fit to share", TN_CHECK_ON), step("good", TN_CHECK_OFF));
  EXPECT_EQ(step("fit to share", TN_CHECK_OFF), step("good", TN_CHECK_OFF));
}

TEST_F(Checks, NameResultsThatAreWrongInTheMemoryOfOperands) {
  EXPECT_EQ(message_of([&] { (void)step("shared", TN_CHECK_ON); }, TN_PLUGIN_FAULT),
            "layer \"evil\" (test_evil, native kernel \"evil\"): computes another saved tensor 0 with output 0 in the "
            "memory of input 0, which its query allows");
  EXPECT_EQ(message_of([&] { (void)step("shared, backward", TN_CHECK_ON); }, TN_PLUGIN_FAULT),
            "layer \"evil\" (test_evil, native kernel \"evil\", backward): computes another gradient of input 0 with "
            "gradient of input 0 in the memory of gradient of output 0, which its query allows");
}

TEST_F(Checks, NameKernelAndTensor) {
  const auto fault = [&](const std::string& how) {
    return message_of([&] { (void)step(how, TN_CHECK_ON); }, TN_PLUGIN_FAULT);
  };
  const std::string forward = "layer \"evil\" (test_evil, native kernel \"evil\"): ",
                    backward = "layer \"evil\" (test_evil, native kernel \"evil\", backward): ";
  EXPECT_EQ(fault("behind"), forward + "wrote 8 bytes behind output 0 of 24 bytes");
  EXPECT_EQ(fault("copied"), forward + "wrote 4 bytes behind output 0 of 24 bytes");
  EXPECT_EQ(fault("before"), forward + "wrote 4 bytes before output 0 of 24 bytes");
  EXPECT_EQ(fault("saved"), forward + "wrote 4 bytes behind saved tensor 0 of 24 bytes");
  EXPECT_EQ(fault("gradient"), backward + "wrote 4 bytes behind gradient of input 0 of 24 bytes");
  EXPECT_EQ(fault("input"), forward + "changed input 0");
  EXPECT_EQ(fault("workspace"), forward + "wrote 1 bytes behind its workspace of 100 bytes");
  EXPECT_EQ(fault("unwritten"), forward + "did not write element 3 of output 0");
  const std::string outside = " from memory outside of its operands";
  EXPECT_EQ(fault("outside"), forward + "computed element 2 of output 0" + outside);
  EXPECT_EQ(fault("outside, backward"), backward + "computed element 1 of gradient of input 0" + outside);
}

// A model of which the layer "big", inside the expansion of "wide", makes infinite values.
class Finite : public testing::Test {
 protected:
  static HostOptions options(bool check) {
    HostOptions made{1, {plugin_folder()}, nullptr, {}, TN_CHECK_OFF};
    made.check_finite = check;
    return made;
  }
  // subject: the name of the value that is not finite.
  std::string step(float first, bool check, const std::string& subject, float weight = 1) {
    const Host host(options(check));
    DataOptions x;
    x.name = "x", x.shape = {2};
    const Layer inner = host.layer("fc", {host.data(x)}, {{"size", 2}, {"act", "exp"}}, "wide");
    const Layer cost = host.layer("sum_cost", {inner}, {}, "cost");
    const Parameters parameters = host.parameters({cost}, 3);
    const float weights[] = {weight, 0, 0, 1};
    parameters.set("wide.weight", {TN_F32, {2, 2}, weights});
    MachineOptions machine_options;
    machine_options.max_samples = 3;
    machine_options.training = machine_options.keep_all = true;
    const Machine machine = host.machine(parameters, {cost}, machine_options);
    const float values[] = {1, 2, 3, 4, first, 6};
    return message_of([&] { machine.forward({{"x", {TN_F32, {3, 2}, values}}}); }, TN_INVALID, subject);
  }
};

TEST_F(Finite, NamesTheFirstLayerAndElement) {
  EXPECT_EQ(step(1000, false, ""), "nothing was refused");
  // One call computes all of them; the one whose value it is comes first.
  EXPECT_EQ(step(1000, true, "wide/exp"),
            "layer \"wide/exp\", \"wide/fc\", \"cost\" (gemm): \"wide/exp\" is inf at [2, 0]");
  EXPECT_EQ(step(5, true, ""), "nothing was refused");
}

TEST_F(Finite, NamesFeedsAndParameters) {
  EXPECT_THAT(step(NAN, true, "x"), HasSubstr("\"x\", which the model reads, is nan at [2, 0]"));
  EXPECT_THAT(step(1, true, "wide.weight", std::numeric_limits<float>::infinity()),
              HasSubstr("\"wide.weight\", which the model reads, is inf at [0, 0]"));
}

}  // namespace

}  // namespace tenon_tests
