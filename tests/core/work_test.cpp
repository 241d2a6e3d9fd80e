// What nodes do, counted by hand. SPDX-License-Identifier: Apache-2.0
#include "core/graph/work.h"

#include <gtest/gtest.h>

namespace tenon_tests {

using namespace tenon::core;

namespace {

constexpr int64_t kSamples = 5;
const std::vector<int64_t> kSymbols = {0, kSamples};  // by number: none, samples

Spec floats(Shape shape) { return {TN_F32, std::move(shape), TN_DENSE, 0, {}}; }
Dim samples() {
  Dim dim = tn_dim_constant(0);
  dim.symbol = TN_SYMBOL_SAMPLES;
  dim.coefficient = 1;
  return dim;
}
Dim size(int64_t n) { return tn_dim_constant(n); }

class WorkTest : public testing::Test {
 protected:
  Work last() { return work_of(graph_, graph_.nodes.back(), kSymbols.data()); }
  ValueId value(Shape shape, tn_dtype dtype = TN_F32) {
    Spec spec = floats(std::move(shape));
    spec.dtype = dtype;
    return graph_.add_external(std::move(spec), "");
  }
  Graph graph_;
  GraphWriter write_{graph_, -1, false, TN_F32};
};

TEST_F(WorkTest, OfProducts) {
  write_.gemm(value({samples(), size(7)}), value({size(7), size(3)}), 0, 1);
  EXPECT_EQ(last().operations, 2.0 * kSamples * 7 * 3);
  EXPECT_EQ(last().bytes, 4.0 * (kSamples * 7 + 7 * 3 + kSamples * 3));
  write_.gemm(value({samples(), size(7)}), value({samples(), size(3)}), TN_TRANSPOSE_A, 1);
  EXPECT_EQ(last().operations, 2.0 * kSamples * 7 * 3);
}

TEST_F(WorkTest, OfConvolutions) {
  tn_window window = {};
  window.rank = 2;
  for (int i = 0; i < 2; ++i) window.images[i] = 6, window.kernel[i] = 3, window.stride[i] = 1, window.dilation[i] = 1;
  const ValueId images = value({samples(), size(6), size(6), size(2)});
  const ValueId weights = value({size(8), size(3), size(3), size(1)});  // in 2 groups
  const ValueId results = write_.conv(TN_CONV_RESULTS, window, 2, images, weights);
  const double expected = 2.0 * kSamples * 4 * 4 * 8 * 3 * 3 * 1;
  EXPECT_EQ(last().operations, expected);
  write_.conv(TN_CONV_IMAGES, window, 2, results, weights);
  EXPECT_EQ(last().operations, expected);
  write_.conv(TN_CONV_WEIGHTS, window, 2, images, results);
  EXPECT_EQ(last().operations, expected);
}

// A gather reads the rows that it takes, not the table.
TEST_F(WorkTest, OfRows) {
  const ValueId ids = value({samples()}, TN_I64);
  write_.gather(value({size(1000), size(16)}), ids);
  EXPECT_EQ(last().operations, 0);
  EXPECT_EQ(last().bytes, kSamples * (2 * 4 * 16.0 + 8));
  write_.scatter_add(value({samples(), size(16)}), ids, size(1000));
  EXPECT_EQ(last().bytes, kSamples * (2 * 4 * 16.0 + 8));
}

TEST_F(WorkTest, IsNothingWithoutSamples) {
  write_.gather(value({size(0), size(16)}), value({size(0)}, TN_I64));
  EXPECT_EQ(last().bytes, 0);
}

}  // namespace
}  // namespace tenon_tests
