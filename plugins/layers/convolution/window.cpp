// SPDX-License-Identifier: Apache-2.0
#include "window.h"

#include <algorithm>

namespace tenon::convolution {

namespace {

// The numbers of a list for each dimension in space: one for all, or one for each.
std::vector<int64_t> by_dimension(const tn::Attributes& attributes, const char* name, int32_t space, int64_t absent) {
  std::vector<int64_t> given = attributes.has(name) ? attributes.integers(name) : std::vector<int64_t>{absent};
  if (given.size() == 1) given.resize(static_cast<size_t>(space), given[0]);
  if (given.size() != static_cast<size_t>(space))
    throw tn::Failure(TN_INVALID, name,
                      "has " + std::to_string(given.size()) + " numbers; the images have " + std::to_string(space) +
                          " dimensions in space: one number for all, or one for each");
  return given;
}

constexpr int64_t kMost = int64_t{1} << 31;  // so that sums and products of a few of them are exact
constexpr int64_t kMostElements = int64_t{1} << 60;

std::string text_of(const std::vector<int64_t>& sizes, int64_t channels) {
  std::string text = "[samples";
  for (const int64_t size : sizes) text += ", " + std::to_string(size);
  return text + ", " + std::to_string(channels) + "]";
}

}  // namespace

void describe_window(tn::LayerDescription& d, const char* stride) {
  d.attribute(tn::ints_attribute("stride").at_least(1).at_most(kMost).doc(stride));
  d.attribute(tn::ints_attribute("padding").at_least(0).at_most(kMost).doc(
      "how much is added to the images on each side: one number for all, one for each dimension in space, or two for "
      "each, before and after; 0 when absent"));
  d.attribute(tn::bool_attribute("same", false)
                  .doc("pad so that the output has the input's size divided by the stride, rounded up; an odd padding "
                       "is longer at the end, as in TensorFlow"));
  d.attribute(tn::ints_attribute("dilation")
                  .at_least(1)
                  .at_most(kMost)
                  .doc("distance of the elements of a window, one number or one for each dimension; 1 when absent"));
}

int32_t space_of(const tn::Planner& planner) {
  const tn::Spec input = planner.input(0);
  if (input.rank() < 3 || input.rank() > 2 + TN_MAX_SPACE)
    throw planner.bad_input(0,
                            "must be [samples, space..., channels] with 1 to 3 dimensions in space; the layer "
                            "reshape adds channels");
  if (planner.elements(0, 1) > kMostElements) throw planner.bad_input(0, "has more than 2^60 elements of a sample");
  return input.rank() - 2;
}

std::vector<Line> lines_of(const tn::Attributes& attributes, const tn::Spec& input, bool stride_as_kernel) {
  const int32_t space = input.rank() - 2;
  const std::vector<int64_t> kernel = by_dimension(attributes, "kernel", space, 1);
  const std::vector<int64_t> stride =
      stride_as_kernel && !attributes.has("stride") ? kernel : by_dimension(attributes, "stride", space, 1);
  const std::vector<int64_t> dilation = by_dimension(attributes, "dilation", space, 1);
  if (attributes.flag("same") && attributes.has("padding"))
    throw tn::Failure(TN_INVALID, "padding", "cannot be given with \"same\"");
  std::vector<int64_t> padding = attributes.has("padding") ? attributes.integers("padding") : std::vector<int64_t>{0};
  const bool both = padding.size() == 2 * static_cast<size_t>(space) && space > 1;
  const bool sides = space == 1 && padding.size() == 2;
  if (!both && !sides) padding = by_dimension(attributes, "padding", space, 0);
  std::vector<Line> lines;
  for (size_t i = 0; i < static_cast<size_t>(space); ++i) {
    Line line;
    line.images = input[static_cast<int32_t>(i) + 1].offset;
    line.kernel = kernel[i];
    line.stride = stride[i];
    line.dilation = dilation[i];
    line.before = both || sides ? padding[2 * i] : padding[i];
    line.after = both || sides ? padding[2 * i + 1] : padding[i];
    if (line.dilation > kMost / line.kernel)
      throw tn::Failure(TN_INVALID, "dilation", "makes a window of more than 2^31 elements");
    lines.push_back(line);
  }
  return lines;
}

void pad_same(std::vector<Line>& lines) {
  for (Line& line : lines) {
    const int64_t places = (line.images + line.stride - 1) / line.stride;
    const int64_t added = std::max<int64_t>(0, (places - 1) * line.stride + line.extent() - line.images);
    line.before = added / 2;
    line.after = added - line.before;
  }
}

tn_window window_of(const std::vector<Line>& lines) {
  tn_window window = {};
  window.size = sizeof window;
  window.rank = static_cast<int32_t>(lines.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    window.images[i] = lines[i].images;
    window.kernel[i] = lines[i].kernel;
    window.stride[i] = lines[i].stride;
    window.dilation[i] = lines[i].dilation;
    window.before[i] = lines[i].before;
    window.after[i] = lines[i].after;
  }
  return window;
}

void plan_images(tn::Planner& planner, const std::vector<int64_t>& sizes, int64_t channels) {
  tn::Spec shape({planner.input(0)[0]});
  int64_t elements = channels;
  bool fits = true;
  for (const int64_t size : sizes) {
    shape.push_back(size);
    fits = fits && elements <= kMostElements / size;
    if (fits) elements *= size;
  }
  shape.push_back(channels);
  if (!fits)
    throw planner.bad_input(0, "makes an output of more than 2^60 elements of a sample: " + text_of(sizes, channels));
  planner.output(0, shape);
}

std::vector<int64_t> places_of(const tn_window& window) {
  std::vector<int64_t> places;
  for (int32_t i = 0; i < window.rank; ++i) places.push_back(tn_window_places(&window, i));
  return places;
}

void require_places(const tn::Planner& planner, const tn_window& window) {
  for (int32_t i = 0; i < window.rank; ++i) {
    if (tn_window_places(&window, i) > 0) continue;
    const int64_t extent = window.dilation[i] * (window.kernel[i] - 1) + 1;
    throw planner.bad_input(0, "is smaller than the kernel along dimension " + std::to_string(i + 1) + ": " +
                                   std::to_string(window.images[i]) + " and a padding of " +
                                   std::to_string(window.before[i] + window.after[i]) + ", with a kernel of " +
                                   std::to_string(extent) + (window.dilation[i] > 1 ? " with its dilation" : ""));
  }
}

}  // namespace tenon::convolution
