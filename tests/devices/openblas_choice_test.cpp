// The table that says which products OpenBLAS computes. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <tenon/device.h>

#include <cstring>
#include <string>

#include "choice.h"
#include "table.h"

namespace tenon_tests {
namespace {

using tenon::openblas::Kernels;

TEST(OpenBlasChoice, ATableNamesKernelsThatExist) {
  for (const tenon::openblas::GemmTable& table : tenon::openblas::kGemmTables)
    for (const auto& form : table.kernels)
      for (const auto& terms : form)
        for (const auto& row : terms) {
          ASSERT_EQ(std::strlen(row), std::size(tenon::openblas::kGemmSides)) << table.processor;
          ASSERT_EQ(std::strspn(row, "obu"), std::strlen(row)) << table.processor << ": " << row;
          if (std::strstr(table.processor, "avx512") == nullptr) {
            ASSERT_EQ(std::strchr(row, 'u'), nullptr) << table.processor << ": " << row;
          }
        }
}

TEST(OpenBlasChoice, FollowsTheTableOfTheProcessor) {
  const tenon::openblas::GemmTable* table = nullptr;
  for (const tenon::openblas::GemmTable& each : tenon::openblas::kGemmTables)
    if (std::string(each.processor) == tenon::openblas::processor_class()) table = &each;
  if (table == nullptr) GTEST_SKIP() << "this processor is not in the table: " << tenon::openblas::processor_class();
  for (size_t form = 0; form < 2; ++form)
    for (size_t k = 0; k < std::size(tenon::openblas::kGemmTerms); ++k)
      for (size_t m = 0; m < std::size(tenon::openblas::kGemmSides); ++m)
        for (size_t n = 0; n < std::size(tenon::openblas::kGemmSides); ++n)
          for (const double beside : {0.8, 1.0, 1.2}) {  // sizes whose nearest entry this is
            const auto near = [&](int64_t size) { return static_cast<int64_t>(beside * static_cast<double>(size)); };
            const Kernels kernels = tenon::openblas::choose_kernels(
                near(tenon::openblas::kGemmSides[m]), near(tenon::openblas::kGemmSides[n]),
                near(tenon::openblas::kGemmTerms[k]),
                form == 1 ? uint32_t{TN_TRANSPOSE_A | TN_TRANSPOSE_B} : uint32_t{TN_TRANSPOSE_A});
            const char letter = "obu"[static_cast<size_t>(kernels)], entry = table->kernels[form][k][m][n];
            if (entry == 'u' && !tenon::openblas::can_compute(Kernels::kUnpacked, near(tenon::openblas::kGemmTerms[k])))
              EXPECT_EQ(letter, 'b');
            else
              EXPECT_EQ(letter, entry) << "form " << form << " k " << k << " m " << m << " n " << n;
          }
}

TEST(OpenBlasChoice, SidesBeyondTheTableHaveItsLastEntries) {
  const auto choose = [](int64_t m, int64_t n, int64_t k) {
    return tenon::openblas::choose_kernels(m, n, k, TN_TRANSPOSE_A);
  };
  constexpr int64_t kHuge = int64_t{1} << 31;
  EXPECT_EQ(choose(kHuge, kHuge, kHuge), choose(2048, 2048, 4096));
  EXPECT_EQ(choose(2, 2, 1), choose(8, 8, 16));
  EXPECT_EQ(choose(1, 64, 64), Kernels::kOwn) << "a vector";
  EXPECT_EQ(tenon::openblas::choose_kernels(512, 512, 512, 0), Kernels::kOwn) << "rows are samples";
}

}  // namespace
}  // namespace tenon_tests
