// A transposed convolution as patches: each place of the source adds one to the sample's target. Where the target has
// few channels, a line of a patch fills vectors that neither columns nor positions of the target fill.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "conv/blocks.h"

namespace tenon::cpu {

// Whether patches take fewer vectors than the bands of plan.layouts.
[[nodiscard]] bool pays_by_patches(const ConvPlan& plan);

// Elements of a line of a patch in the panels, whole vectors.
[[nodiscard]] int64_t patch_line(const ConvPlan& plan);
// Copies the weights to the panels [lines of the kernel, filters, patch_line].
void pack_patches(const ConvRun& run);

// Computes the target of a sample.
void compute_patches(const ConvRun& run, int64_t sample);

}  // namespace tenon::cpu
