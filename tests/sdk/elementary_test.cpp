// tenon/elementary.h against MPFR, C99's special values, and recorded bits. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <mpfr.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <random>
#include <vector>

#include "tests/sdk/elementary_bits.h"

namespace tenon::tests {

ElementaryHashes contracted_hashes();

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kLargest = std::numeric_limits<double>::max(), kLeast = 0x1p-1074;

// The bits over 10,000 arguments each, equal for gcc and clang with and without contraction and for arm64. They change
// only with a change of the functions, which changes the bits of models.
constexpr std::pair<const char*, uint64_t> kHashes[kElementaryFunctions] = {
    {"exp", 0xd9afd69fab02a97c},  {"exp2", 0xc962848ab8a94f0e}, {"expm1", 0x7673f57fc3839e27},
    {"log", 0x7c9444cdace8e263},  {"log2", 0x1f9ec8e05494fb3f}, {"log1p", 0xf8fd1fe08e1b8af3},
    {"tanh", 0xfd1f731422127a47}, {"erf", 0xfef4c131b897b4a9},  {"sin", 0x031a8ed9922cbdc6},
    {"cos", 0xfadb8a6556914cb5},  {"pow", 0xbbaceaea13a180c2},
};

void expect_recorded(const ElementaryHashes& hashes) {
  for (size_t f = 0; f < kElementaryFunctions; ++f) EXPECT_EQ(hashes[f], kHashes[f].second) << kHashes[f].first;
}

TEST(Elementary, BitsAreThoseRecorded) { expect_recorded(elementary_hashes()); }

TEST(Elementary, BitsDoNotDependOnContraction) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("fma") == 0) GTEST_SKIP() << "the processor has no fused multiply-add";
#endif
  expect_recorded(contracted_hashes());
}

// A number of MPFR.
class Precise {
 public:
  explicit Precise(double value = 0, mpfr_prec_t bits = 53) {
    mpfr_init2(number_, bits);
    mpfr_set_d(number_, value, MPFR_RNDN);
  }
  ~Precise() { mpfr_clear(number_); }
  Precise(const Precise&) = delete;
  Precise& operator=(const Precise&) = delete;
  mpfr_ptr get() { return number_; }

 private:
  mpfr_t number_;
};

// Of `result`, in units in the last place that the exact number has as a float64.
double error_of(double result, Precise& exact) {
  const double nearest = mpfr_get_d(exact.get(), MPFR_RNDN);
  if (std::isnan(nearest) || std::isinf(nearest) || std::isinf(result) || std::isnan(result))
    return std::isnan(nearest) == std::isnan(result) && (std::isnan(nearest) || nearest == result) ? 0 : kInf;
  constexpr mpfr_exp_t kLastOfSubnormals = -1074;
  mpfr_exp_t last = kLastOfSubnormals;
  if (mpfr_zero_p(exact.get()) == 0) last = std::max(last, mpfr_get_exp(exact.get()) - 53);
  Precise difference(result, 200);
  mpfr_sub(difference.get(), difference.get(), exact.get(), MPFR_RNDN);
  mpfr_mul_2si(difference.get(), difference.get(), -last, MPFR_RNDN);
  return std::abs(mpfr_get_d(difference.get(), MPFR_RNDN));
}

using Draw = std::function<double(std::mt19937_64&)>;

Draw between(double least, double most) {
  return [=](std::mt19937_64& bits) { return least + (most - least) * static_cast<double>(bits() >> 11) * 0x1p-53; };
}
// Of either sign, with exponents from `least` to `most`.
Draw of_exponents(int least, int most, double centre = 0) {
  return [=](std::mt19937_64& bits) {
    const double number = std::ldexp(1 + static_cast<double>(bits() >> 12) * 0x1p-52,
                                     least + static_cast<int>(bits() % static_cast<uint64_t>(most - least + 1)));
    return (bits() & 1U) != 0 ? centre + number : centre - number;
  };
}
double any(std::mt19937_64& bits) { return tn_of_bits(bits()); }
double any_size(std::mt19937_64& bits) { return std::abs(any(bits)); }
// Within a few units in the last place of n step.
Draw near_multiples(double step, int most_bits) {
  return [=](std::mt19937_64& bits) {
    const auto n = static_cast<double>(bits() >> (64 - 1 - bits() % static_cast<uint64_t>(most_bits)));
    return tn_of_bits(tn_bits_of(n * step) + bits() % 3);
  };
}

constexpr int kDraws = 10'000;

struct Case {
  const char* name;
  double (*function)(double);
  int (*precise)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);
  double bound;  // above the largest error that elementary.h states
  std::vector<Draw> draws;
};

std::vector<Case> cases() {
  const double ln_2 = std::numbers::ln2, half_pi = std::numbers::pi / 2;
  const std::vector<Draw> waves = {between(-10, 10),
                                   between(-1, 1),
                                   of_exponents(-30, 30),
                                   of_exponents(-1074, 1023),
                                   near_multiples(half_pi, 52),
                                   near_multiples(half_pi / 2, 52)};
  return {
      {"exp",
       tn_math_exp,
       mpfr_exp,
       0.77,
       {between(-746, 710), between(-2, 2), of_exponents(-60, 9), any, near_multiples(ln_2 / 128, 16)}},
      {"exp2",
       tn_math_exp2,
       mpfr_exp2,
       0.77,
       {between(-1076, 1025), between(-2, 2), of_exponents(-60, 10), any, near_multiples(1. / 128, 16)}},
      {"expm1",
       tn_math_expm1,
       mpfr_expm1,
       0.51,
       {between(-45, 60), between(-1, 1), between(-.02, .02), of_exponents(-60, 9), any}},
      {"log",
       tn_math_log,
       mpfr_log,
       0.51,
       {between(0, 2), between(.98, 1.02), of_exponents(-53, -5, 1), any_size, near_multiples(1. / 256, 9)}},
      {"log2",
       tn_math_log2,
       mpfr_log2,
       0.51,
       {between(0, 2), between(.98, 1.02), of_exponents(-53, -5, 1), any_size, near_multiples(1. / 256, 9)}},
      {"log1p",
       tn_math_log1p,
       mpfr_log1p,
       0.51,
       {between(-1, 2), between(-.02, .02), of_exponents(-60, 0), any_size, of_exponents(-1074, 70)}},
      {"tanh",
       tn_math_tanh,
       mpfr_tanh,
       0.51,
       {between(-21, 21), between(-1, 1), between(-.02, .02), of_exponents(-60, 5), any}},
      {"erf",
       tn_math_erf,
       mpfr_erf,
       1,
       {between(-6.1, 6.1), between(-1, 1), of_exponents(-60, 2), of_exponents(-1074, 3), near_multiples(1. / 16, 7)}},
      {"sin", tn_math_sin, mpfr_sin, 0.8, waves},
      {"cos", tn_math_cos, mpfr_cos, 0.8, waves}};
}

TEST(Elementary, ErrorsAreThoseStated) {
  for (const Case& each : cases()) {
    double most = 0, at = 0;
    std::mt19937_64 bits(1);
    Precise exact(0, 160);
    for (const Draw& draw : each.draws)
      for (int i = 0; i < kDraws; ++i) {
        const double x = draw(bits);
        each.precise(exact.get(), Precise(x).get(), MPFR_RNDN);
        const double error = error_of(each.function(x), exact);
        if (error > most) most = error, at = x;
      }
    EXPECT_LE(most, each.bound) << each.name << " of " << at << " is " << each.function(at);
  }
}

TEST(Elementary, ErrorsOfPowersAreThoseStated) {
  const auto divided_by_log = [](double base, const Draw& draw) {
    return [=](std::mt19937_64& bits) { return draw(bits) / std::log(base); };
  };
  std::mt19937_64 bits(1);
  double most = 0, most_base = 0, most_exponent = 0;
  const auto try_one = [&](double base, double exponent) {
    Precise exact(0, 160);
    mpfr_pow(exact.get(), Precise(base).get(), Precise(exponent).get(), MPFR_RNDN);
    const double error = error_of(tn_math_pow(base, exponent), exact);
    if (error > most) most = error, most_base = base, most_exponent = exponent;
  };
  for (int i = 0; i < kDraws; ++i) {
    try_one(between(0, 3)(bits), between(-50, 50)(bits));
    try_one(any_size(bits), of_exponents(-10, 10)(bits));
    const double near = of_exponents(-30, -3, 1)(bits), wide = any_size(bits);
    try_one(near, divided_by_log(near, between(-746, 710))(bits));
    try_one(wide, divided_by_log(wide, between(-746, 710))(bits));
    try_one(any(bits), static_cast<double>(bits() % 100) - 50);
    try_one(any(bits), any(bits));
  }
  EXPECT_LE(most, 0.77) << most_base << " to the power of " << most_exponent;
}

void expect_same(double result, double expected, const char* what) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(result)) << what << " is " << result;
  } else {
    EXPECT_EQ(tn_bits_of(result), tn_bits_of(expected)) << what << " is " << result << "; expected " << expected;
  }
}
#define EXPECT_SAME(call, expected) expect_same(call, expected, #call)

TEST(Elementary, SpecialValuesAreThoseOfC99) {
  for (double (*function)(double) : {tn_math_exp, tn_math_exp2, tn_math_expm1, tn_math_log, tn_math_log2, tn_math_log1p,
                                     tn_math_tanh, tn_math_erf, tn_math_sin, tn_math_cos})
    EXPECT_SAME(function(kNan), kNan);
  for (double (*function)(double) : {tn_math_expm1, tn_math_log1p, tn_math_tanh, tn_math_erf, tn_math_sin})
    for (const double tiny : {0.0, -0.0}) EXPECT_SAME(function(tiny), tiny);
  for (double (*function)(double) : {tn_math_expm1, tn_math_log1p, tn_math_tanh, tn_math_sin})
    for (const double tiny : {kLeast, -kLeast}) EXPECT_SAME(function(tiny), tiny);
  for (double (*function)(double) : {tn_math_exp, tn_math_exp2}) {
    EXPECT_SAME(function(-0.0), 1);
    EXPECT_SAME(function(kInf), kInf);
    EXPECT_SAME(function(kLargest), kInf);
    EXPECT_SAME(function(-kInf), 0);
    EXPECT_SAME(function(-kLargest), 0);
  }
  EXPECT_SAME(tn_math_exp2(-1074), kLeast);
  EXPECT_SAME(tn_math_exp2(1023), 0x1p1023);
  EXPECT_SAME(tn_math_expm1(kInf), kInf);
  EXPECT_SAME(tn_math_expm1(-kInf), -1);
  for (double (*function)(double) : {tn_math_log, tn_math_log2}) {
    EXPECT_SAME(function(1), 0);
    EXPECT_SAME(function(0.0), -kInf);
    EXPECT_SAME(function(-0.0), -kInf);
    EXPECT_SAME(function(-kLeast), kNan);
    EXPECT_SAME(function(-kInf), kNan);
    EXPECT_SAME(function(kInf), kInf);
  }
  for (int n = -1074; n < 1024; ++n) EXPECT_SAME(tn_math_log2(std::ldexp(1.0, n)), n);
  EXPECT_SAME(tn_math_log1p(-1), -kInf);
  EXPECT_SAME(tn_math_log1p(-1.5), kNan);
  EXPECT_SAME(tn_math_log1p(-kInf), kNan);
  EXPECT_SAME(tn_math_log1p(kInf), kInf);
  for (double (*function)(double) : {tn_math_tanh, tn_math_erf}) {
    EXPECT_SAME(function(kInf), 1);
    EXPECT_SAME(function(-kInf), -1);
  }
  EXPECT_SAME(tn_math_cos(-0.0), 1);
  for (double (*function)(double) : {tn_math_sin, tn_math_cos})
    for (const double endless : {kInf, -kInf}) EXPECT_SAME(function(endless), kNan);
}

TEST(Elementary, SpecialPowersAreThoseOfC99) {
  for (const double x : {0.0, -0.0, 3.0, -3.0, kInf, -kInf, kNan})
    for (const double zero : {0.0, -0.0}) EXPECT_SAME(tn_math_pow(x, zero), 1);
  for (const double y : {0.5, -kLargest, kInf, -kInf, kNan}) EXPECT_SAME(tn_math_pow(1, y), 1);
  for (const double y : {kInf, -kInf}) EXPECT_SAME(tn_math_pow(-1, y), 1);
  EXPECT_SAME(tn_math_pow(kNan, 1), kNan);
  EXPECT_SAME(tn_math_pow(2, kNan), kNan);
  for (const double zero : {0.0, -0.0}) {
    EXPECT_SAME(tn_math_pow(zero, -3), std::copysign(kInf, zero));
    EXPECT_SAME(tn_math_pow(zero, 3), zero);
    for (const double y : {2.0, 0.5, kInf, 0x1p53}) EXPECT_SAME(tn_math_pow(zero, y), 0);
    for (const double y : {-2.0, -0.5, -kInf, -0x1p53}) EXPECT_SAME(tn_math_pow(zero, y), kInf);
  }
  for (const double x : {0.5, -0.5}) {
    EXPECT_SAME(tn_math_pow(x, kInf), 0);
    EXPECT_SAME(tn_math_pow(x, -kInf), kInf);
    EXPECT_SAME(tn_math_pow(1 / x, kInf), kInf);
    EXPECT_SAME(tn_math_pow(1 / x, -kInf), 0);
  }
  EXPECT_SAME(tn_math_pow(kInf, -0.5), 0);
  EXPECT_SAME(tn_math_pow(kInf, 0.5), kInf);
  EXPECT_SAME(tn_math_pow(-kInf, -3), -0.0);
  EXPECT_SAME(tn_math_pow(-kInf, -2), 0);
  EXPECT_SAME(tn_math_pow(-kInf, 3), -kInf);
  EXPECT_SAME(tn_math_pow(-kInf, 2.5), kInf);
  EXPECT_SAME(tn_math_pow(-2, 0.5), kNan);
  EXPECT_SAME(tn_math_pow(-2, 3), -8);
  EXPECT_SAME(tn_math_pow(-2, -1074), kLeast);
  EXPECT_SAME(tn_math_pow(-2, 0x1p52 + 1), -kInf);
  EXPECT_SAME(tn_math_pow(-2, -kLargest), 0);
  EXPECT_SAME(tn_math_pow(3, 4), 81);
}

}  // namespace
}  // namespace tenon::tests
