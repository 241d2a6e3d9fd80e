// Plain loops that the compiler vectorises at -O3. Sums have a fixed number of lanes and no product is contracted into
// its sum, so the bits do not depend on the instruction set. SPDX-License-Identifier: Apache-2.0
#include "attend.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

// Compiles a function for several instruction sets, of which the loader chooses. Sanitizers instrument the choice,
// which runs before they do.
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__) && !defined(__clang__)
#define TENON_CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define TENON_CLONES
#endif
#define TENON_INLINE inline __attribute__((always_inline))

namespace tenon::attention {

namespace {

constexpr int64_t kLanes = 16;

template <typename T>
TENON_INLINE T dot(const T* a, const T* b, int64_t count) {
  T sums[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int64_t lane = 0; lane < kLanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  for (int64_t lane = 0; i + lane < count; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  for (int64_t half = kLanes / 2; half > 0; half /= 2)
    for (int64_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
  return sums[0];
}

template <typename T>
TENON_INLINE const T* row(const Rows<T>& rows, int64_t i) {
  return rows.data + rows.stride * (rows.numbers == nullptr ? i : rows.numbers[i]);
}

// exp(x) of x <= 0, without a branch, so that loops of it are vectors: 2^n e^r with |r| <= log(2) / 2, where e^r is its
// Taylor polynomial. The relative error is below 2e-7; below -87 the result is 0.
TENON_INLINE float exp_of(float x) {
  constexpr float kToInteger = 12582912;  // 1.5 * 2^23: a sum with it is rounded to an integer
  const float bounded = x > -87.0F ? x : -87.0F;
  const float n = (bounded * 1.44269504F + kToInteger) - kToInteger;
  const float r = (bounded - n * 0.693359375F) + n * 2.12194440e-4F;
  float e = 1.0F / 5040;
  e = e * r + 1.0F / 720;
  e = e * r + 1.0F / 120;
  e = e * r + 1.0F / 24;
  e = e * r + 1.0F / 6;
  e = e * r + 0.5F;
  e = e * r + 1.0F;
  e = e * r + 1.0F;
  const int32_t bits = (static_cast<int32_t>(n) + 127) * (1 << 23);
  float power = 0;
  std::memcpy(&power, &bits, sizeof power);
  const float below = x < -87.0F ? 0.0F : x;  // NaN stays
  return x >= -87.0F ? e * power : below;
}
TENON_INLINE double exp_of(double x) { return std::exp(x); }

// Returns the largest score.
template <typename T>
TENON_INLINE T write_scores(const T* query, const Rows<T>& keys, int64_t depth, T scale, T most, T* scores) {
  for (int64_t i = 0; i < keys.count; ++i) {
    scores[i] = scale * dot(query, row(keys, i), depth);
    most = std::max(most, scores[i]);
  }
  return most;
}

// Replaces numbers by exponentials of them minus `most`; returns the sum of these.
template <typename T>
TENON_INLINE T exponentials(T* numbers, int64_t count, T most) {
  for (int64_t i = 0; i < count; ++i) numbers[i] = exp_of(numbers[i] - most);
  T sums[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int64_t lane = 0; lane < kLanes; ++lane) sums[lane] += numbers[i + lane];
  for (int64_t lane = 0; i + lane < count; ++lane) sums[lane] += numbers[i + lane];
  T sum = 0;
  for (const T each : sums) sum += each;
  return sum;
}

// output += the sum of the values, weighted; the terms are added in the order of the rows.
template <typename T>
TENON_INLINE void mix(const T* weights, const Rows<T>& values, int64_t width, T* output) {
  int64_t i = 0;
  for (; i + 4 <= values.count; i += 4) {
    const T *const a = row(values, i), *const b = row(values, i + 1), *const c = row(values, i + 2),
                   *const d = row(values, i + 3);
    const T wa = weights[i], wb = weights[i + 1], wc = weights[i + 2], wd = weights[i + 3];
    for (int64_t k = 0; k < width; ++k) output[k] = (((output[k] + wa * a[k]) + wb * b[k]) + wc * c[k]) + wd * d[k];
  }
  for (; i < values.count; ++i) {
    const T *const a = row(values, i), wa = weights[i];
    for (int64_t k = 0; k < width; ++k) output[k] += wa * a[k];
  }
}

template <typename T>
TENON_INLINE T attended(const T* query, const Seen<T>& seen, T* weights, T* output) {
  std::fill_n(output, seen.width, T(0));
  if (seen.count() == 0) return -std::numeric_limits<T>::infinity();
  const int64_t past = seen.past_keys.count;
  T most = -std::numeric_limits<T>::infinity();
  most = write_scores(query, seen.past_keys, seen.depth, seen.scale, most, weights);
  most = write_scores(query, seen.keys, seen.depth, seen.scale, most, weights + past);
  const T sum = exponentials(weights, seen.count(), most);
  mix(weights, seen.past_values, seen.width, output);
  mix(weights + past, seen.values, seen.width, output);
  for (int64_t k = 0; k < seen.width; ++k) output[k] /= sum;
  return most + std::log(sum);
}

template <typename T>
TENON_INLINE void differentiate(const AttendGradient<T>& of, const Seen<T>& seen, T* weights) {
  static_cast<void>(write_scores(of.query, seen.keys, seen.depth, seen.scale, T(0), weights));
  static_cast<void>(exponentials(weights, seen.keys.count, of.log_sum));
  const T mean = dot(of.given, of.output, seen.width);
  for (int64_t i = 0; i < seen.keys.count; ++i) {
    const T weight = weights[i];
    if (of.to_values != nullptr) {
      T* const to = of.to_values + seen.values.stride * i;
      for (int64_t k = 0; k < seen.width; ++k) to[k] += weight * of.given[k];
    }
    const T given = weight * (dot(of.given, row(seen.values, i), seen.width) - mean) * seen.scale;
    if (of.to_keys != nullptr) {
      T* const to = of.to_keys + seen.keys.stride * i;
      for (int64_t k = 0; k < seen.depth; ++k) to[k] += given * of.query[k];
    }
    weights[i] = given;
  }
  if (of.to_query != nullptr) mix(weights, seen.keys, seen.depth, of.to_query);
}

}  // namespace

TENON_CLONES float attend(const float* query, const Seen<float>& seen, float* weights, float* output) {
  return attended(query, seen, weights, output);
}
TENON_CLONES double attend(const double* query, const Seen<double>& seen, double* weights, double* output) {
  return attended(query, seen, weights, output);
}
TENON_CLONES void attend_gradient(const AttendGradient<float>& of, const Seen<float>& seen, float* weights) {
  differentiate(of, seen, weights);
}
TENON_CLONES void attend_gradient(const AttendGradient<double>& of, const Seen<double>& seen, double* weights) {
  differentiate(of, seen, weights);
}

}  // namespace tenon::attention
