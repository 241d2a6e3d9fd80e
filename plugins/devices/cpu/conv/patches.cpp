// SPDX-License-Identifier: Apache-2.0
#include "conv/patches.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "conv/patch_kernels.h"

namespace tenon::cpu {

namespace {

std::array<WindowAxis, TN_MAX_SPACE> axes_of(const ConvPlan& plan) {
  return {window_axis(plan.window, 0), window_axis(plan.window, 1), window_axis(plan.window, 2)};
}

// The places of an axis, [first, last), whose element at `offset` of the kernel lies in the images.
struct Places {
  int64_t first, last;
};
Places places_inside(const WindowAxis& axis, int64_t offset) {
  const auto at_least = [&](int64_t index) {  // the first place at which the element is at `index` or behind
    const int64_t distance = index + axis.before - offset;
    return std::clamp<int64_t>(distance <= 0 ? 0 : (distance + axis.stride - 1) / axis.stride, 0, axis.places);
  };
  return {at_least(0), at_least(axis.images)};
}

}  // namespace

bool pays_by_patches(const ConvPlan& plan) {
  constexpr int64_t kMostBytes = 32 << 10;  // of a sample's target: one task computes it
  constexpr double kPays = 1.25;
  const auto axes = axes_of(plan);
  if (plan.conv.op != TN_CONV_IMAGES || plan.conv.groups != 1 || axes[2].dilation != 1) return false;
  if (plan.target_space * plan.target_last * plan.element > kMostBytes) return false;
  const int64_t lanes = kPlaneBytes / plan.element;  // of the widest vectors: the bits follow from the choice
  double bands = 0;                                  // vectors
  for (const Layout& layout : plan.layouts) {
    const auto& [across, down, along] = layout.phase.axes;
    if (layout.bands > 1) return false;
    const int64_t positions = across.count * down.count;
    const int64_t vectors = plan.narrow ? panels_of(along.count, lanes) * plan.target_last
                                        : along.count * panels_of(plan.target_last, lanes);
    bands +=
        static_cast<double>(positions) * static_cast<double>(vectors) * static_cast<double>(layout.phase.taps.size());
  }
  const double lines = static_cast<double>(plan.source_space) * static_cast<double>(axes[0].kernel * axes[1].kernel);
  return bands > kPays * lines * static_cast<double>(panels_of(axes[2].kernel * plan.target_last, lanes));
}

int64_t patch_line(const ConvPlan& plan) {
  const int64_t lanes = patch_kernels(detect_isa(), plan.conv.dtype == TN_F64).lanes;
  // A clipped line begins behind the first element of its row.
  return (panels_of(window_axis(plan.window, 2).kernel * plan.target_last, lanes) + 1) * lanes;
}

void pack_patches(const ConvRun& run) {
  const ConvPlan& b = *run.binding;
  const int64_t along = window_axis(b.window, 2).kernel, line = patch_line(b), width = along * b.target_last;
  for (int64_t tap = 0; tap < b.kernel_size; tap += along)
    for (int64_t f = 0; f < b.source_last; ++f) {
      uint8_t* const to = run.panels + (tap / along * b.source_last + f) * line * b.element;
      const uint8_t* const from = run.weights + (f * b.kernel_size + tap) * b.target_last * b.element;
      std::memcpy(to, from, static_cast<size_t>(width * b.element));
      std::memset(to + width * b.element, 0, static_cast<size_t>((line - width) * b.element));
    }
}

void compute_patches(const ConvRun& run, int64_t sample) {
  const ConvPlan& b = *run.binding;
  const auto axes = axes_of(b);
  const auto& across = axes[0];
  const auto& down = axes[1];
  const auto& along = axes[2];
  const auto source = steps({across.places, down.places, along.places}, b.source_last);
  const auto target = steps({across.images, down.images, along.images}, b.target_last);
  const uint8_t* const from = run.source + sample * b.source_space * b.source_last * b.element;
  uint8_t* const to = run.target + sample * b.target_space * b.target_last * b.element;
  if (!run.add) std::memset(to, 0, static_cast<size_t>(b.target_space * b.target_last * b.element));
  const PatchKernels& kernels = patch_kernels(detect_isa(), b.conv.dtype == TN_F64);
  const int64_t line = patch_line(b);
  PatchBand band = {};
  band.source_row = source[1];
  band.source_column = source[2];
  band.target_row = down.stride * target[1];
  band.target_column = along.stride * target[2];
  band.weights_row = line;
  band.depth = b.source_last;
  // Places at which a whole line lies in the target; before and behind them lines are clipped, one by one.
  const int64_t whole_first = places_inside(along, 0).first;
  const int64_t whole_last = std::max(whole_first, places_inside(along, along.kernel - 1).last);
  for (int64_t i = 0; i < across.kernel; ++i)
    for (int64_t j = 0; j < down.kernel; ++j) {
      const Places planes = places_inside(across, i * across.dilation), rows = places_inside(down, j * down.dilation);
      const uint8_t* const weights = run.panels + (i * down.kernel + j) * b.source_last * line * b.element;
      band.rows = rows.last - rows.first;
      for (int64_t plane = planes.first; plane < planes.last; ++plane) {
        const int64_t at = (plane * across.stride + i * across.dilation - across.before) * target[0] +
                           (rows.first * down.stride + j * down.dilation - down.before) * target[1];
        const auto add = [&](int64_t place, int64_t count) {
          const int64_t origin = place * along.stride - along.before;  // of the line, along the last axis
          const int64_t begin = std::max<int64_t>(0, -origin), end = std::min(along.kernel, along.images - origin);
          if (begin >= end || count <= 0 || band.rows <= 0) return;
          band.source = from + (plane * source[0] + rows.first * source[1] + place * source[2]) * b.element;
          band.target = to + (at + (origin + begin) * target[2]) * b.element;
          band.weights = weights + begin * b.target_last * b.element;
          band.width = (end - begin) * b.target_last;
          band.columns = count;
          kernels.add(band);
        };
        for (int64_t place = 0; place < whole_first; ++place) add(place, 1);
        add(whole_first, std::min(whole_last, along.places) - whole_first);
        for (int64_t place = whole_last; place < along.places; ++place) add(place, 1);
      }
    }
}

}  // namespace tenon::cpu
