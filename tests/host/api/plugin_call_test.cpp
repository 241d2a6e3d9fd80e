// The text of a crash inside a plugin, as an application's signal handler gets it. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>
#include <tenon/kernel.hpp>
#include <tenon/layer.hpp>
#include <tenon/tenon.hpp>

#include "tests/support/bare_plugin.h"
#include "tests/support/child.h"
#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using testing::MatchesRegex;

// A layer whose functions crash as the attribute `where` says.
struct Crashing {
  static void describe(tn::LayerDescription& d) {
    d.type("example.crashing", "out = in.");
    d.input("in", "any shape");
    d.output("out", "the shape of in");
    d.attribute(tn::string_attribute("where", "nowhere").doc("the function that crashes"));
  }
  static void plan(tn::Planner& planner) {
    if (planner.attributes().text("where") == std::string("plan")) raise(SIGSEGV);
    planner.output(0, planner.input(0));
  }
};
class CrashingKernel {
 public:
  static void describe(tn::KernelDescription& d) { d.kernel("example.crashing", "cpu", "crash", 1); }
  CrashingKernel(const tn::KernelSite& site, int32_t /*direction*/) : where_(site.attributes().text("where")) {}
  void run(const tn::Call& call) const {
    *call.out<float>(0) = *call.in<float>(0);
    if (where_ == "run") raise(SIGSEGV);
    if (where_ != "task") return;
    // The last task, which runs on any of the threads, raises.
    const auto task = [](void*, int64_t index, int32_t) {
      if (index == 63) raise(SIGSEGV);
    };
    const tn_parallel& parallel = *call.execution().parallel;
    parallel.for_each(parallel.self, 64, task, nullptr);
  }

 private:
  std::string where_;
};

int told = -1;  // where the handler writes

void tell(int /*signal*/) {
  char text[300];
  const uint64_t length = tn_plugin_call(text, sizeof text);
  const ssize_t written = write(told, text, length);
  _exit(written == static_cast<ssize_t>(length) ? 7 : 8);
}

// Runs a model with the layer in a child process. Returns the text of its handler.
std::string text_of_crash(const std::string& where, uint32_t check) {
  const auto work = [&](int to) {
    told = to;
    struct sigaction action = {};
    action.sa_handler = tell;
    sigaction(SIGSEGV, &action, nullptr);
    const tn_layer_type* const layers[] = {tn::layer_type<Crashing>()};
    const tn_kernel* const kernels[] = {tn::kernel<CrashingKernel>()};
    tn_plugin plugin = bare_plugin("org.example.crash");
    plugin.layers = layers;
    plugin.kernels = kernels;
    plugin.layers_count = plugin.kernels_count = 1;
    const Host host({2, {plugin_folder()}, nullptr, {}, check});
    host.add_plugin(&plugin);
    DataOptions x;
    x.name = "x";
    const Layer out = host.layer("example.crashing", {host.data(x)}, {{"where", where}}, "mid");
    const Machine machine = host.machine(host.parameters({out}, 1), {out}, {});
    const float value = 1;
    machine.forward({{"x", {TN_F32, {1}, &value}}});
    if (where == "outside") raise(SIGSEGV);
    _exit(0);
  };
  const ChildEnd end = run_child(work, 60);
  EXPECT_EQ(end.code(), where == "nowhere" ? 0 : 7);
  return end.text;
}

TEST(PluginCall, NamesLayerPluginAndFunction) {
  for (const uint32_t check : {TN_CHECK_OFF, TN_CHECK_ON}) {
    EXPECT_EQ(text_of_crash("plan", check),
              "layer \"mid\" (example.crashing) of plugin \"org.example.crash\": plan [setup]");
    for (const char* const where : {"run", "task"})
      EXPECT_EQ(text_of_crash(where, check),
                "layer \"mid\" (example.crashing, native kernel \"crash\") of plugin \"org.example.crash\": run [run]");
    EXPECT_EQ(text_of_crash("outside", check), "");
    EXPECT_EQ(text_of_crash("nowhere", check), "");
  }
}

TEST(PluginCall, IsEmptyOutsideAndFitsAnyBuffer) {
  std::array<char, 4> text = {'a', 'b', 'c', 'd'};
  EXPECT_EQ(tn_plugin_call(nullptr, 0), 0U);
  EXPECT_EQ(tn_plugin_call(text.data(), 0), 0U);
  EXPECT_EQ(text[0], 'a');
  EXPECT_EQ(tn_plugin_call(text.data(), text.size()), 0U);
  EXPECT_EQ(text[0], '\0');
}

}  // namespace

}  // namespace tenon_tests
