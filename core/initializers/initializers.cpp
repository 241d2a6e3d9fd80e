// SPDX-License-Identifier: Apache-2.0
#include "core/initializers/initializers.h"

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

}  // namespace

void draw_truncated_normal(double deviation, double bound, const Philox& philox, float* values, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    double x = 0;
    bool accepted = false;
    // By rejection; attempt k of value i reads block k * count + i. For a small bound from the uniform distribution,
    // for others from the normal one (Box and Muller, 1958), so that at least 60 % are accepted.
    for (uint64_t index = i; !accepted; index += count) {
      const Philox::Block block = philox.block(index);
      const double u = unit_interval(block[0], block[1]), v = unit_interval(block[2], block[3]);
      if (bound < 1) {
        x = bound * (2 * u - 1);
        accepted = v < std::exp(-0.5 * x * x);
      } else {
        x = std::sqrt(-2 * std::log(1 - u)) * std::cos(2 * std::numbers::pi * v);
        accepted = std::abs(x) <= bound;
      }
    }
    values[i] = static_cast<float>(deviation * x);
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

}  // namespace tenon::core
