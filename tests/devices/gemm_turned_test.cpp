// Products with a transposed A: their values, and their bits, which do not depend on how a factor lies.
// SPDX-License-Identifier: Apache-2.0
#include "primitives/gemm.h"
#include "tests/devices/gemm_reference.h"
#include "tests/devices/prepared_call.h"

namespace tenon_tests {
namespace {

struct Sizes {
  int64_t batch, m, n, k;
};

// Sizes at and beside the edges of tiles, of strips and of panels.
constexpr Sizes kSizes[] = {{1, 2, 2, 1},     {1, 8, 33, 16},  {3, 31, 17, 20}, {1, 129, 65, 243}, {1, 64, 32, 600},
                            {1, 200, 90, 97}, {1, 70, 3, 400}, {2, 19, 11, 33}, {2, 5, 300, 64},   {1, 195, 130, 320}};

tn_gemm gemm_of(const Sizes& s, uint32_t flags, tn_dtype dtype) {
  tn_gemm gemm = {};
  gemm.size = sizeof gemm;
  gemm.dtype = dtype;
  gemm.batch = tn_dim_constant(s.batch);
  gemm.m = tn_dim_constant(s.m);
  gemm.n = tn_dim_constant(s.n);
  gemm.k = tn_dim_constant(s.k);
  gemm.flags = flags;
  gemm.alpha = 1;
  return gemm;
}

// C = A B of `dtype` with B in panels where that pays. The tasks run in any order.
std::vector<double> multiply(const Sizes& s, uint32_t flags, tn_dtype dtype, const std::vector<double>& a,
                             const std::vector<double>& b) {
  const tn_gemm gemm = gemm_of(s, flags, dtype);
  const RandomPool pool(2, 1);
  tn_execution execution = {};
  execution.parallel = pool.parallel();
  const Guarded left = write_all(dtype, a), right = write_all(dtype, b);
  Guarded result(static_cast<size_t>(s.batch * s.m * s.n) * tn_dtype_bytes(dtype));
  tenon::cpu::Product product = {};
  product.gemm = &gemm;
  product.batch = s.batch;
  product.m = s.m;
  product.n = s.n;
  product.k = s.k;
  product.a = left.data();
  product.b = right.data();
  product.c = result.data();
  product.workers = 2;
  tenon::cpu::cut(&product);
  Guarded panels(tenon::cpu::worthwhile_bytes(gemm, s.batch, s.m, s.n, s.k));
  if (panels.size() > 0) tenon::cpu::pack_factors(execution, panels.data(), &product);
  EXPECT_EQ(tenon::cpu::multiply_all(execution, product), TN_OK);
  return read_all(dtype, result);
}

std::string name_of(const Sizes& s, uint32_t flags, tn_dtype dtype) {
  return std::to_string(s.batch) + " x " + std::to_string(s.m) + " x " + std::to_string(s.n) + " x " +
         std::to_string(s.k) + ", flags " + std::to_string(flags) + (dtype == TN_F32 ? ", f32" : ", f64");
}

TEST(GemmTurned, IsTheProduct) {
  for (const Sizes& s : kSizes)
    for (const uint32_t flags : {uint32_t{TN_TRANSPOSE_A}, uint32_t{TN_TRANSPOSE_A | TN_TRANSPOSE_B}})
      for (const tn_dtype dtype : {TN_F32, TN_F64}) {
        const auto a = random_numbers(s.batch * s.m * s.k, 1), b = random_numbers(s.batch * s.n * s.k, 2);
        const std::vector<double> expected = plain_product(s.batch, s.m, s.n, s.k, flags, a, b);
        const std::vector<double> actual = multiply(s, flags, dtype, a, b);
        const double tolerance = (dtype == TN_F32 ? 1e-7 : 1e-16) * 4 * static_cast<double>(s.k + 8);
        ASSERT_EQ(actual.size(), expected.size());
        for (size_t i = 0; i < expected.size(); ++i)
          ASSERT_NEAR(actual[i], expected[i], tolerance) << name_of(s, flags, dtype) << ", element " << i;
      }
}

// The bits of a product with a transposed A are those of the product with that A as it is.
TEST(GemmTurned, BitsDoNotDependOnHowALies) {
  for (const Sizes& s : {Sizes{1, 203, 130, 1100}, Sizes{1, 389, 50, 700}, Sizes{1, 40, 41, 350}, Sizes{1, 90, 7, 650},
                         Sizes{1, 33, 12, 40}})
    for (const uint32_t tb : {uint32_t{0}, uint32_t{TN_TRANSPOSE_B}}) {
      const auto a = random_numbers(s.m * s.k, 1), b = random_numbers(s.n * s.k, 2);
      std::vector<double> turned(a.size());
      for (int64_t i = 0; i < s.m; ++i)
        for (int64_t l = 0; l < s.k; ++l)
          turned[static_cast<size_t>(i * s.k + l)] = a[static_cast<size_t>(l * s.m + i)];
      EXPECT_EQ(multiply(s, tb | TN_TRANSPOSE_A, TN_F32, a, b), multiply(s, tb, TN_F32, turned, b))
          << name_of(s, tb, TN_F32);
    }
}

// A [k, m] and one column: a row of m sums, whose bits do not depend on the other columns of A.
TEST(GemmTurned, AColumnHasTheBitsOfItsPlaceInAWiderProduct) {
  for (const int64_t k : {1, 17, 320, 700}) {
    const Sizes s = {1, 53, 9, k}, column = {1, 53, 1, k};
    const auto a = random_numbers(s.m * k, 1), b = random_numbers(s.n * k, 2);
    const std::vector<double> all = multiply(s, TN_TRANSPOSE_A, TN_F32, a, b);
    for (int64_t j = 0; j < s.n; ++j) {
      std::vector<double> one(static_cast<size_t>(k));
      for (int64_t l = 0; l < k; ++l) one[static_cast<size_t>(l)] = b[static_cast<size_t>(l * s.n + j)];
      const std::vector<double> alone = multiply(column, TN_TRANSPOSE_A, TN_F32, a, one);
      for (int64_t i = 0; i < s.m; ++i)
        ASSERT_EQ(alone[static_cast<size_t>(i)], all[static_cast<size_t>(i * s.n + j)])
            << "k " << k << ", column " << j;
    }
  }
}

}  // namespace
}  // namespace tenon_tests
