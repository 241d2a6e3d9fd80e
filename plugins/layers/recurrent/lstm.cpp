// Long short-term memory. SPDX-License-Identifier: Apache-2.0
#include "recurrent.h"

namespace tenon::recurrent {

namespace {

using tn::Float;
using tn::Tensor;

enum Gate : int64_t { kInput = 0, kForget = 1, kCandidate = 2, kOutput = 3 };

// The computation of one step from the sums of the gates.
class Cell {
 public:
  struct Next {
    Tensor output, cell;
  };
  // peepholes: number of the parameter. cell: what the step before left, [steps, size].
  Cell(const tn::Attributes& attributes, tn::Builder& body, uint32_t peepholes, const Tensor& cell)
      : body_(body),
        cell_(cell),
        size_(cell.spec()[1].offset),
        forget_bias_(attributes.number("forget_bias")),
        has_peepholes_(attributes.flag("peepholes")),
        peepholes_(peepholes) {}

  int64_t size() const { return size_; }
  // sum(gate): z of a gate without peepholes.
  template <typename Sum>
  Next next(const Sum& sum) const {
    const Tensor cell = next_cell(seen(sum(kInput), cell_, 0), seen(sum(kForget), cell_, 1), sum(kCandidate));
    return {next_output(seen(sum(kOutput), cell, 2), cell), cell};
  }

 private:
  // Adds what a gate sees of a cell.
  Tensor seen(const Tensor& z, const Tensor& cell, int64_t peephole) const {
    if (!has_peepholes_) return z;
    const Tensor weight = body_.slice(body_.parameter(peepholes_), 0, peephole, 1).view(tn::Spec({size_}));
    tn::Program add;
    const Float x = add.full(), value = add.full();
    add.output(x + value * add.per_column());
    return body_.pointwise(add, {z, cell, weight}).front();
  }

  // The gradients read the values of the gates, not what these are computed from.
  Tensor next_cell(const Tensor& z_input, const Tensor& z_forget, const Tensor& z_candidate) const {
    tn::Program forward;
    const Float zi = forward.full(), zf = forward.full(), zg = forward.full(), c = forward.full();
    const Float i = sigmoid(zi), f = sigmoid(zf + forget_bias_), g = tanh(zg);
    forward.output(f * c + i * g);
    forward.output(i);
    forward.output(f);
    forward.output(g);
    tn::GradientProgram backward(forward);
    const Float in = backward.result(1), forget = backward.result(2), candidate = backward.result(3);
    const Float given = backward.result_gradient(0);
    backward.output(given * candidate * in * (1 - in));
    backward.output(given * backward.input(3) * forget * (1 - forget));
    backward.output(given * in * (1 - candidate * candidate));
    backward.output(given * forget);
    return body_.pointwise(forward, {z_input, z_forget, z_candidate, cell_}, 1, &backward).front();
  }

  Tensor next_output(const Tensor& z_output, const Tensor& cell) const {
    tn::Program forward;
    const Float o = sigmoid(forward.full()), t = tanh(forward.full());
    forward.output(o * t);
    forward.output(o);
    forward.output(t);
    tn::GradientProgram backward(forward);
    const Float out = backward.result(1), bounded = backward.result(2), given = backward.result_gradient(0);
    backward.output(given * bounded * out * (1 - out));
    backward.output(given * out * (1 - bounded * bounded));
    return body_.pointwise(forward, {z_output, cell}, 1, &backward).front();
  }

  tn::Builder& body_;
  const Tensor cell_;
  const int64_t size_;
  const double forget_bias_;
  const bool has_peepholes_;
  const uint32_t peepholes_;
};

void describe_cell(tn::LayerDescription& d) {
  d.attribute(tn::bool_attribute("peepholes", false).doc("whether the gates see c"));
  d.attribute(tn::float_attribute("forget_bias", 0).doc("added to z_f"));
  d.parameter("peepholes");
}

void plan_cell(tn::Planner& planner, int64_t size) {
  if (planner.attributes().flag("peepholes"))
    planner.parameter("peepholes", tn::Spec({int64_t{3}, size}), tn::constant_initializer(0));
}

struct Lstm {
  static void describe(tn::LayerDescription& d) {
    d.type("lstm",
           "Long short-term memory (Hochreiter and Schmidhuber, 1997, with the forget gate of Gers et al., 2000): with "
           "z = x_t weight + h_{t-1} recurrent_weight + bias, cut into z_i, z_f, z_g, z_o in this order, c_t = "
           "sigmoid(z_f + forget_bias) c_{t-1} + sigmoid(z_i) tanh(z_g) and h_t = sigmoid(z_o) tanh(c_t). With "
           "peepholes p_i c_{t-1}, p_f c_{t-1} and p_o c_t are added to z_i, z_f and z_o, element by element (Gers and "
           "Schmidhuber, \"Recurrent nets that time and count\", 2000). Both weights start uniform in +-1 / "
           "sqrt(size), bias and peepholes at 0.");
    describe_common(d);
    d.input("initial_cell", "[samples, size]: c before the first row; zeros when absent", TN_PORT_OPTIONAL);
    describe_cell(d);
    d.output("output", "[rows, size]: h_t of each row");
    d.output("last", "[samples, size]: h after the last row; of an empty sequence the initial state");
    d.output("last_cell", "[samples, size]: c after the last row");
  }

  static void plan(tn::Planner& planner) {
    plan_common(planner, 4, 3);
    plan_cell(planner, planner.attributes().integer("size"));
  }

  static void step(tn::Stepper& stepper) {
    const tn::Attributes attributes = stepper.attributes();
    const StepStart start = begin_step(stepper, 4);
    const tn_ref cell = stepper.memory(start.state_spec, 2);
    const tn_ref next = stepper.layer("lstm_step", {start.gates, cell, start.state},
                                      {{"peepholes", tn::bool_value(attributes.flag("peepholes"))},
                                       {"forget_bias", tn::float_value(attributes.number("forget_bias"))}});
    stepper.next(start.state, next);
    stepper.next(cell, stepper.output_of(next, 1));
    stepper.output(0, next);
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    Recurrence recurrence(attributes, body, 4);
    const Tensor h = recurrence.memory(1), c = recurrence.memory(2);
    const Cell cell(attributes, body, attributes.flag("bias") ? 3 : 2, c);
    const Cell::Next next = cell.next([&](Gate which) { return recurrence.gate(h, which); });
    recurrence.next(c, next.cell);
    recurrence.next(h, next.output);
    recurrence.end(next.output, {h, c});
  }
};

// One step of it, for scans that users write.
struct LstmStep {
  static void describe(tn::LayerDescription& d) {
    d.type("lstm_step",
           "One step of the layer lstm, for use inside of a scan: the input gates is z, cut into z_i, z_f, z_g, z_o in "
           "this order, such as an fc of the row and of the output of the step before. c = sigmoid(z_f + forget_bias) "
           "cell + sigmoid(z_i) tanh(z_g) and output = sigmoid(z_o) tanh(c). With peepholes as in lstm. With a state, "
           "state recurrent_weight is added to z; recurrent_weight starts uniform in +-1 / sqrt(size).");
    d.input("gates", "[samples, 4 * size]: z");
    d.input("cell", "[samples, size]: c that the step before left");
    d.input("state", "[samples, size]: the output that the step before left", TN_PORT_OPTIONAL);
    describe_cell(d);
    d.parameter("recurrent_weight");
    d.output("output", "[samples, size]: h");
    d.output("next_cell", "[samples, size]: c for the next step");
  }

  static void plan(tn::Planner& planner) {
    const int64_t size = plan_step(planner, 4);
    plan_cell(planner, size);
    if (planner.has_input(kState)) {
      planner.require_shape(kState, planner.input(1));
      plan_recurrent_weight(planner, 4, size);
    }
    planner.output(0, planner.input(1));
    planner.output(1, planner.input(1));
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const Tensor c = body.input(1);
    const Tensor z = with_state(attributes, body);
    const Cell cell(attributes, body, 0, c);
    const Cell::Next next = cell.next([&](Gate which) { return part_of(body, z, which, cell.size()); });
    body.output(0, next.output);
    body.output(1, next.cell);
  }

 private:
  static constexpr uint32_t kState = 2;

  // z, with what the state adds to it.
  static Tensor with_state(const tn::Attributes& attributes, tn::Builder& body) {
    const Tensor z = body.input(0);
    const std::optional<Tensor> state = body.optional_input(kState);
    if (!state) return z;
    return sum(body, body.gemm(*state, body.parameter(attributes.flag("peepholes") ? 1 : 0)), z);
  }
};

}  // namespace

void add_lstm(tn::Plugin& plugin) {
  plugin.layer<Lstm>();
  plugin.layer<LstmStep>();
}

}  // namespace tenon::recurrent
