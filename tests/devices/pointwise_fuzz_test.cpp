// Random programs in whole numbers, where every result is exact, against the reference: passes, tiles, broadcasts,
// conversions, requests, shared memory. SPDX-License-Identifier: Apache-2.0
#include "tests/devices/random_program.h"

namespace tenon_tests {
namespace {

TEST(PointwiseFuzz, AgreesExactlyWithTheReference) {
  DeviceUnderTest device;
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    const PointwiseCase c = RandomProgram(seed).make();
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << c.rows << " rows, " << c.columns << " columns");
    check_case(device, c, 0);
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
}

}  // namespace
}  // namespace tenon_tests
