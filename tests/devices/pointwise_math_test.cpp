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
  for (const double scale : {1e-3, 0.1, 1.0, 2.0, 5.0, 30.0, 110.0, 750.0})
    for (int i = 0; i < 40000; ++i) numbers.push_back(static_cast<T>(scale * uniform(random)));
  for (double& number : numbers) number = static_cast<T>(number);
  return numbers;
}

template <class T, class Bits>
void sweep(tn_dtype compute) {
  CpuDevice device;
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

}  // namespace
}  // namespace tenon_tests
