// The initializers that the host has in addition to those of tenon/layer.h, whose kinds plugins cannot state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/layer.h>

#include <cstdint>
#include <vector>

#include "core/philox.h"

namespace tenon::core {

// Kinds of a tn_initializer.
constexpr int32_t kInitTruncatedNormal = 1000;  // a: standard deviation, b: bound
constexpr int32_t kInitOrthogonal = 1001;       // a: factor

// Elements of a parameter of `whole` elements.
struct Elements {
  uint64_t first, count, whole;
};

// Draws from the normal distribution around 0 under the condition that no value is further from 0 than `bound` > 0
// standard deviations, `deviation` being that without the condition. Value i depends on `philox`, elements.whole and i
// alone.
void draw_truncated_normal(double deviation, double bound, const Philox& philox, const Elements& elements,
                           float* values);

// Replaces standard normal numbers by `gain` times a matrix whose rows or, if it has more rows than columns, columns
// are orthonormal: A. Saxe et al., "Exact solutions to the nonlinear dynamics of learning in deep linear networks",
// 2014. The rows are the first of at least two dimensions, none of which is 0, and the columns all others.
void orthogonalize(double gain, const std::vector<int64_t>& shape, float* values);

// Draws first values of a parameter of this shape, values: [elements.count]; with kInitOrthogonal all of them. They
// depend on the initializer, `philox`, the shape and the places of the elements alone.
void draw_first_values(const tn_initializer& initializer, const Philox& philox, const std::vector<int64_t>& shape,
                       const Elements& elements, float* values);

}  // namespace tenon::core
