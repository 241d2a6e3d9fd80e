// Products against plain sums in fp64. SPDX-License-Identifier: Apache-2.0
#include "tests/devices/gemm_reference.h"
#include "tests/devices/prepared_call.h"

namespace tenon_tests {
namespace {

struct Product {
  int64_t batch, m, n, k;
  uint32_t flags = 0;
  double alpha = 1;
  tn_dtype dtype = TN_F32;
  uint8_t request = TN_REQUEST_WRITE;
  uint32_t precision = TN_PRECISION_FULL;
  bool constant_rows = false;  // m is no symbol
};

std::ostream& operator<<(std::ostream& out, const Product& p) {
  return out << p.batch << " x " << p.m << " " << p.n << " " << p.k << " flags " << p.flags << " alpha " << p.alpha
             << (p.dtype == TN_F32 ? " f32" : " f64") << " request " << int{p.request} << " precision " << p.precision;
}

class Gemm : public testing::Test {
 protected:
  tn_status prepare(const Product& p, tn_prepared* prepared) {
    tn_gemm gemm = {};
    gemm.size = sizeof gemm;
    gemm.dtype = p.dtype;
    gemm.batch = tn_dim_constant(p.batch);
    gemm.m = p.constant_rows ? tn_dim_constant(p.m) : bounded_symbol(TN_SYMBOL_SAMPLES, std::max<int64_t>(p.m, 0));
    gemm.precision = p.precision;
    gemm.n = tn_dim_constant(p.n);
    gemm.k = tn_dim_constant(p.k);
    gemm.flags = p.flags;
    gemm.alpha = p.alpha;
    return device_.table<tn_gemm_table>(TN_GEMM)->prepare(device_.device(), device_.services(), device_.errors(), &gemm,
                                                          prepared);
  }

  // Runs a call. C is NaN before it if it must not be read, else random_numbers of seed 3.
  Guarded run(const Product& p, int32_t workers) {
    PreparedCall call(device_);
    EXPECT_EQ(prepare(p, &call.prepared), TN_OK);
    Guarded a = write_all(p.dtype, random_numbers(p.batch * p.m * p.k, 1));
    Guarded b = write_all(p.dtype, random_numbers(p.batch * p.k * p.n, 2));
    Guarded c = write_all(p.dtype, held(p));
    EXPECT_EQ(call.run({&a, &b}, {&c}, {p.request}, {0, p.m}, workers, static_cast<uint64_t>(workers)), TN_OK);
    EXPECT_TRUE(a.intact() && b.intact() && c.intact());
    return c;
  }

  static std::vector<double> held(const Product& p) {
    if (p.request == TN_REQUEST_ADD) return random_numbers(p.batch * p.m * p.n, 3);
    return std::vector<double>(static_cast<size_t>(p.batch * p.m * p.n), NAN);
  }

  void check(const Product& p) {
    SCOPED_TRACE(testing::Message() << p);
    const Guarded c = run(p, 1);
    for (const int32_t workers : device_.workers({2, 3, 8}))
      ASSERT_TRUE(run(p, workers).bytes() == c.bytes()) << workers << " workers";
    const std::vector<double> got = read_all(p.dtype, c), before = held(p);
    // A product of one column, or row of a transposed matrix, stays in full precision.
    const bool vector = p.n == 1 || ((p.flags & TN_TRANSPOSE_A) != 0 && p.m == 1);
    const bool rounds = p.precision == TN_PRECISION_BF16 && p.dtype == TN_F32 && !vector && tested_kind() != "cuda";
    const auto factor = [&](int64_t count, uint64_t seed) {
      std::vector<double> numbers = random_numbers(count, seed);
      for (double& number : numbers)
        if (rounds) number = to_bfloat16(static_cast<float>(number));
      return numbers;
    };
    const std::vector<double> sums =
        plain_product(p.batch, p.m, p.n, p.k, p.flags, factor(p.batch * p.m * p.k, 1), factor(p.batch * p.k * p.n, 2));
    const double unit = p.dtype == TN_F32 ? 6e-8 : 1.2e-16;
    for (size_t i = 0; i < sums.size(); ++i)
      ASSERT_NEAR(got[i], p.alpha * sums[i] + (p.request == TN_REQUEST_ADD ? before[i] : 0),
                  unit * (8 + 2 * static_cast<double>(p.k)))
          << "element " << i;
  }

  DeviceUnderTest device_;
};

TEST_F(Gemm, EveryFormOfEverySize) {
  constexpr int64_t kSizes[][3] = {{1, 1, 1},      {1, 128, 784}, {3, 5, 7},      {17, 1, 33},
                                   {128, 10, 128}, {64, 65, 1},   {33, 128, 784}, {130, 70, 50},
                                   {100, 300, 40}, {5, 700, 90},  {40, 33, 1100}, {300, 3, 2}};
  for (const auto& [m, n, k] : kSizes)
    for (uint32_t flags = 0; flags < 4; ++flags)
      for (const tn_dtype dtype : {TN_F32, TN_F64})
        for (const uint8_t request : {TN_REQUEST_WRITE, TN_REQUEST_ADD}) {
          check({1, m, n, k, flags, request == TN_REQUEST_ADD ? -0.5 : 1, dtype, request});
          if (HasFatalFailure()) return;
        }
}

TEST_F(Gemm, InBfloat16) {
  constexpr int64_t kSizes[][3] = {{1, 1, 1},      {1, 128, 784},  {3, 5, 7},     {17, 1, 33},
                                   {128, 10, 128}, {33, 128, 784}, {130, 70, 51}, {5, 700, 91},
                                   {40, 33, 1501}, {300, 3, 2},    {1, 2, 1}};
  for (const auto& [m, n, k] : kSizes)
    for (uint32_t flags = 0; flags < 4; ++flags)
      for (const uint8_t request : {TN_REQUEST_WRITE, TN_REQUEST_ADD}) {
        check({1, m, n, k, flags, request == TN_REQUEST_ADD ? -0.5 : 1, TN_F32, request, TN_PRECISION_BF16});
        check({3, m, n, k, flags, 1, TN_F32, request, TN_PRECISION_BF16});
        if (HasFatalFailure()) return;
      }
  check({1, 260, 520, 300, TN_TRANSPOSE_A, 1, TN_F32, TN_REQUEST_WRITE, TN_PRECISION_BF16});
  check({1, 2, 3, 0, 0, 1, TN_F32, TN_REQUEST_WRITE, TN_PRECISION_BF16});
  check({1, 9, 8, 7, 0, 1, TN_F64, TN_REQUEST_WRITE, TN_PRECISION_BF16});
}

// What a row gives does not depend on the rows beside it.
TEST_F(Gemm, RowsInBfloat16DoNotDependOnEachOther) {
  const Product all = {1, 37, 70, 333, TN_TRANSPOSE_B, 1, TN_F32, TN_REQUEST_WRITE, TN_PRECISION_BF16};
  Product one = all;
  one.m = 1;  // the first row: random_numbers begins with the same ones
  const Guarded whole = run(all, 2), alone = run(one, 1);
  EXPECT_TRUE(std::equal(alone.data(), alone.data() + 70 * sizeof(float), whole.data()));
}

// One row whatever the sample: as scores of one vector by several.
TEST_F(Gemm, OneRowInEveryProduct) {
  constexpr int64_t kSizes[][3] = {{1, 1, 1}, {5, 6, 100}, {700, 33, 7}, {2, 300, 1501}, {3, 4, 0}, {0, 4, 5}};
  for (const auto& [batch, n, k] : kSizes)
    for (uint32_t flags = 0; flags < 4; ++flags)
      for (const tn_dtype dtype : {TN_F32, TN_F64})
        for (const uint8_t request : {TN_REQUEST_WRITE, TN_REQUEST_ADD}) {
          check({batch, 1, n, k, flags, 0.5, dtype, request, TN_PRECISION_FULL, true});
          if (HasFatalFailure()) return;
        }
}

TEST_F(Gemm, LargeProductsInTiles) {
  for (uint32_t flags = 0; flags < 4; ++flags) {  // one row, one column
    check({2, 1, 900, 700, flags, 0.5, TN_F32, TN_REQUEST_ADD});
    check({2, 900, 1, 700, flags});
  }
  check({1, 260, 520, 300, 0});
  check({1, 520, 260, 300, TN_TRANSPOSE_A});
  check({1, 300, 600, 64, TN_TRANSPOSE_B, 2, TN_F64, TN_REQUEST_ADD});
}

TEST_F(Gemm, Batches) {
  for (uint32_t flags = 0; flags < 4; ++flags) check({7, 20, 30, 40, flags});
  check({1000, 2, 3, 4, 0});
}

TEST_F(Gemm, NothingToDo) {
  for (const Product& p : {Product{0, 3, 4, 5}, Product{2, 0, 4, 5}, Product{2, 3, 0, 5}}) check(p);
  check({2, 3, 4, 0});  // an empty sum is zero, and overwrites NaN
  check({2, 3, 4, 0, 0, 1, TN_F64, TN_REQUEST_ADD});
}

TEST_F(Gemm, DoesNothingWithoutARequest) {
  PreparedCall call(device_);
  ASSERT_EQ(prepare({1, 2, 2, 2}, &call.prepared), TN_OK);
  Guarded a(16), b(16);
  EXPECT_EQ(call.run({&a, &b}, {nullptr}, {TN_REQUEST_NONE}, {0, 2}, 1), TN_OK);
  EXPECT_EQ(call.run({&a}, {nullptr}, {TN_REQUEST_WRITE}, {0, 2}, 1), TN_MISUSE);
}

TEST_F(Gemm, RefusesNegativeAndImmenseSizes) {
  Guarded a(16), b(16), c(16);
  const std::vector<uint8_t> before = c.bytes();
  const auto run = [&](const Product& p) {
    PreparedCall call(device_);
    EXPECT_EQ(prepare(p, &call.prepared), TN_OK);
    const tn_status status = call.run({&a, &b}, {&c}, {TN_REQUEST_WRITE}, {0, p.m}, 1);
    EXPECT_TRUE(c.bytes() == before && c.intact());
    return status;
  };
  for (const Product& p : {Product{-1, 2, 2, 2}, Product{1, -2, 2, 2}, Product{1, 2, -2, 2}, Product{1, 2, 2, -2},
                           Product{-1, -2, 2, 2}, Product{1, INT64_MIN, 2, 2}, Product{0, 2, 2, -1}}) {
    device_.message.clear();
    EXPECT_EQ(run(p), TN_MISUSE) << p;
    EXPECT_EQ(device_.message, "a product of negative size") << p;
  }
  constexpr int64_t kImmense = int64_t{1} << 31;
  for (const Product& p : {Product{1, kImmense, 2, 2}, Product{1, 2, kImmense, 2}, Product{1, 2, 2, kImmense}})
    EXPECT_EQ(run(p), TN_UNSUPPORTED) << p;
}

TEST_F(Gemm, RefusesOtherTypesAndForms) {
  tn_prepared prepared = {};
  EXPECT_EQ(prepare({1, 2, 2, 2, 0, 1, TN_I32}, &prepared), TN_UNSUPPORTED);
  EXPECT_EQ(device_.port, "dtype");
  EXPECT_EQ(prepare({1, 2, 2, 2, 4}, &prepared), TN_UNSUPPORTED);
  EXPECT_EQ(device_.port, "flags");
  EXPECT_EQ(prepare({1, 2, 2, 2, 0, 1, TN_F32, TN_REQUEST_WRITE, 7}, &prepared), TN_UNSUPPORTED);
  EXPECT_EQ(device_.port, "precision");
}

// More simultaneous products than packing buffers.
TEST_F(Gemm, ManyAtOnce) {
  const Product p = {300, 130, 130, 130, TN_TRANSPOSE_A | TN_TRANSPOSE_B};
  EXPECT_TRUE(run(p, 200).bytes() == run(p, 1).bytes());
}

// Many small products that pack; simultaneous ones must not get the same buffer.
TEST_F(Gemm, SmallOnesAtOnce) {
  for (const uint32_t flags : {uint32_t{TN_TRANSPOSE_A}, uint32_t{TN_TRANSPOSE_A | TN_TRANSPOSE_B}}) {
    const Product p = {50000, 3, 4, 5, flags};
    const Guarded alone = run(p, 1);
    for (int repeat = 0; repeat < 5; ++repeat) ASSERT_TRUE(run(p, 8).bytes() == alone.bytes()) << "flags " << flags;
  }
}

}  // namespace
}  // namespace tenon_tests
