/* Tenon SDK: elementary functions with the same bits on every processor. SPDX-License-Identifier: MIT
 *
 * The functions of a C library have other bits with another version of it, and with another processor, for which it
 * chooses among variants. These are sums, products and quotients of float64, each rounded to the nearest, and nothing
 * else; the compiler contracts none of them, unless it is clang with -ffp-contract=fast. They expect that rounding to
 * the nearest is set, as it is in every function of a plugin, and give special values as C99 has them in annex F, but
 * set no flag, and each NaN that they make is positive. Since 0.4; they call nothing of the host, so that a plugin with
 * them needs no newer host. For float32, round the result once.
 *
 * Largest errors against MPFR, in units in the last place, over 400,000 to 5 million arguments of all magnitudes each:
 * log, log2, log1p 0.501, exp, exp2, expm1, tanh, pow 0.51, erf 0.70, sin, cos 0.78; exp, exp2 and pow 0.75 where the
 * result is below 2^-1022, erf 1.0 below 2^-1018. tests/sdk/elementary_test.cpp checks these bounds.
 *
 * Methods. Sums and products in two parts: Dekker, "A floating-point technique for extending the available precision",
 * 1971; Knuth, "The Art of Computer Programming", volume 2, 4.2.2. Arguments that are reduced by a constant in parts:
 * Cody and Waite, "Software Manual for the Elementary Functions", 1980. Tables, with a series for the rest: Tang,
 * "Table-driven implementation of the exponential function", 1989, and "of the logarithm function", 1990. Sine and
 * cosine of large arguments: Payne and Hanek, "Radian reduction for trigonometric functions", 1983. Taylor's series of
 * erf by the recurrence of Hermite's polynomials: Abramowitz and Stegun, "Handbook of Mathematical Functions", 7.1.19
 * and 22.7. Muller, "Elementary Functions", 2016, describes all of them. */
#ifndef TENON_ELEMENTARY_H
#define TENON_ELEMENTARY_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "tenon/elementary_tables.h"

/* A caller that is compiled to contract must not get the code of a function inlined. */
#define TN_ELEMENTARY static __attribute__((noinline, unused)) double
#if defined(__clang__)
#pragma float_control(push)
#pragma clang fp contract(off)
#elif defined(__GNUC__)
#pragma GCC push_options
#pragma GCC optimize("fp-contract=off")
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* For the functions below: the sum of two numbers, `low` at most half a unit in the last place of `high`. */
typedef struct tn_two_parts {
  double high, low;
} tn_two_parts;

static inline uint64_t tn_bits_of(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
static inline double tn_of_bits(uint64_t bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
static inline double tn_size_of(double x) { return tn_of_bits(tn_bits_of(x) & 0x7fffffffffffffffu); }
static inline double tn_signed_as(double size, double x) {
  return tn_of_bits(tn_bits_of(size) | (tn_bits_of(x) & 0x8000000000000000u));
}
/* 2^n, for n from -1022 to 1023. */
static inline double tn_power_of_2(int n) { return tn_of_bits((uint64_t)(n + 1023) << 52); }
/* x * 2^n, rounded once more below 2^-1022; 1/2 < x < 4, -1100 <= n <= 1024. */
static inline double tn_times_power_of_2(double x, int n) {
  return x * tn_power_of_2(n / 2) * tn_power_of_2(n - n / 2);
}
/* The integer nearest to x, which is less than 2^51. */
static inline double tn_nearest_integer(double x) {
  const double shift = 6755399441055744.0; /* 1.5 * 2^52 */
  return (x + shift) - shift;
}

/* a + b exactly. */
static inline tn_two_parts tn_exact_sum(double a, double b) {
  tn_two_parts sum;
  sum.high = a + b;
  const double of_b = sum.high - a;
  sum.low = (a - (sum.high - of_b)) + (b - of_b);
  return sum;
}
/* a + b exactly if a is 0 or its size is not less than that of b. */
static inline tn_two_parts tn_ordered_sum(double a, double b) {
  tn_two_parts sum;
  sum.high = a + b;
  sum.low = b - (sum.high - a);
  return sum;
}
/* a * b to at least 104 bits. */
static inline tn_two_parts tn_exact_product(double a, double b) {
  const double a_high = tn_of_bits(tn_bits_of(a) & 0xfffffffff8000000u), a_low = a - a_high;
  const double b_high = tn_of_bits(tn_bits_of(b) & 0xfffffffff8000000u), b_low = b - b_high;
  tn_two_parts product;
  product.high = a * b;
  product.low = ((a_high * b_high - product.high) + a_high * b_low + a_low * b_high) + a_low * b_low;
  return product;
}

/* exp(x) = 2^(n / 64) (1 + rest) for x = high + low of less than 2^15. */
typedef struct tn_exponential {
  tn_two_parts rest;
  int n;
} tn_exponential;

/* exp(r) - 1 for r = high + low of at most log(2) / 128. */
static inline tn_two_parts tn_exp_series(double high, double low) {
  const double h = high, more = 1.0 / 6 + h * (1.0 / 24 + h * (1.0 / 120 + h * (1.0 / 720 + h * (1.0 / 5040))));
  return tn_ordered_sum(h, low + (h * low + (h * h * 0.5 + h * h * h * more)));
}
static inline tn_exponential tn_exp_reduced(double high, double low) {
  const double n = tn_nearest_integer(high * (64 * TN_LOG2_E_HIGH));
  const tn_two_parts r = tn_exact_sum(high - n * TN_LOG_2_BY_64_HIGH, -(n * TN_LOG_2_BY_64_LOW));
  tn_exponential result;
  result.rest = tn_exp_series(r.high, r.low + low);
  result.n = (int)n;
  return result;
}
/* n = 64 exponent + j with 0 <= j < 64. */
static inline double tn_exp_rounded(const tn_exponential* e) {
  const int j = (int)((unsigned)e->n & 63u);
  const double high = tn_exp_table[j][0], low = tn_exp_table[j][1];
  return tn_times_power_of_2(high + (high * e->rest.high + (low + high * e->rest.low)), (e->n - j) / 64);
}

TN_ELEMENTARY tn_math_exp(double x) {
  if (x != x) return x;
  if (x > 710) return INFINITY;
  if (x < -746) return 0;
  const tn_exponential e = tn_exp_reduced(x, 0);
  return tn_exp_rounded(&e);
}

TN_ELEMENTARY tn_math_exp2(double x) {
  if (x != x) return x;
  if (x >= 1024) return INFINITY;
  if (x < -1076) return 0;
  const double n = tn_nearest_integer(x * 64), rest = x - n / 64;
  const tn_two_parts r = tn_exact_product(rest, TN_LOG_2_NEAREST_HIGH);
  tn_exponential e;
  e.rest = tn_exp_series(r.high, r.low + rest * TN_LOG_2_NEAREST_LOW);
  e.n = (int)n;
  return tn_exp_rounded(&e);
}

/* exp(x) - 1 for -40 <= x <= 50. */
static inline tn_two_parts tn_expm1_parts(double x) {
  const tn_exponential e = tn_exp_reduced(x, 0);
  if (e.n == 0) return e.rest;
  const int j = (int)((unsigned)e.n & 63u);
  const double scale = tn_power_of_2((e.n - j) / 64), high = scale * tn_exp_table[j][0],
               low = scale * tn_exp_table[j][1];
  const tn_two_parts product = tn_exact_product(high, e.rest.high), without = tn_exact_sum(high, -1);
  const tn_two_parts sum = tn_exact_sum(without.high, product.high);
  const double more = without.low + product.low + (low + low * e.rest.high + high * e.rest.low);
  return tn_ordered_sum(sum.high, sum.low + more);
}

TN_ELEMENTARY tn_math_expm1(double x) {
  if (x != x || tn_size_of(x) < 0x1p-54) return x;
  if (x > 50) return tn_math_exp(x); /* the same, rounded */
  if (x < -40) return -1;
  return tn_expm1_parts(x).high;
}

TN_ELEMENTARY tn_math_tanh(double x) {
  const double size = tn_size_of(x);
  if (x != x || size < 0x1p-30) return x;
  if (size > 20) return tn_signed_as(1, x);
  const tn_two_parts above = tn_expm1_parts(2 * size), below = tn_exact_sum(2, above.high);
  const double quotient = above.high / below.high;
  const tn_two_parts back = tn_exact_product(quotient, below.high);
  const double missing = (above.high - back.high) - back.low + above.low - quotient * (below.low + above.low);
  return tn_signed_as(quotient + missing / below.high, x);
}

/* log(x + low) = n log(2) + what this returns, where x is above 0 and finite, and `low` is 0 unless 2^-60 < x < 2^60.
 */
static inline tn_two_parts tn_log_parts(double x, double low, double log_2_high, double log_2_low, int* n) {
  uint64_t bits = tn_bits_of(x);
  int exponent = (int)(bits >> 52);
  for (; exponent < 1 && bits >> 52 == 0; --exponent) bits <<= 1;
  if (exponent < 1) ++exponent;
  const unsigned j = (unsigned)(bits >> 45) & 127u;
  const int halved = j >= 53;
  *n = exponent - 1023 + halved;
  /* (x + low) / 2^n = z + low, and r = (z + low) inverse - 1, exactly but for a part of the part of `low`. */
  const double z = tn_of_bits((bits & 0xfffffffffffffu) | (uint64_t)(1023 - halved) << 52);
  const double z_high = tn_of_bits(tn_bits_of(z) & 0xffffffff00000000u), inverse = tn_log_inverses[j] / 1024.0;
  const tn_two_parts of_z = tn_exact_sum(z_high * inverse - 1, (z - z_high) * inverse);
  const double of_low = low == 0 ? 0 : low * tn_power_of_2(-*n) * inverse;
  const tn_two_parts r = tn_exact_sum(of_z.high, of_z.low + of_low), square = tn_exact_product(r.high, r.high);
  const double h = r.high, cube = h * square.high;
  const double more = 1.0 / 6 - h * (1.0 / 7 - h * (1.0 / 8 - h * (1.0 / 9 - h * (1.0 / 10))));
  const double series = cube * (1.0 / 3 - h * (1.0 / 4 - h * (1.0 / 5 - h * more)));
  const tn_two_parts first = tn_exact_sum(h, -0.5 * square.high);
  const double rest = first.low + (r.low - 0.5 * square.low - h * r.low + series);
  const tn_two_parts sum = tn_exact_sum(*n * log_2_high + tn_log_table[j][0], first.high);
  return tn_ordered_sum(sum.high, sum.low + (rest + (tn_log_table[j][1] + *n * log_2_low)));
}
static inline tn_two_parts tn_natural_log(double x, double low) {
  int n;
  return tn_log_parts(x, low, TN_LOG_2_HIGH, TN_LOG_2_LOW, &n);
}
/* Of what is not above 0 and finite. */
static inline double tn_log_end(double x) {
  if (x == 0) return -INFINITY;
  return x < 0 ? NAN : x;
}

TN_ELEMENTARY tn_math_log(double x) {
  if (!(x > 0 && x < INFINITY)) return tn_log_end(x);
  return tn_natural_log(x, 0).high;
}

TN_ELEMENTARY tn_math_log2(double x) {
  if (!(x > 0 && x < INFINITY)) return tn_log_end(x);
  int n;
  const tn_two_parts log = tn_log_parts(x, 0, 0, 0, &n), product = tn_exact_product(log.high, TN_LOG2_E_HIGH);
  const tn_two_parts sum = tn_exact_sum(n, product.high);
  return sum.high + (sum.low + (product.low + (log.high * TN_LOG2_E_LOW + log.low * TN_LOG2_E_HIGH)));
}

TN_ELEMENTARY tn_math_log1p(double x) {
  if (x != x || tn_size_of(x) < 0x1p-54) return x;
  if (!(x > -1 && x < 0x1p59)) return x > 0 ? tn_math_log(x) : tn_log_end(x + 1);
  const tn_two_parts sum = tn_exact_sum(1, x);
  return tn_natural_log(sum.high, sum.low).high;
}

/* x^y for x above 0 and finite. */
static inline double tn_pow_of_positive(double x, double y) {
  const double most = 0x1p65; /* with more, every power but those of 1 is infinite or 0 */
  if (tn_size_of(y) > most) y = tn_signed_as(most, y);
  const tn_two_parts log = tn_natural_log(x, 0), product = tn_exact_product(y, log.high);
  if (product.high > 710) return INFINITY;
  if (product.high < -746) return 0;
  const tn_exponential e = tn_exp_reduced(product.high, product.low + y * log.low);
  return tn_exp_rounded(&e);
}

TN_ELEMENTARY tn_math_pow(double x, double y) {
  if (x == 1 || y == 0) return 1;
  if (x != x) return x;
  if (y != y) return y;
  const double size = tn_size_of(x), y_size = tn_size_of(y);
  if (y_size == INFINITY && size == 1) return 1;
  if (y_size == INFINITY) return (size > 1) == (y > 0) ? INFINITY : 0;
  /* From 2^53 on all numbers are even. */
  const int is_whole = y_size >= 0x1p52 || (double)(int64_t)y == y;
  const int is_odd = is_whole && y_size < 0x1p53 && ((int64_t)y & 1) != 0;
  const int is_negative = tn_bits_of(x) >> 63 != 0;
  double power;
  if (size == 0 || size == INFINITY) {
    power = (size == 0) == (y < 0) ? INFINITY : 0;
  } else {
    if (is_negative && !is_whole) return NAN;
    power = tn_pow_of_positive(size, y);
  }
  return is_negative && is_odd ? -power : power;
}

/* x = n pi / 2 + what this returns, at most pi / 4; n modulo 4. For sizes from pi / 4 on. */
static inline tn_two_parts tn_large_quarter(double x, int* n) {
  const uint64_t bits = tn_bits_of(x), mantissa = (bits & 0xfffffffffffffu) | 0x10000000000000u;
  const int exponent = (int)(bits >> 52 & 0x7ffu) - 1023 - 52;
  /* 192 bits of 2 / pi, the first of which times the mantissa's last is 2; they are enough for 128 behind the point. */
  const unsigned from = (unsigned)(exponent + 62), shift = from % 32;
  uint32_t product[6] = {0, 0, 0, 0, 0, 0}; /* of the mantissa, modulo 4; the highest word first */
  uint64_t low_carry = 0, high_carry = 0;
  for (int i = 5; i >= 0; --i) {
    const uint32_t* words = tn_quadrant_words + from / 32 + (unsigned)i;
    const uint32_t word = (uint32_t)(((uint64_t)words[0] << 32 | words[1]) << shift >> 32);
    low_carry += (uint64_t)word * (uint32_t)mantissa + product[i];
    product[i] = (uint32_t)low_carry;
    low_carry >>= 32;
    high_carry += (uint64_t)word * (uint32_t)(mantissa >> 32);
    if (i > 0) product[i - 1] = (uint32_t)high_carry;
    high_carry >>= 32;
  }
  const int is_above_half = (product[0] >> 29 & 1u) != 0;
  *n = (int)(product[0] >> 30) + is_above_half;
  /* The fraction, times 4 to fill the words, or the part up to 1, and its sum of all words. */
  tn_two_parts fraction = {0, 0};
  double scale = 0x1p-32;
  for (int i = 0; i < 6; ++i) {
    uint32_t word = product[i] << 2 | (i < 5 ? product[i + 1] >> 30 : 0u);
    if (is_above_half) word = ~word;
    const tn_two_parts sum = tn_ordered_sum(fraction.high, word * scale);
    fraction.high = sum.high;
    fraction.low += sum.low;
    scale *= 0x1p-32;
  }
  fraction = tn_ordered_sum(fraction.high, fraction.low);
  const tn_two_parts angle = tn_exact_product(fraction.high, TN_HALF_PI_HIGH);
  const double low = angle.low + (fraction.high * TN_HALF_PI_LOW + fraction.low * TN_HALF_PI_HIGH);
  const tn_two_parts size = tn_ordered_sum(angle.high, low);
  const double sign = (bits >> 63 != 0) != is_above_half ? -1 : 1;
  const tn_two_parts result = {sign * size.high, sign * size.low};
  if (bits >> 63 != 0) *n = 4 - *n;
  return result;
}
static inline tn_two_parts tn_quarter(double x, int* n) {
  tn_two_parts r = {x, 0};
  *n = 0;
  if (tn_size_of(x) <= 0.785398163397448) return r;
  if (tn_size_of(x) < 0x1p20) {
    const double count = tn_nearest_integer(x * (1 / TN_HALF_PI_HIGH));
    const tn_two_parts first = tn_exact_sum(x - count * TN_HALF_PI_FIRST, -(count * TN_HALF_PI_SECOND));
    const tn_two_parts second = tn_exact_sum(first.high, -(count * TN_HALF_PI_THIRD));
    *n = (int)count;
    r = tn_ordered_sum(second.high, second.low + first.low);
    if (tn_size_of(r.high) > 0x1p-30) return r;
  }
  return tn_large_quarter(x, n);
}
static inline double tn_sin_series(const tn_two_parts* r) {
  const double h = r->high, z = h * h;
  const double last = 1.0 / 39916800 - z * (1.0 / 6227020800 - z * (1.0 / 1307674368000 - z * (1.0 / 355687428096000)));
  const double more = 1.0 / 120 - z * (1.0 / 5040 - z * (1.0 / 362880 - z * last));
  return h - (h * z * (1.0 / 6 - z * more) - r->low * (1 - 0.5 * z));
}
static inline double tn_cos_series(const tn_two_parts* r) {
  const double h = r->high;
  const tn_two_parts square = tn_exact_product(h, h);
  const double z = square.high, most = 1 - 0.5 * z;
  const double last =
      1.0 / 479001600 - z * (1.0 / 87178291200 - z * (1.0 / 20922789888000 - z * (1.0 / 6402373705728000)));
  const double more = 1.0 / 24 - z * (1.0 / 720 - z * (1.0 / 40320 - z * (1.0 / 3628800 - z * last)));
  return most + (((1 - most) - 0.5 * z) + (z * z * more - (0.5 * square.low + h * r->low)));
}

TN_ELEMENTARY tn_math_sin(double x) {
  if (x != x || tn_size_of(x) < 0x1p-27) return x;
  if (tn_size_of(x) == INFINITY) return NAN;
  int n;
  const tn_two_parts r = tn_quarter(x, &n);
  const double size = ((unsigned)n & 1u) != 0 ? tn_cos_series(&r) : tn_sin_series(&r);
  return ((unsigned)n & 2u) != 0 ? -size : size;
}

TN_ELEMENTARY tn_math_cos(double x) {
  if (x != x) return x;
  if (tn_size_of(x) == INFINITY) return NAN;
  int n;
  const tn_two_parts r = tn_quarter(x, &n);
  const double size = ((unsigned)n & 1u) != 0 ? tn_sin_series(&r) : tn_cos_series(&r);
  return ((unsigned)(n + 1) & 2u) != 0 ? -size : size;
}

TN_ELEMENTARY tn_math_erf(double x) {
  const double size = tn_size_of(x);
  if (x != x) return x;
  if (size >= 6) return tn_signed_as(1, x);
  if (size < 0.5) {
    const double square = x * x;
    double series = 0;
    for (int i = 14; i >= 0; --i) series = series * square + tn_erf_series[i];
    const tn_two_parts first = tn_ordered_sum(x, 0.125 * x);
    return first.high + (first.low + x * series);
  }
  /* With d from the node c: erf(c + d) - erf(c) is the derivative at c times the sum of t[n] d / (n + 1), where
   * t[0] = 1 and t[n + 1] = -2 d (c t[n] + d t[n - 1]) / (n + 1) are the terms of exp(-2 c d - d^2). */
  static const double inverses[] = {1.0,     1.0 / 2,  1.0 / 3,  1.0 / 4,  1.0 / 5,  1.0 / 6,  1.0 / 7,  1.0 / 8,
                                    1.0 / 9, 1.0 / 10, 1.0 / 11, 1.0 / 12, 1.0 / 13, 1.0 / 14, 1.0 / 15, 1.0 / 16};
  const int node = (int)(8 * size + 0.5);
  const double* at = tn_erf_table[node - 4];
  const double c = node * 0.125, d = size - c;
  double before = 0, term = 1, sum = 0;
  for (int i = 0; i < 15; ++i) {
    const double next = -2 * d * (c * term + d * before) * inverses[i];
    before = term;
    term = next;
    sum += term * inverses[i + 1];
  }
  return tn_signed_as(at[0] + (at[1] + at[2] * (d + d * sum)), x);
}

#ifdef __cplusplus
}
#endif

#undef TN_ELEMENTARY
#if defined(__clang__)
#pragma float_control(pop)
#elif defined(__GNUC__)
#pragma GCC pop_options
#endif

#endif
