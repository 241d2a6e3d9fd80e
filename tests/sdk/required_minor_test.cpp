// The minor version that the C++ wrappers require of a host rises with the wrappers that a plugin calls, and with no
// others. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <tenon/plugin.hpp>

namespace {

// Wrappers as later headers will have them.
struct Later {
  template <uint16_t kMinor = TN_ABI_MINOR + 3>
  int called() const {
    tn::require<kMinor>();
    return 1;
  }
  template <uint16_t kMinor = TN_ABI_MINOR + 1>
  int called_too() const {
    tn::require<kMinor>();
    return 2;
  }
  template <uint16_t kMinor = TN_ABI_MINOR + 7>
  int not_called() const {
    tn::require<kMinor>();
    return 3;
  }
};

constexpr uint16_t kHighest = TN_ABI_MINOR + 3;  // of the wrappers that are called

// Nothing calls this function: what counts is that the plugin holds the call.
[[maybe_unused]] int used_by_a_layer(const Later& later) { return later.called() + later.called_too(); }

TEST(RequiredMinor, IsThatOfTheNewestWrapperThatIsCalled) {
  tn::Plugin plugin;
  EXPECT_EQ(plugin.get()->abi.required, kHighest);
  EXPECT_EQ(plugin.get()->abi.built, TN_ABI_MINOR);
}

TEST(RequiredMinor, IsOnlyRaised) {
  tn::Plugin plugin;
  plugin.requires_minor(1);
  EXPECT_EQ(plugin.get()->abi.required, kHighest);
  plugin.requires_minor(kHighest + 1);
  plugin.requires_minor(kHighest);
  EXPECT_EQ(plugin.get()->abi.required, kHighest + 1);
}

}  // namespace
