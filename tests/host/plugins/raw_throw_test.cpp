// Exceptions that leave a plugin which does not use the SDK's wrappers reach the host's barrier, in plugins with a C++
// runtime of their own, too. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tenon/tenon.hpp>

#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using testing::AllOf;
using testing::HasSubstr;

class RawThrowTest : public testing::Test {
 protected:
  RawThrowTest() {
    DataOptions x;
    x.name = "x";
    x.shape = {2};
    x_ = host_.data(x);
  }

  // Makes a machine of a layer of which one function throws, and runs it forward.
  void forward(const std::string& where) const {
    const Layer layer = host_.layer("test_raw_throw", {x_}, {{"where", where}}, "mid");
    MachineOptions options;
    options.max_samples = 4;
    const float samples[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    host_.machine(host_.parameters({layer}, 1), {layer}, options).forward({{"x", {TN_F32, {4, 2}, samples}}});
  }

  Host host_{HostOptions{
      2, {tenon_tests::plugin_folder(), tenon_tests::test_plugin_folder() + "/layers"}, nullptr, {}, TN_CHECK_DEFAULT}};
  Layer x_;
};

TEST_F(RawThrowTest, EveryFunctionIsNamedAndTheProcessLives) {
  for (const std::string where : {"plan", "supports", "query", "prepare", "run"}) {
    SCOPED_TRACE(where);
    try {
      forward(where);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const tenon::Error& error) {
      EXPECT_EQ(error.code(), TN_PLUGIN_FAULT);
      EXPECT_THAT(error.what(), AllOf(HasSubstr("plugin \"tenon.test.raw_throw\""), HasSubstr(where + " ["),
                                      HasSubstr("threw an exception: thrown by " + where)));
    }
  }
  forward("");
}

}  // namespace
}  // namespace tenon_tests
