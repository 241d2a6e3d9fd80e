// What every updater has without its plugin knowing: a schedule of the learning rate, clipping, L1 and L2.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/updater.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/attribute.h"
#include "core/program.h"

namespace tenon {

// The learning rate's factor by the number of the step. With w = warm_up, t the step from 1 on, u = max(t - w, 0) and
// v = min(u / steps, 1), the factor is t / w for t <= w, and then
//   constant     1
//   step         rate ^ floor(u / steps)
//   exponential  rate ^ (u / steps)
//   polynomial   end + (1 - end) (1 - v) ^ power
//   cosine       end + (1 - end) (1 + cos(pi v)) / 2     (Loshchilov and Hutter, "SGDR", 2017, equation 5)
struct Schedule {
  enum class Kind { kConstant, kStep, kExponential, kPolynomial, kCosine };
  Kind kind = Kind::kConstant;
  double steps = 0, rate = 0, power = 1, end = 0, warm_up = 0;

  [[nodiscard]] double factor(uint64_t step) const;
};

// Applied to the gradient in this order: clip_norm (all gradients of an update are scaled so that their common
// Euclidean norm is at most this), clip_value (each element to +-this), then l1 sign(parameter) + l2 parameter is
// added, times the parameter's decay multiplier. 0: not at all.
struct UpdaterOptions {
  Schedule schedule;
  double clip_norm = 0, clip_value = 0, l1 = 0, l2 = 0;

  // Takes the options out of `attributes`, leaving the updater's own. TN_INVALID names the attribute.
  static UpdaterOptions take(Values& attributes);
  // The names of all options, for suggestions.
  static std::vector<std::string> names();

  [[nodiscard]] bool changes_gradient() const { return clip_norm > 0 || clip_value > 0 || l1 > 0 || l2 > 0; }
};

// A scalar beside those of tenon/updater.h: the factor that clip_norm gives, in device memory.
constexpr int32_t kScalarClip = 1000;

// `program` with the options before it: it reads the changed gradient. Scalars that are needed are appended to both.
[[nodiscard]] Program with_options(const Program& program, const UpdaterOptions& options, size_t slots,
                                   std::vector<int32_t>& scalars);

// For clip_norm: the sum of a gradient's squares; and the factor min(1, limit / norm) of many such sums.
[[nodiscard]] Program sum_of_squares();
[[nodiscard]] Program clip_factor(double limit);

}  // namespace tenon
