// Random programs in whole numbers, where every result is exact, against the reference: passes, tiles, broadcasts,
// conversions, requests, shared memory. TENON_FIRST_SEED sets the first of the 1,500 seeds.
// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "tests/devices/drawn_case.h"

namespace tenon_tests {
namespace {

TEST(PointwiseFuzz, AgreesExactlyWithTheReference) {
  DeviceUnderTest device;
  const char* const text = std::getenv("TENON_FIRST_SEED");
  const uint64_t first = text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
  for (uint64_t seed = first; seed < first + 1500; ++seed) {
    const PointwiseCase c = DrawnCase(seed).make();
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << c.rows << " rows, " << c.columns << " columns");
    check_case(device, c, 0);
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
}

}  // namespace
}  // namespace tenon_tests
