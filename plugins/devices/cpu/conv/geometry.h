// Convolutions as correlations: which elements of a source, [samples, space..., C], each element of a target of the
// same form sums. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/window.h>

#include <array>
#include <cstdint>
#include <vector>

namespace tenon::cpu {

// One dimension of a window.
struct WindowAxis {
  int64_t images, kernel, stride, dilation, before, places;
};
// Returns dimension `axis` of TN_MAX_SPACE; those that the window lacks have size 1 and come first.
[[nodiscard]] WindowAxis window_axis(const tn_window& window, size_t axis);

// One dimension of a phase. Position q in [0, count) is index first + step * q of the target; tap t of it reads index
// start + stride * q + offsets[t] of the source, which is 0 outside of it. Offsets ascend from 0.
struct Axis {
  int64_t source, target;  // sizes
  int64_t first, step, count;
  int64_t start, stride;
  std::vector<int64_t> offsets;
  std::vector<int64_t> taps;  // by tap: its index in the kernel

  // The indices of the source that positions [from, to) read: [low, high).
  [[nodiscard]] int64_t low(int64_t from) const { return start + stride * from; }
  [[nodiscard]] int64_t high(int64_t to) const {
    return start + stride * (to - 1) + (offsets.empty() ? 0 : offsets.back() + 1);
  }
};

// Positions of a target that have the same taps; a convolution has one phase, a transposed one as many as its strides
// have residues.
struct Phase {
  std::array<Axis, TN_MAX_SPACE> axes;
  std::vector<int64_t> taps;  // the kernel's element of each tap, row-major over the axes
};

// Returns the phases of results from images (`transposed`: of images from results). Those without positions are left
// out.
[[nodiscard]] std::vector<Phase> phases_of(const tn_window& window, bool transposed);

}  // namespace tenon::cpu
