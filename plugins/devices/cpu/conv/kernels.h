// Kernels of convolutions over a band: some rows of positions of one sample, or of each of several.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "pointwise/kernels.h"

namespace tenon::cpu {

// Positions, samples x rows x columns of them. Position (s, r, q) is at source + s * source_sample + r * source_row +
// q * source_column and target + s * target_sample + r * target_row + q * target_column; all distances are in elements.
// Only the kernels `dense` and `weights` take more than one sample. The taps of a position lie in
// `segments_count` segments of `depth` elements, which begin at its source plus segments[i]. The memory behind them can
// be read up to source_end.
struct Band {
  const void* source;
  const void* source_end;
  void* target;
  int64_t samples, rows, columns;
  int64_t source_sample, source_row, source_column, target_sample, target_row, target_column;
  const int64_t* segments;
  int64_t segments_count, depth;
};

// target [position, width] = sum over taps of source[tap] * panels[tap, width]; or += if `add`. A panel holds, for each
// tap in the order of the segments, panel_width columns; behind column `width` they are 0. `panels` is at the first tap
// of the band in the first panel, and a panel has `terms` taps. The positions are computed in their order, row by row;
// elements of the target below `writable` may be overwritten before they are computed.
struct DenseBand {
  Band band;
  const void* panels;
  int64_t terms;
  int64_t width;
  bool add;
  int64_t writable;
};
// The same where the target has few columns, at most kNarrow. The source is planar: positions of a row are neighbours
// (source_column is 1), and term i of a position is at its source plus segments[i]; depth is 1. A vector holds
// positions: whole vectors are read behind the last one. weights: for each term kNarrow columns.
constexpr int64_t kNarrow = 8;
struct NarrowBand {
  Band band;
  const void* weights;
  int64_t width;
  bool add;
};
// weights [width, segments_count * depth] += sum over positions of target[width] * source[tap]. `row`: elements between
// the rows of the weights.
struct WeightsBand {
  Band band;
  void* weights;
  int64_t row, width;
};
// Each channel by itself: depth is the number of channels, and a segment a tap.
//   target[position, c] = sum over taps of source[tap, c] * weights[tap, c]; or += if `add`
//   weights[tap, c] += sum over positions of target[position, c] * source[tap, c]
struct ChannelBand {
  Band band;
  void* weights;
  bool add;
};

// The functions of an instruction set and type.
struct ConvKernels {
  int64_t panel_width;
  void (*dense)(const DenseBand& work);
  void (*narrow)(const NarrowBand& work);
  void (*weights)(const WeightsBand& work);
  void (*channels)(const ChannelBand& work);
  void (*channel_weights)(const ChannelBand& work);
};
// wide: of float64, else of float32.
[[nodiscard]] const ConvKernels& conv_kernels(Isa isa, bool wide);

}  // namespace tenon::cpu
