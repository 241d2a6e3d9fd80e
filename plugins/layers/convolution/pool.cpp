// Pooling of images. SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "window.h"

namespace tenon::convolution {

namespace {

using tn::Float;

struct Pool {
  static void describe(tn::LayerDescription& d) {
    d.type("pool",
           "Pooling of images with their channels last, over 1, 2 or 3 dimensions in space: each channel of the output "
           "is the maximum, the mean, the sum, or the norm (sum |x|^power)^(1 / power) of a window. What is outside of "
           "the image is left out, also from the number that a mean is divided by, unless count_padding is set. A norm "
           "that is 0 has the gradient 0; of equal maxima the first one has the gradient.");
    d.input("input", "[samples, space..., channels]");
    d.output("output", "[samples, places..., channels]");
    d.attribute(tn::string_attribute("kind")
                    .required()
                    .one_of({"max", "average", "sum", "norm"})
                    .doc("what is made of a window"));
    d.attribute(
        tn::ints_attribute("kernel")
            .at_least(1)
            .at_most(int64_t{1} << 31)
            .doc("size of the window, one number for all dimensions in space or one for each; with whole absent"));
    describe_window(d, "distance of the windows, one number or one for each dimension; the kernel when absent");
    d.attribute(tn::bool_attribute("whole", false).doc("one window, the whole image: global pooling"));
    d.attribute(
        tn::bool_attribute("ceil", false)
            .doc("round the number of windows up: a last one that begins within the image may end outside of it"));
    d.attribute(
        tn::bool_attribute("count_padding", false)
            .doc("divide the sum of a mean by the elements of the window that are in the image or its padding"));
    d.attribute(tn::float_attribute("power", 2).at_least(1).doc("of the norm"));
  }

  struct Windows {
    std::vector<Line> lines;  // with the padding stated
    tn_window window;         // with what ceil adds
  };

  static Windows windows(const tn::Attributes& attributes, const tn::Spec& input) {
    Windows made = {};
    if (attributes.flag("whole")) {
      for (const char* name : {"kernel", "stride", "padding", "dilation"})
        if (attributes.has(name)) throw tn::Failure(TN_INVALID, name, "cannot be given with \"whole\"");
      for (const char* name : {"same", "ceil"})
        if (attributes.flag(name)) throw tn::Failure(TN_INVALID, name, "cannot be set with \"whole\"");
      for (int32_t i = 1; i + 1 < input.rank(); ++i) {
        Line line;
        line.images = line.kernel = input[i].offset;
        made.lines.push_back(line);
      }
      made.window = window_of(made.lines);
      return made;
    }
    if (!attributes.has("kernel")) throw tn::Failure(TN_INVALID, "kernel", "is missing; or \"whole\" for one window");
    made.lines = lines_of(attributes, input, true);
    if (attributes.flag("same")) pad_same(made.lines);
    std::vector<Line> rounded = made.lines;
    for (Line& line : rounded) {
      const int64_t room = line.images + line.before + line.after - line.extent();
      if (!attributes.flag("ceil") || room < 0) continue;
      int64_t last = (room + line.stride - 1) / line.stride;  // number of the last window
      if (last * line.stride >= line.images + line.before) --last;
      line.after = std::max<int64_t>(0, last * line.stride + line.extent() - line.images - line.before);
    }
    made.window = window_of(rounded);
    return made;
  }

  static void plan(tn::Planner& planner) {
    space_of(planner);
    const tn::Spec input = planner.input(0);
    const Windows made = windows(planner.attributes(), input);
    require_places(planner, made.window);
    if (std::string(planner.attributes().text("kind")) != "sum")
      for (size_t i = 0; i < made.lines.size(); ++i) require_elements(made, static_cast<int32_t>(i), input);
    plan_images(planner, places_of(made.window), input.back().offset);
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Tensor input = body.input(0);
    const Windows made = windows(attributes, input.spec());
    const std::string kind = attributes.text("kind");
    if (kind == "max") return body.output(0, body.pool_max(made.window, input).first);
    if (kind == "sum") return body.output(0, body.pool(TN_POOL_SUM, made.window, input));
    if (kind == "norm") return body.output(0, norm(attributes.number("power"), made.window, body));
    body.output(0, mean(attributes.flag("count_padding"), made, body));
  }

 private:
  // The elements of window `place` along a dimension that are in the image, or in the padding as stated.
  static int64_t elements(const Line& line, const tn_window& window, int32_t i, int64_t place, bool padding) {
    const int64_t first = place * line.stride - window.before[i];
    const int64_t low = padding ? -line.before : 0, high = line.images + (padding ? line.after : 0);
    // Of the elements before `bound`, which begin with `first`: at most the kernel.
    const auto before = [&](int64_t bound) {
      return std::clamp<int64_t>((bound - first + line.dilation - 1) / line.dilation, 0, line.kernel);
    };
    return before(high) - before(low);
  }

  // A failure if a window has no element of the image. Only a window whose elements are further apart than the image
  // is long can lie on both sides of it; else the first and the last one are enough.
  static void require_elements(const Windows& made, int32_t i, const tn::Spec& input) {
    const Line& line = made.lines[static_cast<size_t>(i)];
    const int64_t last = tn_window_places(&made.window, i) - 1;
    const int64_t step = line.dilation > line.images ? 1 : std::max<int64_t>(last, 1);
    for (int64_t place = 0; place <= last; place += step)
      if (elements(line, made.window, i, place, false) == 0)
        throw tn::Failure(TN_INVALID, "padding",
                          "leaves window " + std::to_string(place) + " along dimension " + std::to_string(i + 1) +
                              " without an element of the image")
            .actual(input);
  }

  static tn::Tensor mean(bool count_padding, const Windows& made, tn::Builder& body) {
    const tn::Tensor sums = body.pool(TN_POOL_SUM, made.window, body.input(0));
    // By place, row-major: 1 / number of elements.
    std::vector<double> shares{1};
    for (size_t i = 0; i < made.lines.size(); ++i) {
      std::vector<double> next;
      for (const double share : shares)
        for (int64_t p = 0; p < tn_window_places(&made.window, static_cast<int32_t>(i)); ++p)
          next.push_back(share / static_cast<double>(
                                     elements(made.lines[i], made.window, static_cast<int32_t>(i), p, count_padding)));
      shares = std::move(next);
    }
    tn::Program divide;
    const Float sum = divide.full();
    if (std::all_of(shares.begin(), shares.end(), [&](double share) { return share == shares[0]; })) {
      divide.output(sum * shares[0]);
      return body.pointwise(divide, {sums}).front();
    }
    const tn::Spec shape = sums.spec();
    std::vector<double> by_element;
    for (const double share : shares)
      for (int64_t c = 0; c < shape.back().offset; ++c) by_element.push_back(share);
    tn::Spec places({shape[1]});
    for (int32_t i = 2; i < shape.rank(); ++i) places.push_back(shape[i]);
    divide.output(sum * divide.per_column());
    return body.pointwise(divide, {sums, body.constant(places, by_element)}, 1).front();
  }

  static tn::Tensor norm(double power, const tn_window& window, tn::Builder& body) {
    tn::Program raise, root;
    raise.output(pow(abs(raise.full()), power));
    const tn::Tensor powers = body.pointwise(raise, {body.input(0)}).front();
    // Below the least sum the derivative is 0 in place of infinite.
    constexpr double kLeast = 1e-30;
    const Float sum = root.full();
    root.output(select(sum > kLeast, pow(max(sum, kLeast), 1 / power), 0.0));
    return body.pointwise(root, {body.pool(TN_POOL_SUM, window, powers)}).front();
  }
};

struct SpatialPyramidPool {
  static void describe(tn::LayerDescription& d) {
    d.type(
        "spatial_pyramid_pool",
        "Spatial pyramid pooling: for each level n, the image pooled to n windows along each dimension in space, "
        "flattened; concatenated to a vector whose length does not depend on the image's size (He et al., \"Spatial "
        "pyramid pooling in deep convolutional networks for visual recognition\", 2014). Along a dimension of size s "
        "the windows are floor(s / n) apart and cover the image.");
    d.input("input", "[samples, space..., channels]");
    d.output("output", "[samples, channels times the sum of n to the power of the dimensions in space]");
    d.attribute(tn::ints_attribute("levels").required().at_least(1).doc("numbers of windows along each dimension"));
    d.attribute(tn::string_attribute("kind", "max").one_of({"max", "average", "sum", "norm"}).doc("as of pool"));
  }

  static void plan(tn::Planner& planner) {
    const int32_t space = space_of(planner);
    const tn::Spec input = planner.input(0);
    const std::vector<int64_t> levels = planner.attributes().integers("levels");
    if (levels.empty()) throw tn::Failure(TN_INVALID, "levels", "is empty; expected at least one level");
    int64_t length = 0;
    for (const int64_t level : levels) {
      int64_t windows = input.back().offset;
      for (int32_t i = 1; i <= space; ++i) {
        if (input[i].offset < level)
          throw tn::Failure(
              TN_INVALID, "levels",
              "has the level " + std::to_string(level) + ", more than the elements of dimension " + std::to_string(i))
              .actual(input);
        windows *= level;
      }
      length += windows;
    }
    planner.output(0, tn::Spec({input[0], length}));
  }

  static bool expand(tn::Expander& expander) {
    const tn::Spec input = expander.spec(0);
    const tn_value kind = tn::string_value(expander.attributes().text("kind"));
    std::vector<tn_ref> parts;
    for (const int64_t level : expander.attributes().integers("levels")) {
      std::vector<int64_t> kernel, stride;
      for (int32_t i = 1; i + 1 < input.rank(); ++i) {
        stride.push_back(input[i].offset / level);
        kernel.push_back(input[i].offset - (level - 1) * stride.back());
      }
      const tn_ref pooled =
          expander.layer("pool", {expander.input(0)},
                         {{"kind", kind}, {"kernel", tn::ints_value(kernel)}, {"stride", tn::ints_value(stride)}});
      parts.push_back(expander.layer("reshape", {pooled}, {{"shape", tn::ints_value({-1})}}));
    }
    expander.output(0, parts.size() == 1 ? parts[0] : expander.layer("concat", parts, {}));
    return true;
  }
};

}  // namespace

void add_pools(tn::Plugin& plugin) {
  plugin.layer<Pool>();
  plugin.layer<SpatialPyramidPool>();
}

}  // namespace tenon::convolution
