// SPDX-License-Identifier: Apache-2.0
#include "conv/layout.h"

#include <algorithm>
#include <utility>

#include "conv/patches.h"

namespace tenon::cpu {

namespace {

constexpr int64_t kBandBytes = 256 << 10;  // of the source; about half of a second-level cache
constexpr int64_t kPartsBytes = 2 << 20;   // of all parts: in a second-level cache, as a split of a larger gradient is
constexpr int64_t kPositions = 128;        // of a block of several samples, which read the weights once, at most
constexpr int64_t kSlack = 128;            // bytes behind a copy that may be read: two vectors

std::vector<int64_t> segments_of(const Phase& phase, bool merged, const std::array<int64_t, TN_MAX_SPACE>& step) {
  std::vector<int64_t> segments;
  for (const int64_t a : phase.axes[0].offsets)
    for (const int64_t b : phase.axes[1].offsets)
      for (const int64_t c : phase.axes[2].offsets) {
        if (merged && c != 0) continue;
        segments.push_back(a * step[0] + b * step[1] + c * step[2]);
      }
  return segments;
}

// The offsets of the channels of the taps in a copy by planes, [channels, width...].
std::vector<int64_t> planar_of(const Phase& phase, const std::array<int64_t, TN_MAX_SPACE>& width, int64_t channels) {
  const int64_t plane = width[0] * width[1] * width[2];
  std::vector<int64_t> terms;
  for (const int64_t tap : segments_of(phase, false, steps(width, 1)))
    for (int64_t c = 0; c < channels; ++c) terms.push_back(c * plane + tap);
  return terms;
}

Layout layout_of(const ConvPlan& plan, Phase phase) {
  Layout layout = {};
  const auto& axes = phase.axes;
  const auto& last = axes[2].offsets;
  layout.merged = plan.conv.groups == 1 && !last.empty() && last.back() == static_cast<int64_t>(last.size()) - 1;
  layout.depth = plan.each
                     ? plan.source_last
                     : (layout.merged ? static_cast<int64_t>(last.size()) : 1) * plan.source_last / plan.conv.groups;
  const auto extent = [&](size_t i, int64_t positions) { return axes[i].high(positions) - axes[i].low(0); };
  const int64_t line = extent(0, 1) * extent(2, axes[2].count) * plan.source_last * plan.element;
  layout.band = 1;
  while (layout.band < axes[1].count && line * extent(1, layout.band + 1) <= kBandBytes) ++layout.band;
  layout.bands = (axes[1].count + layout.band - 1) / layout.band;
  layout.band = (axes[1].count + layout.bands - 1) / layout.bands;
  layout.bands = (axes[1].count + layout.band - 1) / layout.band;
  layout.width = {extent(0, 1), extent(1, layout.band), extent(2, axes[2].count)};
  layout.segments =
      segments_of(phase, layout.merged, steps({axes[0].source, axes[1].source, axes[2].source}, plan.source_last));
  layout.copied = segments_of(phase, layout.merged, steps(layout.width, plan.source_last));
  if (plan.narrow || plan.planes) layout.planar = planar_of(phase, layout.width, plan.source_last);
  layout.phase = std::move(phase);
  return layout;
}

// Whether the target has so few columns that vectors of positions are fuller than vectors of columns. Positions along a
// row must be neighbours in the source. The choice, which others follow from, is the same on every processor.
bool is_narrow(const ConvPlan& plan, const std::vector<Phase>& phases) {
  if (plan.conv.groups != 1 || plan.target_last * plan.element > 4 * kNarrow) return false;
  return std::all_of(phases.begin(), phases.end(), [](const Phase& phase) {
    return phase.axes[2].stride == 1 && phase.axes[2].count >= kNarrow && !phase.taps.empty();
  });
}

// The share of the lanes of whole vectors that `count` elements fill.
double filled(int64_t count, int64_t lanes) {
  return static_cast<double>(count) / static_cast<double>(panels_of(count, lanes) * lanes);
}

// Whether vectors of positions are so much fuller than vectors of taps, which lie in one segment for each line of the
// kernel, that the copies by planes pay. The sums are a vector for each weight.
bool sums_by_planes(const ConvPlan& plan, const std::vector<Phase>& phases) {
  constexpr double kPays = 1.5;
  constexpr int64_t kMostSums = 64 << 10;  // bytes
  const int64_t lanes = plan.by_planes->lanes;
  if (plan.conv.groups != 1 || phases.size() != 1) return false;
  const Axis& along = phases.front().axes[2];
  if (along.stride != 1 || along.count < kNarrow || phases.front().taps.empty()) return false;
  if (plan.outer * plan.kernel_size * plan.inner * lanes * plan.element > kMostSums) return false;
  const auto segment = static_cast<int64_t>(along.offsets.size()) * plan.inner;
  return filled(along.count, lanes) >= kPays * filled(segment, lanes);
}

// The samples of a block. Several pay where a sample has so few positions that reading the weights for each takes as
// long as multiplying by them.
int64_t samples_together(const ConvPlan& plan) {
  if (plan.blocks != 1 || plan.each || plan.narrow || plan.planes || plan.patches) return 1;
  const auto& axes = plan.layouts.front().phase.axes;
  const int64_t positions = axes[0].count * axes[1].count * axes[2].count;
  const int64_t bytes = plan.sample_copy * plan.element;
  return std::max<int64_t>(1, std::min(kPositions / positions, kBandBytes / std::max<int64_t>(bytes, 1)));
}

}  // namespace

ConvPlan plan_conv(const tn_conv& conv) {
  ConvPlan b = {};
  b.conv = conv;
  b.conv.window = nullptr;  // borrowed
  b.window = *conv.window;
  const tn_window& window = b.window;
  const bool transposed = conv.op == TN_CONV_IMAGES;
  b.element = tn_dtype_bytes(conv.dtype);
  b.kernels = &conv_kernels(detect_isa(), conv.dtype == TN_F64);
  b.by_planes = &plane_kernels(detect_isa(), conv.dtype == TN_F64);
  b.each = conv.groups > 1 && conv.channels == conv.groups && conv.filters == conv.groups;
  b.source_last = transposed ? conv.filters : conv.channels;
  b.target_last = transposed ? conv.channels : conv.filters;
  b.inner = conv.channels / conv.groups;
  b.outer = conv.filters / conv.groups;
  int64_t images = 1, places = 1;
  b.kernel_size = 1;
  for (int32_t i = 0; i < window.rank; ++i) {
    images *= window.images[i];
    places *= tn_window_places(&window, i);
    b.kernel_size *= window.kernel[i];
  }
  b.source_space = transposed ? places : images;
  b.target_space = transposed ? images : places;
  std::vector<Phase> phases = phases_of(window, transposed);
  b.narrow = conv.op != TN_CONV_WEIGHTS && is_narrow(b, phases);
  b.planes = conv.op == TN_CONV_WEIGHTS && sums_by_planes(b, phases);
  b.panel_width = b.narrow ? kNarrow : b.kernels->panel_width;
  for (Phase& phase : phases) b.layouts.push_back(layout_of(b, std::move(phase)));
  const int64_t columns = b.target_last / conv.groups;
  for (Layout& layout : b.layouts) {
    b.blocks += layout.blocks();
    b.sample_copy = std::max(b.sample_copy, layout.width[0] * layout.width[1] * layout.width[2] * b.source_last);
    layout.panels = b.panel_elements;
    if (conv.op == TN_CONV_WEIGHTS) continue;
    b.panel_elements += layout.terms() * (b.each ? 1 : conv.groups * panels_of(columns, b.panel_width) * b.panel_width);
  }
  b.patches = pays_by_patches(b);
  b.together = samples_together(b);
  b.copy_elements = lines(b.together * b.sample_copy * b.element + kSlack) / b.element;
  if (b.planes) {
    b.target_copy = b.copy_elements;
    b.copy_elements += b.outer * b.layouts.front().target_plane(b.by_planes->lanes);
  }
  if (b.patches) {
    b.blocks = 1;
    b.panel_elements = b.source_last * b.kernel_size / window_axis(b.window, 2).kernel * patch_line(b);
  }
  b.work = static_cast<double>(places) * static_cast<double>(b.kernel_size) * static_cast<double>(b.inner) *
           static_cast<double>(conv.filters);
  if (conv.op != TN_CONV_WEIGHTS) return b;
  b.weights_elements = conv.filters * b.kernel_size * b.inner;
  b.parts = std::clamp<int64_t>(kPartsBytes / (b.weights_elements * b.element), 1, kSumParts);
  return b;
}

}  // namespace tenon::cpu
