// SPDX-License-Identifier: Apache-2.0
#include "conv/geometry.h"

#include <algorithm>

namespace tenon::cpu {

namespace {

Axis results_axis(const WindowAxis& line) {
  Axis axis = {line.images, line.places, 0, 1, line.places, -line.before, line.stride, {}, {}};
  for (int64_t j = 0; j < line.kernel; ++j) {
    axis.offsets.push_back(j * line.dilation);
    axis.taps.push_back(j);
  }
  return axis;
}

// Of the images whose index leaves `residue` when divided by the stride: element j of the kernel adds to image i the
// result at place p = (i + before - j * dilation) / stride, if that is whole.
Axis images_axis(const WindowAxis& line, int64_t residue) {
  const int64_t count = (line.images - residue + line.stride - 1) / line.stride;
  Axis axis = {line.places, line.images, residue, line.stride, count, 0, 1, {}, {}};
  for (int64_t j = line.kernel; j-- > 0;) {
    const int64_t shifted = residue + line.before - j * line.dilation;
    const int64_t rest = (shifted % line.stride + line.stride) % line.stride;
    if (rest != 0) continue;
    axis.offsets.push_back(shifted / line.stride);
    axis.taps.push_back(j);
  }
  if (axis.offsets.empty()) return axis;
  axis.start = axis.offsets.front();
  for (int64_t& offset : axis.offsets) offset -= axis.start;
  return axis;
}

}  // namespace

WindowAxis window_axis(const tn_window& window, size_t axis) {
  const int32_t i = static_cast<int32_t>(axis) - (TN_MAX_SPACE - window.rank);
  if (i < 0) return {1, 1, 1, 1, 0, 1};
  return {window.images[i],   window.kernel[i], window.stride[i],
          window.dilation[i], window.before[i], tn_window_places(&window, i)};
}

std::vector<Phase> phases_of(const tn_window& window, bool transposed) {
  std::array<std::vector<Axis>, TN_MAX_SPACE> axes;
  std::array<int64_t, TN_MAX_SPACE> kernel = {};
  for (size_t i = 0; i < TN_MAX_SPACE; ++i) {
    const WindowAxis line = window_axis(window, i);
    kernel[i] = line.kernel;
    if (!transposed) {
      axes[i].push_back(results_axis(line));
      continue;
    }
    for (int64_t residue = 0; residue < std::min(line.stride, line.images); ++residue)
      axes[i].push_back(images_axis(line, residue));
  }
  std::vector<Phase> phases;
  for (const Axis& a : axes[0])
    for (const Axis& b : axes[1])
      for (const Axis& c : axes[2]) {
        if (a.count * b.count * c.count == 0) continue;
        Phase phase = {{a, b, c}, {}};
        for (const int64_t x : a.taps)
          for (const int64_t y : b.taps)
            for (const int64_t z : c.taps) phase.taps.push_back((x * kernel[1] + y) * kernel[2] + z);
        phases.push_back(std::move(phase));
      }
  return phases;
}

}  // namespace tenon::cpu
