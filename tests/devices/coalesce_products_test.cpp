// "tenon.coalesce_products/1": sums of products for the rows of a table, against plain sums; and refused calls. What it
// shares with coalescing is in rows_test.cpp. SPDX-License-Identifier: Apache-2.0
#include "tests/devices/rows_case.h"

namespace tenon_tests {
namespace {

constexpr int32_t kFirstCount = TN_SYMBOL_FIRST_RAGGED;

// One part of a call, whose values have `segments` rows.
struct Part {
  std::vector<int64_t> ids;
  int64_t segments;
  bool weighted = false;
  double alpha = 1;
  std::vector<int64_t> value_ids = {};  // if not empty, the values are rows of a table of kTable rows
  std::vector<int64_t> offsets = {};
  tn_dtype type = TN_I64;
};
constexpr int64_t kTable = 12;

struct Case {
  int64_t height, width;
  std::vector<Part> parts;
  tn_dtype dtype = TN_F32;
};

std::vector<double> values_of(const Case& c, size_t p) {
  const Part& part = c.parts[p];
  return random_numbers((part.value_ids.empty() ? part.segments : kTable) * c.width, 10 + p);
}
std::vector<double> weights_of(const Case& c, size_t p) {
  return random_numbers(static_cast<int64_t>(c.parts[p].ids.size()), 50 + p);
}

// The definition in the type T: ids in the order of their first occurrence, and sums in the order of contributions.
template <typename T>
struct Sums {
  std::vector<int64_t> ids;
  std::map<int64_t, std::vector<T>> rows;

  void add(const Case& c) {
    for (size_t p = 0; p < c.parts.size(); ++p) {
      const Part& part = c.parts[p];
      const std::vector<double> values = values_of(c, p), weights = weights_of(c, p);
      for (size_t i = 0; i < part.ids.size(); ++i) {
        size_t segment = 0;
        if (part.offsets.empty())
          segment = i / (part.ids.size() / static_cast<size_t>(part.segments));
        else
          while (part.offsets[segment + 1] <= static_cast<int64_t>(i)) ++segment;
        const auto from = part.value_ids.empty() ? segment : static_cast<size_t>(part.value_ids[segment]);
        const auto [row, is_new] = rows.try_emplace(part.ids[i], static_cast<size_t>(c.width));
        if (is_new) ids.push_back(part.ids[i]);
        for (size_t j = 0; j < row->second.size(); ++j) {
          T value = static_cast<T>(values[from * static_cast<size_t>(c.width) + j]);
          if (part.weighted) {
            volatile T product = static_cast<T>(weights[i]) * value;  // rounded: no fused multiply-add
            product = static_cast<T>(part.alpha) * product;
            value = product;
          }
          row->second[j] += value;
        }
      }
    }
  }
  [[nodiscard]] std::vector<double> all() const {
    std::vector<double> result;
    for (const int64_t id : ids) result.insert(result.end(), rows.at(id).begin(), rows.at(id).end());
    return result;
  }
};

class CoalesceProducts : public testing::Test {
 protected:
  template <typename Work>
  tn_status with_site(const Case& c, Work&& work) {
    std::vector<tn_product_part> parts(c.parts.size());
    std::vector<const tn_product_part*> pointers;
    const tn_gathered table = {sizeof table, TN_I32, tn_dim_constant(kTable)};
    for (size_t p = 0; p < parts.size(); ++p) {
      const Part& part = c.parts[p];
      parts[p] = {sizeof(tn_product_part),
                  part.type,
                  bounded_symbol(kFirstCount + static_cast<int32_t>(p), static_cast<int64_t>(part.ids.size())),
                  tn_dim_constant(part.segments),
                  part.offsets.empty() ? 0U : 1U,
                  part.weighted ? 1U : 0U,
                  part.alpha,
                  part.value_ids.empty() ? nullptr : &table};
      pointers.push_back(&parts[p]);
    }
    const tn_coalesce_products site = {sizeof site,
                                       c.dtype,
                                       tn_dim_constant(c.height),
                                       tn_dim_constant(c.width),
                                       static_cast<uint32_t>(parts.size()),
                                       0,
                                       pointers.data()};
    return work(*device_.table<tn_coalesce_products_table>(TN_COALESCE_PRODUCTS), site);
  }
  tn_status prepare(const Case& c, tn_prepared* prepared) {
    return with_site(c, [&](const tn_coalesce_products_table& table, const tn_coalesce_products& site) {
      EXPECT_EQ(table.supports(device_.device(), device_.errors(), &site),
                c.dtype == TN_F32 || c.dtype == TN_F64 ? TN_OK : TN_UNSUPPORTED);
      return table.prepare(device_.device(), device_.services(), device_.errors(), &site, prepared);
    });
  }

  tn_status run(const Case& c, Rows& rows, uint8_t request, int32_t workers = 1, std::vector<int64_t> sizes = {}) {
    PreparedCall call(device_);
    EXPECT_EQ(prepare(c, &call.prepared), TN_OK) << device_.message;
    std::vector<Guarded> operands;
    std::vector<Guarded*> inputs;
    operands.reserve(5 * c.parts.size());
    const auto give = [&](bool present, tn_dtype dtype, const std::vector<double>& given) {
      if (present) operands.push_back(write_all(dtype, given));
      inputs.push_back(present ? &operands.back() : nullptr);
    };
    std::vector<int64_t> counts = {0, 0};
    for (size_t p = 0; p < c.parts.size(); ++p) {
      const Part& part = c.parts[p];
      counts.push_back(static_cast<int64_t>(part.ids.size()));
      give(true, c.dtype, values_of(c, p));
      give(true, part.type, {part.ids.begin(), part.ids.end()});
      give(!part.offsets.empty(), TN_I64, {part.offsets.begin(), part.offsets.end()});
      give(part.weighted, c.dtype, weights_of(c, p));
      give(!part.value_ids.empty(), TN_I32, {part.value_ids.begin(), part.value_ids.end()});
    }
    call.rows[&rows.values] = rows.part;
    const tn_status status = call.run(inputs, {&rows.values}, {request}, sizes.empty() ? counts : sizes, workers,
                                      static_cast<uint64_t>(workers));
    for (const Guarded& operand : operands) EXPECT_TRUE(operand.intact());
    return status;
  }

  template <typename T>
  void check(const std::vector<Case>& cases) {
    Sums<T> want;
    for (const Case& c : cases) want.add(c);
    check_rows(device_, cases, want.ids, want.all(), [&](const Case& c, Rows& rows, uint8_t request, int32_t workers) {
      return run(c, rows, request, workers);
    });
  }

  DeviceUnderTest device_;
};

TEST_F(CoalesceProducts, SumsInTheOrderOfTheContributions) {
  for (const int64_t width : {1, 3, 16, 100, 130, 300}) {
    // Four ids to each of three rows of values, with weights; then rows of a table.
    const Part weighted = {{7, 2, 7, 9, 2, 7, 0, 9, 9, 9, 1, 7}, 3, true, 0.7};
    Part of_table = weighted;
    of_table.value_ids = {11, 0, 11};
    of_table.type = TN_I32;
    const Part bag = {{3, 2, 7, 3}, 3, false, 1, {4, 5, 4}, {0, 3, 3, 4}};
    const Part weighted_bag = {{3, 2, 7, 3}, 3, true, -1.5, {}, {0, 0, 3, 4}};
    const Part plain = {{5, 5, 2}, 3};
    for (const Part& part : {weighted, of_table, bag, weighted_bag, plain}) {
      check<float>({{10, width, {part}}});
      check<double>({{10, width, {part}, TN_F64}});
    }
    check<float>({{10, width, {weighted, plain, of_table, {{}, 0, true}, bag, weighted_bag}}});
    check<double>({{10, width, {plain, of_table, weighted}, TN_F64}});
  }
}

TEST_F(CoalesceProducts, GoesOnWithTheRowsThatAreThere) {
  const Case first = {100, 5, {{{7, 2, 7, 99}, 2, true, 2}}}, second = {100, 5, {{{50, 2, 3, 50, 7, 7}, 6, true}}};
  check<float>({first, second, first});
  check<float>({{100, 5, {{{}, 0, true}}}, first, {100, 5, {}}});
}

TEST_F(CoalesceProducts, ManyContributions) {
  constexpr int64_t kHeight = 3000;
  Part gathered = {random_ids(6000, kHeight, 2), 1000, true, 0.25, random_ids(1000, kTable, 3)};
  check<float>({{kHeight, 100, {{random_ids(6000, kHeight, 1), 1000, true}, gathered}}});
  check<double>({{kHeight, 64, {{std::vector<int64_t>(5000, 5), 5000, true}}, TN_F64}});
}

TEST_F(CoalesceProducts, IdsOutsideTheTablesEndTheStep) {
  const Part right = {{0, 1, 9, 3}, 2, true, 1, {0, 11}};
  Rows rows(TN_F32, 4, 2);
  rows.put({1, 2}, {3});
  const auto expect_refused = [&](const Part& part, const std::string& message) {
    EXPECT_EQ(run({10, 2, {part}}, rows, TN_REQUEST_ADD), TN_BAD_DATA);
    EXPECT_EQ(device_.message, message);
    EXPECT_EQ(device_.port, "ids");
    EXPECT_EQ(rows.used_ids(), std::vector<int64_t>{3}) << "the rows are as they were";
    EXPECT_EQ(rows.used_values(), (std::vector<double>{1, 2}));
  };
  for (const int64_t wrong : {int64_t{10}, int64_t{-1}}) {
    Part part = right;
    part.ids[2] = wrong;
    expect_refused(part, "id " + std::to_string(wrong) + " at position 2 is outside the table of 10 rows");
  }
  for (const int64_t wrong : {kTable, int64_t{-1}}) {
    Part part = right;
    part.value_ids[1] = wrong;
    expect_refused(part, "id " + std::to_string(wrong) + " at position 1 is outside the table of 12 rows");
  }
}

TEST_F(CoalesceProducts, RefusesOtherCalls) {
  Rows rows(TN_F32, 10, 2);
  EXPECT_EQ(run({10, 2, {{{1, 2, 3}, 2, true}}}, rows, TN_REQUEST_WRITE), TN_MISUSE) << "three ids to two rows";
  EXPECT_EQ(device_.message, "the segments of a coalesce call have another number of ids than the call");
  for (const std::vector<int64_t>& offsets : {std::vector<int64_t>{0, 5, 3}, {0, -1, 3}, {2, 2, 3}}) {
    EXPECT_EQ(run({10, 2, {{{1, 2, 3}, 2, true, 1, {}, offsets}}}, rows, TN_REQUEST_WRITE), TN_MISUSE);
    EXPECT_EQ(device_.message, "the offsets of a coalesce call do not rise from 0 to the number of its ids");
  }
  EXPECT_EQ(run({10, 2, {{{1, 2, 3}, 3, true}}}, rows, TN_REQUEST_WRITE, 1, {0, 0, 4}), TN_MISUSE);
  EXPECT_EQ(device_.message, "a coalesce call of another size than it was prepared for");
  const Case c = {10, 2, {{{1, 2}, 2, true}}};
  PreparedCall call(device_);
  ASSERT_EQ(prepare(c, &call.prepared), TN_OK);
  call.rows[&rows.values] = rows.part;
  Guarded values = write_all(TN_F32, {1, 2, 3, 4}), ids = write_all(TN_I64, {1, 2}),
          weights = write_all(TN_F32, {1, 2});
  const auto run_with = [&](const std::vector<Guarded*>& inputs) {
    return call.run(inputs, {&rows.values}, {TN_REQUEST_WRITE}, {0, 0, 2}, 1);
  };
  EXPECT_EQ(run_with({&values, &ids, nullptr}), TN_MISUSE);
  EXPECT_EQ(device_.message, "a coalesce call with another number of operands");
  for (const auto& inputs : std::vector<std::vector<Guarded*>>{{&values, &ids, nullptr, nullptr, nullptr},
                                                               {&values, &ids, nullptr, &weights, &ids},
                                                               {nullptr, &ids, nullptr, &weights, nullptr}}) {
    EXPECT_EQ(run_with(inputs), TN_MISUSE);
    EXPECT_EQ(device_.message, "a coalesce call without its values, ids or offsets");
  }
  EXPECT_EQ(run_with({&values, &ids, nullptr, &weights, nullptr}), TN_OK);
  tn_prepared prepared = {sizeof(tn_prepared), 0, nullptr, 0, nullptr, nullptr};
  Case wrong = c;
  wrong.dtype = TN_F16;
  EXPECT_EQ(prepare(wrong, &prepared), TN_UNSUPPORTED);
  EXPECT_EQ(device_.port, "dtype");
  wrong = c;
  wrong.parts[0].type = TN_F32;
  EXPECT_EQ(prepare(wrong, &prepared), TN_UNSUPPORTED);
  EXPECT_EQ(device_.port, "ids");
  EXPECT_EQ(prepared.binding, nullptr);
}

}  // namespace
}  // namespace tenon_tests
