// Operations that are exact, at the ends of their types: rounding to whole numbers, the sign,
// division of ints. SPDX-License-Identifier: Apache-2.0
#include "tests/devices/pointwise_case.h"

namespace tenon_tests {

using namespace tenon::core;

namespace {

// The result of a program on each element, of 1 and of many rows, so that whole vectors and parts of them are used.
std::vector<double> of_each(const ProgramWriter& w, tn_dtype compute, std::vector<double> numbers,
                            tn_dtype type = TN_COMPUTE) {
  DeviceUnderTest device;
  const size_t count = numbers.size();
  for (size_t i = 0; i < 66 * count; ++i) numbers.push_back(numbers[i]);  // 67 times the same
  PointwiseCase c = {w.finish(), 1, static_cast<int64_t>(numbers.size()), compute, {numbers}};
  c.input_types = {type == TN_COMPUTE ? compute : type};
  std::vector<double> result = run_case(device, c, 1).numbers.at(0);
  for (size_t i = count; i < result.size(); ++i)
    EXPECT_TRUE(std::memcmp(&result[i], &result[i % count], sizeof result[i]) == 0) << "element " << i;
  result.resize(count);
  return result;
}

// The result of one operation.
std::vector<double> unary(uint16_t op, tn_dtype compute, std::vector<double> numbers, tn_dtype output = TN_COMPUTE) {
  ProgramWriter w;
  w.output(w.apply(op, w.input(TN_FULL)), output);
  return of_each(w, compute, std::move(numbers));
}

void expect_same(double got, double wanted) {
  if (std::isnan(wanted)) {
    EXPECT_TRUE(std::isnan(got)) << got;
  } else {
    EXPECT_EQ(got, wanted);
    EXPECT_EQ(std::signbit(got), std::signbit(wanted)) << "the sign of " << got;
  }
}

// Zeros of both signs, halves, numbers around those that have no fraction any more, infinity and NaN.
std::vector<double> numbers(tn_dtype compute) {
  std::vector<double> list = {0, 0.25, 0.5, 0.75, 1, 1.5, 2.5, 3.5, 1e-40, 1e30, INFINITY, NAN};
  const double whole = compute == TN_F32 ? 0x1p23 : 0x1p52;
  for (const double offset : {-1.5, -1.0, -0.5, 0.0, 1.0, 2.0}) list.push_back(whole + offset);
  list.push_back(compute == TN_F32 ? 0x1p31 : 0x1p63);
  list.push_back(compute == TN_F32 ? 0x1.fffffep127 : 0x1.fffffffffffffp1023);
  for (size_t i = 0, n = list.size(); i < n; ++i) list.push_back(-list[i]);
  for (double& each : list)
    if (compute == TN_F32) each = static_cast<float>(each);
  return list;
}

struct IntRange {
  tn_dtype type;
  double least, most;
};
constexpr IntRange kInts[] = {{TN_I8, -0x1p7, 0x1p7 - 1},    {TN_I16, -0x1p15, 0x1p15 - 1},
                              {TN_I32, -0x1p31, 0x1p31 - 1}, {TN_I64, -0x1p63, 0x1p63 - 1},
                              {TN_U8, 0, 0x1p8 - 1},         {TN_U16, 0, 0x1p16 - 1},
                              {TN_U32, 0, 0x1p32 - 1}};
constexpr IntRange kLanes[] = {kInts[2], kInts[3]};  // of the compute types float32 and float64
constexpr tn_dtype kComputes[] = {TN_F32, TN_F64};

// The definition of a conversion: towards 0, to the nearest number of the type, 0 of NaN.
double to_int(double x, const IntRange& ints) {
  return std::isnan(x) ? 0 : std::min(std::max(std::trunc(x), ints.least), ints.most);
}

// Numbers at and beside the ends of all types, and those that no type has.
std::vector<double> ends() {
  std::vector<double> list = {0.9, -0.9, 1e30, -1e30, 1e300, -1e300, INFINITY, -INFINITY, NAN};
  for (const IntRange& ints : kInts)
    for (const double end : {ints.least, ints.most + 1}) {
      for (const double offset : {-1.5, -1.0, -0.5, 0.0, 0.5, 1.0}) list.push_back(end + offset);
      for (const float to : {-INFINITY, INFINITY}) list.push_back(std::nextafter(static_cast<float>(end), to));
      for (const double to : {-INFINITY, INFINITY}) list.push_back(std::nextafter(end, to));
    }
  return list;
}

TEST(PointwiseNumbers, FloatsBecomeTheNearestInts) {
  for (const size_t wide : {0, 1})
    for (const IntRange& ints : kInts) {
      std::vector<double> x = ends();
      for (double& each : x) each = wide == 1 ? each : static_cast<float>(each);
      ProgramWriter stored, loaded;
      stored.output(stored.input(TN_FULL), ints.type);
      loaded.output(loaded.input(TN_FULL, TN_INT), ints.type);
      const std::vector<double> by_store = of_each(stored, kComputes[wide], x);
      const std::vector<double> by_load = of_each(loaded, kComputes[wide], x, kComputes[wide]);
      for (size_t i = 0; i < x.size(); ++i) {
        SCOPED_TRACE(testing::Message() << x[i] << " to " << ints.most);
        EXPECT_EQ(by_store[i], to_int(x[i], ints));
        EXPECT_EQ(by_load[i], to_int(to_int(x[i], kLanes[wide]), ints));
      }
    }
}

TEST(PointwiseNumbers, IntsBecomeTheNearestOfOtherTypes) {
  for (const size_t wide : {0, 1})
    for (const IntRange& from : kInts)
      for (const IntRange& to : kInts) {
        ProgramWriter w;
        w.output(w.input(TN_FULL, TN_INT), to.type);
        std::vector<double> x;
        for (const double each : ends())
          if (to_int(each, from) == each && each < 0x1p63) x.push_back(each);
        const std::vector<double> got = of_each(w, kComputes[wide], x, from.type);
        for (size_t i = 0; i < x.size(); ++i)
          EXPECT_EQ(got[i], to_int(to_int(x[i], kLanes[wide]), to)) << x[i] << " to " << to.most;
      }
}

// A constant of a program is a double.
TEST(PointwiseNumbers, ConstantsOfIntsAreTheNearestInts) {
  for (const size_t wide : {0, 1})
    for (const double each : ends()) {
      ProgramWriter w;
      w.output(w.apply(TN_OP_MAX, w.input(TN_FULL, TN_INT), w.constant(each, TN_INT)), kLanes[wide].type);
      const double constant = to_int(each, kLanes[wide]);
      const std::vector<double> got = of_each(w, kComputes[wide], {kLanes[wide].least}, kLanes[wide].type);
      EXPECT_EQ(got.at(0), constant) << each;
    }
}

// Every NaN stays one, whatever its other bits are, in types of 16 bits, too; and numbers between two become the
// nearer.
TEST(PointwiseNumbers, FloatsOf16Bits) {
  std::vector<double> nans;
  for (const uint64_t bits : {0x7ff8000000000000U, 0x7fffffffffffffffU, 0x7fffffffe0000000U, 0x7ff8000020000000U})
    for (const uint64_t sign : {uint64_t{0}, uint64_t{1} << 63}) nans.push_back(std::bit_cast<double>(bits | sign));
  constexpr double kMostBrain = 0x1.fep127, kMostHalf = 65504;
  const std::vector<std::pair<double, double>> brains = {{kMostBrain, kMostBrain},
                                                         {0x1.fefffep127, kMostBrain},
                                                         {0x1.ffp127, INFINITY},
                                                         {0x1.fffffep127, INFINITY},
                                                         {1 + 0x1p-8 + 0x1p-23, 1 + 0x1p-7},
                                                         {1 + 0x1p-8 - 0x1p-23, 1},
                                                         {1 + 0x1p-8, 1},
                                                         {1 + 0x3p-8, 1 + 0x2p-7},
                                                         {0x1p-126, 0x1p-126},
                                                         {0, 0},
                                                         {INFINITY, INFINITY}};
  const std::vector<std::pair<double, double>> halves = {
      {kMostHalf, kMostHalf}, {65519.996, kMostHalf},    {65520, INFINITY},    {1e30, INFINITY}, {0x1p-24, 0x1p-24},
      {0x1p-25, 0},           {0x1.000002p-25, 0x1p-24}, {0x1.8p-24, 0x1p-23}, {0, 0},           {INFINITY, INFINITY}};
  for (const tn_dtype compute : kComputes)
    for (const auto& [type, list] : {std::pair{TN_BF16, brains}, std::pair{TN_F16, halves}}) {
      ProgramWriter w;
      w.output(w.input(TN_FULL), type);
      for (const double got : of_each(w, compute, nans)) EXPECT_TRUE(std::isnan(got));
      for (const double sign : {1.0, -1.0}) {
        std::vector<double> x;
        for (const auto& [number, nearest] : list) x.push_back(sign * number);
        const std::vector<double> got = of_each(w, compute, x);
        for (size_t i = 0; i < x.size(); ++i) {
          SCOPED_TRACE(x[i]);
          expect_same(got[i], sign * list[i].second);
        }
      }
    }
}

TEST(PointwiseNumbers, RoundToWholeNumbers) {
  for (const tn_dtype compute : {TN_F32, TN_F64}) {
    const std::vector<double> x = numbers(compute);
    const std::vector<double> below = unary(TN_OP_FLOOR, compute, x), nearest = unary(TN_OP_ROUND, compute, x);
    for (size_t i = 0; i < x.size(); ++i) {
      SCOPED_TRACE(x[i]);
      expect_same(below[i], std::floor(x[i]));
      expect_same(nearest[i], std::nearbyint(x[i]));
    }
  }
}

TEST(PointwiseNumbers, SignAndIsFinite) {
  for (const tn_dtype compute : {TN_F32, TN_F64}) {
    const std::vector<double> x = numbers(compute);
    const std::vector<double> sign = unary(TN_OP_SIGN, compute, x);
    const std::vector<double> finite = unary(TN_OP_IS_FINITE, compute, x, TN_BOOL);
    for (size_t i = 0; i < x.size(); ++i) {
      SCOPED_TRACE(x[i]);
      expect_same(sign[i], x[i] < 0 ? -1 : x[i] > 0 ? 1 : x[i]);
      EXPECT_EQ(finite[i], std::isfinite(x[i]) ? 1 : 0);
    }
  }
}

// ---- ints

template <class T>
constexpr tn_dtype kType = sizeof(T) == 4 ? TN_I32 : TN_I64;
template <class T>
constexpr tn_dtype kCompute = sizeof(T) == 4 ? TN_F32 : TN_F64;

template <class T>
std::vector<T> as(const std::vector<uint8_t>& bytes) {
  std::vector<T> list(bytes.size() / sizeof(T));
  std::memcpy(list.data(), bytes.data(), bytes.size());
  return list;
}

// A case takes its ints as doubles, which do not hold those of 64 bits: as two halves, from which a program makes them.
template <class T>
class Ints {
 public:
  int32_t input(uint8_t extent, const std::vector<T>& ints) {
    constexpr int kHalf = 4 * sizeof(T);
    std::vector<double> high, low;
    for (const T each : ints) {
      high.push_back(static_cast<double>(each >> kHalf));
      low.push_back(static_cast<double>(each & ((T{1} << kHalf) - 1)));
    }
    inputs_.push_back(high);
    inputs_.push_back(low);
    const int32_t top = w.apply(TN_OP_MUL, w.input(extent, TN_INT), w.constant(std::ldexp(1.0, kHalf), TN_INT));
    return w.apply(TN_OP_ADD, top, w.input(extent, TN_INT));
  }
  void output(int32_t value) { w.output(value, kType<T>); }
  std::vector<std::vector<T>> run(int64_t rows, int64_t columns) {
    DeviceUnderTest device;
    PointwiseCase c = {w.finish(), rows, columns, kCompute<T>, inputs_};
    c.input_types.assign(inputs_.size(), kType<T>);
    std::vector<std::vector<T>> lists;
    for (const std::vector<uint8_t>& bytes : run_case(device, c, 2).bytes) lists.push_back(as<T>(bytes));
    return lists;
  }
  ProgramWriter w;

 private:
  std::vector<std::vector<double>> inputs_;
};

template <class T>
std::vector<T> ints() {
  constexpr T kLeast = std::numeric_limits<T>::min(), kMost = std::numeric_limits<T>::max();
  std::vector<T> list = {0, 1, 2, 3, 7, 10, kMost, kMost - 1, kMost / 2, kMost / 3};
  for (size_t i = 0, n = list.size(); i < n; ++i) list.push_back(static_cast<T>(-list[i]));
  list.push_back(kLeast);
  list.push_back(kLeast + 1);
  std::mt19937_64 random(5);
  for (int i = 0; i < 40; ++i) list.push_back(static_cast<T>(static_cast<T>(random()) >> (random() % (8 * sizeof(T)))));
  return list;
}

// The definition, in numbers twice as wide.
__extension__ using Wide = __int128;
template <class T>
T quotient(T a, T b) {
  if (b == 0) return 0;
  Wide result = Wide{a} / b;
  if (result * b != a && (a < 0) != (b < 0)) --result;
  return static_cast<T>(result);  // of the lowest int by -1: that of its low bits
}
template <class T>
T remainder(T a, T b) {
  return b == 0 ? T{0} : static_cast<T>(Wide{a} - Wide{b} * quotient<Wide>(a, b));
}

template <class T>
void divide_all() {
  const std::vector<T> by = ints<T>();
  const auto count = static_cast<int64_t>(by.size());
  Ints<T> program;
  const int32_t a = program.input(TN_PER_ROW, by), b = program.input(TN_PER_COLUMN, by);
  program.output(program.w.apply(TN_OP_FLOOR_DIV, a, b));
  program.output(program.w.apply(TN_OP_MOD, a, b));
  program.output(program.w.apply(TN_OP_SIGN, a));
  const std::vector<std::vector<T>> got = program.run(count, count);
  for (size_t r = 0; r < by.size(); ++r) {
    EXPECT_EQ(got[2][r], by[r] < 0 ? -1 : by[r] > 0 ? 1 : 0) << "the sign of " << by[r];
    for (size_t c = 0; c < by.size(); ++c) {
      EXPECT_EQ(got[0][r * by.size() + c], quotient(by[r], by[c])) << by[r] << " by " << by[c];
      EXPECT_EQ(got[1][r * by.size() + c], remainder(by[r], by[c])) << by[r] << " mod " << by[c];
    }
  }
  EXPECT_EQ(quotient<T>(std::numeric_limits<T>::min(), -1), std::numeric_limits<T>::min());
  EXPECT_EQ(remainder<T>(-7, 3), 2);
  EXPECT_EQ(remainder<T>(7, -3), -2);
}

TEST(PointwiseNumbers, DivideIntsOf32Bits) { divide_all<int32_t>(); }
TEST(PointwiseNumbers, DivideIntsOf64Bits) { divide_all<int64_t>(); }

// Many quotients that are whole, or just not: the f64 in which those of 32 bits are computed must not round them up.
TEST(PointwiseNumbers, QuotientsBesideWholeNumbers) {
  std::mt19937_64 random(6);
  std::vector<int32_t> a, b;
  while (a.size() < 120000) {
    const int32_t by = static_cast<int32_t>(random()) >> (random() % 31),
                  times = static_cast<int32_t>(random()) >> (random() % 31);
    const int64_t product = int64_t{by} * times;
    if (product >= std::numeric_limits<int32_t>::max() || product <= std::numeric_limits<int32_t>::min()) continue;
    for (const int offset : {-1, 0, 1}) {
      a.push_back(static_cast<int32_t>(product) + offset);
      b.push_back(by);
    }
  }
  Ints<int32_t> program;
  const int32_t x = program.input(TN_FULL, a), y = program.input(TN_FULL, b);
  program.output(program.w.apply(TN_OP_FLOOR_DIV, x, y));
  program.output(program.w.apply(TN_OP_MOD, x, y));
  const std::vector<std::vector<int32_t>> got = program.run(1, static_cast<int64_t>(a.size()));
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(got[0][i], quotient(a[i], b[i])) << a[i] << " by " << b[i];
    ASSERT_EQ(got[1][i], remainder(a[i], b[i])) << a[i] << " mod " << b[i];
  }
}

}  // namespace
}  // namespace tenon_tests
