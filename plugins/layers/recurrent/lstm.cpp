// Long short-term memory. SPDX-License-Identifier: Apache-2.0
#include "recurrent.h"

namespace tenon::recurrent {

namespace {

using tn::Float;
using tn::Tensor;

struct Lstm {
  enum Gate : int64_t { kInput = 0, kForget = 1, kCandidate = 2, kOutput = 3 };

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
    d.attribute(tn::bool_attribute("peepholes", false).doc("whether the gates see c"));
    d.attribute(tn::float_attribute("forget_bias", 0).doc("added to z_f"));
    d.parameter("peepholes");
    d.output("output", "[rows, size]: h_t of each row");
    d.output("last", "[samples, size]: h after the last row; of an empty sequence the initial state");
    d.output("last_cell", "[samples, size]: c after the last row");
  }

  static void plan(tn::Planner& planner) {
    plan_common(planner, 4, 3);
    const int64_t size = planner.attributes().integer("size");
    if (planner.attributes().flag("peepholes"))
      planner.parameter("peepholes", tn::Spec({int64_t{3}, size}), tn::constant_initializer(0));
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const bool peepholes = attributes.flag("peepholes");
    const uint32_t number = attributes.flag("bias") ? 3 : 2;
    Recurrence recurrence(attributes, body, 4);
    const Tensor h = recurrence.memory(1), c = recurrence.memory(2);
    const auto gate = [&](Gate which, const Tensor& cell, int64_t peephole) {
      const Tensor z = recurrence.gate(h, which);
      if (!peepholes) return z;
      const Tensor weight = body.slice(body.parameter(number), 0, peephole, 1).view(tn::Spec({recurrence.size()}));
      tn::Program add;
      const Float x = add.full(), seen = add.full();
      add.output(x + seen * add.per_column());
      return body.pointwise(add, {z, cell, weight}).front();
    };
    const Tensor next_c = next_cell(body, attributes.number("forget_bias"), gate(kInput, c, 0), gate(kForget, c, 1),
                                    recurrence.gate(h, kCandidate), c);
    const Tensor next_h = next_output(body, gate(kOutput, next_c, 2), next_c);
    recurrence.next(c, next_c);
    recurrence.next(h, next_h);
    recurrence.end(next_h, {h, c});
  }

 private:
  // The gradients read the values of the gates, not what these are computed from.
  static Tensor next_cell(tn::Builder& body, double forget_bias, const Tensor& z_input, const Tensor& z_forget,
                          const Tensor& z_candidate, const Tensor& cell) {
    tn::Program forward;
    const Float zi = forward.full(), zf = forward.full(), zg = forward.full(), c = forward.full();
    const Float i = sigmoid(zi), f = sigmoid(zf + forget_bias), g = tanh(zg);
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
    return body.pointwise(forward, {z_input, z_forget, z_candidate, cell}, 1, &backward).front();
  }

  static Tensor next_output(tn::Builder& body, const Tensor& z_output, const Tensor& cell) {
    tn::Program forward;
    const Float o = sigmoid(forward.full()), t = tanh(forward.full());
    forward.output(o * t);
    forward.output(o);
    forward.output(t);
    tn::GradientProgram backward(forward);
    const Float out = backward.result(1), bounded = backward.result(2), given = backward.result_gradient(0);
    backward.output(given * bounded * out * (1 - out));
    backward.output(given * out * (1 - bounded * bounded));
    return body.pointwise(forward, {z_output, cell}, 1, &backward).front();
  }
};

}  // namespace

void add_lstm(tn::Plugin& plugin) { plugin.layer<Lstm>(); }

}  // namespace tenon::recurrent
