// The kernels of the device cpu for products with a transposed A, each of them forced, and the table that chooses them.
// SPDX-License-Identifier: Apache-2.0
#include "gemm_table.h"
#include "primitives/gemm.h"
#include "tests/devices/gemm_reference.h"
#include "tests/devices/prepared_call.h"

namespace tenon_tests {
namespace {

using tenon::cpu::Kernels;

constexpr Kernels kAll[] = {Kernels::kOwn, Kernels::kBlas, Kernels::kUnpacked};

struct Sizes {
  int64_t batch, m, n, k;
};

// Sizes at and beside the edges of tiles, of strips and of panels.
constexpr Sizes kSizes[] = {{1, 2, 2, 1},     {1, 8, 33, 16},   {3, 31, 17, 20}, {1, 129, 65, 243},
                            {1, 64, 32, 600}, {1, 200, 90, 97}, {2, 5, 300, 64}, {1, 195, 130, 320}};

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

// C = A B of `dtype` by `kernels`, with B in panels where that pays. The tasks run in any order.
std::vector<double> multiply(Kernels kernels, const Sizes& s, uint32_t flags, tn_dtype dtype,
                             const std::vector<double>& a, const std::vector<double>& b) {
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
  tenon::cpu::use(kernels, &product);
  Guarded panels(tenon::cpu::worthwhile_bytes(gemm, s.batch, s.m, s.n, s.k));
  if (kernels == Kernels::kOwn && panels.size() > 0) tenon::cpu::pack_factors(execution, panels.data(), &product);
  EXPECT_EQ(tenon::cpu::multiply_all(execution, product), TN_OK);
  return read_all(dtype, result);
}

std::string name_of(const Sizes& s, uint32_t flags, tn_dtype dtype, Kernels kernels) {
  return std::to_string(s.batch) + " x " + std::to_string(s.m) + " x " + std::to_string(s.n) + " x " +
         std::to_string(s.k) + ", flags " + std::to_string(flags) + (dtype == TN_F32 ? ", f32" : ", f64") +
         ", kernels " + std::to_string(static_cast<int>(kernels));
}

TEST(GemmChoice, AllKernelsComputeTheProduct) {
  for (const Sizes& s : kSizes)
    for (const uint32_t flags : {uint32_t{TN_TRANSPOSE_A}, uint32_t{TN_TRANSPOSE_A | TN_TRANSPOSE_B}})
      for (const tn_dtype dtype : {TN_F32, TN_F64})
        for (const Kernels kernels : kAll) {
          if (!tenon::cpu::can_compute(kernels, s.k)) continue;
          const auto a = random_numbers(s.batch * s.m * s.k, 1), b = random_numbers(s.batch * s.n * s.k, 2);
          const std::vector<double> expected = plain_product(s.batch, s.m, s.n, s.k, flags, a, b);
          const std::vector<double> actual = multiply(kernels, s, flags, dtype, a, b);
          const double tolerance = (dtype == TN_F32 ? 1e-7 : 1e-16) * 4 * static_cast<double>(s.k + 8);
          ASSERT_EQ(actual.size(), expected.size());
          for (size_t i = 0; i < expected.size(); ++i)
            ASSERT_NEAR(actual[i], expected[i], tolerance) << name_of(s, flags, dtype, kernels) << ", element " << i;
        }
}

// Of Tenon's kernels: the bits of a product with a transposed A are those of the product with that A as it is.
TEST(GemmChoice, OwnKernelsDoNotSeeHowALies) {
  for (const Sizes& s : {Sizes{1, 203, 130, 1100}, Sizes{1, 389, 50, 700}, Sizes{1, 40, 41, 350}})
    for (const uint32_t tb : {uint32_t{0}, uint32_t{TN_TRANSPOSE_B}}) {
      const auto a = random_numbers(s.m * s.k, 1), b = random_numbers(s.n * s.k, 2);
      std::vector<double> turned(a.size());
      for (int64_t i = 0; i < s.m; ++i)
        for (int64_t l = 0; l < s.k; ++l)
          turned[static_cast<size_t>(i * s.k + l)] = a[static_cast<size_t>(l * s.m + i)];
      EXPECT_EQ(multiply(Kernels::kOwn, s, tb | TN_TRANSPOSE_A, TN_F32, a, b),
                multiply(Kernels::kOwn, s, tb, TN_F32, turned, b))
          << name_of(s, tb, TN_F32, Kernels::kOwn);
    }
}

TEST(GemmChoice, ATableNamesKernelsThatExist) {
  for (const tenon::cpu::GemmTable& table : tenon::cpu::kGemmTables)
    for (const auto& form : table.kernels)
      for (const auto& terms : form)
        for (const auto& row : terms) {
          ASSERT_EQ(std::strlen(row), std::size(tenon::cpu::kGemmSides)) << table.processor;
          ASSERT_EQ(std::strspn(row, "obu"), std::strlen(row)) << table.processor << ": " << row;
          if (std::strstr(table.processor, "avx512") == nullptr) {
            ASSERT_EQ(std::strchr(row, 'u'), nullptr) << table.processor << ": " << row;
          }
        }
}

TEST(GemmChoice, FollowsTheTableOfTheProcessor) {
  const tenon::cpu::GemmTable* table = nullptr;
  for (const tenon::cpu::GemmTable& each : tenon::cpu::kGemmTables)
    if (std::string(each.processor) == tenon::cpu::processor_class()) table = &each;
  if (table == nullptr) GTEST_SKIP() << "this processor is not in the table: " << tenon::cpu::processor_class();
  for (size_t form = 0; form < 2; ++form)
    for (size_t k = 0; k < std::size(tenon::cpu::kGemmTerms); ++k)
      for (size_t m = 0; m < std::size(tenon::cpu::kGemmSides); ++m)
        for (size_t n = 0; n < std::size(tenon::cpu::kGemmSides); ++n)
          for (const double beside : {0.8, 1.0, 1.2}) {  // sizes whose nearest entry this is
            const auto near = [&](int64_t size) { return static_cast<int64_t>(beside * static_cast<double>(size)); };
            const Kernels kernels = tenon::cpu::choose_kernels(
                near(tenon::cpu::kGemmSides[m]), near(tenon::cpu::kGemmSides[n]), near(tenon::cpu::kGemmTerms[k]),
                form == 1 ? uint32_t{TN_TRANSPOSE_A | TN_TRANSPOSE_B} : uint32_t{TN_TRANSPOSE_A});
            const char letter = "obu"[static_cast<size_t>(kernels)], entry = table->kernels[form][k][m][n];
            if (entry == 'u' && !tenon::cpu::can_compute(Kernels::kUnpacked, near(tenon::cpu::kGemmTerms[k])))
              EXPECT_EQ(letter, 'b');
            else
              EXPECT_EQ(letter, entry) << "form " << form << " k " << k << " m " << m << " n " << n;
          }
}

TEST(GemmChoice, SidesBeyondTheTableHaveItsLastEntries) {
  const auto choose = [](int64_t m, int64_t n, int64_t k) {
    return tenon::cpu::choose_kernels(m, n, k, TN_TRANSPOSE_A);
  };
  constexpr int64_t kHuge = int64_t{1} << 31;
  EXPECT_EQ(choose(kHuge, kHuge, kHuge), choose(2048, 2048, 4096));
  EXPECT_EQ(choose(2, 2, 1), choose(8, 8, 16));
  EXPECT_EQ(choose(1, 64, 64), Kernels::kBlas) << "a vector";
  EXPECT_EQ(tenon::cpu::choose_kernels(512, 512, 512, 0), Kernels::kOwn) << "rows are samples";
}

}  // namespace
}  // namespace tenon_tests
