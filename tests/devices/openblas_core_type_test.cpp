// The provider "openblas" chooses the kernels of OpenBLAS by the instructions of the processor alone.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>

#include "core_type.h"

namespace tenon_tests {
namespace {

// Returns the core that is expected on this processor.
const char* expected_core() {
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  const bool avx2 = false;
#endif
  return tenon::openblas::core_for(tenon::openblas::has_small_kernels(), avx2);
}

TEST(BlasCore, FollowsTheInstructions) {
  EXPECT_STREQ(tenon::openblas::core_for(true, true), "SkylakeX");
  EXPECT_STREQ(tenon::openblas::core_for(false, true), "Haswell");
  EXPECT_EQ(tenon::openblas::core_for(false, false), nullptr);
  EXPECT_EQ(tenon::openblas::knows_core(), expected_core() != nullptr);
}

// OpenBLAS reads the environment through getenv, which the linker wraps.
TEST(BlasCore, TheEnvironmentDoesNotCount) {
  for (const char* name : {"OPENBLAS_CORETYPE", "OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "TENON_TEST_OTHER"})
    setenv(name, "Prescott", 1);
  EXPECT_STREQ(std::getenv("OPENBLAS_CORETYPE"), expected_core());
  EXPECT_EQ(std::getenv("OPENBLAS_NUM_THREADS"), nullptr);
  EXPECT_EQ(std::getenv("GOTO_NUM_THREADS"), nullptr);
  EXPECT_STREQ(std::getenv("TENON_TEST_OTHER"), "Prescott");
}

}  // namespace
}  // namespace tenon_tests
