// The windows of images as rows. SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <vector>

#include "window.h"

namespace tenon::convolution {

namespace {

struct BlockExpand {
  static constexpr int64_t kMost = int64_t{1} << 26;  // elements that all windows of an image have in a channel

  static void describe(tn::LayerDescription& d) {
    d.type("block_expand",
           "The windows of images with their channels last as rows, one for each place of the window, in the order of "
           "the places: a row has the elements of its window in their order, each with its channels; 0 outside of the "
           "image. The derivative of an element is the sum of those in all windows. The layer sequence_unpad makes "
           "sequences of the rows. Other names: im2col, unfold, extract_patches.");
    d.input("input", "[samples, space..., channels], 1 to 3 dimensions in space");
    d.output("output", "[samples, places, elements of the window times channels]");
    d.attribute(tn::ints_attribute("kernel")
                    .required()
                    .at_least(1)
                    .at_most(int64_t{1} << 31)
                    .doc("size of the window, one number for all dimensions in space or one for each"));
    describe_window(d, "distance of the windows, one number or one for each dimension; the kernel when absent");
  }

  static std::vector<Line> windows(const tn::Attributes& attributes, const tn::Spec& input) {
    std::vector<Line> lines = lines_of(attributes, input, true);
    if (attributes.flag("same")) pad_same(lines);
    return lines;
  }

  static void plan(tn::Planner& planner) {
    space_of(planner);
    const tn::Spec input = planner.input(0);
    const std::vector<Line> lines = windows(planner.attributes(), input);
    const tn_window window = window_of(lines);
    require_places(planner, window);
    int64_t places = 1, elements = 1;
    for (size_t i = 0; i < lines.size(); ++i) {
      const int64_t along = tn_window_places(&window, static_cast<int32_t>(i)), room = kMost / places / elements;
      if (along > room || lines[i].kernel > room / along)
        throw planner.bad_input(0, "has windows of more than 2^26 elements of a channel");
      places *= along;
      elements *= lines[i].kernel;
    }
    if (input.back().offset > kMost) throw planner.bad_input(0, "has more than 2^26 channels");
    plan_images(planner, {places}, elements * input.back().offset);
  }

  // The places in space become the rows of a table, from which the elements of all windows are read.
  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Spec shape = body.input(0).spec();
    const std::vector<Line> lines = windows(attributes, shape);
    tn::Tensor images = body.input(0);
    int64_t size = 1;
    for (size_t i = 0; i < lines.size(); ++i) {
      const Line& line = lines[i];
      if (line.before + line.after > 0) images = body.pad(images, static_cast<int32_t>(i) + 1, line.before, line.after);
      size *= padded(line);
    }
    const std::vector<int64_t> places = rows(lines, [](const Line& line) {
      return std::pair{(padded(line) - line.extent()) / line.stride + 1, line.stride};
    });
    const std::vector<int64_t> elements = rows(lines, [](const Line& line) {
      return std::pair{line.kernel, line.dilation};
    });
    std::vector<int64_t> read;
    read.reserve(places.size() * elements.size());
    for (const int64_t place : places)
      for (const int64_t element : elements) read.push_back(place + element);
    const tn::Dim samples = shape[0], channels = shape.back();
    const tn::Tensor table = body.exchange(images.view(tn::Spec({samples, size, channels})), 0, 1);
    const tn::Tensor found = body.gather(table, body.constant(tn::Spec({static_cast<int64_t>(read.size())}), read));
    body.output(0, body.exchange(found, 0, 1)
                       .view(tn::Spec({samples, static_cast<int64_t>(places.size()),
                                       static_cast<int64_t>(elements.size()) * channels.offset})));
  }

 private:
  static int64_t padded(const Line& line) { return line.images + line.before + line.after; }

  // The rows of the table with `number` places along each line, `step` apart, in the order of the places.
  template <typename Along>
  static std::vector<int64_t> rows(const std::vector<Line>& lines, const Along& along) {
    std::vector<int64_t> made = {0};
    for (const Line& line : lines) {
      const auto [number, step] = along(line);
      std::vector<int64_t> next;
      next.reserve(made.size() * static_cast<size_t>(number));
      for (const int64_t row : made)
        for (int64_t i = 0; i < number; ++i) next.push_back(row * padded(line) + i * step);
      made = std::move(next);
    }
    return made;
  }
};

}  // namespace

void add_block_expand(tn::Plugin& plugin) { plugin.layer<BlockExpand>(); }

}  // namespace tenon::convolution
