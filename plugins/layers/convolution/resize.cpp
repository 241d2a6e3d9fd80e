// Resizing of images. SPDX-License-Identifier: Apache-2.0
#include "window.h"

namespace tenon::convolution {

namespace {

struct Resize {
  static void describe(tn::LayerDescription& d) {
    d.type(
        "resize",
        "Images with their channels last in another size, over 1, 2 or 3 dimensions in space. nearest: element o of "
        "the output is element floor(o s / t) of the input, where s and t are the sizes; linear: the element at (o + "
        "0.5) s / t - 0.5 between its neighbours, or with align_corners at o (s - 1) / (t - 1), cut to the image.");
    d.input("input", "[samples, space..., channels]");
    d.output("output", "[samples, size..., channels]");
    d.attribute(tn::ints_attribute("size")
                    .at_least(1)
                    .at_most(int64_t{1} << 31)
                    .doc("of the output, one number for all dimensions in space or one for each"));
    d.attribute(tn::ints_attribute("times")
                    .at_least(1)
                    .at_most(int64_t{1} << 31)
                    .doc("size of the output divided by that of the input, in place of size"));
    d.attribute(tn::string_attribute("kind", "nearest").one_of({"nearest", "linear"}).doc("how elements are chosen"));
    d.attribute(tn::bool_attribute("align_corners", false).doc("linear: the corners of both images are the same"));
  }

  static tn_resize map_of(const tn::Attributes& attributes, const tn::Spec& input) {
    if (attributes.has("size") == attributes.has("times"))
      throw tn::Failure(TN_INVALID, "size", "or \"times\" is needed, one of them");
    const bool linear = std::string(attributes.text("kind")) == "linear", corners = attributes.flag("align_corners");
    if (corners && !linear) throw tn::Failure(TN_INVALID, "align_corners", "is for the kind \"linear\" alone");
    const char* const name = attributes.has("size") ? "size" : "times";
    std::vector<int64_t> given = attributes.integers(name);
    const auto space = static_cast<size_t>(input.rank()) - 2;
    if (given.size() == 1) given.resize(space, given[0]);
    if (given.size() != space)
      throw tn::Failure(TN_INVALID, name,
                        "has " + std::to_string(given.size()) + " numbers; the images have " + std::to_string(space) +
                            " dimensions in space");
    tn_resize map = {};
    map.size = sizeof map;
    map.rank = static_cast<int32_t>(space);
    map.flags = linear ? TN_RESIZE_LINEAR : 0;
    for (size_t i = 0; i < space; ++i) {
      map.from[i] = input[static_cast<int32_t>(i) + 1].offset;
      if (attributes.has("times") && given[i] > (int64_t{1} << 31) / map.from[i])
        throw tn::Failure(TN_INVALID, "times", "makes images of more than 2^31 elements").actual(input);
      map.to[i] = attributes.has("times") ? map.from[i] * given[i] : given[i];
      const auto from = static_cast<double>(map.from[i]), to = static_cast<double>(map.to[i]);
      map.scale[i] = corners ? (to > 1 ? (from - 1) / (to - 1) : 0) : from / to;
      // nearest: o s / t is a multiple of 1 / t, so half of one changes no floor and takes away rounding.
      map.offset[i] = corners ? 0 : linear ? map.scale[i] / 2 - 0.5 : 0.5 / to;
    }
    return map;
  }

  static void plan(tn::Planner& planner) {
    space_of(planner);
    const tn::Spec input = planner.input(0);
    const tn_resize map = map_of(planner.attributes(), input);
    plan_images(planner, {map.to, map.to + map.rank}, input.back().offset);
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Tensor input = body.input(0);
    body.output(0, body.resize(map_of(attributes, input.spec()), input));
  }
};

}  // namespace

void add_resize(tn::Plugin& plugin) { plugin.layer<Resize>(); }

}  // namespace tenon::convolution
