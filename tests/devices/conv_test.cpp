// Convolutions, against their definition. SPDX-License-Identifier: Apache-2.0
#include "tests/devices/conv_rows.h"

namespace tenon_tests {
namespace {

TEST_F(ConvTable, OneDimension) { check(one_dimension()); }
TEST_F(ConvTable, TwoDimensions) { check(two_dimensions()); }
TEST_F(ConvTable, ThreeDimensions) { check(three_dimensions()); }
TEST_F(ConvTable, Depthwise) { check(depthwise()); }
TEST_F(ConvTable, ManyBands) { check(many_bands()); }
TEST_F(ConvTable, RandomWindows) { check(random_rows()); }

TEST_F(ConvTable, SamplesAreIndependent) {
  check_samples({window_of({{9, 3, 2, 1, 1}, {9, 3, 1, 1, 1}}), {7, 12, 20, 1}});
}

TEST_F(ConvTable, WithoutSamples) { check_without_samples({window_of({{4, 3}}), {0, 2, 3, 1}}); }

TEST_F(ConvTable, Refuses) {
  tn_prepared prepared = {sizeof(tn_prepared), 0, nullptr, 0, nullptr, nullptr};
  ConvCase c = {window_of({{4, 3}}), {1, 2, 3, 1}};
  c.dtype = TN_I32;
  EXPECT_EQ(prepare(c, &prepared), TN_UNSUPPORTED);
  c.dtype = TN_F32;
  c.op = 3;
  EXPECT_EQ(prepare(c, &prepared), TN_UNSUPPORTED);
  c.op = TN_CONV_RESULTS;
  check_wrong_calls(c);
}

}  // namespace
}  // namespace tenon_tests
