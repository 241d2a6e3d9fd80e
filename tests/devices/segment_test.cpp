// Segments and sums of gathered rows, against their definitions. SPDX-License-Identifier: Apache-2.0
#include "tests/devices/prepared_call.h"

namespace tenon_tests {
namespace {

constexpr int32_t kRows = TN_SYMBOL_FIRST_RAGGED;

struct Case {
  std::vector<int64_t> offsets;
  int64_t width = 1;
  tn_dtype dtype = TN_F32;
  int64_t by = 0;

  [[nodiscard]] int64_t segments() const { return static_cast<int64_t>(offsets.size()) - 1; }
  [[nodiscard]] int64_t rows() const { return offsets.back(); }
};

// Returns the offsets of `segments` segments, some of them empty.
std::vector<int64_t> some(int64_t segments, int64_t longest) {
  std::mt19937_64 random(7);
  std::vector<int64_t> offsets{0};
  for (int64_t s = 0; s < segments; ++s)
    offsets.push_back(offsets.back() +
                      (s % 4 == 1 ? 0 : static_cast<int64_t>(random() % static_cast<uint64_t>(longest + 1))));
  return offsets;
}

bool by_segment(int32_t op) {
  return op == TN_SEGMENT_SUM || op == TN_SEGMENT_MAX || op == TN_SEGMENT_LENGTH || op == TN_SEGMENT_START;
}
bool takes_none(int32_t op) { return op == TN_SEGMENT_POSITION || op == TN_SEGMENT_LENGTH || op == TN_SEGMENT_START; }

// Computes `op` by its definition; sums add in the order of the rows and round to the type.
std::vector<double> defined(const Case& c, int32_t op, const std::vector<double>& from) {
  const auto width = static_cast<size_t>(c.width);
  std::vector<double> out(static_cast<size_t>(by_segment(op) ? c.segments() : c.rows()) * width);
  const auto add = [&](double a, double b) {
    return c.dtype == TN_F32 ? static_cast<double>(static_cast<float>(a) + static_cast<float>(b)) : a + b;
  };
  for (int64_t s = 0; s < c.segments(); ++s) {
    const int64_t first = c.offsets[static_cast<size_t>(s)], last = c.offsets[static_cast<size_t>(s) + 1];
    for (size_t k = 0; k < width; ++k) {
      const auto at = [&](int64_t row) { return static_cast<size_t>(row) * width + k; };
      if (op == TN_SEGMENT_LENGTH) out[at(s)] = static_cast<double>(last - first);
      if (op == TN_SEGMENT_START) out[at(s)] = static_cast<double>(first);
      for (int64_t r = first; r < last; ++r) switch (op) {
          case TN_SEGMENT_SUM:
            out[at(s)] = r == first ? from[at(r)] : add(out[at(s)], from[at(r)]);
            break;
          case TN_SEGMENT_MAX:
            out[at(s)] = r == first ? from[at(r)] : std::max(out[at(s)], from[at(r)]);
            break;
          case TN_SEGMENT_BROADCAST:
            out[at(r)] = from[at(s)];
            break;
          case TN_SEGMENT_SHIFT:
            out[at(r)] = r + c.by >= first && r + c.by < last ? from[at(r + c.by)] : 0;
            break;
          case TN_SEGMENT_POSITION:
            out[at(r)] = static_cast<double>(r - first);
            break;
          case TN_SEGMENT_RANK:
            for (int64_t o = first; o < last; ++o)
              out[at(r)] += from[at(o)] > from[at(r)] || (from[at(o)] == from[at(r)] && o < r) ? 1 : 0;
            break;
          default:
            break;
        }
    }
  }
  return out;
}

class SegmentTable : public testing::Test {
 protected:
  tn_status prepare(const Case& c, int32_t op, tn_prepared* prepared) {
    tn_segment segment = {};
    segment.size = sizeof segment;
    segment.op = op;
    segment.dtype = takes_none(op) ? TN_I64 : c.dtype;
    segment.by = c.by;
    segment.rows = bounded_symbol(kRows, c.rows());
    segment.segments = bounded_symbol(TN_SYMBOL_SAMPLES, c.segments());
    segment.width = tn_dim_constant(c.width);
    return device_.table<tn_segment_table>(TN_SEGMENT)
        ->prepare(device_.device(), device_.services(), device_.errors(), &segment, prepared);
  }

  void check(const Case& c, int32_t op) {
    SCOPED_TRACE(testing::Message() << "op " << op << ", " << c.segments() << " segments of " << c.rows() << " rows, "
                                    << c.width << " wide");
    std::mt19937_64 random(5);
    std::vector<double> from(static_cast<size_t>((op == TN_SEGMENT_BROADCAST ? c.segments() : c.rows()) * c.width));
    for (double& x : from) x = static_cast<double>(random() % 64) / 8 - 4;  // some are equal
    const std::vector<double> want = defined(c, op, from);
    const bool numbers = takes_none(op) || op == TN_SEGMENT_RANK;
    const tn_dtype out_type = numbers ? TN_I64 : c.dtype;
    const bool adds = !numbers && (c.dtype == TN_F32 || c.dtype == TN_F64);
    PreparedCall call(device_);
    ASSERT_EQ(prepare(c, op, &call.prepared), TN_OK) << device_.message;
    Guarded in = write_all(c.dtype, from);
    Guarded offsets = write_all(TN_I64, {c.offsets.begin(), c.offsets.end()});
    for (const uint8_t request : {TN_REQUEST_WRITE, TN_REQUEST_ADD}) {
      if (request == TN_REQUEST_ADD && !adds) continue;
      for (const int32_t workers : device_.workers({1, 2, 3, 8})) {
        Guarded out = write_all(out_type, std::vector<double>(want.size(), 2));
        ASSERT_EQ(call.run({takes_none(op) ? nullptr : &in, &offsets}, {&out}, {request}, {0, c.segments(), c.rows()},
                           workers, static_cast<uint64_t>(workers)),
                  TN_OK)
            << device_.message;
        std::vector<double> got = read_all(out_type, out);
        if (request == TN_REQUEST_ADD)
          for (double& x : got) x -= 2;
        ASSERT_TRUE(got == want) << workers << " workers, request " << int{request};
        ASSERT_TRUE(in.intact() && out.intact() && offsets.intact());
      }
    }
  }

  DeviceUnderTest device_;
};

TEST_F(SegmentTable, EveryOperation) {
  for (const std::vector<int64_t>& offsets :
       {std::vector<int64_t>{0, 3, 3, 7}, {0, 0, 0}, {0}, {0, 1}, {0, 0, 5, 5, 5}, some(90, 9), some(3, 4000)})
    for (const int64_t width : {int64_t{1}, int64_t{3}, int64_t{64}})
      for (int32_t op = TN_SEGMENT_SUM; op <= TN_SEGMENT_RANK; ++op) {
        if ((takes_none(op) || op == TN_SEGMENT_RANK) && width != 1) continue;
        for (const int64_t by : {int64_t{0}, int64_t{1}, int64_t{-2}, INT64_MAX, INT64_MIN}) {
          if (op != TN_SEGMENT_SHIFT && by != 0) continue;
          if (std::abs(static_cast<double>(by)) > 1e9 && offsets.back() > 20) continue;
          Case c = {offsets, width, TN_F32, by};
          // The definition adds `by` to row numbers, so it must not overflow; 1000000 is beyond every segment, too.
          if (std::abs(static_cast<double>(by)) > 1e9) c.by = by > 0 ? 1000000 : -1000000;
          check(c, op);
          c.dtype = TN_F64;
          check(c, op);
        }
      }
}

// The maximum of a segment with a NaN is NaN, whatever its position; ranks put NaN last, in the order of the rows.
TEST_F(SegmentTable, NanInSegments) {
  const Case f32 = {{0, 3, 6, 9, 10, 12, 12}, 1, TN_F32, 0}, f64 = {f32.offsets, 1, TN_F64, 0};
  const std::vector<double> from = {NAN, 1, 2, 1, NAN, 2, 1, 2, NAN, NAN, -INFINITY, -INFINITY};
  const std::vector<double> ranks = {2, 1, 0, 1, 2, 0, 1, 0, 2, 0, 0, 1};
  for (const Case& c : {f32, f64}) {
    Guarded in = write_all(c.dtype, from), offsets = write_all(TN_I64, {c.offsets.begin(), c.offsets.end()});
    for (const uint8_t request : {TN_REQUEST_WRITE, TN_REQUEST_ADD}) {
      PreparedCall call(device_);
      ASSERT_EQ(prepare(c, TN_SEGMENT_MAX, &call.prepared), TN_OK) << device_.message;
      Guarded out = write_all(c.dtype, std::vector<double>(6, 5));
      ASSERT_EQ(call.run({&in, &offsets}, {&out}, {request}, {0, 6, 12}, 2), TN_OK);
      const std::vector<double> got = read_all(c.dtype, out);
      for (size_t s = 0; s < 4; ++s) EXPECT_TRUE(std::isnan(got[s])) << "segment " << s << ": " << got[s];
      EXPECT_EQ(got[4], -INFINITY);
      EXPECT_EQ(got[5], request == TN_REQUEST_ADD ? 5 : 0) << "an empty segment";
    }
    PreparedCall call(device_);
    ASSERT_EQ(prepare(c, TN_SEGMENT_RANK, &call.prepared), TN_OK) << device_.message;
    Guarded out = write_all(TN_I64, std::vector<double>(12, 99));
    ASSERT_EQ(call.run({&in, &offsets}, {&out}, {TN_REQUEST_WRITE}, {0, 6, 12}, 2), TN_OK);
    EXPECT_EQ(read_all(TN_I64, out), ranks);
  }
}

// Ranks of several NaN and of equal values, such as zeros of both signs, are in the order of the rows.
TEST_F(SegmentTable, TiesInRanks) {
  for (const tn_dtype dtype : {TN_F32, TN_F64}) {
    const Case c = {{0, 8}, 1, dtype, 0};
    PreparedCall call(device_);
    ASSERT_EQ(prepare(c, TN_SEGMENT_RANK, &call.prepared), TN_OK) << device_.message;
    Guarded in = write_all(dtype, {NAN, 0.0, 3, -0.0, NAN, 3, INFINITY, 0.0}), offsets = write_all(TN_I64, {0, 8});
    Guarded out = write_all(TN_I64, std::vector<double>(8, 99));
    ASSERT_EQ(call.run({&in, &offsets}, {&out}, {TN_REQUEST_WRITE}, {0, 1, 8}, 1), TN_OK);
    EXPECT_EQ(read_all(TN_I64, out), (std::vector<double>{6, 3, 1, 4, 7, 2, 0, 5}));
  }
}

TEST_F(SegmentTable, CopiesAnyType) {
  for (const tn_dtype dtype : {TN_I64, TN_I32, TN_U8}) {
    std::vector<double> from = {1, 2, 3, 4, 5, 6, 7};
    const Case c = {{0, 2, 2, 7}, 1, dtype, 1};
    PreparedCall call(device_);
    ASSERT_EQ(prepare(c, TN_SEGMENT_SHIFT, &call.prepared), TN_OK) << device_.message;
    Guarded in = write_all(dtype, from), offsets = write_all(TN_I64, {0, 2, 2, 7});
    Guarded out = write_all(dtype, std::vector<double>(7, 9));
    ASSERT_EQ(call.run({&in, &offsets}, {&out}, {TN_REQUEST_WRITE}, {0, 3, 7}, 2), TN_OK);
    EXPECT_EQ(read_all(dtype, out), (std::vector<double>{2, 0, 4, 5, 6, 7, 0}));
  }
}

TEST_F(SegmentTable, Refuses) {
  tn_prepared prepared = {sizeof(tn_prepared), 0, nullptr, 0, nullptr, nullptr};
  EXPECT_EQ(prepare({{0, 1}, 1, TN_I32, 0}, TN_SEGMENT_SUM, &prepared), TN_UNSUPPORTED);
  EXPECT_EQ(prepare({{0, 1}, 1, TN_F32, 0}, 99, &prepared), TN_UNSUPPORTED);
  tn_segment endless = {};
  endless.size = sizeof endless;
  endless.op = TN_SEGMENT_SUM;
  endless.dtype = TN_F32;
  endless.rows = tn_dim_symbol(kRows);
  endless.rows.bound = -1;
  endless.segments = tn_dim_symbol(TN_SYMBOL_SAMPLES);
  endless.width = tn_dim_constant(1);
  EXPECT_EQ(device_.table<tn_segment_table>(TN_SEGMENT)
                ->prepare(device_.device(), device_.services(), device_.errors(), &endless, &prepared),
            TN_INVALID);
  EXPECT_EQ(device_.message, "the rows have no bound");
  PreparedCall call(device_);
  ASSERT_EQ(prepare({{0, 5}, 1, TN_F32, 0}, TN_SEGMENT_SUM, &call.prepared), TN_OK);
  Guarded in = write_all(TN_F32, {1, 2, 3}), offsets = write_all(TN_I64, {0, 5}), out = write_all(TN_F32, {0});
  EXPECT_EQ(call.run({&in, &offsets}, {&out}, {TN_REQUEST_WRITE}, {0, 1, 3}, 1), TN_MISUSE);
}

TEST_F(SegmentTable, RefusesOtherCalls) {
  PreparedCall sum(device_), position(device_), shift(device_);
  const Case c = {{0, 3}, 1, TN_F32, 0};
  ASSERT_EQ(prepare(c, TN_SEGMENT_SUM, &sum.prepared), TN_OK);
  ASSERT_EQ(prepare(c, TN_SEGMENT_POSITION, &position.prepared), TN_OK);
  ASSERT_EQ(prepare({{0, 3}, 1, TN_I32, 0}, TN_SEGMENT_SHIFT, &shift.prepared), TN_OK);
  Guarded in = write_all(TN_F32, {1, 2, 3}), offsets = write_all(TN_I64, {0, 3}), out = write_all(TN_I64, {7, 7, 7});
  const std::vector<uint8_t> before = out.bytes();
  const auto run = [&](PreparedCall& call, Guarded* value, Guarded* where, std::vector<int64_t> sizes,
                       uint8_t request) {
    return call.run({value, where}, {&out}, {request}, std::move(sizes), 1);
  };
  const std::vector<int64_t> fine = {0, 1, 3};
  for (const auto& sizes : {std::vector<int64_t>{0, -1, 3}, {0, 1, -3}}) {
    EXPECT_EQ(run(sum, &in, &offsets, sizes, TN_REQUEST_WRITE), TN_MISUSE);
    EXPECT_EQ(device_.message, "a segment call of negative size");
  }
  EXPECT_EQ(run(sum, nullptr, &offsets, fine, TN_REQUEST_WRITE), TN_MISUSE);
  EXPECT_EQ(run(sum, &in, nullptr, fine, TN_REQUEST_WRITE), TN_MISUSE);
  EXPECT_EQ(run(position, &in, &offsets, fine, TN_REQUEST_WRITE), TN_MISUSE) << "it takes no value";
  EXPECT_EQ(run(position, nullptr, &offsets, fine, TN_REQUEST_ADD), TN_UNSUPPORTED) << "numbers are not added";
  EXPECT_EQ(run(shift, &in, &offsets, fine, TN_REQUEST_ADD), TN_UNSUPPORTED);
  EXPECT_TRUE(out.bytes() == before);
  EXPECT_EQ(run(position, nullptr, &offsets, fine, TN_REQUEST_WRITE), TN_OK);
}

// Sums over bags have the bits of a gather followed by a sum.
TEST_F(SegmentTable, GatherSum) {
  for (const tn_dtype dtype : {TN_F32, TN_F64})
    for (const int64_t width : {1, 5, 64, 131}) {
      const Case c = {some(200, 40), width, dtype, 0};
      constexpr int64_t kHeight = 50;
      std::mt19937_64 random(3);
      std::uniform_real_distribution<float> uniform(-1, 1);
      std::vector<double> table(static_cast<size_t>(kHeight * width)), ids(static_cast<size_t>(c.rows())), rows;
      for (double& x : table) x = static_cast<double>(uniform(random));
      for (double& id : ids) {
        id = static_cast<double>(random() % kHeight);
        const auto at = table.begin() + static_cast<int64_t>(id) * width;
        rows.insert(rows.end(), at, at + width);
      }
      const std::vector<double> want = defined(c, TN_SEGMENT_SUM, rows);
      tn_gather gather = {};
      gather.size = sizeof gather;
      gather.dtype = dtype;
      gather.ids = TN_I32;
      gather.op = TN_GATHER_SUM;
      gather.height = tn_dim_constant(kHeight);
      gather.width = tn_dim_constant(width);
      gather.count = bounded_symbol(kRows, c.rows());
      gather.segments = bounded_symbol(TN_SYMBOL_SAMPLES, c.segments());
      PreparedCall call(device_);
      ASSERT_EQ(device_.table<tn_gather_table>(TN_GATHER)->prepare(device_.device(), device_.services(),
                                                                   device_.errors(), &gather, &call.prepared),
                TN_OK);
      Guarded values = write_all(dtype, table), numbers = write_all(TN_I32, ids);
      Guarded offsets = write_all(TN_I64, {c.offsets.begin(), c.offsets.end()});
      for (const int32_t workers : device_.workers({1, 2, 8})) {
        Guarded out = write_all(dtype, std::vector<double>(want.size(), 9));
        ASSERT_EQ(
            call.run({&values, &numbers, &offsets}, {&out}, {TN_REQUEST_WRITE}, {0, c.segments(), c.rows()}, workers),
            TN_OK)
            << device_.message;
        ASSERT_TRUE(read_all(dtype, out) == want) << width << " wide, " << workers << " workers";
      }
      if (c.rows() == 0) continue;
      write_element(TN_I32, numbers.data(), kHeight);
      Guarded out(want.size() * tn_dtype_bytes(dtype));
      EXPECT_EQ(call.run({&values, &numbers, &offsets}, {&out}, {TN_REQUEST_WRITE}, {0, c.segments(), c.rows()}, 2),
                TN_BAD_DATA);
      EXPECT_NE(device_.message.find("id 50 at position 0"), std::string::npos) << device_.message;
    }
}

}  // namespace
}  // namespace tenon_tests
