// The layout of a convolution: how it is cut into bands, where their taps are, and which memory they need.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/device_images.h>

#include <array>
#include <cstdint>
#include <vector>

#include "conv/geometry.h"
#include "conv/kernels.h"
#include "conv/plane_kernels.h"

namespace tenon::cpu {

inline constexpr int64_t kSumParts = 8;    // of the sums of weights, at most
inline constexpr int64_t kConvTasks = 16;  // that compute bands, each with memory of its own, at most

// A phase, laid out for this convolution.
struct Layout {
  Phase phase;
  std::array<int64_t, TN_MAX_SPACE> width;  // of the source that a band reads, in elements of space
  int64_t band;                             // rows of positions in a band
  int64_t bands;                            // for each position along the first axis
  bool merged;                              // the taps along the last axis are one segment
  int64_t depth;                            // of a segment
  std::vector<int64_t> segments, copied;    // offsets of the taps in the source, and in a copy of it
  std::vector<int64_t> planar;              // if narrow or planes: of the taps' channels, in a copy by planes
  int64_t panels;                           // the first element of its panels; with `each` of its weights by channel

  // Elements of a plane of a band's target: rows of whole vectors.
  [[nodiscard]] int64_t target_plane(int64_t lanes) const { return band * target_line(lanes); }
  [[nodiscard]] int64_t target_line(int64_t lanes) const { return (phase.axes[2].count + lanes - 1) / lanes * lanes; }
  [[nodiscard]] int64_t blocks() const { return phase.axes[0].count * bands; }
  [[nodiscard]] int64_t terms() const { return static_cast<int64_t>(segments.size()) * depth; }
};

// A prepared convolution.
struct ConvPlan {
  tn_conv conv;
  tn_window window;
  const ConvKernels* kernels;
  const PlaneKernels* by_planes;
  std::vector<Layout> layouts;
  int64_t element;                     // bytes
  int64_t source_last, target_last;    // channels of source and target
  int64_t source_space, target_space;  // elements of space of a sample
  bool each;                           // every channel has a filter of its own
  bool narrow;                         // the target has few columns: NarrowBand
  bool planes;                         // of TN_CONV_WEIGHTS: segments are short: PlanesBand
  bool patches;                        // of TN_CONV_IMAGES: a block is a sample, computed by patches (patches.h)
  int64_t panel_width;                 // columns of a panel
  int64_t kernel_size, inner, outer;   // elements of the kernel; channels and filters of a group
  int64_t blocks;                      // of a sample, over all phases
  int64_t together;                    // samples of a block; above 1 only if blocks is 1
  int64_t parts;                       // of the sums of weights at most
  int64_t panel_elements, copy_elements, weights_elements;
  int64_t sample_copy;  // elements of a sample in the copy of a block
  int64_t target_copy;  // if planes: where in the copy of a block the planes of the target begin
  double work;          // multiplications of a sample
};

[[nodiscard]] inline int64_t panels_of(int64_t columns, int64_t width) { return (columns + width - 1) / width; }
// Rounds bytes up to whole cache lines.
[[nodiscard]] inline int64_t lines(int64_t bytes) { return (bytes + 63) / 64 * 64; }
// The distance of neighbours along the three axes of a row-major tensor with these sizes.
[[nodiscard]] inline std::array<int64_t, TN_MAX_SPACE> steps(const std::array<int64_t, TN_MAX_SPACE>& sizes,
                                                             int64_t channels) {
  return {sizes[1] * sizes[2] * channels, sizes[2] * channels, channels};
}

// Whether the convolution has so few multiplications that it is one task.
[[nodiscard]] inline bool is_small(const ConvPlan& plan, int64_t samples) {
  constexpr double kTaskWork = 65536;
  return plan.work * static_cast<double>(samples) <= kTaskWork;
}

// Copies the description of a convolution and lays it out for this processor.
[[nodiscard]] ConvPlan plan_conv(const tn_conv& conv);

}  // namespace tenon::cpu
