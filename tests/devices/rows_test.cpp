// Coalescing in "tenon.row_sparse/1": sums of the contributions to each row, against plain sums in fp64; and refused
// calls. Updates are in rows_update_test.cpp. SPDX-License-Identifier: Apache-2.0
#include "tests/devices/rows_case.h"

namespace tenon_tests {
namespace {

constexpr int32_t kFirstCount = TN_SYMBOL_FIRST_RAGGED;

// One part of a call: values [ids, width], or [segments, width] with offsets into the ids.
struct Part {
  std::vector<int64_t> ids;
  std::vector<int64_t> offsets = {};
  tn_dtype type = TN_I64;

  [[nodiscard]] size_t value_rows() const { return offsets.empty() ? ids.size() : offsets.size() - 1; }
};

struct Case {
  int64_t height, width;
  std::vector<Part> parts;
  tn_dtype dtype = TN_F32;
};

// Returns numbers whose sums are exact, so that the order of addition does not matter.
std::vector<double> quarters(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> numbers(count);
  for (double& number : numbers) number = static_cast<double>(random() % 256) / 4 - 32;
  return numbers;
}

std::vector<double> values_of(const Case& c, size_t part) {
  return quarters(c.parts[part].value_rows() * static_cast<size_t>(c.width), 10 + part);
}

// The definition: each id once, in the order of first occurrence, with the sum of its values.
struct Oracle {
  std::vector<int64_t> ids;
  std::map<int64_t, std::vector<double>> sums;

  void add(int64_t id, const double* values, int64_t width) {
    if (!sums.contains(id)) {
      ids.push_back(id);
      sums[id].assign(static_cast<size_t>(width), 0);
    }
    for (int64_t i = 0; i < width; ++i) sums[id][static_cast<size_t>(i)] += values[i];
  }
  void add(const Case& c) {
    for (size_t p = 0; p < c.parts.size(); ++p) {
      const std::vector<double> values = values_of(c, p);
      const Part& part = c.parts[p];
      for (size_t i = 0; i < part.ids.size(); ++i) {
        size_t row = i;
        if (!part.offsets.empty()) {
          row = 0;
          while (part.offsets[row + 1] <= static_cast<int64_t>(i)) ++row;
        }
        add(part.ids[i], values.data() + row * static_cast<size_t>(c.width), c.width);
      }
    }
  }
  [[nodiscard]] std::vector<double> values() const {
    std::vector<double> all;
    for (const int64_t id : ids) all.insert(all.end(), sums.at(id).begin(), sums.at(id).end());
    return all;
  }
};

class Coalesce : public testing::Test {
 protected:
  tn_status prepare(const Case& c, tn_prepared* prepared, int64_t bound = -2) {
    std::vector<tn_coalesce_part> parts(c.parts.size());
    std::vector<const tn_coalesce_part*> pointers;
    for (size_t p = 0; p < parts.size(); ++p) {
      parts[p].size = sizeof parts[p];
      parts[p].ids = c.parts[p].type;
      parts[p].count = tn_dim_symbol(kFirstCount + static_cast<int32_t>(p));
      parts[p].count.bound = bound == -2 ? static_cast<int64_t>(c.parts[p].ids.size()) : bound;
      parts[p].has_offsets = c.parts[p].offsets.empty() ? 0 : 1;
      parts[p].segments = tn_dim_constant(static_cast<int64_t>(c.parts[p].value_rows()));
      pointers.push_back(&parts[p]);
    }
    tn_coalesce coalesce = {};
    coalesce.size = sizeof coalesce;
    coalesce.dtype = c.dtype;
    coalesce.height = tn_dim_constant(c.height);
    coalesce.width = tn_dim_constant(c.width);
    coalesce.parts_count = static_cast<uint32_t>(parts.size());
    coalesce.parts = pointers.data();
    return device_.table<tn_row_sparse_table>(TN_ROW_SPARSE_TABLE)
        ->prepare_coalesce(device_.device(), device_.services(), device_.errors(), &coalesce, prepared);
  }

  // Returns the sizes of the symbols, for symbol_values: those of the parts.
  static std::vector<int64_t> symbols(const Case& c) {
    std::vector<int64_t> result = {0, 0};
    for (const Part& part : c.parts) result.push_back(static_cast<int64_t>(part.ids.size()));
    return result;
  }

  tn_status run(PreparedCall& call, const Case& c, Rows& rows, uint8_t request, int32_t workers = 1,
                std::vector<int64_t> sizes = {}) {
    std::vector<Guarded> operands;
    std::vector<Guarded*> inputs;
    operands.reserve(3 * c.parts.size());
    const auto give = [&](tn_dtype dtype, const std::vector<double>& numbers) {
      operands.push_back(write_all(dtype, numbers));
      inputs.push_back(&operands.back());
    };
    for (size_t p = 0; p < c.parts.size(); ++p) {
      const Part& part = c.parts[p];
      give(c.dtype, values_of(c, p));
      give(part.type, {part.ids.begin(), part.ids.end()});
      if (part.offsets.empty())
        inputs.push_back(nullptr);
      else
        give(TN_I64, {part.offsets.begin(), part.offsets.end()});
    }
    call.rows[&rows.values] = rows.part;
    return call.run(inputs, {&rows.values}, {request}, sizes.empty() ? symbols(c) : sizes, workers,
                    static_cast<uint64_t>(workers));
  }

  tn_status run(const Case& c, Rows& rows, uint8_t request, int32_t workers = 1, std::vector<int64_t> sizes = {}) {
    PreparedCall call(device_);
    EXPECT_EQ(prepare(c, &call.prepared), TN_OK) << device_.message;
    return run(call, c, rows, request, workers, std::move(sizes));
  }

  // Checks the rows after the first case with WRITE and the others with ADD.
  void check(const std::vector<Case>& cases) {
    Oracle want;
    for (const Case& c : cases) want.add(c);
    check_rows(
        device_, cases, want.ids, want.values(),
        [&](const Case& c, Rows& rows, uint8_t request, int32_t workers) { return run(c, rows, request, workers); });
  }

  DeviceUnderTest device_;
};

TEST_F(Coalesce, EachIdOnceInTheOrderOfTheirFirst) {
  for (const tn_dtype dtype : {TN_F32, TN_F64})
    for (const tn_dtype type : {TN_I32, TN_I64})
      for (const int64_t width : {1, 3, 64}) {
        check({{10, width, {{{7, 2, 7, 9, 2, 7, 0}, {}, type}}, dtype}});
        check({{1, width, {{{0, 0, 0}, {}, type}}, dtype}});
        check({{5, width, {{{4}, {}, type}}, dtype}});
      }
}

TEST_F(Coalesce, PartsFollowOneAnother) {
  check({{10, 3, {{{7, 2, 7}}, {{2, 9}, {}, TN_I32}, {{}}, {{1, 7}}}}});
  // With offsets the row of a segment, some of them empty, belongs to each of its ids.
  check({{10, 3, {{{7, 2, 7, 4, 2}, {0, 2, 2, 5}}}}});
  check({{10, 2, {{{3}}, {{7, 3, 7}, {0, 0, 3, 3}, TN_I32}, {{3, 8}, {0, 1, 2}}}, TN_F64}});
}

TEST_F(Coalesce, GoesOnWithTheRowsThatAreThere) {
  const Case first = {100, 5, {{{7, 2, 7, 99}}}}, second = {100, 5, {{{50, 2, 3, 50, 7}}}},
             third = {100, 5, {{{1, 1}}, {{99}}}}, none = {100, 5, {{{}}}};
  check({first, second});
  check({first, second, third, first});
  check({none, first, none});
}

TEST_F(Coalesce, ManyContributions) {
  constexpr int64_t kHeight = 3000;
  const Case large = {kHeight, 40, {{random_ids(3000, kHeight, 1)}, {random_ids(1500, kHeight, 2), {}, TN_I32}}};
  const Case hot = {kHeight, 64, {{std::vector<int64_t>(5000, 5)}}};  // one row gets all contributions
  check({large, {kHeight, 40, {{random_ids(1000, kHeight, 3)}}}});
  check({hot, {kHeight, 64, {{random_ids(100, 50, 4)}}}});
}

// Ids that all have the same place in the hash table.
TEST_F(Coalesce, IdsThatLieFarApart) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < 200; ++i) ids.push_back((i * 7919 % 100) << 40);
  check({{int64_t{1} << 47, 2, {{ids}}}});
}

TEST_F(Coalesce, NothingToAdd) {
  check({{10, 3, {{{}}}}});
  check({{10, 3, {}}});
  check({{10, 0, {{{4, 4, 1}}}}});
  Rows rows(TN_F32, 4, 2);
  rows.put({1, 2}, {3});
  EXPECT_EQ(run({10, 2, {{{1, 2}}}}, rows, TN_REQUEST_NONE), TN_OK);
  EXPECT_EQ(rows.used_ids(), std::vector<int64_t>{3});
}

TEST_F(Coalesce, IdsOutsideTheTableEndTheStep) {
  const struct {
    int64_t id;
    tn_dtype type;
  } wrong[] = {{10, TN_I64},       {-1, TN_I64}, {-1, TN_I32}, {INT64_MIN, TN_I64}, {int64_t{1} << 62, TN_I64},
               {INT32_MIN, TN_I32}};
  for (const auto& [id, type] : wrong) {
    Rows rows(TN_F32, 4, 2);
    rows.put({1, 2}, {3});
    EXPECT_EQ(run({10, 2, {{{9}}, {{0, 1, id, 2}, {}, type}}}, rows, TN_REQUEST_ADD), TN_BAD_DATA) << id;
    EXPECT_EQ(device_.message, "id " + std::to_string(id) + " at position 2 is outside the table of 10 rows");
    EXPECT_EQ(device_.port, "ids");
    EXPECT_EQ(rows.used_ids(), std::vector<int64_t>{3}) << "the rows are as they were";
    EXPECT_EQ(rows.used_values(), (std::vector<double>{1, 2}));
    EXPECT_TRUE(rows.intact());
  }
}

TEST_F(Coalesce, MoreRowsThanFit) {
  const Case three = {10, 2, {{{4, 5, 4, 6}}}};
  Rows small(TN_F32, 2, 2);
  EXPECT_EQ(run(three, small, TN_REQUEST_WRITE), TN_MISUSE);
  EXPECT_EQ(device_.message, "the rows do not fit");
  EXPECT_TRUE(small.intact());
  Rows full(TN_F32, 3, 2);
  full.put({1, 2, 3, 4}, {5, 9});
  EXPECT_EQ(run(three, full, TN_REQUEST_ADD), TN_MISUSE) << "rows 4 and 6 beside 5 and 9";
  EXPECT_TRUE(full.intact());
  EXPECT_EQ(full.used_ids(), (std::vector<int64_t>{5, 9}));
  EXPECT_EQ(full.used_values(), (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(run({10, 2, {{{9, 4, 5}}}}, full, TN_REQUEST_ADD), TN_OK) << "one more fits";
  EXPECT_EQ(full.used_ids(), (std::vector<int64_t>{5, 9, 4}));
  EXPECT_TRUE(full.intact());
}

TEST_F(Coalesce, RefusesOtherSizes) {
  const Case c = {10, 2, {{{1, 2, 3}}, {{4}}}};
  Rows rows(TN_F32, 10, 2);
  for (const auto& [first, second] : {std::pair<int64_t, int64_t>{4, 1}, {-1, 0}, {-1, 4}}) {
    std::vector<int64_t> sizes = symbols(c);
    sizes[2] = first;
    sizes[3] = second;
    EXPECT_EQ(run(c, rows, TN_REQUEST_WRITE, 1, sizes), TN_MISUSE) << first << " and " << second;
    EXPECT_EQ(device_.message, "a coalesce call of another size than it was prepared for");
  }
  const Case bags = {10, 2, {{{1, 2, 3}, {0, 1, 2}}}};  // the last id is in no segment
  EXPECT_EQ(run(bags, rows, TN_REQUEST_WRITE), TN_MISUSE);
  EXPECT_EQ(device_.message, "the segments of a coalesce call have another number of ids than the call");
  for (const std::vector<int64_t>& offsets : {std::vector<int64_t>{0, 5, 3},
                                              {0, INT64_MAX, 3},
                                              {0, -1, 3},
                                              {0, 2, 1, 3},
                                              {1, 2, 3},
                                              {-1, 2, 3},
                                              {3, 3, 3},
                                              {0, INT64_MIN, 3}}) {
    rows.put({1, 2}, {3});
    EXPECT_EQ(run({10, 2, {{{1, 2, 3}, offsets}}}, rows, TN_REQUEST_ADD), TN_MISUSE) << testing::PrintToString(offsets);
    EXPECT_EQ(device_.message, "the offsets of a coalesce call do not rise from 0 to the number of its ids");
    EXPECT_EQ(device_.port, "offsets");
    EXPECT_EQ(rows.used_ids(), std::vector<int64_t>{3}) << "the rows are as they were";
    EXPECT_EQ(rows.used_values(), (std::vector<double>{1, 2}));
  }
}

TEST_F(Coalesce, RefusesOtherOperands) {
  const Case c = {10, 2, {{{1}}}};
  PreparedCall call(device_);
  ASSERT_EQ(prepare(c, &call.prepared), TN_OK);
  Rows rows(TN_F32, 2, 2);
  Guarded values = write_all(TN_F32, {1, 2}), ids = write_all(TN_I64, {1}), offsets = write_all(TN_I64, {0, 1});
  const auto run_with = [&](const std::vector<Guarded*>& inputs) {
    return call.run(inputs, {&rows.values}, {TN_REQUEST_WRITE}, symbols(c), 1);
  };
  EXPECT_EQ(run_with({&values, &ids, nullptr}), TN_MISUSE) << "a dense output";
  EXPECT_EQ(device_.message, "a coalesce call without its rows");
  call.rows[&rows.values] = rows.part;
  EXPECT_EQ(run_with({&values, &ids, nullptr}), TN_OK);
  EXPECT_EQ(run_with({&values, &ids}), TN_MISUSE);
  EXPECT_EQ(device_.message, "a coalesce call with another number of operands");
  for (const auto& inputs : std::vector<std::vector<Guarded*>>{
           {nullptr, &ids, nullptr}, {&values, nullptr, nullptr}, {&values, &ids, &offsets}}) {
    EXPECT_EQ(run_with(inputs), TN_MISUSE);
    EXPECT_EQ(device_.message, "a coalesce call without its values, ids or offsets");
  }
}

TEST_F(Coalesce, RefusesOtherTypesAndBounds) {
  tn_prepared prepared = {sizeof(tn_prepared), 0, nullptr, 0, nullptr, nullptr};
  EXPECT_EQ(prepare({10, 2, {{{1}}}, TN_F16}, &prepared), TN_UNSUPPORTED);
  EXPECT_EQ(device_.port, "dtype");
  EXPECT_EQ(prepare({10, 2, {{{1}, {}, TN_F32}}}, &prepared), TN_UNSUPPORTED);
  EXPECT_EQ(device_.port, "ids");
  EXPECT_EQ(prepare({10, 2, {{{1}}}}, &prepared, -1), TN_INVALID);
  EXPECT_EQ(prepare({10, 2, {{{1}}, {{1}}}}, &prepared, INT64_MAX), TN_INVALID) << "the sum of the bounds overflows";
  EXPECT_EQ(prepare({10, 2, {{{1}}}}, &prepared, int64_t{INT32_MAX} + 1), TN_UNSUPPORTED);
  EXPECT_EQ(prepared.binding, nullptr);
}

}  // namespace
}  // namespace tenon_tests
