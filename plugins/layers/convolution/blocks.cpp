// Blocks of layers of images: expansions. SPDX-License-Identifier: Apache-2.0
#include <string>

#include "window.h"

namespace tenon::convolution {

namespace {

// The suffixes of the layers of a block. Their number is fixed, since those of parameters are part of the description.
constexpr const char* kConvs[] = {"conv_0", "conv_1", "conv_2", "conv_3", "conv_4"};
constexpr const char* kNorms[] = {"norm_0", "norm_1", "norm_2", "norm_3", "norm_4"};
constexpr size_t kMostConvs = 5;

// Declares the parameters of a convolution with a normalisation, whose names live as long as the plugin.
template <size_t kNumber>
void describe_parameters(tn::LayerDescription& d) {
  static const std::string names[] = {
      kConvs[kNumber] + std::string(".weight"),      kConvs[kNumber] + std::string(".bias"),
      kNorms[kNumber] + std::string(".scale"),       kNorms[kNumber] + std::string(".shift"),
      kNorms[kNumber] + std::string(".moving_mean"), kNorms[kNumber] + std::string(".moving_variance")};
  for (const std::string& name : names) d.parameter(name.c_str());
}

void describe_pool(tn::LayerDescription& d) {
  d.attribute(tn::ints_attribute("pool_kernel").required().at_least(1).doc("kernel of the pooling"));
  d.attribute(tn::ints_attribute("pool_stride").at_least(1).doc("stride of the pooling; its kernel when absent"));
  d.attribute(tn::string_attribute("pool_kind", "max").one_of({"max", "average", "sum", "norm"}).doc("as of pool"));
}

// The numbers of `name` for each dimension in space. Throws a failure about `name`.
std::vector<int64_t> spread(const char* name, std::vector<int64_t> given, const tn::Spec& input) {
  const auto space = static_cast<size_t>(input.rank()) - 2;
  if (given.size() == 1) given.resize(space, given[0]);
  if (given.size() != space)
    throw tn::Failure(TN_INVALID, name,
                      "has " + std::to_string(given.size()) + " numbers; the images have " + std::to_string(space) +
                          " dimensions in space")
        .actual(input);
  return given;
}

// The sizes of images after windows without padding; `name` is the attribute of the kernel, `stride_name` of the
// stride.
std::vector<int64_t> windowed(const tn::Planner& planner, const std::vector<int64_t>& images, const char* name,
                              const char* stride_name) {
  const tn::Attributes attributes = planner.attributes();
  const tn::Spec input = planner.input(0);
  const std::vector<int64_t> kernel = spread(name, attributes.integers(name), input);
  const std::vector<int64_t> stride = stride_name == nullptr
                                          ? std::vector<int64_t>(kernel.size(), 1)
                                          : spread(stride_name, attributes.integers(stride_name), input);
  std::vector<int64_t> places;
  for (size_t i = 0; i < images.size(); ++i) {
    if (kernel[i] > images[i])
      throw tn::Failure(TN_INVALID, name,
                        "is " + std::to_string(kernel[i]) + " along dimension " + std::to_string(i + 1) +
                            ", where images have " + std::to_string(images[i]) + " elements")
          .actual(input);
    places.push_back((images[i] - kernel[i]) / stride[i] + 1);
  }
  return places;
}

// The attribute that the stride of the pooling is taken from.
const char* pool_stride(const tn::Attributes& attributes) {
  return attributes.has("pool_stride") ? "pool_stride" : "pool_kernel";
}

// Declares the output of a block: images of these sizes and channels after its pooling.
void plan_pooled(tn::Planner& planner, const std::vector<int64_t>& images, int64_t channels) {
  plan_images(planner, windowed(planner, images, "pool_kernel", pool_stride(planner.attributes())), channels);
}

std::vector<int64_t> image_sizes(const tn::Planner& planner) {
  const int32_t space = space_of(planner);
  std::vector<int64_t> sizes;
  for (int32_t i = 1; i <= space; ++i) sizes.push_back(planner.input(0)[i].offset);
  return sizes;
}

tn_ref pooled(tn::Expander& expander, tn_ref value) {
  const tn::Attributes attributes = expander.attributes();
  const std::vector<int64_t> kernel = attributes.integers("pool_kernel");
  const std::vector<int64_t> stride = attributes.integers(pool_stride(attributes));
  return expander.layer("pool", {value},
                        {{"kernel", tn::ints_value(kernel)},
                         {"stride", tn::ints_value(stride)},
                         {"kind", tn::string_value(attributes.text("pool_kind"))}});
}

// A convolution, with a normalisation if `normalise`, and an activation if `activation` is not empty.
struct Step {
  int64_t filters;
  std::vector<int64_t> kernel, stride;
  bool normalise;
  const char* activation;
  size_t number;
};
tn_ref convolved(tn::Expander& expander, tn_ref value, const Step& step) {
  tn_ref made = expander.layer("conv", {value},
                               {{"filters", tn::int_value(step.filters)},
                                {"kernel", tn::ints_value(step.kernel)},
                                {"stride", tn::ints_value(step.stride)},
                                {"same", tn::bool_value(true)},
                                {"bias", tn::bool_value(!step.normalise)}},
                               kConvs[step.number]);
  if (step.normalise) made = expander.layer("batch_norm", {made}, {}, kNorms[step.number]);
  if (step.activation[0] != '\0') made = expander.layer(step.activation, {made}, std::vector<tn::Setting>());
  return made;
}

struct SimpleImageConvPool {
  static void describe(tn::LayerDescription& d) {
    d.type("simple_img_conv_pool", "A convolution without padding, an activation, and a pooling.");
    d.input("input", "[samples, space..., channels]");
    d.output("output", "[samples, places..., filters]");
    d.attribute(tn::int_attribute("filters").required().at_least(1).doc("channels of the output"));
    d.attribute(tn::ints_attribute("kernel").required().at_least(1).doc("kernel of the convolution"));
    d.attribute(tn::string_attribute("activation", "relu").doc("type of a layer; empty: none"));
    describe_pool(d);
    d.parameter("weight");
    d.parameter("bias");
  }
  static void plan(tn::Planner& planner) {
    const tn::Attributes attributes = planner.attributes();
    plan_pooled(planner, windowed(planner, image_sizes(planner), "kernel", nullptr), attributes.integer("filters"));
  }
  static bool expand(tn::Expander& expander) {
    const tn::Attributes attributes = expander.attributes();
    const std::vector<int64_t> kernel = attributes.integers("kernel");
    tn_ref made =
        expander.layer("conv", {expander.input(0)},
                       {{"filters", tn::int_value(attributes.integer("filters"))}, {"kernel", tn::ints_value(kernel)}});
    const char* const activation = attributes.text("activation");
    if (activation[0] != '\0') made = expander.layer(activation, {made}, std::vector<tn::Setting>());
    expander.output(0, pooled(expander, made));
    return true;
  }
};

struct ImageConvGroup {
  static void describe(tn::LayerDescription& d) {
    d.type(
        "img_conv_group",
        "Some convolutions that keep the size, each with an activation and perhaps a batch normalisation before it and "
        "a dropout after it, and a pooling (Simonyan and Zisserman, \"Very deep convolutional networks for "
        "large-scale image recognition\", 2014).");
    d.input("input", "[samples, space..., channels]");
    d.output("output", "[samples, places..., filters of the last convolution]");
    d.attribute(tn::ints_attribute("filters").required().at_least(1).doc("of each convolution; at most 5"));
    d.attribute(tn::ints_attribute("kernel").at_least(1).doc("kernel of the convolutions; 3 when absent"));
    d.attribute(tn::string_attribute("activation", "relu").doc("type of a layer; empty: none"));
    d.attribute(tn::bool_attribute("batch_norm", false).doc("normalise before each activation"));
    d.attribute(tn::floats_attribute("drop_rates")
                    .at_least(0)
                    .at_most(0.999)
                    .doc("of a dropout after each convolution, one number or one for each; 0, none, when absent"));
    describe_pool(d);
    describe_parameters<0>(d);
    describe_parameters<1>(d);
    describe_parameters<2>(d);
    describe_parameters<3>(d);
    describe_parameters<4>(d);
  }
  static std::vector<double> drop_rates(const tn::Attributes& attributes) {
    const size_t convs = attributes.integers("filters").size();
    std::vector<double> rates =
        attributes.has("drop_rates") ? attributes.numbers("drop_rates") : std::vector<double>{0};
    if (rates.size() == 1) rates.resize(convs, rates[0]);
    if (rates.size() != convs)
      throw tn::Failure(
          TN_INVALID, "drop_rates",
          "has " + std::to_string(rates.size()) + " numbers for " + std::to_string(convs) + " convolutions");
    return rates;
  }
  static void plan(tn::Planner& planner) {
    const std::vector<int64_t> sizes = image_sizes(planner);
    const size_t convs = planner.attributes().integers("filters").size();
    if (convs < 1 || convs > kMostConvs)
      throw tn::Failure(TN_INVALID, "filters", "states " + std::to_string(convs) + " convolutions; expected 1 to 5");
    drop_rates(planner.attributes());
    plan_pooled(planner, sizes, planner.attributes().integers("filters").back());
  }
  static bool expand(tn::Expander& expander) {
    const tn::Attributes attributes = expander.attributes();
    const std::vector<int64_t> filters = attributes.integers("filters");
    const std::vector<double> rates = drop_rates(attributes);
    const std::vector<int64_t> kernel =
        attributes.has("kernel") ? attributes.integers("kernel") : std::vector<int64_t>{3};
    tn_ref made = expander.input(0);
    for (size_t i = 0; i < filters.size(); ++i) {
      made = convolved(expander, made,
                       {filters[i], kernel, {1}, attributes.flag("batch_norm"), attributes.text("activation"), i});
      if (rates[i] > 0) made = expander.layer("dropout", {made}, {{"rate", tn::float_value(rates[i])}});
    }
    expander.output(0, pooled(expander, made));
    return true;
  }
};

struct ResidualBlock {
  static void describe(tn::LayerDescription& d) {
    d.type("residual_block",
           "A residual block: output = relu(shortcut(input) + f(input)), where f is two convolutions with kernel 3, or "
           "with bottleneck three with kernels 1, 3, 1 of which the last has 4 times the filters, each normalised over "
           "the minibatch, with relu between them. The shortcut is the input itself, or, if the sizes differ, a "
           "convolution with kernel 1, normalised (He et al., \"Deep residual learning for image recognition\", 2015; "
           "its option B).");
    d.input("input", "[samples, space..., channels]");
    d.output("output", "[samples, space / stride..., filters]; with bottleneck 4 times the filters");
    d.attribute(tn::int_attribute("filters").required().at_least(1).doc("of the first convolution"));
    d.attribute(tn::int_attribute("stride", 1)
                    .at_least(1)
                    .doc("of the first convolution; with bottleneck of the second; and of the shortcut"));
    d.attribute(tn::bool_attribute("bottleneck", false).doc("three convolutions in place of two"));
    describe_parameters<0>(d);
    describe_parameters<1>(d);
    describe_parameters<2>(d);
    describe_parameters<3>(d);
  }
  static void plan(tn::Planner& planner) {
    const tn::Attributes attributes = planner.attributes();
    const int64_t stride = attributes.integer("stride"), filters = attributes.integer("filters");
    std::vector<int64_t> sizes = image_sizes(planner);
    for (int64_t& size : sizes) size = (size + stride - 1) / stride;
    if (filters > INT64_MAX / 4) throw tn::Failure(TN_INVALID, "filters", "are more than 2^61");
    plan_images(planner, sizes, attributes.flag("bottleneck") ? 4 * filters : filters);
  }
  static bool expand(tn::Expander& expander) {
    const tn::Attributes attributes = expander.attributes();
    const int64_t filters = attributes.integer("filters"), stride = attributes.integer("stride");
    const bool deep = attributes.flag("bottleneck");
    const tn_ref input = expander.input(0);
    const int64_t last = deep ? 4 * filters : filters;
    tn_ref made = {};
    if (deep) {
      made = convolved(expander, input, {filters, {1}, {1}, true, "relu", 0});
      made = convolved(expander, made, {filters, {3}, {stride}, true, "relu", 1});
      made = convolved(expander, made, {last, {1}, {1}, true, "", 2});
    } else {
      made = convolved(expander, input, {filters, {3}, {stride}, true, "relu", 0});
      made = convolved(expander, made, {filters, {3}, {1}, true, "", 1});
    }
    const bool same = stride == 1 && expander.spec(0).back().offset == last;
    const tn_ref shortcut = same ? input : convolved(expander, input, {last, {1}, {stride}, true, "", 3});
    expander.output(0, expander.layer("relu", {expander.layer("add", {made, shortcut})}));
    return true;
  }
};

}  // namespace

void add_blocks(tn::Plugin& plugin) {
  plugin.layer<SimpleImageConvPool>();
  plugin.layer<ImageConvGroup>();
  plugin.layer<ResidualBlock>();
}

}  // namespace tenon::convolution
