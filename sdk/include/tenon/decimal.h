/* Tenon SDK: decimal numbers as readers meet them. SPDX-License-Identifier: MIT
 *
 * strtod and strtof expect the decimal point of the locale that the application has set: "0.5" ends at the point where
 * that is a comma. These functions do not depend on it. Since 0.4. */
#ifndef TENON_DECIMAL_H
#define TENON_DECIMAL_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* For the functions below: a natural number of up to 4096 bits, the lowest limb first. */
typedef struct tn_natural {
  uint32_t limbs[128];
  int32_t count; /* without leading zeros */
} tn_natural;

static inline void tn_natural_multiply_add(tn_natural* n, uint32_t factor, uint32_t term) {
  uint64_t carry = term;
  for (int32_t i = 0; i < n->count; ++i) {
    carry += (uint64_t)n->limbs[i] * factor;
    n->limbs[i] = (uint32_t)carry;
    carry >>= 32;
  }
  if (carry != 0) n->limbs[n->count++] = (uint32_t)carry;
}
static inline int32_t tn_natural_bits(const tn_natural* n) {
  int32_t bits = 32 * n->count;
  for (uint32_t top = 0x80000000u; n->count > 0 && (n->limbs[n->count - 1] & top) == 0; top >>= 1) --bits;
  return bits;
}
static inline void tn_natural_shift(tn_natural* n, int32_t bits) {
  for (; bits > 0; bits -= bits > 31 ? 31 : bits) tn_natural_multiply_add(n, 1u << (bits > 31 ? 31 : bits), 0);
}
static inline int tn_natural_compare(const tn_natural* a, const tn_natural* b) {
  if (a->count != b->count) return a->count < b->count ? -1 : 1;
  for (int32_t i = a->count; i-- > 0;)
    if (a->limbs[i] != b->limbs[i]) return a->limbs[i] < b->limbs[i] ? -1 : 1;
  return 0;
}
/* Subtracts b, which is not greater. */
static inline void tn_natural_subtract(tn_natural* a, const tn_natural* b) {
  int64_t borrow = 0;
  for (int32_t i = 0; i < a->count; ++i) {
    borrow += (int64_t)a->limbs[i] - (i < b->count ? (int64_t)b->limbs[i] : 0);
    a->limbs[i] = (uint32_t)borrow;
    borrow >>= 32; /* -1 or 0 */
  }
  while (a->count > 0 && a->limbs[a->count - 1] == 0) --a->count;
}

/* Returns a / b, both above 0, rounded to `bits` bits, halves to the even number; numbers below 2^lowest have fewer. */
static inline double tn_natural_quotient(tn_natural* a, tn_natural* b, int32_t bits, int32_t lowest) {
  int32_t exponent = tn_natural_bits(a) - tn_natural_bits(b);
  uint64_t mantissa = 0;
  tn_natural_shift(exponent < 0 ? a : b, exponent < 0 ? -exponent : exponent);
  if (tn_natural_compare(a, b) < 0) {
    tn_natural_shift(a, 1);
    --exponent;
  }
  if (exponent < lowest) bits -= lowest - exponent;
  if (bits < 0) return 0;
  for (int32_t i = 0; i < bits; ++i) { /* a / b is below 2 */
    mantissa *= 2;
    if (tn_natural_compare(a, b) >= 0) {
      tn_natural_subtract(a, b);
      ++mantissa;
    }
    tn_natural_shift(a, 1);
  }
  const int rest = tn_natural_compare(a, b);
  if (rest > 0 || (rest == 0 && mantissa % 2 == 1)) ++mantissa;
  return ldexp((double)mantissa, exponent - bits + 1);
}

/* Whether `text` begins with the word, in small or capital letters. */
static inline int tn_is_word(const char* text, const char* word) {
  for (; *word != '\0'; ++text, ++word)
    if ((*text | 32) != *word) return 0;
  return 1;
}

/* Parses a number for tn_parse_double and tn_parse_float. */
static inline const char* tn_parse_number(const char* text, int32_t bits, int32_t lowest, double* value) {
  enum { MOST_DIGITS = 800 };                     /* those behind them cannot change the rounding but by not being 0 */
  tn_natural number = {{0}, 0}, power = {{1}, 1}; /* the value is number * 10^exponent, or number / power */
  const char* at = text + (*text == '-' || *text == '+' ? 1 : 0);
  const double sign = *text == '-' ? -1 : 1;
  int64_t exponent = 0, digits = 0, all = 0;
  int point = 0, rest = 0;
  if (tn_is_word(at, "inf") || tn_is_word(at, "nan")) {
    *value = tn_is_word(at, "inf") ? sign * HUGE_VAL : sign * NAN;
    return at + (tn_is_word(at, "infinity") ? 8 : 3);
  }
  for (; (*at >= '0' && *at <= '9') || (*at == '.' && !point); ++at) {
    if (*at == '.') {
      point = 1;
      continue;
    }
    ++all;
    exponent -= point;
    if (digits == 0 && *at == '0') continue; /* leading */
    if (digits < MOST_DIGITS) {
      tn_natural_multiply_add(&number, 10, (uint32_t)(*at - '0'));
      ++digits;
    } else {
      rest = rest || *at != '0';
      ++exponent;
    }
  }
  if (all == 0) return text;
  if (*at == 'e' || *at == 'E') {
    const char* in = at + 1 + (at[1] == '-' || at[1] == '+' ? 1 : 0);
    int64_t given = 0;
    if (*in >= '0' && *in <= '9') {
      const int negative = at[1] == '-';
      for (; *in >= '0' && *in <= '9'; ++in) given = given > INT64_C(1000000000000) ? given : 10 * given + (*in - '0');
      exponent += negative ? -given : given;
      at = in;
    }
  }
  if (rest) { /* a digit that is not 0 stands for all others */
    tn_natural_multiply_add(&number, 10, 1);
    --exponent;
  }
  *value = sign * 0.0;
  if (digits == 0 || digits + exponent < -400) return at;
  *value = sign * HUGE_VAL;
  if (digits + exponent > 400) return at;
  for (; exponent > 0; --exponent) tn_natural_multiply_add(&number, 10, 0);
  for (; exponent < 0; ++exponent) tn_natural_multiply_add(&power, 10, 0);
  *value = sign * tn_natural_quotient(&number, &power, bits, lowest);
  return at;
}

/* Parses the number that `text`, which ends with 0, begins with: [+-] digits with one '.' in front of, between or
 * behind them, or not, and perhaps an exponent, "e-3"; or inf, infinity, nan. No spaces in front of it, no hexadecimal
 * digits. Rounds to the nearest value, halves to the even one, as strtod does in the locale "C"; too large numbers
 * become infinite. Returns the end of the number; `text`, and leaves *value as it is, if there is none. */
static inline const char* tn_parse_double(const char* text, double* value) {
  return tn_parse_number(text, 53, -1022, value);
}
static inline const char* tn_parse_float(const char* text, float* value) {
  double wide = 0;
  const char* const end = tn_parse_number(text, 24, -126, &wide);
  if (end != text)
    *value = wide > 3.4028234663852886e38 ? HUGE_VALF : wide < -3.4028234663852886e38 ? -HUGE_VALF : (float)wide;
  return end;
}

#ifdef __cplusplus
}
#endif
#endif
