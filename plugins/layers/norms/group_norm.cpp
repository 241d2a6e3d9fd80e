// Normalisations over the positions and a group of channels of a sample. SPDX-License-Identifier: Apache-2.0
#include <string>

#include "norms.h"

namespace tenon::norms {

namespace {

// Dimensions between the samples and the channels are positions. input [samples, positions..., channels] is read as
// [samples, positions, groups, size], where a group is `size` neighbouring channels.
struct Layout {
  tn::Dim samples;
  int64_t positions, groups, size;
};

Layout layout_of(const tn::Spec& input, int64_t groups) {
  Layout layout = {input[0], 1, groups, input.back().offset / groups};
  for (int32_t i = 1; i + 1 < input.rank(); ++i) layout.positions *= input[i].offset;
  return layout;
}

void describe_group(tn::LayerDescription& d, const char* form) {
  d.input("input", form);
  d.output("output", "the shape of the input");
  d.attribute(tn::float_attribute("epsilon", 1e-5).at_least(0).doc("added under the root, against division by 0"));
  d.attribute(tn::bool_attribute("learnable", true).doc("whether there are scale and shift"));
  d.parameter("scale");
  d.parameter("shift");
}

// The input has been checked to have constant dimensions and a number of channels that `groups` divides.
void plan_group(tn::Planner& planner, int64_t groups) {
  const tn::Spec input = planner.input(0);
  const Layout layout = layout_of(input, groups);
  if (layout.positions * layout.size == 1)
    throw planner.bad_input(
        0, "has one number in each of " + std::to_string(groups) + " groups, which would be its own mean");
  if (planner.attributes().flag("learnable")) {
    planner.parameter("scale", tn::Spec({input.back()}), tn::constant_initializer(1));
    planner.parameter("shift", tn::Spec({input.back()}), tn::constant_initializer(0));
  }
  planner.output(0, input.as(TN_COMPUTE));
}

void lower_group(const tn::Attributes& attributes, tn::Builder& body, int64_t groups) {
  const tn::Tensor input = body.input(0);
  const Layout layout = layout_of(input.spec(), groups);
  // Rows are groups: [samples, groups, positions, size].
  const std::vector<int32_t> exchange{0, 2, 1, 3};
  const bool moves = layout.positions > 1 && groups > 1;
  tn::Tensor rows = input.view(tn::Spec({layout.samples, layout.positions, groups, layout.size}));
  if (moves)
    rows = body.transpose(rows, exchange);
  else
    rows = rows.view(tn::Spec({layout.samples, groups, layout.positions, layout.size}));
  tn::Tensor result = normalised_rows(attributes.number("epsilon"), body, {rows}, 2);
  if (moves) result = body.transpose(result, exchange);
  result = result.view(input.spec());
  if (!attributes.flag("learnable")) return body.output(0, result);
  tn::Program program;
  const tn::Float x = program.full(), scale = program.per_column();
  program.output(scale * x + program.per_column());
  const std::vector<tn::Tensor> operands{result, body.parameter(0), body.parameter(1)};
  body.output(0, body.pointwise(program, operands, input.spec().rank() - 1).front());
}

struct GroupNorm {
  static void describe(tn::LayerDescription& d) {
    d.type("group_norm",
           "Group normalisation: output = scale (x - mean) / sqrt(variance + epsilon) + shift, where mean and variance "
           "(divided by the number of values) are those of a sample's values of a group of neighbouring channels, at "
           "all positions (Wu and He, \"Group normalization\", 2018). Channels are the last dimension, as in "
           "batch_norm; the dimensions before it are positions. scale and shift are parameters with one number for "
           "each channel, 1 and 0 at first.");
    describe_group(d, "[samples, ..., channels]");
    d.attribute(tn::int_attribute("groups").required().at_least(1).doc("a divisor of the number of channels"));
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec input = planner.input(0);
    if (input.rank() < 2) throw planner.bad_input(0, "must be [samples, ..., channels]");
    planner.elements(0, 1);
    const int64_t groups = planner.attributes().integer("groups");
    if (input.back().offset % groups != 0)
      throw planner.bad_input(0, "has a number of channels that " + std::to_string(groups) + " groups do not divide");
    plan_group(planner, groups);
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    lower_group(attributes, body, attributes.integer("groups"));
  }
};

struct InstanceNorm {
  static void describe(tn::LayerDescription& d) {
    d.type("instance_norm",
           "Instance normalisation: output = scale (x - mean) / sqrt(variance + epsilon) + shift, where mean and "
           "variance (divided by the number of positions) are those of a sample's values of a channel, at all "
           "positions (Ulyanov, Vedaldi and Lempitsky, \"Instance normalization\", 2016). Channels are the last "
           "dimension, as in batch_norm; the dimensions before it are positions. Inference computes the same. scale "
           "and shift are parameters with one number for each channel, 1 and 0 at first.");
    describe_group(d, "[samples, positions..., channels]");
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec input = planner.input(0);
    if (input.rank() < 3) throw planner.bad_input(0, "must be [samples, positions..., channels]");
    planner.elements(0, 1);
    plan_group(planner, input.back().offset);
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    lower_group(attributes, body, body.input(0).spec().back().offset);
  }
};

}  // namespace

void add_group_norms(tn::Plugin& plugin) {
  plugin.layer<GroupNorm>();
  plugin.layer<InstanceNorm>();
}

}  // namespace tenon::norms
