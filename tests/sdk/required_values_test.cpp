// The minor version that a plugin requires of a host rises with values in its tables that older hosts do not know.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <tenon/plugin.hpp>

namespace {

tn_shared shared_with(uint32_t flags) {
  tn_shared shared = {};
  shared.size = sizeof shared;
  shared.flags = flags;
  return shared;
}

template <uint32_t kFlags>
struct Kernel {
  static void describe(tn::KernelDescription& d) {
    static const tn_shared shared = shared_with(kFlags);
    d.kernel("test", "cpu", "test", 1);
    d.shared(&shared);
  }
  Kernel(const tn::KernelSite& /*site*/, int32_t /*direction*/) {}
  void run(const tn::Call& /*call*/) {}
};

struct Outer {
  static void describe(tn::LayerDescription& d) {
    d.type("test.outer", "has a parameter of a layer inside");
    d.output("output", "nothing");
    d.parameter("inner.weight");
  }
  static void plan(tn::Planner& /*planner*/) {}
};
struct Plain {
  static void describe(tn::LayerDescription& d) {
    d.type("test.plain", "has a parameter of its own");
    d.output("output", "nothing");
    d.parameter("weight");
  }
  static void plan(tn::Planner& /*planner*/) {}
};

// Of a plugin with what `add` adds.
template <typename Add>
uint16_t required_of(const Add& add) {
  tn::Plugin plugin;
  add(plugin);
  return plugin.get()->abi.required;
}

TEST(RequiredValues, FlagsOfSharedObjectsNeedHostsThatKnowThem) {
  EXPECT_EQ(required_of([](tn::Plugin& p) { p.kernel<Kernel<0>>(); }), TN_ABI_OLDEST);
  EXPECT_EQ(required_of([](tn::Plugin& p) { p.kernel<Kernel<TN_SHARED_ONE_AT_A_TIME>>(); }), 4);
  EXPECT_EQ(required_of([](tn::Plugin& p) { p.kernel(tn::kernel<Kernel<TN_SHARED_PER_STREAM>>()); }), 4);
  for (const uint32_t flags : {0U, 1U, 2U, 3U}) {
    const tn_shared shared = shared_with(flags);
    tn_provider provider = {};
    provider.size = sizeof provider;
    provider.shared = &shared;
    EXPECT_EQ(required_of([&](tn::Plugin& p) { p.provider(&provider); }), flags == 0 ? TN_ABI_OLDEST : 4);
    provider.shared = nullptr;
    EXPECT_EQ(required_of([&](tn::Plugin& p) { p.provider(&provider); }), TN_ABI_OLDEST);
  }
}

TEST(RequiredValues, ParametersOfInnerLayersNeedHostsThatKnowThem) {
  EXPECT_EQ(required_of([](tn::Plugin& p) { p.layer<Plain>(); }), TN_ABI_OLDEST);
  EXPECT_EQ(required_of([](tn::Plugin& p) { p.layer<Outer>(); }), 3);
}

TEST(RequiredValues, AreTheGreatestOfAllAndOfWhatThePluginStates) {
  const auto both = [](tn::Plugin& p) {
    p.kernel<Kernel<TN_SHARED_PER_STREAM>>();
    p.layer<Outer>();
    p.requires_minor(3);
  };
  EXPECT_EQ(required_of(both), 4);
  EXPECT_EQ(required_of([](tn::Plugin& p) { p.requires_minor(4), p.layer<Outer>(); }), 4);
}

TEST(RequiredValues, DoNotReadTablesThatAreMissing) {
  const auto none = [](tn::Plugin& p) {
    p.layer(nullptr);
    p.kernel(static_cast<const tn_kernel*>(nullptr));
    p.provider(nullptr);
  };
  EXPECT_EQ(required_of(none), TN_ABI_OLDEST);
}

}  // namespace
