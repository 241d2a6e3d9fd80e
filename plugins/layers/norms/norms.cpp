// Normalisations of the features of a sample. SPDX-License-Identifier: Apache-2.0
#include "norms.h"

namespace tenon::norms {

using tn::Float;

tn::Tensor normalised_rows(double epsilon, tn::Builder& body, const std::vector<tn::Tensor>& operands,
                           int32_t leading) {
  const tn::Spec input = operands[0].spec();
  const bool learnable = operands.size() > 1;
  int64_t columns = 1;
  for (int32_t i = leading; i < input.rank(); ++i) columns *= input[i].offset;
  const double share = 1 / static_cast<double>(columns);

  // result [rows, columns]; mean and inverse standard deviation [rows], which the gradient reads.
  tn::Program forward;
  const Float x = forward.full();
  const Float mean = sum_per_row(x) * share;
  const Float centred = x - mean;
  const Float inverse = 1 / sqrt(sum_per_row(centred * centred) * share + epsilon);
  const Float unit = centred * inverse;
  if (learnable) {
    const Float scale = forward.per_column();
    forward.output(scale * unit + forward.per_column());
  } else {
    forward.output(unit);
  }
  forward.output(mean);
  forward.output(inverse);

  // With u = (x - mean) * inverse and du = scale * dy: dx = inverse * (du - mean(du) - u * mean(du * u)); dscale is
  // the sum of dy * u over the rows, dshift the sum of dy.
  tn::GradientProgram backward(forward);
  const Float again = (backward.input() - backward.result(1)) * backward.result(2);
  const Float dy = backward.result_gradient();
  const Float du = learnable ? dy * backward.input(1) : dy;
  backward.output(backward.result(2) * (du - sum_per_row(du) * share - again * (sum_per_row(du * again) * share)));
  if (learnable) {
    backward.output(sum_per_column(dy * again));
    backward.output(sum_per_column(dy));
  }
  return body.pointwise(forward, operands, leading, &backward).front();
}

namespace {

// The shape of scale and shift, [features]. The layers here normalise along the last dimension; the other ones are the
// rows of the grid.
tn::Spec features_of(const tn::Planner& planner) {
  const tn::Spec input = planner.input(0);
  if (input.rank() < 2) throw planner.bad_input(0, "must be [samples, ..., features]");
  return tn::Spec({planner.elements(0, input.rank() - 1)});
}

void describe_ports(tn::LayerDescription& d) {
  d.input("input", "[samples, ..., features]");
  d.output("output", "the shape of the input");
  d.attribute(tn::float_attribute("epsilon", 1e-5).at_least(0).doc("added under the root, against division by 0"));
}

struct LayerNorm {
  static void describe(tn::LayerDescription& d) {
    d.type("layer_norm",
           "Layer normalisation over the last dimension: output = scale (x - mean) / sqrt(variance + epsilon) + shift, "
           "where mean and variance (divided by the number of features) are those of the row (Ba, Kiros and Hinton, "
           "\"Layer normalization\", 2016). scale and shift are parameters with one number for each feature, 1 and 0 "
           "at first.");
    describe_ports(d);
    d.attribute(tn::bool_attribute("learnable", true).doc("whether there are scale and shift"));
    d.parameter("scale");
    d.parameter("shift");
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec features = features_of(planner);
    if (planner.attributes().flag("learnable")) {
      planner.parameter("scale", features, tn::constant_initializer(1));
      planner.parameter("shift", features, tn::constant_initializer(0));
    }
    planner.output(0, planner.input(0).as(TN_COMPUTE));
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    std::vector<tn::Tensor> operands{body.input(0)};
    if (attributes.flag("learnable")) operands.insert(operands.end(), {body.parameter(0), body.parameter(1)});
    body.output(0, normalised_rows(attributes.number("epsilon"), body, operands, operands[0].spec().rank() - 1));
  }
};

struct RmsNorm {
  static void describe(tn::LayerDescription& d) {
    d.type("rms_norm",
           "Normalisation by the root of the mean square over the last dimension: output = scale x / sqrt(mean(x * x) "
           "+ epsilon) + shift (Zhang and Sennrich, \"Root mean square layer normalization\", 2019). scale is a "
           "parameter with one number for each feature, 1 at first; so is shift, 0 at first, where it is asked for.");
    describe_ports(d);
    d.attribute(tn::bool_attribute("learnable", true).doc("whether there is a scale"));
    d.attribute(tn::bool_attribute("shift", false).doc("whether there is a shift; needs learnable"));
    d.parameter("scale");
    d.parameter("shift");
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec features = features_of(planner);
    const bool learnable = planner.attributes().flag("learnable");
    const bool shift = planner.attributes().flag("shift");
    if (shift && !learnable) throw tn::Failure(TN_INVALID, "shift", "needs learnable");
    if (learnable) planner.parameter("scale", features, tn::constant_initializer(1));
    if (shift) planner.parameter("shift", features, tn::constant_initializer(0));
    planner.output(0, planner.input(0).as(TN_COMPUTE));
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Tensor input = body.input(0);
    const bool learnable = attributes.flag("learnable");
    const bool shift = attributes.flag("shift");
    const double share = 1 / static_cast<double>(input.spec().back().offset);  // from a sum to a mean

    // x [rows, features], scale and shift [features] -> result [rows, features]; inverse root mean square [rows], which
    // the gradient reads.
    tn::Program forward;
    const Float x = forward.full();
    const Float inverse = 1 / sqrt(sum_per_row(x * x) * share + attributes.number("epsilon"));
    std::vector<tn::Tensor> operands{input};
    Float result = x * inverse;
    if (learnable) {
      result = result * forward.per_column();
      operands.push_back(body.parameter(0));
    }
    if (shift) {
      result = result + forward.per_column();
      operands.push_back(body.parameter(1));
    }
    forward.output(result);
    forward.output(inverse);

    // With u = x * inverse and du = scale * dy: dx = inverse * (du - u * mean(du * u)); dscale is the sum of dy * u
    // over the rows, dshift the sum of dy.
    tn::GradientProgram backward(forward);
    const Float kept = backward.result(1);
    const Float unit = backward.input() * kept;
    const Float dy = backward.result_gradient();
    const Float du = learnable ? dy * backward.input(1) : dy;
    backward.output(kept * (du - unit * (sum_per_row(du * unit) * share)));
    if (learnable) backward.output(sum_per_column(dy * unit));
    if (shift) backward.output(sum_per_column(dy));
    body.output(0, body.pointwise(forward, operands, input.spec().rank() - 1, &backward).front());
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.norms", "0.1.0", "Normalisations of the features of a sample", "Apache-2.0");
  plugin.layer<LayerNorm>();
  plugin.layer<RmsNorm>();
  add_batch_norm(plugin);
  add_group_norms(plugin);
  add_standardize(plugin);
  add_lengths(plugin);
}

}  // namespace

}  // namespace tenon::norms

const tn_plugin* tenon_plugin() { return tn::entry<tenon::norms::describe>(); }
