// Windows over images from the attributes of a layer. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <tenon/plugin.hpp>
#include <vector>

namespace tenon::convolution {

// The sizes of a window along one dimension in space.
struct Line {
  int64_t images = 1, kernel = 1, stride = 1, dilation = 1, before = 0, after = 0;

  [[nodiscard]] int64_t extent() const { return dilation * (kernel - 1) + 1; }
};

// Declares stride, padding, same and dilation; what the stride is without the attribute.
void describe_window(tn::LayerDescription& d, const char* stride);

// Whether `input` is [samples, space..., channels] with 1 to 3 dimensions in space of constant sizes; throws a failure
// about input 0 if it is not. Returns the number of dimensions in space.
int32_t space_of(const tn::Planner& planner);

// Returns the lines of a window over `input`, [samples, space..., channels], by the attributes kernel, stride (without
// it `stride_as_kernel` or 1), padding and dilation; failures name the attribute. `same`: only kernel, stride and
// dilation are filled in, since what is added follows from them and from the direction.
[[nodiscard]] std::vector<Line> lines_of(const tn::Attributes& attributes, const tn::Spec& input,
                                         bool stride_as_kernel = false);

// Adds zeros so that there are images / stride places, rounded up; an odd one is added at the end.
void pad_same(std::vector<Line>& lines);

[[nodiscard]] tn_window window_of(const std::vector<Line>& lines);

// Declares the output [samples, sizes..., channels]; a failure if a sample has too many elements.
void plan_images(tn::Planner& planner, const std::vector<int64_t>& sizes, int64_t channels);
[[nodiscard]] std::vector<int64_t> places_of(const tn_window& window);
// A failure if the window is larger than the images along a dimension, with their sizes.
void require_places(const tn::Planner& planner, const tn_window& window);

void add_pools(tn::Plugin& plugin);
void add_resize(tn::Plugin& plugin);
void add_blocks(tn::Plugin& plugin);
void add_block_expand(tn::Plugin& plugin);

}  // namespace tenon::convolution
