// SPDX-License-Identifier: Apache-2.0
#include "conv/blocks.h"

#include <tenon/plugin.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "conv/patches.h"

namespace tenon::cpu {

tn_status check_conv(const tn_errors* errors, const tn_conv& conv) {
  if (conv.dtype != TN_F32 && conv.dtype != TN_F64)
    return tn_fail(errors, TN_UNSUPPORTED, "dtype", "the cpu convolves float32 and float64 only");
  if (conv.op < TN_CONV_RESULTS || conv.op > TN_CONV_WEIGHTS)
    return tn_fail(errors, TN_UNSUPPORTED, "op", "the cpu does not offer this form of a convolution");
  return TN_OK;
}

tn_status start_run(const ConvPlan& plan, const tn_execution& execution, const tn_call& call, ConvRun* run) {
  const tn_errors* const errors = execution.errors;
  if (call.inputs[0] == nullptr || call.inputs[1] == nullptr)
    return tn_fail(errors, TN_MISUSE, nullptr, "a convolution needs two inputs and one output");
  if (call.outputs[0] == nullptr) return tn_fail(errors, TN_MISUSE, "outputs", "a convolution without its output");
  const bool sums = plan.conv.op == TN_CONV_WEIGHTS;
  run->binding = &plan;
  run->source = tn_data(call.inputs[0]);
  run->target = tn_data(sums ? call.inputs[1] : call.outputs[0]);
  run->weights = tn_data(sums ? call.outputs[0] : call.inputs[1]);
  run->add = call.requests[0] == TN_REQUEST_ADD;
  run->samples = tn_dim_value(&plan.conv.samples, execution.symbols);
  if (run->samples >= 0) return TN_OK;
  return tn_fail(errors, TN_MISUSE, nullptr, "a convolution of a negative number of samples");
}

int64_t blocks_of(const ConvRun& run) {
  const ConvPlan& b = *run.binding;
  return (run.samples + b.together - 1) / b.together * b.blocks;
}

ConvBlock block_at(const ConvRun& run, int64_t index) {
  const ConvPlan& binding = *run.binding;
  ConvBlock block = {};
  block.sample = index / binding.blocks * binding.together;
  block.samples = std::min(binding.together, run.samples - block.sample);
  int64_t rest = index % binding.blocks;
  const Layout* layout = binding.layouts.data();
  while (rest >= layout->blocks()) rest -= layout++->blocks();
  block.layout = layout;
  block.plane = rest / layout->bands;
  block.first = rest % layout->bands * layout->band;
  block.last = std::min(block.first + layout->band, layout->phase.axes[1].count);
  return block;
}

namespace {

// The rows of the source that a block reads, each `width` elements of space; of those [begin, end) lie in the source.
struct SourceRows {
  const ConvBlock& block;
  const std::array<Axis, TN_MAX_SPACE>& axes;
  int64_t width, begin, end;

  explicit SourceRows(const ConvBlock& of) : block(of), axes(of.layout->phase.axes), width(of.layout->width[2]) {
    const int64_t left = axes[2].low(0);
    begin = std::clamp<int64_t>(-left, 0, width);
    end = std::clamp<int64_t>(axes[2].source - left, begin, width);
  }

  // Calls work(first element of the row in a copy, element `begin` of it in the source), with -1 for a row that lies
  // outside of the source.
  template <class Work>
  void each(Work work) const {
    const int64_t top = axes[1].low(block.first), bottom = axes[1].high(block.last);
    for (int64_t d = 0; d < block.layout->width[0]; ++d) {
      const int64_t plane = axes[0].low(block.plane) + d;
      for (int64_t h = top; h < bottom; ++h) {
        const bool inside = plane >= 0 && plane < axes[0].source && h >= 0 && h < axes[1].source;
        work((d * block.layout->width[1] + h - top) * width,
             inside ? (plane * axes[1].source + h) * axes[2].source + axes[2].low(0) + begin : -1);
      }
    }
  }
};

// Copies what the block reads of the source, zeros where it reaches over the edges.
void copy_source(const ConvRun& run, const ConvBlock& block, const uint8_t* sample, uint8_t* copy) {
  const SourceRows rows(block);
  const int64_t bytes = run.binding->source_last * run.binding->element;
  rows.each([&](int64_t at, int64_t from) {
    uint8_t* const to = copy + at * bytes;
    const int64_t begin = from < 0 ? rows.width : rows.begin, end = from < 0 ? rows.width : rows.end;
    std::memset(to, 0, static_cast<size_t>(begin * bytes));
    if (begin < end) std::memcpy(to + begin * bytes, sample + from * bytes, static_cast<size_t>((end - begin) * bytes));
    std::memset(to + end * bytes, 0, static_cast<size_t>((rows.width - end) * bytes));
  });
}

// The positions of a block in the target.
Band targets_of(const ConvRun& run, const ConvBlock& block) {
  const ConvPlan& b = *run.binding;
  const auto& axes = block.layout->phase.axes;
  const auto step = steps({axes[0].target, axes[1].target, axes[2].target}, b.target_last);
  const auto at = [&](size_t i, int64_t position) { return (axes[i].first + axes[i].step * position) * step[i]; };
  Band band = {};
  band.target =
      run.target +
      (block.sample * b.target_space * b.target_last + at(0, block.plane) + at(1, block.first) + at(2, 0)) * b.element;
  band.samples = block.samples;
  band.rows = block.last - block.first;
  band.columns = axes[2].count;
  band.target_sample = b.target_space * b.target_last;
  band.target_row = axes[1].step * step[1];
  band.target_column = axes[2].step * step[2];
  return band;
}

}  // namespace

Band band_of(const ConvRun& run, const ConvBlock& block, uint8_t* copy) {
  const ConvPlan& b = *run.binding;
  const Layout& layout = *block.layout;
  const auto& axes = layout.phase.axes;
  const uint8_t* const sample = run.source + block.sample * b.source_space * b.source_last * b.element;
  const bool inside = axes[0].low(block.plane) >= 0 && axes[0].high(block.plane + 1) <= axes[0].source &&
                      axes[1].low(block.first) >= 0 && axes[1].high(block.last) <= axes[1].source &&
                      axes[2].low(0) >= 0 && axes[2].high(axes[2].count) <= axes[2].source;
  const auto whole = steps({axes[0].source, axes[1].source, axes[2].source}, b.source_last);
  const auto step = inside ? whole : steps(layout.width, b.source_last);
  Band band = targets_of(run, block);
  if (inside) {
    const int64_t at =
        axes[0].low(block.plane) * whole[0] + axes[1].low(block.first) * whole[1] + axes[2].low(0) * whole[2];
    band.source = sample + at * b.element;
    band.source_end = run.source + run.samples * b.source_space * b.source_last * b.element;
    band.source_sample = b.source_space * b.source_last;
  } else {
    band.source_sample = b.sample_copy;
    for (int64_t s = 0; s < block.samples; ++s)
      copy_source(run, block, sample + s * b.source_space * b.source_last * b.element,
                  copy + s * b.sample_copy * b.element);
    band.source = copy;
    band.source_end = copy + b.copy_elements * b.element;
  }
  band.source_row = axes[1].stride * step[1];
  band.source_column = axes[2].stride * step[2];
  band.segments = inside ? layout.segments.data() : layout.copied.data();
  band.segments_count = static_cast<int64_t>(layout.segments.size());
  band.depth = layout.depth;
  return band;
}

namespace {

// Rows [begin, end) of the positions of a block, at which the taps [first, last) along the second axis read the source.
struct Rows {
  int64_t begin, end, first, last;
};

// Calls work(rows) for all rows of a block, in their order. Taps above and below the source, which would add products
// with 0, are left out where the taps of the others follow each other: where there is one tap along the first axis.
template <class Work>
void each_rows(const ConvBlock& block, Work work) {
  const auto& [across, down, along] = block.layout->phase.axes;
  const int64_t rows = block.last - block.first;
  if (across.offsets.size() != 1) return work(Rows{0, rows, 0, static_cast<int64_t>(down.offsets.size())});
  const auto run_at = [&, &axis = down](int64_t row) {
    const int64_t low = axis.low(block.first + row);
    const auto below = [&](int64_t index) {
      return std::lower_bound(axis.offsets.begin(), axis.offsets.end(), index - low) - axis.offsets.begin();
    };
    return Rows{row, row + 1, below(0), below(axis.source)};
  };
  for (Rows run = run_at(0); run.begin < rows;) {
    Rows next = {};
    for (; run.end < rows; ++run.end) {
      next = run_at(run.end);
      if (next.first != run.first || next.last != run.last) break;
    }
    work(run);
    if (run.end == rows) return;
    run = next;
  }
}

// The same the other way round: calls work(rows) for all taps along the second axis, with the rows at which they read
// the source.
template <class Work>
void each_tap(const ConvBlock& block, Work work) {
  const auto& [across, down, along] = block.layout->phase.axes;
  const int64_t rows = block.last - block.first;
  const auto taps = static_cast<int64_t>(down.offsets.size());
  if (across.offsets.size() != 1) return work(Rows{0, rows, 0, taps});
  const auto rows_of = [&, &axis = down](int64_t tap) {
    Rows read = {0, rows, tap, tap + 1};
    const auto reads = [&](int64_t row) {
      const int64_t at = axis.low(block.first + row) + axis.offsets[static_cast<size_t>(tap)];
      return at >= 0 && at < axis.source;
    };
    while (read.begin < read.end && !reads(read.begin)) ++read.begin;
    while (read.begin < read.end && !reads(read.end - 1)) --read.end;
    return read;
  };
  for (int64_t tap = 0; tap < taps;) {
    Rows read = rows_of(tap);
    for (; read.last < taps; ++read.last) {
      const Rows next = rows_of(read.last);
      if (next.begin != read.begin || next.end != read.end) break;
    }
    work(read);
    tap = read.last;
  }
}

// Returns the part of the band of a block that has these rows. per_tap: segments of a tap along the second axis.
Band part_of(const Band& band, const Rows& rows, int64_t per_tap, int64_t element) {
  Band part = band;
  part.source = static_cast<const uint8_t*>(band.source) + rows.begin * band.source_row * element;
  part.target = static_cast<uint8_t*>(band.target) + rows.begin * band.target_row * element;
  part.rows = rows.end - rows.begin;
  part.segments = band.segments + rows.first * per_tap;
  part.segments_count = (rows.last - rows.first) * per_tap;
  return part;
}

// Segments of a tap along the second axis.
int64_t per_tap(const Layout& layout, const std::vector<int64_t>& segments) {
  const std::vector<int64_t>& taps = layout.phase.axes[1].offsets;
  return taps.empty() ? 0 : static_cast<int64_t>(segments.size() / taps.size());
}

// Copies what the block reads of the source by planes, [channels, width...], with 0 where it reaches over the edges and
// in the rest of the memory up to `end`.
template <class T>
void copy_planes(const ConvRun& run, const ConvBlock& block, const T* sample, T* copy, T* end) {
  const SourceRows rows(block);
  const auto& width = block.layout->width;
  const int64_t plane = width[0] * width[1] * width[2], channels = run.binding->source_last;
  std::fill(copy, end, T{0});
  rows.each([&](int64_t at, int64_t from) {
    if (from < 0) return;
    const T* const read = sample + from * channels;
    T* const to = copy + at + rows.begin;
    const int64_t count = rows.end - rows.begin;
    if (channels == 1) {
      std::copy_n(read, count, to);
      return;
    }
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t w = 0; w < count; ++w) to[c * plane + w] = read[w * channels + c];
  });
}

// The positions of a block, with a copy of its source by planes; terms are the segments.
Band planes_of(const ConvRun& run, const ConvBlock& block, uint8_t* copy) {
  const ConvPlan& b = *run.binding;
  const Layout& layout = *block.layout;
  const uint8_t* const sample = run.source + block.sample * b.source_space * b.source_last * b.element;
  uint8_t* const end = copy + (b.planes ? b.target_copy : b.copy_elements) * b.element;
  if (b.conv.dtype == TN_F64) {
    copy_planes(run, block, reinterpret_cast<const double*>(sample), reinterpret_cast<double*>(copy),
                reinterpret_cast<double*>(end));
  } else {
    copy_planes(run, block, reinterpret_cast<const float*>(sample), reinterpret_cast<float*>(copy),
                reinterpret_cast<float*>(end));
  }
  Band band = targets_of(run, block);
  band.source = copy;
  band.source_end = end;
  band.source_row = layout.phase.axes[1].stride * layout.width[2];
  band.source_column = 1;
  band.segments = layout.planar.data();
  band.segments_count = static_cast<int64_t>(layout.planar.size());
  band.depth = 1;
  return band;
}

void compute_narrow(const ConvRun& run, const ConvBlock& block, uint8_t* copy) {
  const ConvPlan& b = *run.binding;
  const Layout& layout = *block.layout;
  const Band band = planes_of(run, block, copy);
  const int64_t terms = per_tap(layout, layout.planar);
  each_rows(block, [&](const Rows& rows) {
    const int64_t weights = layout.panels + rows.first * terms * kNarrow;
    b.kernels->narrow(
        {part_of(band, rows, terms, b.element), run.panels + weights * b.element, b.target_last, run.add});
  });
}

}  // namespace

void compute_block(const ConvRun& run, const ConvBlock& block, uint8_t* copy) {
  const ConvPlan& b = *run.binding;
  if (b.patches) return compute_patches(run, block.sample);
  if (b.narrow) return compute_narrow(run, block, copy);
  const Layout& layout = *block.layout;
  const Band whole = band_of(run, block, copy);
  uint8_t* const panels = run.panels + layout.panels * b.element;
  if (b.each) return b.kernels->channels({whole, panels, run.add});
  // A panel that holds whole positions, which follow each other, may be stored in whole vectors.
  const bool flows = whole.samples == 1 && b.target_last <= b.panel_width && b.conv.groups == 1 && !run.add &&
                     whole.target_column == b.target_last && whole.target_row == whole.columns * b.target_last;
  const int64_t writable = flows ? whole.rows * whole.columns * b.target_last : 0;
  // The columns of the target are those of the filters, or of the channels, of a group.
  const int64_t width = b.target_last / b.conv.groups, depth = b.source_last / b.conv.groups;
  const int64_t group = panels_of(width, b.panel_width) * b.panel_width * layout.terms();
  const int64_t segments = per_tap(layout, layout.segments);
  for (int64_t g = 0; g < b.conv.groups; ++g) {
    Band band = whole;
    band.source = static_cast<const uint8_t*>(whole.source) + g * depth * b.element;
    band.target = static_cast<uint8_t*>(whole.target) + g * width * b.element;
    each_rows(block, [&](const Rows& rows) {
      const int64_t skipped = g * group + rows.first * segments * layout.depth * b.panel_width;
      const int64_t before = rows.begin * band.columns * b.target_last;
      b.kernels->dense({part_of(band, rows, segments, b.element), panels + skipped * b.element, layout.terms(), width,
                        run.add, std::max<int64_t>(0, writable - before)});
    });
  }
}

namespace {

// Copies columns [first, last) of the target of a block by planes, [columns, rows, whole vectors], and returns the
// band over the copy.
template <class T>
Band copy_target(const ConvPlan& plan, const Layout& layout, Band band, T* copy, int64_t first, int64_t last) {
  const int64_t line = layout.target_line(plan.by_planes->lanes), plane = layout.target_plane(plan.by_planes->lanes);
  for (int64_t row = 0; row < band.rows; ++row) {
    const T* const from = static_cast<const T*>(band.target) + row * band.target_row;
    for (int64_t c = first; c < last; ++c) {
      T* const to = copy + (c - first) * plane + row * line;
      for (int64_t w = 0; w < band.columns; ++w) to[w] = from[w * band.target_column + c];
      std::fill(to + band.columns, to + line, T{0});
    }
  }
  band.target = copy;
  band.target_row = line;
  band.target_column = 1;
  return band;
}

void sum_planes(const ConvRun& run, const ConvBlock& block, uint8_t* copy, uint8_t* sums, int64_t first, int64_t last) {
  const ConvPlan& b = *run.binding;
  const Layout& layout = *block.layout;
  const Band source = planes_of(run, block, copy);
  uint8_t* const target = copy + b.target_copy * b.element;
  const Band band = b.conv.dtype == TN_F64
                        ? copy_target(b, layout, source, reinterpret_cast<double*>(target), first, last)
                        : copy_target(b, layout, source, reinterpret_cast<float*>(target), first, last);
  const int64_t lanes = b.by_planes->lanes, filter = b.kernel_size * b.inner, terms = per_tap(layout, layout.planar);
  each_tap(block, [&](const Rows& rows) {
    uint8_t* const at = sums + (first * filter + rows.first * terms) * lanes * b.element;
    b.by_planes->add({part_of(band, rows, terms, b.element), layout.target_plane(lanes), at, filter, last - first});
  });
}

}  // namespace

void sum_block(const ConvRun& run, const ConvBlock& block, uint8_t* copy, uint8_t* sums, int64_t first, int64_t last) {
  const ConvPlan& b = *run.binding;
  if (b.planes) return sum_planes(run, block, copy, sums, first, last);
  const Band whole = band_of(run, block, copy);
  if (b.each) return b.kernels->channel_weights({whole, sums, true});
  const int64_t filter = b.kernel_size * b.inner, segments = per_tap(*block.layout, block.layout->segments);
  for (int64_t g = 0; g < b.conv.groups; ++g) {
    Band band = whole;
    band.source = static_cast<const uint8_t*>(whole.source) + g * b.inner * b.element;
    band.target = static_cast<uint8_t*>(whole.target) + (g * b.outer + first) * b.element;
    each_tap(block, [&](const Rows& rows) {
      const int64_t at = (g * b.outer + first) * filter + rows.first * segments * band.depth;
      b.kernels->weights({part_of(band, rows, segments, b.element), sums + at * b.element, filter, last - first});
    });
  }
}

namespace {

// The number of positions of an axis whose elements of the target are below `index`.
int64_t positions_below(const Axis& axis, int64_t index) {
  return std::clamp<int64_t>((index - axis.first + axis.step - 1) / axis.step, 0, axis.count);
}

}  // namespace

void compute_lines(const ConvRun& run, int64_t first, int64_t last, uint8_t* copy) {
  const ConvPlan& b = *run.binding;
  const auto& axes = b.layouts.front().phase.axes;
  const int64_t planes = axes[0].target, height = axes[1].target;
  if (b.patches) {  // lines of whole samples
    for (int64_t sample = first / height / planes; sample < last / height / planes; ++sample)
      compute_patches(run, sample);
    return;
  }
  while (first < last) {
    const int64_t sample = first / height / planes, plane = first / height % planes, top = first % height;
    if (b.together > 1 && plane == 0 && top == 0 && last - first >= planes * height) {
      const int64_t samples = std::min(b.together, (last - first) / height / planes);
      compute_block(run, {&b.layouts.front(), sample, samples, 0, 0, height}, copy);
      first += samples * planes * height;
      continue;
    }
    const int64_t bottom = std::min(height, top + last - first);
    first += bottom - top;
    for (const Layout& layout : b.layouts) {
      const Axis& across = layout.phase.axes[0];
      const int64_t position = positions_below(across, plane);
      if (positions_below(across, plane + 1) == position) continue;
      const Axis& down = layout.phase.axes[1];
      const int64_t end = positions_below(down, bottom);
      for (int64_t row = positions_below(down, top); row < end; row += layout.band)
        compute_block(run, {&layout, sample, 1, position, row, std::min(row + layout.band, end)}, copy);
    }
  }
}

namespace {

// Copies the weights of panel `index` of a layout, counted over the groups.
template <class T>
void pack_panel(const ConvRun& run, const Layout& layout, int64_t index) {
  const ConvPlan& b = *run.binding;
  const bool images = b.conv.op == TN_CONV_IMAGES;
  const int64_t kernel_width = b.panel_width;
  const int64_t width = b.target_last / b.conv.groups, depth = b.source_last / b.conv.groups;
  const int64_t panels = panels_of(width, kernel_width);
  const int64_t group = index / panels, column = index % panels * kernel_width;
  const int64_t columns = std::min(kernel_width, width - column);
  // weights [filters, kernel, inner]: the terms of a tap are channels, or filters of images.
  const int64_t filter = b.kernel_size * b.inner;
  const int64_t by_term = images ? filter : 1, by_column = images ? 1 : filter;
  const T* const from = reinterpret_cast<const T*>(run.weights) + group * b.outer * filter + column * by_column;
  T* to = reinterpret_cast<T*>(run.panels) + layout.panels + index * kernel_width * layout.terms();
  for (const int64_t tap : layout.phase.taps)
    for (int64_t l = 0; l < depth; ++l, to += kernel_width) {
      const T* const at = from + tap * b.inner + l * by_term;
      for (int64_t j = 0; j < columns; ++j) to[j] = at[j * by_column];
      std::fill(to + columns, to + kernel_width, T{0});
    }
}

// The weights [channels, kernel, 1] as [tap, channels].
template <class T>
void pack_channels(const ConvRun& run, const Layout& layout) {
  const ConvPlan& b = *run.binding;
  T* to = reinterpret_cast<T*>(run.panels) + layout.panels;
  for (const int64_t tap : layout.phase.taps)
    for (int64_t c = 0; c < b.source_last; ++c)
      *to++ = reinterpret_cast<const T*>(run.weights)[c * b.kernel_size + tap];
}

}  // namespace

int64_t pieces_of(const ConvPlan& plan) {
  const auto layouts = static_cast<int64_t>(plan.layouts.size());
  if (plan.patches) return 1;
  if (plan.each) return layouts;
  return layouts * plan.conv.groups * panels_of(plan.target_last / plan.conv.groups, plan.panel_width);
}

void pack_weights(const ConvRun& run, int64_t piece) {
  const ConvPlan& b = *run.binding;
  if (b.patches) return pack_patches(run);
  const int64_t share = pieces_of(b) / static_cast<int64_t>(b.layouts.size());
  const Layout& layout = b.layouts[static_cast<size_t>(piece / share)];
  const bool wide = b.conv.dtype == TN_F64;
  if (b.each) return wide ? pack_channels<double>(run, layout) : pack_channels<float>(run, layout);
  return wide ? pack_panel<double>(run, layout, piece % share) : pack_panel<float>(run, layout, piece % share);
}

void pack_weights(const ConvRun& run, const tn_parallel& parallel) {
  const int64_t pieces = pieces_of(*run.binding);
  const auto pack = [](void* argument, int64_t piece, int32_t) {
    pack_weights(*static_cast<const ConvRun*>(argument), piece);
  };
  ConvRun shared = run;
  if (pieces > 1 && !is_small(*run.binding, run.samples))
    return parallel.for_each(parallel.self, pieces, pack, &shared);
  for (int64_t i = 0; i < pieces; ++i) pack(&shared, i, 0);
}

}  // namespace tenon::cpu
