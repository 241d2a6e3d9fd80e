// The objects that kernels and providers share: several calls at once, one at a time, one object for each stream.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <set>
#include <tenon/kernel.hpp>
#include <tenon/layer.hpp>
#include <tenon/tenon.hpp>
#include <thread>

#include "tests/support/bare_plugin.h"
#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

namespace {

// What the calls of all objects did. A call that gets an object, or a binding made with it, is inside for a while.
struct Seen {
  std::atomic<int> opened{0}, open{0}, inside{0}, most_inside{0}, runs{0};
};
Seen seen;

class Inside {
 public:
  Inside() {
    const int now = ++seen.inside;
    int most = seen.most_inside;
    while (most < now && !seen.most_inside.compare_exchange_weak(most, now)) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ~Inside() { --seen.inside; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};

tn_status open_object(const tn_services*, const tn_errors*, const tn_device*, void*, void** shared) {
  ++seen.opened, ++seen.open;
  *shared = new std::atomic<int>(0);
  return TN_OK;
}
void close_object(void* shared) {
  --seen.open;
  delete static_cast<std::atomic<int>*>(shared);
}
tn_shared kShared = {sizeof kShared, 0, open_object, close_object, nullptr};

struct Passing {
  static void describe(tn::LayerDescription& d) {
    d.type("test_passing", "out = in.");
    d.input("in", "any shape");
    d.output("out", "the shape of in");
  }
  static void plan(tn::Planner& planner) { planner.output(0, planner.input(0)); }
};
class PassingKernel {
 public:
  static void describe(tn::KernelDescription& d) {
    d.kernel("test_passing", "cpu", "passing", 1);
    d.shared(&kShared);
  }
  static void query(const tn::KernelSite& /*site*/, tn::KernelNeeds& /*needs*/) { const Inside inside; }
  PassingKernel(const tn::KernelSite& site, int32_t /*direction*/)
      : users_(*static_cast<std::atomic<int>*>(site->shared)) {
    const Inside inside;
  }
  ~PassingKernel() { const Inside inside; }
  PassingKernel(const PassingKernel&) = delete;
  PassingKernel& operator=(const PassingKernel&) = delete;
  void run(const tn::Call& call) const {
    ++seen.runs;
    if (++users_ > 1) ++overlaps;
    const Inside inside;
    std::memcpy(call.out<float>(0), call.in<float>(0),
                sizeof(float) * static_cast<size_t>(tn_elements(call.output(0))));
    --users_;
  }
  static inline std::atomic<int> overlaps{0};  // of runs with one object

 private:
  std::atomic<int>& users_;
};

class SharedObjects : public testing::Test {
 protected:
  // Runs two machines of a host on two threads, and makes a third meanwhile.
  void run_machines(uint32_t flags, bool checked = false) {
    seen.opened = seen.open = seen.inside = seen.most_inside = seen.runs = 0;
    PassingKernel::overlaps = 0;
    kShared.flags = flags;
    tn_plugin plugin = bare_plugin("tenon.test.passing");
    const tn_layer_type* const layers[] = {tn::layer_type<Passing>()};
    const tn_kernel* const kernels[] = {tn::kernel<PassingKernel>()};
    plugin.layers = layers, plugin.layers_count = 1;
    plugin.kernels = kernels, plugin.kernels_count = 1;
    {
      const Host host({1, {plugin_folder()}, nullptr, {}, checked ? TN_CHECK_ON : TN_CHECK_OFF});
      host.add_plugin(&plugin);
      DataOptions x;
      x.name = "x", x.shape = {3};
      Layer last = host.data(x);
      for (int i = 0; i < 3; ++i) last = host.layer("test_passing", {last}, {}, "passing" + std::to_string(i));
      const auto machine = [&] { return host.machine(host.parameters({last}, 1), {last}, {}); };
      const auto work = [&](const Machine& on) {
        const float values[3] = {1, 2, 3};
        for (int i = 0; i < 10; ++i) on.forward({{"x", {TN_F32, {1, 3}, values}}});
        EXPECT_EQ(static_cast<const float*>(on.output(last).data)[2], 3);
      };
      {
        const Machine one = machine(), two = machine();
        std::thread first([&] { work(one); }), second([&] { work(two); });
        for (int i = 0; i < 3; ++i) work(machine());
        first.join();
        second.join();
        objects_ = seen.open;
      }
      left_ = seen.open;
    }
    EXPECT_EQ(seen.open, 0) << "closed with the device";
    EXPECT_EQ(seen.runs, 5 * 10 * 3);
  }

  int objects_ = 0, left_ = 0;  // while two machines live, and after them
};

TEST_F(SharedObjects, AreUsedByOneCallAtATime) {
  for (const bool checked : {false, true}) {
    run_machines(TN_SHARED_ONE_AT_A_TIME, checked);
    EXPECT_EQ(seen.opened, 1);
    EXPECT_EQ(seen.most_inside, 1) << "queries, prepares, runs and destroys";
    EXPECT_EQ(PassingKernel::overlaps, 0);
  }
}

TEST_F(SharedObjects, OfStreamsAreClosedWithTheirLastBinding) {
  run_machines(TN_SHARED_PER_STREAM);
  EXPECT_EQ(seen.opened, 5) << "one for each machine";
  EXPECT_EQ(objects_, 2);
  EXPECT_EQ(left_, 0);
  EXPECT_EQ(PassingKernel::overlaps, 0);
}

TEST_F(SharedObjects, OfStreamsMayBeUsedByOneCallAtATime) {
  run_machines(TN_SHARED_PER_STREAM | TN_SHARED_ONE_AT_A_TIME);
  EXPECT_EQ(seen.opened, 5);
  EXPECT_EQ(PassingKernel::overlaps, 0);
}

TEST_F(SharedObjects, WithoutFlagsAreUsedBySeveralCallsAtOnce) {
  run_machines(0);
  EXPECT_EQ(seen.opened, 1);
  EXPECT_EQ(left_, 1) << "it is open as long as the device";
  EXPECT_GT(seen.most_inside, 1);
}

TEST_F(SharedObjects, WithUnknownFlagsAreTheirPluginsFault) {
  try {
    run_machines(4);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), TN_PLUGIN_FAULT);
    EXPECT_THAT(error.what(), testing::HasSubstr("flags that this host does not know"));
  }
}

}  // namespace

}  // namespace tenon_tests
