// "tenon.conv/1": convolutions without a copy of their patches. The weights are copied to panels once for each call. A
// block is a band of positions of one sample; what it reads of the source is copied between zeros if it reaches over
// the edges. The blocks, and the order of the sums, follow from the shape of a sample; a fixed number of tasks takes
// them. The gradients of weights are summed in a fixed number of parts, and these in their order.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <memory>
#include <vector>

#include "conv/kernels.h"
#include "conv/layout.h"
#include "primitives.h"

namespace tenon::cpu {

namespace {

constexpr int64_t kTasks = 16;       // that compute bands, each with memory of its own
constexpr double kTaskWork = 65536;  // fewer multiplications than this are one task

// Where a run finds its memory.
struct Run {
  const ConvPlan* binding;
  const uint8_t* source;
  uint8_t* target;   // of TN_CONV_WEIGHTS the results, which are only read
  uint8_t* weights;  // of TN_CONV_WEIGHTS the output
  uint8_t* panels;   // copies of the weights
  uint8_t* copies;   // of the source, by task
  uint8_t* partial;  // [parts, weights]
  bool add;
  int64_t samples, tasks;
  int64_t parts, splits;  // of the sums of weights, and of the filters of each
};

// A block: a band of positions of one sample.
struct Block {
  const Layout* layout;
  int64_t sample, plane, first, last;  // positions: `plane` along axis 0, [first, last) along axis 1
};

Block block_at(const ConvPlan& binding, int64_t index) {
  Block block = {};
  block.sample = index / binding.blocks;
  int64_t rest = index % binding.blocks;
  const Layout* layout = binding.layouts.data();
  while (rest >= layout->blocks()) rest -= layout++->blocks();
  block.layout = layout;
  block.plane = rest / layout->bands;
  block.first = rest % layout->bands * layout->band;
  block.last = std::min(block.first + layout->band, layout->phase.axes[1].count);
  return block;
}

// The rows of the source that a block reads, each `width` elements of space; of those [begin, end) lie in the source.
struct SourceRows {
  const Block& block;
  const std::array<Axis, TN_MAX_SPACE>& axes;
  int64_t width, begin, end;

  explicit SourceRows(const Block& of) : block(of), axes(of.layout->phase.axes), width(of.layout->width[2]) {
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
void copy_source(const Run& run, const Block& block, const uint8_t* sample, uint8_t* copy) {
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
Band targets_of(const Run& run, const Block& block) {
  const ConvPlan& b = *run.binding;
  const auto& axes = block.layout->phase.axes;
  const auto step = steps({axes[0].target, axes[1].target, axes[2].target}, b.target_last);
  const auto at = [&](size_t i, int64_t position) { return (axes[i].first + axes[i].step * position) * step[i]; };
  Band band = {};
  band.target =
      run.target +
      (block.sample * b.target_space * b.target_last + at(0, block.plane) + at(1, block.first) + at(2, 0)) * b.element;
  band.rows = block.last - block.first;
  band.columns = axes[2].count;
  band.target_row = axes[1].step * step[1];
  band.target_column = axes[2].step * step[2];
  return band;
}

// Returns the positions of a block, its source in place or copied to `copy`.
Band band_of(const Run& run, const Block& block, uint8_t* copy) {
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
  } else {
    copy_source(run, block, sample, copy);
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

// Copies what the block reads of the source by planes, [channels, width...].
template <class T>
void copy_planes(const Run& run, const Block& block, const T* sample, T* copy) {
  const SourceRows rows(block);
  const auto& width = block.layout->width;
  const int64_t plane = width[0] * width[1] * width[2], channels = run.binding->source_last;
  rows.each([&](int64_t at, int64_t from) {
    const int64_t begin = from < 0 ? rows.width : rows.begin, end = from < 0 ? rows.width : rows.end;
    for (int64_t c = 0; c < channels; ++c) {
      T* const to = copy + c * plane + at;
      std::fill_n(to, begin, T{0});
      const T* read = sample + from * channels + c;
      for (int64_t w = begin; w < end; ++w, read += channels) to[w] = *read;
      std::fill_n(to + end, rows.width - end, T{0});
    }
  });
}

void compute_narrow(const Run& run, const Block& block, uint8_t* copy) {
  const ConvPlan& b = *run.binding;
  const Layout& layout = *block.layout;
  const uint8_t* const sample = run.source + block.sample * b.source_space * b.source_last * b.element;
  if (b.conv.dtype == TN_F64) {
    copy_planes(run, block, reinterpret_cast<const double*>(sample), reinterpret_cast<double*>(copy));
  } else {
    copy_planes(run, block, reinterpret_cast<const float*>(sample), reinterpret_cast<float*>(copy));
  }
  Band band = targets_of(run, block);
  band.source = copy;
  band.source_end = copy + b.copy_elements * b.element;
  band.source_row = layout.phase.axes[1].stride * layout.width[2];
  band.source_column = 1;
  band.segments = layout.planar.data();
  band.segments_count = static_cast<int64_t>(layout.planar.size());
  band.depth = 1;
  b.kernels->narrow({band, run.panels + layout.panels * b.element, b.target_last, run.add});
}

void compute_block(const Run& run, const Block& block, uint8_t* copy) {
  const ConvPlan& b = *run.binding;
  if (b.narrow) return compute_narrow(run, block, copy);
  const Band whole = band_of(run, block, copy);
  uint8_t* const panels = run.panels + block.layout->panels * b.element;
  if (b.each) return b.kernels->channels({whole, panels, run.add});
  // A panel that holds whole positions, which follow each other, may be stored in whole vectors.
  const bool flows = b.target_last <= b.panel_width && b.conv.groups == 1 && !run.add &&
                     whole.target_column == b.target_last && whole.target_row == whole.columns * b.target_last;
  const int64_t writable = flows ? whole.rows * whole.columns * b.target_last : 0;
  // The columns of the target are those of the filters, or of the channels, of a group.
  const int64_t width = b.target_last / b.conv.groups, depth = b.source_last / b.conv.groups;
  const int64_t group = panels_of(width, b.panel_width) * b.panel_width * block.layout->terms();
  for (int64_t g = 0; g < b.conv.groups; ++g) {
    Band band = whole;
    band.source = static_cast<const uint8_t*>(whole.source) + g * depth * b.element;
    band.target = static_cast<uint8_t*>(whole.target) + g * width * b.element;
    b.kernels->dense({band, panels + g * group * b.element, width, run.add, writable});
  }
}

// Copies the weights of panel `index` of a layout, counted over the groups.
template <class T>
void pack_panel(const Run& run, const Layout& layout, int64_t index) {
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
void pack_channels(const Run& run, const Layout& layout) {
  const ConvPlan& b = *run.binding;
  T* to = reinterpret_cast<T*>(run.panels) + layout.panels;
  for (const int64_t tap : layout.phase.taps)
    for (int64_t c = 0; c < b.source_last; ++c)
      *to++ = reinterpret_cast<const T*>(run.weights)[c * b.kernel_size + tap];
}

// The number of pieces in which the weights are copied.
int64_t pieces_of(const ConvPlan& b) {
  const auto layouts = static_cast<int64_t>(b.layouts.size());
  if (b.each) return layouts;
  return layouts * b.conv.groups * panels_of(b.target_last / b.conv.groups, b.panel_width);
}

void pack(const Run& run, int64_t piece) {
  const ConvPlan& b = *run.binding;
  const int64_t share = pieces_of(b) / static_cast<int64_t>(b.layouts.size());
  const Layout& layout = b.layouts[static_cast<size_t>(piece / share)];
  const bool wide = b.conv.dtype == TN_F64;
  if (b.each) return wide ? pack_channels<double>(run, layout) : pack_channels<float>(run, layout);
  return wide ? pack_panel<double>(run, layout, piece % share) : pack_panel<float>(run, layout, piece % share);
}

// Phase 0 copies the weights, phase 1 computes the blocks.
void run_task(void* argument, int32_t phase, int64_t index, int32_t) {
  const Run& run = *static_cast<const Run*>(argument);
  const ConvPlan& b = *run.binding;
  if (phase == 0) return pack(run, index);
  uint8_t* const copy = run.copies + index * b.copy_elements * b.element;
  for (int64_t i = index; i < run.samples * b.blocks; i += run.tasks) compute_block(run, block_at(b, i), copy);
}

// Task `index` of the sums of weights: some blocks, and some of the filters.
void sum_part(const Run& run, int64_t index) {
  const ConvPlan& b = *run.binding;
  const int64_t part = index / run.splits, split = index % run.splits;
  const int64_t all = run.samples * b.blocks;
  uint8_t* const sums = run.partial + part * b.weights_elements * b.element;
  uint8_t* const copy = run.copies + index * b.copy_elements * b.element;
  // Filters [first, last) of each group.
  const int64_t first = b.outer * split / run.splits, last = b.outer * (split + 1) / run.splits;
  const int64_t filter = b.kernel_size * b.inner;
  if (b.each) {
    std::memset(sums, 0, static_cast<size_t>(b.weights_elements * b.element));
  } else {
    for (int64_t g = 0; g < b.conv.groups; ++g)
      std::memset(sums + (g * b.outer + first) * filter * b.element, 0,
                  static_cast<size_t>((last - first) * filter * b.element));
  }
  for (int64_t i = all * part / run.parts; i < all * (part + 1) / run.parts; ++i) {
    const Band whole = band_of(run, block_at(b, i), copy);
    if (b.each) {
      b.kernels->channel_weights({whole, sums, true});
      continue;
    }
    for (int64_t g = 0; g < b.conv.groups; ++g) {
      Band band = whole;
      band.source = static_cast<const uint8_t*>(whole.source) + g * b.inner * b.element;
      band.target = static_cast<uint8_t*>(whole.target) + (g * b.outer + first) * b.element;
      b.kernels->weights({band, sums + (g * b.outer + first) * filter * b.element, last - first});
    }
  }
}

constexpr int64_t kSumPiece = 4096;  // elements of weights that a task sums

template <class T>
void sum_parts(const Run& run, int64_t piece) {
  const ConvPlan& b = *run.binding;
  auto* const to = reinterpret_cast<T*>(run.weights);
  const auto* const parts = reinterpret_cast<const T*>(run.partial);
  for (int64_t i = piece * kSumPiece; i < std::min((piece + 1) * kSumPiece, b.weights_elements); ++i) {
    // Sums by channel are [kernel, channels].
    const int64_t at = b.each ? i % b.kernel_size * b.source_last + i / b.kernel_size : i;
    T sum = parts[at];
    for (int64_t p = 1; p < run.parts; ++p) sum += parts[p * b.weights_elements + at];
    to[i] = run.add ? to[i] + sum : sum;
  }
}

void weights_task(void* argument, int32_t phase, int64_t index, int32_t) {
  const Run& run = *static_cast<const Run*>(argument);
  if (phase == 0) return sum_part(run, index);
  return run.binding->conv.dtype == TN_F64 ? sum_parts<double>(run, index) : sum_parts<float>(run, index);
}

tn_status run(void* self, const tn_execution* execution, const tn_call* call) {
  const ConvPlan& b = *static_cast<const ConvPlan*>(self);
  const tn_errors* const errors = execution->errors;
  if (call->inputs_count != 2 || call->outputs_count != 1 || call->inputs[0] == nullptr || call->inputs[1] == nullptr)
    return tn_fail(errors, TN_MISUSE, nullptr, "a convolution needs two inputs and one output");
  if (call->requests[0] == TN_REQUEST_NONE) return TN_OK;
  if (call->outputs[0] == nullptr) return tn_fail(errors, TN_MISUSE, "outputs", "a convolution without its output");
  Run run = {};
  run.binding = &b;
  run.samples = tn_dim_value(&b.conv.samples, execution->symbols);
  if (run.samples < 0) return tn_fail(errors, TN_MISUSE, nullptr, "a convolution of a negative number of samples");
  run.add = call->requests[0] == TN_REQUEST_ADD;
  run.source = tn_data(call->inputs[0]);
  auto* memory = static_cast<uint8_t*>(call->workspace);
  const auto take = [&](int64_t elements) {
    uint8_t* const start = memory;
    memory += lines(elements * b.element);
    return start;
  };
  run.panels = take(b.panel_elements);
  run.copies = take(b.copy_elements * kTasks);
  run.partial = take(b.weights_elements * b.parts);
  const bool small = b.work * static_cast<double>(run.samples) <= kTaskWork;
  const tn_parallel* const parallel = execution->parallel;
  if (b.conv.op == TN_CONV_WEIGHTS) {
    run.target = tn_data(call->inputs[1]);
    run.weights = tn_data(call->outputs[0]);
    run.parts = std::clamp<int64_t>(run.samples * b.blocks, 1, b.parts);
    run.splits = b.each ? 1 : std::clamp<int64_t>(kSumParts / run.parts, 1, b.outer);
    const int64_t sizes[2] = {run.parts * run.splits, (b.weights_elements + kSumPiece - 1) / kSumPiece};
    if (!small) {
      parallel->phases(parallel->self, 2, sizes, &weights_task, &run);
      return TN_OK;
    }
    for (int32_t phase = 0; phase < 2; ++phase)
      for (int64_t i = 0; i < sizes[phase]; ++i) weights_task(&run, phase, i, 0);
    return TN_OK;
  }
  run.target = tn_data(call->outputs[0]);
  run.weights = tn_data(call->inputs[1]);
  run.tasks = std::min(kTasks, run.samples * b.blocks);
  if (run.tasks == 0) return TN_OK;
  const int64_t sizes[2] = {pieces_of(b), run.tasks};
  if (!small) {
    parallel->phases(parallel->self, 2, sizes, &run_task, &run);
    return TN_OK;
  }
  for (int32_t phase = 0; phase < 2; ++phase)
    for (int64_t i = 0; i < sizes[phase]; ++i) run_task(&run, phase, i, 0);
  return TN_OK;
}

void destroy(void* self) { delete static_cast<ConvPlan*>(self); }

tn_status prepare(void*, const tn_services*, const tn_errors* errors, const tn_conv* conv, tn_prepared* prepared) {
  if (conv->dtype != TN_F32 && conv->dtype != TN_F64)
    return tn_fail(errors, TN_UNSUPPORTED, "dtype", "the cpu convolves float32 and float64 only");
  if (conv->op < TN_CONV_RESULTS || conv->op > TN_CONV_WEIGHTS)
    return tn_fail(errors, TN_UNSUPPORTED, "op", "the cpu does not offer this form of a convolution");
  try {
    auto binding = std::make_unique<ConvPlan>(plan_conv(*conv));
    const ConvPlan& b = *binding;
    prepared->workspace_bytes =
        static_cast<uint64_t>(lines(b.panel_elements * b.element) + lines(b.copy_elements * kTasks * b.element) +
                              lines(b.weights_elements * b.parts * b.element));
    prepared->binding = binding.release();
  } catch (const std::exception&) {
    return tn_fail(errors, TN_OUT_OF_MEMORY, nullptr, "no memory for a convolution's binding");
  }
  prepared->traits = 0;
  prepared->run = &run;
  prepared->destroy = &destroy;
  return TN_OK;
}

}  // namespace

const char conv_id[] = TN_CONV;
const tn_conv_table conv_table = {sizeof(tn_conv_table), 0, &prepare};

}  // namespace tenon::cpu
