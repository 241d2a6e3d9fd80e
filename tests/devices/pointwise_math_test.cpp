// The transcendental operations against long double, in units in the last place. SPDX-License-Identifier: Apache-2.0
#include "tests/devices/pointwise_case.h"

namespace tenon_tests {

using namespace tenon::core;

namespace {

struct Function {
  const char* name;
  uint16_t op;
  long double (*exact)(long double);
  double bound32, bound64;  // as stated in pointwise/math.cpp
};

const Function kFunctions[] = {
    {"sqrt", TN_OP_SQRT, [](long double x) { return std::sqrt(x); }, 0.51, 0.51},
    {"exp", TN_OP_EXP, [](long double x) { return std::exp(x); }, 1.05, 1.05},
    {"expm1", TN_OP_EXPM1, [](long double x) { return std::expm1(x); }, 3.6, 4.1},
    {"log", TN_OP_LOG, [](long double x) { return std::log(x); }, 1.0, 1.0},
    {"log1p", TN_OP_LOG1P, [](long double x) { return std::log1p(x); }, 2.5, 2.5},
    {"tanh", TN_OP_TANH, [](long double x) { return std::tanh(x); }, 2.8, 3.2},
    {"erf", TN_OP_ERF, [](long double x) { return std::erf(x); }, 2.7, 1.2},
    {"sin", TN_OP_SIN, [](long double x) { return std::sin(x); }, 2.6, 2.8},
    {"cos", TN_OP_COS, [](long double x) { return std::cos(x); }, 2.5, 3.05},
};

// Returns the distance in units in the last place of T; infinity if only one of the two is NaN.
template <class T>
double distance(double got, long double want) {
  const auto rounded = static_cast<T>(want);
  if (std::isnan(rounded) || std::isnan(got)) return std::isnan(rounded) && std::isnan(got) ? 0 : INFINITY;
  if (std::isinf(rounded) || std::isinf(got)) {
    // At the edge of overflow one may be infinite and the other the largest number.
    if (static_cast<double>(rounded) == got) return 0;
    const double finite = std::fabs(std::isinf(got) ? static_cast<double>(rounded) : got);
    return finite >= static_cast<double>(std::numeric_limits<T>::max()) * 0.99999 ? 1 : INFINITY;
  }
  int exponent = 0;
  std::frexp(want, &exponent);
  constexpr int kDigits = std::numeric_limits<T>::digits;
  const int unit = std::max(exponent - kDigits, std::numeric_limits<T>::min_exponent - kDigits);
  return static_cast<double>(std::fabs(static_cast<long double>(got) - want) / std::ldexp(1.0L, unit));
}

// Returns random bit patterns, which have all magnitudes, and numbers in the ranges where the functions vary.
template <class T, class Bits>
std::vector<double> arguments() {
  std::mt19937_64 random(20);
  std::vector<double> numbers = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1, -1, 88.8, 709.7, -104, -746, 1e-40, 1e-310};
  for (int i = 0; i < 200000; ++i) {
    const auto bits = static_cast<Bits>(random());
    T number;
    std::memcpy(&number, &bits, sizeof number);
    numbers.push_back(number);
  }
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (const double scale : {1e-3, 0.1, 1.0, 2.0, 5.0, 30.0, 110.0, 750.0, 39001.0, 1e7})
    for (int i = 0; i < 40000; ++i) numbers.push_back(static_cast<T>(scale * uniform(random)));
  for (double& number : numbers) number = static_cast<T>(number);
  return numbers;
}

template <class T, class Bits>
void sweep(tn_dtype compute) {
  DeviceUnderTest device;
  const std::vector<double> x = arguments<T, Bits>();
  for (const Function& f : kFunctions) {
    ProgramWriter w;
    w.output(w.apply(f.op, w.input(TN_FULL)));
    const PointwiseCase c = {w.finish(), 1, static_cast<int64_t>(x.size()), compute, {x}};
    const std::vector<double> got = run_case(device, c, 2).numbers.at(0);
    double worst = 0, at = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double d = distance<T>(got[i], f.exact(x[i]));
      if (d > worst) at = x[i];
      worst = std::max(worst, d);
    }
    EXPECT_LE(worst, compute == TN_F32 ? f.bound32 : f.bound64) << f.name << " of " << at;
  }
}

TEST(PointwiseMath, StaysWithinTheStatedUlpsInF32) { sweep<float, uint32_t>(TN_F32); }
TEST(PointwiseMath, StaysWithinTheStatedUlpsInF64) { sweep<double, uint64_t>(TN_F64); }

// Where a lane is outside of the range of the fast kernel, the others keep their bits.
template <class T>
void expect_own_bits(tn_dtype compute) {
  DeviceUnderTest device;
  std::vector<double> alone, beside;
  for (int i = 0; i < 1000; ++i) {
    alone.push_back(static_cast<T>(0.37 * i - 100));
    alone.push_back(static_cast<T>(0.37 * i - 100));
    beside.push_back(alone.back());
    beside.push_back(i % 3 == 0 ? 1e30 : i % 3 == 1 ? NAN : -INFINITY);
  }
  for (const uint16_t op : {TN_OP_SIN, TN_OP_COS}) {
    ProgramWriter w;
    w.output(w.apply(op, w.input(TN_FULL)));
    const Program program = w.finish();
    const std::vector<double> first = run_case(device, {program, 1, 2000, compute, {alone}}, 1).numbers.at(0);
    const std::vector<double> second = run_case(device, {program, 1, 2000, compute, {beside}}, 1).numbers.at(0);
    for (size_t i = 0; i < first.size(); i += 2)
      EXPECT_EQ(first[i], second[i]) << "opcode " << op << " of " << alone[i];
  }
}
TEST(PointwiseMath, ALargeArgumentDoesNotChangeItsNeighbours) {
  expect_own_bits<float>(TN_F32);
  expect_own_bits<double>(TN_F64);
}

// The sine of a zero is that zero, the cosine of one is exactly 1.
TEST(PointwiseMath, WavesOfZero) {
  DeviceUnderTest device;
  for (const tn_dtype compute : {TN_F32, TN_F64}) {
    ProgramWriter w;
    const int32_t x = w.input(TN_FULL);
    w.output(w.apply(TN_OP_SIN, x));
    w.output(w.apply(TN_OP_COS, x));
    const PointwiseOutcome got = run_case(device, {w.finish(), 1, 2, compute, {{0.0, -0.0}}}, 1);
    EXPECT_EQ(got.numbers[0], (std::vector<double>{0, 0}));
    EXPECT_FALSE(std::signbit(got.numbers[0][0]));
    EXPECT_TRUE(std::signbit(got.numbers[0][1]));
    EXPECT_EQ(got.numbers[1], (std::vector<double>{1, 1}));
  }
}

// ---- powers

// a ^ b of each pair, all operands FULL, or all bases to one exponent, which is broadcast.
std::vector<double> powers(tn_dtype compute, const std::vector<double>& a, const std::vector<double>& b) {
  DeviceUnderTest device;
  ProgramWriter w;
  const int32_t x = w.input(TN_FULL);
  w.output(w.apply(TN_OP_POW, x, w.input(b.size() == 1 ? TN_SCALAR : TN_FULL)));
  return run_case(device, {w.finish(), 1, static_cast<int64_t>(a.size()), compute, {a, b}}, 2).numbers.at(0);
}

template <class T, class Bits>
void sweep_powers(tn_dtype compute, double bound) {
  std::mt19937_64 random(21);
  std::vector<double> a, b;
  for (int i = 0; i < 200000; ++i)  // bit patterns of all magnitudes
    for (std::vector<double>* list : {&a, &b}) {
      const auto bits = static_cast<Bits>(random());
      T number;
      std::memcpy(&number, &bits, sizeof number);
      list->push_back(static_cast<double>(number));
    }
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (const double scale : {0.01, 1.0, 4.0, 60.0})
    for (int i = 0; i < 50000; ++i) {
      a.push_back(static_cast<T>(i % 2 == 0 ? std::exp2(uniform(random) * 10) : 1 + 0.01 * uniform(random)));
      b.push_back(static_cast<T>(scale * uniform(random)));
      a.push_back(static_cast<T>(-a.back()));  // whole exponents, half of them odd
      b.push_back(std::floor(scale * uniform(random)));
    }
  const std::vector<double> got = powers(compute, a, b);
  double worst = 0;
  size_t at = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double d = distance<T>(got[i], std::pow(static_cast<long double>(a[i]), static_cast<long double>(b[i])));
    if (d > worst) at = i;
    worst = std::max(worst, d);
  }
  EXPECT_LE(worst, bound) << a[at] << " ^ " << b[at];
}

TEST(PointwiseMath, PowersStayWithinTheStatedUlps) {
  sweep_powers<float, uint32_t>(TN_F32, 0.51);
  sweep_powers<double, uint64_t>(TN_F64, 0.6);
}

// Every pair of special numbers, by the C library: zeros, infinities, NaN, exponents that are odd, even, not whole.
TEST(PointwiseMath, PowersOfSpecialNumbers) {
  const std::vector<double> special = {
      0.0, -0.0, 1,     -1,     0.5,           -0.5,          2, -2, 3, -3, 1.5, INFINITY, -INFINITY,
      NAN, 1e30, -1e30, 0x1p24, 0x1.fffffep23, -0x1.fffffep23};
  for (const tn_dtype compute : {TN_F32, TN_F64})
    for (const double b : special) {
      std::vector<double> all;
      for (size_t i = 0; i < special.size(); ++i) all.push_back(b);
      for (const std::vector<double>& exponents : {all, std::vector<double>{b}}) {
        const std::vector<double> got = powers(compute, special, exponents);
        for (size_t i = 0; i < special.size(); ++i) {
          SCOPED_TRACE(testing::Message() << special[i] << " ^ " << b);
          const double exact = std::pow(special[i], b);
          const double wanted = compute == TN_F32 ? static_cast<double>(static_cast<float>(exact)) : exact;
          if (std::isnan(wanted)) {
            EXPECT_TRUE(std::isnan(got[i])) << got[i];
          } else {
            EXPECT_EQ(got[i], wanted);
            EXPECT_EQ(std::signbit(got[i]), std::signbit(wanted));
          }
        }
      }
    }
}

}  // namespace
}  // namespace tenon_tests
