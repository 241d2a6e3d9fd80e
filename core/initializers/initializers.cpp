// SPDX-License-Identifier: Apache-2.0
#include "core/initializers/initializers.h"

#include <tenon/elementary.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <span>

namespace tenon::core {

namespace {

// The sum of products in four parts, always in the same order.
double dot(const double* a, const double* b, size_t count) {
  std::array<double, 4> sums = {};
  size_t i = 0;
  for (; i + 4 <= count; i += 4)
    for (size_t k = 0; k < 4; ++k) sums[k] += a[i + k] * b[i + k];
  for (; i < count; ++i) sums[0] += a[i] * b[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// Makes vectors of `length` orthonormal, of which there are at most `length`: Gram and Schmidt's method in its modified
// form, twice for each vector, which suffices for full precision (L. Giraud et al., 2005). The diagonal of the
// triangular factor is positive, so that vectors of normal numbers give a uniform distribution (F. Mezzadri, 2007).
void orthonormalize(std::vector<double>& vectors, size_t length) {
  for (size_t next = 0; next < vectors.size(); next += length) {
    double* const v = &vectors[next];
    for (int pass = 0; pass < 2; ++pass)
      for (size_t before = 0; before < next; before += length) {
        const double* const u = &vectors[before];
        const double share = dot(u, v, length);
        for (size_t i = 0; i < length; ++i) v[i] -= share * u[i];
      }
    const double norm = std::sqrt(dot(v, v, length));
    for (size_t i = 0; i < length; ++i) v[i] /= norm;
  }
}

// Initialises elements 2k and 2k + 1 from block k of the stream; `draw_first_values` has the kinds of the host.
void initialize_plainly(const tn_initializer& initializer, const Philox& philox, const Elements& elements,
                        float* values) {
  const double a = initializer.a;
  const double b = initializer.b;
  if (initializer.kind == TN_INIT_CONSTANT) {
    for (uint64_t i = 0; i < elements.count; ++i) values[i] = static_cast<float>(a);
    return;
  }
  // Rounding to fp32 must not reach the open end of the interval.
  const float last = std::nextafter(static_cast<float>(b), static_cast<float>(a));
  const auto uniform = [&](double u) { return std::min(static_cast<float>(a + (b - a) * u), last); };
  const uint64_t end = elements.first + elements.count;
  for (uint64_t pair = elements.first / 2; 2 * pair < end; ++pair) {
    const Philox::Block block = philox.block(pair);
    const double u = unit_interval(block[0], block[1]);
    const double v = unit_interval(block[2], block[3]);
    float drawn[2] = {uniform(u), uniform(v)};
    if (initializer.kind == TN_INIT_NORMAL) {  // Box and Muller, 1958; 1 - u is never 0
      const double radius = b * std::sqrt(-2 * tn_math_log(1 - u));
      const double angle = 2 * std::numbers::pi * v;
      drawn[0] = static_cast<float>(a + radius * tn_math_cos(angle));
      drawn[1] = static_cast<float>(a + radius * tn_math_sin(angle));
    }
    for (const uint64_t i : {2 * pair, 2 * pair + 1})
      if (i >= elements.first && i < end) values[i - elements.first] = drawn[i - 2 * pair];
  }
}

}  // namespace

void draw_truncated_normal(double deviation, double bound, const Philox& philox, const Elements& elements,
                           float* values) {
  for (uint64_t i = elements.first; i < elements.first + elements.count; ++i) {
    double x = 0;
    bool accepted = false;
    // By rejection; attempt k of value i reads block k * elements.whole + i. For a small bound from the uniform
    // distribution, for others from the normal one (Box and Muller, 1958), so that at least 60 % are accepted.
    for (uint64_t index = i; !accepted; index += elements.whole) {
      const Philox::Block block = philox.block(index);
      const double u = unit_interval(block[0], block[1]), v = unit_interval(block[2], block[3]);
      if (bound < 1) {
        x = bound * (2 * u - 1);
        accepted = v < tn_math_exp(-0.5 * x * x);
      } else {
        x = std::sqrt(-2 * tn_math_log(1 - u)) * tn_math_cos(2 * std::numbers::pi * v);
        accepted = std::abs(x) <= bound;
      }
    }
    values[i - elements.first] = static_cast<float>(deviation * x);
  }
}

void orthogonalize(double gain, const std::vector<int64_t>& shape, float* values) {
  const auto rows = static_cast<size_t>(shape[0]);
  size_t columns = 1;
  for (const int64_t size : std::span(shape).subspan(1)) columns *= static_cast<size_t>(size);
  const size_t vectors = std::min(rows, columns), length = std::max(rows, columns);
  // Element i of vector k; vectors are rows or columns, whichever are longer.
  const auto place = [&](size_t k, size_t i) { return rows > columns ? i * columns + k : k * columns + i; };
  std::vector<double> matrix(vectors * length);
  for (size_t k = 0; k < vectors; ++k)
    for (size_t i = 0; i < length; ++i) matrix[k * length + i] = static_cast<double>(values[place(k, i)]);
  orthonormalize(matrix, length);
  for (size_t k = 0; k < vectors; ++k)
    for (size_t i = 0; i < length; ++i) values[place(k, i)] = static_cast<float>(gain * matrix[k * length + i]);
}

void draw_first_values(const tn_initializer& initializer, const Philox& philox, const std::vector<int64_t>& shape,
                       const Elements& elements, float* values) {
  if (initializer.kind == kInitTruncatedNormal) {
    draw_truncated_normal(initializer.a, initializer.b, philox, elements, values);
  } else if (initializer.kind == kInitOrthogonal) {
    initialize_plainly({TN_INIT_NORMAL, 0, 0, 1}, philox, elements, values);
    orthogonalize(initializer.a, shape, values);
  } else {
    initialize_plainly(initializer, philox, elements, values);
  }
}

}  // namespace tenon::core
