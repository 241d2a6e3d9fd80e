// SPDX-License-Identifier: Apache-2.0
#include "base/processor.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/temporary.h"

namespace {

using tenon::base::processor_text;

TEST(Processor, IsTheVendorAndTheVectorInstructionsOfTheFirstOne) {
  const tenon::base::TemporaryFolder folder;
  const std::string path = folder.file("cpuinfo");
  std::ofstream(path) << "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Any avx512f\n"
                         "flags\t\t: fpu sse4_2 mmx avx2 fma amx_tile avx\n\n"
                         "processor\t: 1\nvendor_id\t: AuthenticAMD\nflags\t\t: avx512f\n";
  EXPECT_EQ(processor_text(path), "GenuineIntel amx_tile avx avx2 fma sse4_2");
  std::ofstream(path) << "CPU implementer\t: 0x41\nFeatures\t: fp asimd evtstrm sve\n";
  EXPECT_EQ(processor_text(path), "0x41 asimd sve");
  EXPECT_EQ(processor_text(folder.file("absent")), "");
}

TEST(Processor, OfThisMachineIsKnown) { EXPECT_NE(processor_text(), ""); }

}  // namespace
