// Batch normalisation. SPDX-License-Identifier: Apache-2.0
#include "norms.h"

namespace tenon::norms {

namespace {

using tn::Float;

struct BatchNorm {
  static void describe(tn::LayerDescription& d) {
    d.type(
        "batch_norm",
        "Batch normalisation of each feature, a place along the last dimension: output = scale (x - mean) / "
        "sqrt(variance + epsilon) + shift (Ioffe and Szegedy, \"Batch normalization\", 2015). In training mean and "
        "variance (divided by the number of values) are those of all values of the feature in the minibatch, and the "
        "buffers moving_mean and moving_variance move towards them: moving = momentum moving + (1 - momentum) new, "
        "the variance divided by one value less. A single value has the variance 0: its output is shift, and its "
        "gradient 0; minibatches of one value each teach the buffers nothing, so that a training drops a last one. "
        "Inference, and with frozen training as well, uses the buffers. "
        "Where a minibatch is divided among devices, each normalises its part, and the buffers become the mean of "
        "those of the parts. scale and shift are parameters, 1 and 0 at first.");
    d.input("input", "[samples, ..., features]");
    d.output("output", "the shape of the input");
    d.attribute(tn::float_attribute("epsilon", 1e-5).at_least(0).doc("added under the root, against division by 0"));
    d.attribute(tn::float_attribute("momentum", 0.9)
                    .at_least(0)
                    .at_most(1)
                    .doc("share of the buffers that remains at each step (PyTorch states the other share)"));
    d.attribute(tn::bool_attribute("learnable", true).doc("whether there are scale and shift"));
    d.attribute(tn::bool_attribute("frozen", false).doc("use the buffers in training too, and leave them"));
    for (const char* suffix : {"scale", "shift", "moving_mean", "moving_variance"}) d.parameter(suffix);
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec input = planner.input(0);
    if (input.rank() < 2) throw planner.bad_input(0, "must be [samples, ..., features]");
    planner.elements(0, 1);
    const tn::Spec features({planner.elements(0, input.rank() - 1)});
    if (planner.attributes().flag("learnable")) {
      planner.parameter("scale", features, tn::constant_initializer(1));
      planner.parameter("shift", features, tn::constant_initializer(0));
    }
    planner.buffer("moving_mean", features, tn::constant_initializer(0));
    planner.buffer("moving_variance", features, tn::constant_initializer(1));
    planner.output(0, input.as(TN_COMPUTE));
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    if (body.training() && !attributes.flag("frozen")) return normalise(attributes, body);
    std::vector<tn::Tensor> operands{body.input(0), body.buffer(0), body.buffer(1)};
    tn::Program program;
    // One product and one sum for each value: what is computed of the features alone is computed once for many values.
    const Float x = program.full();
    const Float mean = program.per_column();
    Float factor = 1 / sqrt(program.per_column() + attributes.number("epsilon"));
    Float added = -mean * factor;
    if (attributes.flag("learnable")) {
      operands.insert(operands.end(), {body.parameter(0), body.parameter(1)});
      factor = factor * program.per_column();
      added = program.per_column() - mean * factor;
    }
    program.output(x * factor + added);
    body.output(0, body.pointwise(program, operands, body.input(0).spec().rank() - 1).front());
  }

 private:
  // scale unit + shift, whose operands are added.
  static Float scaled(const tn::Attributes& attributes, tn::Builder& body, tn::Program& program, const Float& unit,
                      std::vector<tn::Tensor>& operands) {
    if (!attributes.flag("learnable")) return unit;
    operands.insert(operands.end(), {body.parameter(0), body.parameter(1)});
    const Float scale = program.per_column();
    return scale * unit + program.per_column();
  }

  // With statistics of the minibatch. x [rows, features] -> result [rows, features]; mean, 1 / standard deviation and
  // variance [features]; the number of rows, and its inverse.
  static void normalise(const tn::Attributes& attributes, tn::Builder& body) {
    const bool learnable = attributes.flag("learnable");
    std::vector<tn::Tensor> operands{body.input(0)};
    tn::Program forward;
    const Float x = forward.full();
    const Float rows = sum_all(select(forward.row() >= 0, 1.0, 0.0));
    const Float share = 1 / max(rows, 1);
    const Float mean = sum_per_column(x) * share;
    const Float centred = x - mean;
    const Float variance = sum_per_column(centred * centred) * share;
    const Float inverse = 1 / sqrt(variance + attributes.number("epsilon"));
    forward.output(scaled(attributes, body, forward, centred * inverse, operands));
    for (const Float& kept : {mean, inverse, variance, rows, share}) forward.output(kept);

    // With u = (x - mean) inverse and du = scale dy: dx = inverse (du - mean(du) - u mean(du u)), where means are those
    // of a feature; dscale is the sum of dy u over the rows, dshift the sum of dy.
    tn::GradientProgram backward(forward);
    const Float again = (backward.input() - backward.result(1)) * backward.result(2);
    const Float dy = backward.result_gradient();
    const Float sum = sum_per_column(dy), product = sum_per_column(dy * again);
    const Float centred_gradient = dy - (sum + again * product) * backward.result(5);
    const Float factor = learnable ? backward.input(1) * backward.result(2) : backward.result(2);
    backward.output(factor * centred_gradient);
    if (learnable) {
      backward.output(product);
      backward.output(sum);
    }
    const std::vector<tn::Tensor> made = body.pointwise(forward, operands, body.input(0).spec().rank() - 1, &backward);
    body.output(0, made[0]);
    move(attributes.number("momentum"), body, made);
  }

  // The next buffers. A minibatch without rows leaves them.
  static void move(double momentum, tn::Builder& body, const std::vector<tn::Tensor>& made) {
    tn::Program next;
    const Float old_mean = next.per_column(), old_variance = next.per_column();
    const Float mean = next.per_column(), variance = next.per_column();
    const Float rows = next.scalar();
    const Float taken = select(rows > 0, 1 - momentum, 0.0);
    next.output(old_mean + taken * (mean - old_mean));
    const Float unbiased = variance * (rows / max(rows - 1, 1));
    next.output(old_variance + taken * (unbiased - old_variance));
    const std::vector<tn::Tensor> buffers =
        body.pointwise(next, {body.buffer(0), body.buffer(1), made[1], made[3], made[4]}, 0);
    body.buffer_next(0, buffers[0]);
    body.buffer_next(1, buffers[1]);
  }
};

}  // namespace

void add_batch_norm(tn::Plugin& plugin) { plugin.layer<BatchNorm>(); }

}  // namespace tenon::norms
