// Products of rows of tables: the bits of a gather and a product, and refused calls.
// SPDX-License-Identifier: Apache-2.0
#include "tests/devices/prepared_call.h"

namespace tenon_tests {
namespace {

struct Rows {
  int64_t height = 0;     // of the table; 0: the matrix is no table
  tn_dtype ids = TN_I64;  // type of the ids
};

// `batch` products of A [m, k] and B [k, n], as flags say.
struct Case {
  int64_t batch, m, n, k;
  uint32_t flags = 0;
  Rows a = {}, b = {};
  tn_dtype dtype = TN_F32;
  double alpha = 1;
};

// One matrix of a case as it is stored.
struct Matrix {
  int64_t rows, columns;
  Rows from;
};
Matrix matrix_of(const Case& c, size_t which) {
  const bool transposed = (c.flags & (which == 0 ? TN_TRANSPOSE_A : TN_TRANSPOSE_B)) != 0;
  const int64_t rows = which == 0 ? c.m : c.k, columns = which == 0 ? c.k : c.n;
  return {transposed ? columns : rows, transposed ? rows : columns, which == 0 ? c.a : c.b};
}

class GatherGemm : public testing::Test {
 protected:
  static tn_gemm gemm_of(const Case& c) {
    tn_gemm gemm = {};
    gemm.size = sizeof gemm;
    gemm.dtype = c.dtype;
    gemm.batch = bounded_symbol(TN_SYMBOL_SAMPLES, c.batch);
    gemm.m = tn_dim_constant(c.m);
    gemm.n = tn_dim_constant(c.n);
    gemm.k = tn_dim_constant(c.k);
    gemm.flags = c.flags;
    gemm.alpha = c.alpha;
    return gemm;
  }
  // Prepares the product of rows, or asks whether it is supported.
  template <typename Work>
  tn_status with_site(const Case& c, Work&& work) {
    const tn_gemm gemm = gemm_of(c);
    const auto gathered = [](const Rows& rows) {
      return tn_gathered{sizeof(tn_gathered), rows.ids, tn_dim_constant(rows.height)};
    };
    const tn_gathered a = gathered(c.a), b = gathered(c.b);
    const tn_gather_gemm site = {sizeof site, 0, &gemm, c.a.height > 0 ? &a : nullptr, c.b.height > 0 ? &b : nullptr};
    return work(*device_.table<tn_gather_gemm_table>(TN_GATHER_GEMM), site);
  }
  tn_status prepare(const Case& c, tn_prepared* prepared) {
    return with_site(c, [&](const tn_gather_gemm_table& table, const tn_gather_gemm& site) {
      return table.prepare(device_.device(), device_.services(), device_.errors(), &site, prepared);
    });
  }
  tn_status supports(const Case& c) {
    return with_site(c, [&](const tn_gather_gemm_table& table, const tn_gather_gemm& site) {
      return table.supports(device_.device(), device_.errors(), &site);
    });
  }

  static std::vector<double> ids_of(const Case& c, size_t which) {
    const Matrix matrix = matrix_of(c, which);
    std::mt19937_64 random(which + 3);
    std::vector<double> ids(static_cast<size_t>(matrix.from.height > 0 ? c.batch * matrix.rows : 0));
    for (double& id : ids) id = static_cast<double>(random() % static_cast<uint64_t>(matrix.from.height));
    return ids;
  }
  // The values of a matrix: its table, or all matrices.
  static std::vector<double> values_of(const Case& c, size_t which) {
    const Matrix matrix = matrix_of(c, which);
    const int64_t rows = matrix.from.height > 0 ? matrix.from.height : c.batch * matrix.rows;
    return random_numbers(rows * matrix.columns, which + 5);
  }

  // Runs the product of rows on the values above and these ids.
  tn_status run(const Case& c, const std::vector<double>& a_ids, const std::vector<double>& b_ids, Guarded& out,
                uint8_t request, int32_t workers) {
    PreparedCall call(device_);
    EXPECT_EQ(prepare(c, &call.prepared), TN_OK) << device_.message;
    Guarded a = write_all(c.dtype, values_of(c, 0)), b = write_all(c.dtype, values_of(c, 1));
    Guarded of_a = write_all(c.a.ids, a_ids), of_b = write_all(c.b.ids, b_ids);
    const tn_status status = call.run({&a, &b, c.a.height > 0 ? &of_a : nullptr, c.b.height > 0 ? &of_b : nullptr},
                                      {&out}, {request}, {0, c.batch}, workers, static_cast<uint64_t>(workers));
    EXPECT_TRUE(a.intact() && b.intact() && of_a.intact() && of_b.intact() && out.intact());
    return status;
  }

  // The result of "tenon.gemm/1" on copies of the rows.
  std::vector<double> of_copies(const Case& c, const std::vector<double>& before, uint8_t request) {
    const auto copied = [&](size_t which) {
      const Matrix matrix = matrix_of(c, which);
      const std::vector<double> values = values_of(c, which);
      if (matrix.from.height == 0) return write_all(c.dtype, values);
      std::vector<double> rows;
      for (const double id : ids_of(c, which)) {
        const auto first = values.begin() + static_cast<std::ptrdiff_t>(id) * matrix.columns;
        rows.insert(rows.end(), first, first + matrix.columns);
      }
      return write_all(c.dtype, rows);
    };
    Guarded a = copied(0), b = copied(1), out = write_all(c.dtype, before);
    const tn_gemm gemm = gemm_of(c);
    PreparedCall call(device_);
    EXPECT_EQ(device_.table<tn_gemm_table>(TN_GEMM)->prepare(device_.device(), device_.services(), device_.errors(),
                                                             &gemm, &call.prepared),
              TN_OK);
    EXPECT_EQ(call.run({&a, &b}, {&out}, {request}, {0, c.batch}, 1), TN_OK) << device_.message;
    return read_all(c.dtype, out);
  }

  void check(const Case& c) {
    SCOPED_TRACE(testing::Message() << c.batch << " of " << c.m << " x " << c.n << " x " << c.k << ", flags " << c.flags
                                    << ", tables of " << c.a.height << " and " << c.b.height);
    ASSERT_EQ(supports(c), TN_OK);
    for (const uint8_t request : {TN_REQUEST_WRITE, TN_REQUEST_ADD}) {
      const std::vector<double> before(static_cast<size_t>(c.batch * c.m * c.n), 0.5);
      const std::vector<double> want = of_copies(c, before, request);
      for (const int32_t workers : device_.workers({1, 2, 3, 8})) {
        Guarded out = write_all(c.dtype, before);
        ASSERT_EQ(run(c, ids_of(c, 0), ids_of(c, 1), out, request, workers), TN_OK) << device_.message;
        ASSERT_TRUE(read_all(c.dtype, out) == want) << workers << " workers, request " << int{request};
      }
    }
  }

  DeviceUnderTest device_;
};

TEST_F(GatherGemm, HasTheBitsOfAGatherAndAProduct) {
  const Rows table = {50}, other = {7, TN_I32};
  for (const uint32_t flags :
       {0U, uint32_t{TN_TRANSPOSE_A}, uint32_t{TN_TRANSPOSE_B}, uint32_t{TN_TRANSPOSE_A | TN_TRANSPOSE_B}})
    for (const tn_dtype dtype : {TN_F32, TN_F64})
      for (const auto& [a, b] : {std::pair<Rows, Rows>{table, {}}, {{}, other}, {table, other}}) {
        check({300, 1, 6, 100, flags, a, b, dtype});       // scores of a row and its candidates
        check({300, 1, 100, 6, flags, a, b, dtype, 0.3});  // their gradient: a sum of rows
        check({300, 6, 1, 100, flags, a, b, dtype});
        check({300, 6, 100, 1, flags, a, b, dtype, -2});
        check({40, 3, 5, 17, flags, a, b, dtype});
        check({500, 1, 1, 9, flags, a, b, dtype});
        check({9, 1, 1, 1, flags, a, b, dtype});
        check({7, 1, 3, 5, flags, a, b, dtype});
      }
}

TEST_F(GatherGemm, OfManyTermsAndOfNothing) {
  check({3, 1, 4, 1000, TN_TRANSPOSE_B, {}, {20}});  // more terms than a block of a sum
  check({3, 1, 3, 200, 0, {}, {20}, TN_F64, 0.5});   // B would take 16 KiB or less
  check({2, 20, 30, 40, TN_TRANSPOSE_A, {9}, {9, TN_I32}});
  check({0, 2, 3, 4, 0, {5}, {5}});
}

TEST_F(GatherGemm, NoRequestRunsNothing) {
  const Case c = {2, 1, 2, 3, TN_TRANSPOSE_B, {4}, {4}};
  Guarded out(static_cast<size_t>(c.batch * c.m * c.n) * sizeof(float));
  const std::vector<uint8_t> before = out.bytes();
  EXPECT_EQ(run(c, {99, 99}, {0, 0, 0, 0}, out, TN_REQUEST_NONE, 1), TN_OK);
  EXPECT_TRUE(out.bytes() == before);
}

TEST_F(GatherGemm, RefusesAnIdOutsideTheTableAndTouchesNothing) {
  const auto check_refused = [&](const Case& c, bool in_a, size_t position, double wrong) {
    std::vector<double> ids[] = {ids_of(c, 0), ids_of(c, 1)};
    ids[in_a ? 0 : 1].at(position) = wrong;
    Guarded out(static_cast<size_t>(c.batch * c.m * c.n) * sizeof(float));
    const std::vector<uint8_t> before = out.bytes();
    EXPECT_EQ(run(c, ids[0], ids[1], out, TN_REQUEST_WRITE, 3), TN_BAD_DATA);
    EXPECT_EQ(device_.port, "ids");
    EXPECT_EQ(device_.message, "id " + std::to_string(static_cast<int64_t>(wrong)) + " at position " +
                                   std::to_string(position) + " is outside the table of " +
                                   (in_a ? "10 rows" : "4 rows"));
    EXPECT_TRUE(out.bytes() == before);
  };
  const Rows of_a = {10}, of_b = {4, TN_I32};
  for (const Case& c : {Case{20000, 1, 2, 3, TN_TRANSPOSE_B, of_a, of_b}, Case{7000, 3, 1, 2, 0, of_a, of_b},
                        Case{3, 2, 5, 4, TN_TRANSPOSE_A, of_a, of_b}})
    for (const bool in_a : {true, false}) {
      const size_t count = ids_of(c, in_a ? 0 : 1).size(), batch = static_cast<size_t>(c.batch);
      for (const double wrong : {-1.0, in_a ? 10.0 : 4.0})
        for (const size_t position : {size_t{0}, batch - 1, std::min(batch, count - 1), count / 2, count - 1})
          check_refused(c, in_a, position, wrong);
    }
}

// A single product, large matrices, and sizes that change leave gather and product as they are.
TEST_F(GatherGemm, SupportsManySmallMatricesOnly) {
  const Case small = {100, 1, 6, 100, TN_TRANSPOSE_B, {50}, {50}};
  EXPECT_EQ(supports(small), TN_OK);
  Case wide = small;
  wide.k = 5000;
  EXPECT_EQ(supports(wide), TN_UNSUPPORTED) << "the rows of B together are more than a first-level cache holds";
  Case tall = small;
  tall.n = 300;
  EXPECT_EQ(supports(tall), TN_UNSUPPORTED);
  tn_prepared prepared = {sizeof(tn_prepared), 0, nullptr, 0, nullptr, nullptr};
  EXPECT_EQ(prepare(tall, &prepared), TN_UNSUPPORTED);
  EXPECT_EQ(device_.message, "the cpu reads rows of tables for products of small matrices only");
  const auto with = [&](auto&& change) {
    return with_site(small, [&](const tn_gather_gemm_table& table, const tn_gather_gemm& site) {
      tn_gemm gemm = *site.gemm;
      change(gemm);
      tn_gather_gemm changed = site;
      changed.gemm = &gemm;
      return table.supports(device_.device(), device_.errors(), &changed);
    });
  };
  EXPECT_EQ(with([](tn_gemm&) {}), TN_OK);
  EXPECT_EQ(with([](tn_gemm& gemm) { gemm.batch = tn_dim_constant(1); }), TN_UNSUPPORTED);
  EXPECT_EQ(with([](tn_gemm& gemm) { gemm.batch = tn_dim_constant(2); }), TN_OK);
  EXPECT_EQ(with([](tn_gemm& gemm) { gemm.m = tn_dim_symbol(TN_SYMBOL_FIRST_RAGGED); }), TN_UNSUPPORTED);
}

TEST_F(GatherGemm, RefusesOtherOperands) {
  const Case c = {2, 1, 2, 3, TN_TRANSPOSE_B, {}, {4}};
  PreparedCall call(device_);
  ASSERT_EQ(prepare(c, &call.prepared), TN_OK);
  Guarded a = write_all(TN_F32, values_of(c, 0)), b = write_all(TN_F32, values_of(c, 1));
  Guarded ids = write_all(TN_I64, ids_of(c, 1)), out = write_all(TN_F32, {7, 7, 7, 7});
  for (const auto& inputs : std::vector<std::vector<Guarded*>>{
           {&a, &b}, {&a, &b, nullptr, nullptr}, {&a, &b, &ids, nullptr}, {&a, &b, &ids, &ids}}) {
    EXPECT_EQ(call.run(inputs, {&out}, {TN_REQUEST_WRITE}, {0, 2}, 1), TN_MISUSE);
    EXPECT_EQ(device_.message, "a product of rows needs two factors, their ids and one output");
  }
  EXPECT_EQ(read_all(TN_F32, out), std::vector<double>(4, 7));
  EXPECT_EQ(call.run({&a, &b, nullptr, &ids}, {&out}, {TN_REQUEST_WRITE}, {0, 2}, 1), TN_OK);
  Case floats = c;
  floats.b.ids = TN_F32;
  tn_prepared prepared = {sizeof(tn_prepared), 0, nullptr, 0, nullptr, nullptr};
  EXPECT_EQ(prepare(floats, &prepared), TN_UNSUPPORTED);
  EXPECT_EQ(device_.port, "ids");
}

}  // namespace
}  // namespace tenon_tests
