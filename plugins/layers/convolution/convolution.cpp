// Convolution and transposed convolution of images. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "window.h"

namespace tenon::convolution {

namespace {

using tn::Float;

void describe_filters(tn::LayerDescription& d) {
  d.attribute(tn::int_attribute("filters").required().at_least(1).doc("channels of the output"));
  d.attribute(tn::ints_attribute("kernel")
                  .required()
                  .at_least(1)
                  .at_most(int64_t{1} << 31)
                  .doc("size of the window, one number for all dimensions in space or one for each"));
  describe_window(d, "distance of the windows, one number or one for each dimension; 1 when absent");
  d.attribute(tn::int_attribute("groups", 1)
                  .at_least(1)
                  .doc("groups of channels; a filter reads those of its group alone, of as many groups as channels one "
                       "(depthwise)"));
  d.attribute(tn::bool_attribute("bias", true).doc("whether a bias is added"));
  d.parameter("weight");
  d.parameter("bias");
}

// Weights [filters, kernel..., inner], uniform so that the variance of sums of `terms` terms followed by relu stays.
void declare_weight(const tn::Planner& planner, tn::Planner& to, int64_t filters, const std::vector<Line>& lines,
                    int64_t inner, int64_t terms) {
  tn::Spec shape({filters});
  double elements = static_cast<double>(filters) * static_cast<double>(inner);
  for (const Line& line : lines) {
    shape.push_back(line.kernel);
    elements *= static_cast<double>(line.kernel);
  }
  if (elements > 9e18) throw planner.bad_input(0, "has so many channels that the weight has more than 2^63 elements");
  shape.push_back(inner);
  const double limit = std::sqrt(6.0 / static_cast<double>(terms));
  to.parameter("weight", shape, tn::uniform_initializer(-limit, limit));
}

int64_t kernel_elements(const std::vector<Line>& lines) {
  int64_t elements = 1;
  for (const Line& line : lines) {
    if (line.kernel > INT64_MAX / elements) throw tn::Failure(TN_INVALID, "kernel", "has more than 2^63 elements");
    elements *= line.kernel;
  }
  return elements;
}

void require_groups(const tn::Planner& planner, int64_t channels, int64_t filters, int64_t groups) {
  if (channels % groups != 0)
    throw planner.bad_input(
        0, "has " + std::to_string(channels) + " channels, which " + std::to_string(groups) + " groups do not divide");
  if (filters % groups != 0)
    throw tn::Failure(TN_INVALID, "filters",
                      "is " + std::to_string(filters) + ", which " + std::to_string(groups) + " groups do not divide");
}

// result [samples, space..., channels] plus the bias [channels], if there is one.
tn::Tensor with_bias(const tn::Attributes& attributes, tn::Builder& body, const tn::Tensor& result) {
  if (!attributes.flag("bias")) return result;
  tn::Program add;
  const Float value = add.full();
  add.output(value + add.per_column());
  return body.pointwise(add, {result, body.parameter(1)}, result.spec().rank() - 1).front();
}

struct Conv {
  static void describe(tn::LayerDescription& d) {
    d.type(
        "conv",
        "Convolution of images with their channels last, over 1, 2 or 3 dimensions in space: output[n, p, f] = bias[f] "
        "+ sum over the elements j of the window at place p and the channels c of f's group of input[n, stride p - "
        "padding + dilation j, c] weight[f, j, c], where what is outside of the image is 0. weight is [filters, "
        "kernel..., channels / groups] and starts uniform in +-sqrt(6 / (kernel channels / groups)) (He et al., "
        "\"Delving deep into rectifiers\", 2015, equation 10), the bias at 0.");
    d.input("input", "[samples, space..., channels]");
    d.output("output", "[samples, places..., filters]");
    describe_filters(d);
  }

  static tn_window window(const tn::Attributes& attributes, const tn::Spec& input) {
    std::vector<Line> lines = lines_of(attributes, input);
    if (attributes.flag("same")) pad_same(lines);
    return window_of(lines);
  }

  static void plan(tn::Planner& planner) {
    space_of(planner);
    const tn::Attributes attributes = planner.attributes();
    const tn::Spec input = planner.input(0);
    const int64_t channels = input.back().offset, filters = attributes.integer("filters");
    const int64_t groups = attributes.integer("groups");
    require_groups(planner, channels, filters, groups);
    const tn_window over = window(attributes, input);
    require_places(planner, over);
    const std::vector<Line> lines = lines_of(attributes, input);
    const int64_t inner = channels / groups, kernel = kernel_elements(lines);
    if (kernel > INT64_MAX / inner) throw tn::Failure(TN_INVALID, "kernel", "has too many elements");
    declare_weight(planner, planner, filters, lines, inner, kernel * inner);
    if (attributes.flag("bias")) planner.parameter("bias", tn::Spec({filters}), tn::constant_initializer(0));
    plan_images(planner, places_of(over), filters);
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Tensor input = body.input(0);
    const tn::Tensor made = body.conv(TN_CONV_RESULTS, window(attributes, input.spec()), attributes.integer("groups"),
                                      input, body.parameter(0));
    body.output(0, with_bias(attributes, body, made));
  }
};

struct ConvTranspose {
  static void describe(tn::LayerDescription& d) {
    d.type(
        "conv_transpose",
        "Transposed convolution of images with their channels last, the derivative of a convolution by its input: "
        "each place of the input adds input[n, p, c] weight[c, j, f] to element stride p - padding + dilation j of "
        "the output (Zeiler et al., \"Deconvolutional networks\", 2010). Along a dimension of size s the output has "
        "(s - 1) stride - padding before - padding after + dilation (kernel - 1) + 1 + output_padding elements; with "
        "same, s stride. weight is [channels, kernel..., filters / groups] and starts uniform in +-sqrt(6 / terms), "
        "where an element of the output has about kernel channels / groups / stride terms; the bias starts at 0.");
    d.input("input", "[samples, space..., channels]");
    d.output("output", "[samples, larger space..., filters]");
    describe_filters(d);
    d.attribute(tn::ints_attribute("output_padding")
                    .at_least(0)
                    .at_most(int64_t{1} << 31)
                    .doc("elements added to the output at the end, fewer than the stride, one number or one for each "
                         "dimension; 0 when absent"));
  }

  // The lines of the window over the images that the layer makes. Throws a failure about an attribute.
  static std::vector<Line> lines(const tn::Attributes& attributes, const tn::Spec& input) {
    std::vector<Line> result = lines_of(attributes, input);
    std::vector<int64_t> more =
        attributes.has("output_padding") ? attributes.integers("output_padding") : std::vector<int64_t>{0};
    if (more.size() == 1) more.resize(result.size(), more[0]);
    if (more.size() != result.size())
      throw tn::Failure(TN_INVALID, "output_padding",
                        "has " + std::to_string(more.size()) + " numbers; expected one, or one for each of the " +
                            std::to_string(result.size()) + " dimensions in space")
          .actual(input);
    for (size_t i = 0; i < result.size(); ++i) {
      Line& line = result[i];
      if (attributes.flag("same")) {
        if (attributes.has("output_padding"))
          throw tn::Failure(TN_INVALID, "output_padding", "cannot be given with \"same\"");
        const int64_t cut = std::max<int64_t>(line.extent() - line.stride, 0);
        line.before = cut / 2;
        line.after = cut - line.before;
        more[i] = std::max<int64_t>(line.stride - line.extent(), 0);
      }
      if (more[i] >= line.stride && more[i] > 0)
        throw tn::Failure(
            TN_INVALID, "output_padding",
            "is " + std::to_string(more[i]) + "; expected less than the stride " + std::to_string(line.stride));
      if (line.images - 1 > (INT64_MAX >> 2) / line.stride)
        throw tn::Failure(TN_INVALID, "stride", "makes an output of more than 2^61 elements");
      line.images = (line.images - 1) * line.stride + line.extent() + more[i] - line.before - line.after;
    }
    return result;
  }

  static void plan(tn::Planner& planner) {
    space_of(planner);
    const tn::Attributes attributes = planner.attributes();
    const tn::Spec input = planner.input(0);
    const int64_t channels = input.back().offset, filters = attributes.integer("filters");
    const int64_t groups = attributes.integer("groups");
    require_groups(planner, channels, filters, groups);
    const std::vector<Line> made = lines(attributes, input);
    std::vector<int64_t> sizes;
    double terms = static_cast<double>(channels / groups);  // NOLINT(bugprone-integer-division): it divides
    for (const Line& line : made) {
      if (line.images < 1)
        throw tn::Failure(TN_INVALID, "padding",
                          "removes all of the output along dimension " + std::to_string(sizes.size() + 1))
            .actual(input);
      sizes.push_back(line.images);
      terms *= static_cast<double>(line.kernel) / static_cast<double>(line.stride);
    }
    kernel_elements(made);
    declare_weight(planner, planner, channels, made, filters / groups, static_cast<int64_t>(std::max(terms, 1.0)));
    if (attributes.flag("bias")) planner.parameter("bias", tn::Spec({filters}), tn::constant_initializer(0));
    plan_images(planner, sizes, filters);
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Tensor input = body.input(0);
    const tn::Tensor made = body.conv(TN_CONV_IMAGES, window_of(lines(attributes, input.spec())),
                                      attributes.integer("groups"), input, body.parameter(0));
    body.output(0, with_bias(attributes, body, made));
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.convolution", "0.1.0", "Convolution, pooling and resizing of images, and blocks of them",
               "Apache-2.0");
  plugin.layer<Conv>();
  plugin.layer<ConvTranspose>();
  add_pools(plugin);
  add_resize(plugin);
  add_blocks(plugin);
  add_block_expand(plugin);
}

}  // namespace

}  // namespace tenon::convolution

const tn_plugin* tenon_plugin() { return tn::entry<tenon::convolution::describe>(); }
