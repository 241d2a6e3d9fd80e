// Options that every updater has and its plugin does not see: a schedule of the learning rate, clipping, L1 and L2.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/updater.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/attribute.h"
#include "core/program.h"
#include "host/training/schedule/schedule.h"

namespace tenon::host {

using namespace core;

// Applied to the gradient in this order: clip_norm (all gradients of an update are scaled so that their common
// Euclidean norm is at most this), clip_value (each element to +-this), then l1 sign(parameter) + l2 parameter is
// added, times the parameter's decay multiplier. 0: off.
struct UpdaterOptions {
  Schedule schedule;
  double clip_norm = 0, clip_value = 0, l1 = 0, l2 = 0;

  // Moves the options out of `attributes`, which keeps the updater's own. TN_INVALID names the attribute.
  static UpdaterOptions take(Values& attributes);
  // The names of all options, for suggestions.
  static std::vector<std::string> names();

  [[nodiscard]] bool changes_gradient() const { return clip_norm > 0 || clip_value > 0 || l1 > 0 || l2 > 0; }
};

// A scalar in addition to those of tenon/updater.h: the factor of clip_norm, in device memory.
constexpr int32_t kScalarClip = 1000;

// Returns `program` preceded by the options: it reads the changed gradient; and states that are below the smallest
// normal number in size become 0. states: the number of the updater's states.
// The scalars that the options need are appended to the program's inputs and to `scalars`.
[[nodiscard]] Program with_options(const Program& program, const UpdaterOptions& options, size_t states,
                                   std::vector<int32_t>& scalars);

// For clip_norm: the sum of a gradient's squares; and the factor min(1, limit / norm) of many such sums.
[[nodiscard]] Program sum_of_squares();
[[nodiscard]] Program clip_factor(double limit);

}  // namespace tenon::host
