// Computes the blocks of a convolution, bands of positions of one sample or a few small samples, after its weights were
// copied to panels. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/device.h>

#include <cstdint>

#include "conv/layout.h"

namespace tenon::cpu {

// Where a run finds its memory.
struct ConvRun {
  const ConvPlan* binding;
  const uint8_t* source;
  uint8_t* target;   // of TN_CONV_WEIGHTS the results, which are only read
  uint8_t* weights;  // of TN_CONV_WEIGHTS the output
  uint8_t* panels;   // copies of the weights
  bool add;
  int64_t samples;
};

// Reports element types and operations that the cpu does not offer.
[[nodiscard]] tn_status check_conv(const tn_errors* errors, const tn_conv& conv);
// Fills *run for the current number of samples, without panels. The operands are those of the operation, and more.
// Reports a missing operand and a negative number.
[[nodiscard]] tn_status start_run(const ConvPlan& plan, const tn_execution& execution, const tn_call& call,
                                  ConvRun* run);

struct ConvBlock {
  const Layout* layout;
  int64_t sample, samples;     // the first and their number: up to ConvPlan::together
  int64_t plane, first, last;  // positions: `plane` along axis 0, [first, last) along axis 1
};

[[nodiscard]] int64_t blocks_of(const ConvRun& run);
// Returns block `index`, counted by samples, then layouts.
[[nodiscard]] ConvBlock block_at(const ConvRun& run, int64_t index);
// Returns the positions of a block, its source in place or copied to `copy`, which has room for
// ConvPlan::copy_elements.
[[nodiscard]] Band band_of(const ConvRun& run, const ConvBlock& block, uint8_t* copy);
void compute_block(const ConvRun& run, const ConvBlock& block, uint8_t* copy);
// Adds what a block has of the gradient of filters [first, last) of each group to sums: [filters, taps]; if
// ConvPlan::planes a vector for each, which ConvKernels::fold sums.
void sum_block(const ConvRun& run, const ConvBlock& block, uint8_t* copy, uint8_t* sums, int64_t first, int64_t last);
// Computes lines [first, last) of the target: rows of its last dimension in space, counted over samples, planes and
// their lines. They have the bits that blocks give them.
void compute_lines(const ConvRun& run, int64_t first, int64_t last, uint8_t* copy);

// The weights are copied in so many pieces.
[[nodiscard]] int64_t pieces_of(const ConvPlan& plan);
void pack_weights(const ConvRun& run, int64_t piece);
// Copies all pieces, in parallel if they are worth it.
void pack_weights(const ConvRun& run, const tn_parallel& parallel);

}  // namespace tenon::cpu
