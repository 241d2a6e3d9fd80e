// Gather and scatter-add. SPDX-License-Identifier: Apache-2.0
#include "tests/devices/prepared_call.h"

namespace tenon_tests {
namespace {

struct Lookup {
  int64_t height, width, count;
  bool scatter = false;
  tn_dtype dtype = TN_F32;
  tn_dtype ids = TN_I64;
};

class Gather : public testing::Test {
 protected:
  tn_status prepare(const Lookup& l, tn_prepared* prepared) {
    tn_gather gather = {};
    gather.size = sizeof gather;
    gather.dtype = l.dtype;
    gather.ids = l.ids;
    gather.op = l.scatter ? TN_SCATTER_ADD : TN_GATHER_ROWS;
    gather.height = tn_dim_constant(l.height);
    gather.width = tn_dim_constant(l.width);
    gather.count = bounded_symbol(TN_SYMBOL_SAMPLES, l.count);
    return device_.table<tn_gather_table>(TN_GATHER)->prepare(device_.device(), device_.services(), device_.errors(),
                                                              &gather, prepared);
  }

  tn_status run(const Lookup& l, const std::vector<double>& ids, const std::vector<double>& values, Guarded& out,
                uint8_t request, int32_t workers) {
    PreparedCall call(device_);
    EXPECT_EQ(prepare(l, &call.prepared), TN_OK);
    Guarded in = write_all(l.dtype, values), numbers = write_all(l.ids, ids);
    const tn_status status =
        call.run({&in, &numbers}, {&out}, {request}, {0, l.count}, workers, static_cast<uint64_t>(workers));
    EXPECT_TRUE(in.intact() && numbers.intact() && out.intact());
    return status;
  }

  // Compares the bits with those of the definition, which adds in the order of the ids.
  void check(const Lookup& l) {
    std::mt19937_64 random(5);
    std::vector<double> ids(static_cast<size_t>(l.count)), values;
    for (double& id : ids) id = static_cast<double>(random() % static_cast<uint64_t>(l.height));
    const int64_t rows_in = l.scatter ? l.count : l.height, rows_out = l.scatter ? l.height : l.count;
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (int64_t i = 0; i < rows_in * l.width; ++i)
      values.push_back(l.dtype == TN_I16 ? static_cast<double>(i % 1000) : static_cast<double>(uniform(random)));
    for (const uint8_t request : {TN_REQUEST_WRITE, TN_REQUEST_ADD}) {
      if (request == TN_REQUEST_ADD && l.dtype == TN_I16) continue;
      std::vector<double> want(static_cast<size_t>(rows_out * l.width), request == TN_REQUEST_ADD ? 0.5 : 0);
      for (int64_t i = 0; i < l.count; ++i)
        for (int64_t c = 0; c < l.width; ++c) {
          const int64_t id = static_cast<int64_t>(ids[static_cast<size_t>(i)]);
          const auto from = static_cast<size_t>((l.scatter ? i : id) * l.width + c);
          double& to = want[static_cast<size_t>((l.scatter ? id : i) * l.width + c)];
          to = l.dtype == TN_F32 ? static_cast<float>(to) + static_cast<float>(values[from]) : to + values[from];
        }
      for (const int32_t workers : device_.workers({1, 2, 3, 8})) {
        Guarded out = write_all(l.dtype, std::vector<double>(want.size(), request == TN_REQUEST_ADD ? 0.5 : 9));
        ASSERT_EQ(run(l, ids, values, out, request, workers), TN_OK) << device_.message;
        ASSERT_TRUE(read_all(l.dtype, out) == want) << workers << " workers, request " << int{request};
      }
    }
  }

  DeviceUnderTest device_;
};

TEST_F(Gather, Gathers) {
  check({1, 1, 1});
  check({10, 3, 7, false, TN_F64, TN_I32});
  check({100, 17, 5000});
  check({5, 4000, 33, false, TN_I16, TN_I32});
  check({9, 4, 0});
  check({9, 0, 4});
}

TEST_F(Gather, ScattersInTheOrderOfTheIds) {
  check({1, 1, 1, true});
  check({3, 5, 1000, true});  // many addends per element
  check({3, 700, 500, true, TN_F32, TN_I32});
  check({70000, 3, 40000, true, TN_F64});
  check({1000, 64, 20000, true});
  check({9, 4, 0, true});
}

TEST_F(Gather, RefusesAnIdOutsideTheTableAndTouchesNothing) {
  for (const bool scatter : {false, true})
    for (const auto& [wrong, position] :
         {std::pair<double, size_t>{-1, 20001}, {10, 20001}, {1e9, 0}, {10, 255}, {-1, 1023}, {10, 39999}}) {
      const Lookup l = {10, 4, 40000, scatter, TN_F32, wrong < 0 ? TN_I32 : TN_I64};
      std::vector<double> ids(40000, 3);
      ids[39999] = 77;
      ids[std::min<size_t>(position + 256, 39999)] = 78;
      ids[position] = wrong;
      const int64_t rows_in = scatter ? l.count : l.height, rows_out = scatter ? l.height : l.count;
      Guarded out(static_cast<size_t>(rows_out * l.width * 4));
      const std::vector<uint8_t> before = out.bytes();
      const std::vector<double> values(static_cast<size_t>(rows_in * l.width), 1);
      EXPECT_EQ(run(l, ids, values, out, TN_REQUEST_WRITE, 3), TN_BAD_DATA);
      const std::string id = std::to_string(static_cast<int64_t>(wrong));
      EXPECT_EQ(device_.message,
                "id " + id + " at position " + std::to_string(position) + " is outside the table of 10 rows");
      EXPECT_TRUE(out.bytes() == before);
    }
}

TEST_F(Gather, RefusesOtherCalls) {
  tn_gather gather = {};
  gather.size = sizeof gather;
  gather.dtype = TN_F32;
  gather.ids = TN_I64;
  gather.op = TN_GATHER_SUM;
  gather.height = gather.width = tn_dim_constant(2);
  gather.count = bounded_symbol(TN_SYMBOL_SAMPLES, 2);
  gather.segments = bounded_symbol(TN_SYMBOL_FIRST_RAGGED, 1);
  const auto prepare_it = [&](tn_prepared* prepared) {
    return device_.table<tn_gather_table>(TN_GATHER)->prepare(device_.device(), device_.services(), device_.errors(),
                                                              &gather, prepared);
  };
  PreparedCall call(device_);
  ASSERT_EQ(prepare_it(&call.prepared), TN_OK);
  Guarded table = write_all(TN_F32, {1, 2, 3, 4}), ids = write_all(TN_I64, {0, 1}), offsets = write_all(TN_I64, {0, 2});
  Guarded out = write_all(TN_F32, {0, 0});
  const auto run_it = [&](const std::vector<Guarded*>& in, int64_t count, int64_t segments) {
    return call.run(in, {&out}, {TN_REQUEST_WRITE}, {0, count, segments}, 2);
  };
  EXPECT_EQ(run_it({&table, &ids, &offsets}, -1, 1), TN_MISUSE);
  EXPECT_EQ(device_.message, "a gather call of negative size");
  EXPECT_EQ(run_it({&table, &ids, &offsets}, 2, -1), TN_MISUSE);
  EXPECT_EQ(run_it({&table, &ids, &offsets}, 1, 1), TN_MISUSE) << "the segment has two ids";
  EXPECT_EQ(device_.message, "the segments have another number of ids than the call");
  EXPECT_EQ(run_it({&table, &ids}, 2, 1), TN_MISUSE);
  EXPECT_EQ(run_it({&table, nullptr, &offsets}, 2, 1), TN_MISUSE);
  EXPECT_EQ(device_.message, "a gather call needs values, ids and one output");
  EXPECT_EQ(read_all(TN_F32, out), (std::vector<double>{0, 0}));
  EXPECT_EQ(run_it({&table, &ids, &offsets}, 2, 1), TN_OK);
  EXPECT_EQ(read_all(TN_F32, out), (std::vector<double>{4, 6}));
  tn_prepared prepared = {};
  gather.op = TN_GATHER_SUM + 1;
  EXPECT_EQ(prepare_it(&prepared), TN_UNSUPPORTED);
  EXPECT_EQ(device_.port, "op");
}

TEST_F(Gather, RefusesOtherTypes) {
  tn_prepared prepared = {};
  EXPECT_EQ(prepare({2, 2, 2, true, TN_I32}, &prepared), TN_UNSUPPORTED);
  EXPECT_EQ(device_.port, "dtype");
  EXPECT_EQ(prepare({2, 2, 2, false, TN_F32, TN_F32}, &prepared), TN_UNSUPPORTED);
  EXPECT_EQ(device_.port, "ids");
  PreparedCall call(device_);
  ASSERT_EQ(prepare({2, 1, 1, false, TN_U8}, &call.prepared), TN_OK);
  Guarded table = write_all(TN_U8, {1, 2}), ids = write_all(TN_I64, {0}), out(1);
  EXPECT_EQ(call.run({&table, &ids}, {&out}, {TN_REQUEST_ADD}, {0, 1}, 1), TN_UNSUPPORTED);
}

}  // namespace
}  // namespace tenon_tests
