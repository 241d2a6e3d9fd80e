// Gated recurrent unit. SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "recurrent.h"

namespace tenon::recurrent {

namespace {

using tn::Float;
using tn::Tensor;

enum Gate : int64_t { kUpdate = 0, kReset = 1, kCandidate = 2 };

// sigmoid(z) h, and the gate. The gradients read the values of the gates, not what these are computed from.
std::vector<Tensor> reset(tn::Builder& body, const Tensor& z, const Tensor& h) {
  tn::Program forward;
  const Float r = sigmoid(forward.full()), state = forward.full();
  forward.output(r * state);
  forward.output(r);
  tn::GradientProgram backward(forward);
  const Float gate = backward.result(1), given = backward.result_gradient(0);
  backward.output(given * backward.input(1) * gate * (1 - gate));
  backward.output(given * gate);
  return body.pointwise(forward, {z, h}, 1, &backward);
}

// (1 - u) h + u c with u = sigmoid(z_update) and c = tanh(z_candidate).
Tensor mixed(tn::Builder& body, const Tensor& z_update, const Tensor& z_candidate, const Tensor& h) {
  tn::Program forward;
  const Float u = sigmoid(forward.full()), c = tanh(forward.full()), state = forward.full();
  forward.output(state + u * (c - state));
  forward.output(u);
  forward.output(c);
  tn::GradientProgram backward(forward);
  const Float update = backward.result(1), candidate = backward.result(2), given = backward.result_gradient(0);
  backward.output(given * (candidate - backward.input(2)) * update * (1 - update));
  backward.output(given * update * (1 - candidate * candidate));
  backward.output(given * (1 - update));
  return body.pointwise(forward, {z_update, z_candidate, h}, 1, &backward).front();
}

// r (value + b) + input with r = sigmoid(z_reset), all [.., size]: the sum of the candidate with reset_after.
Tensor reset_product(tn::Builder& body, const Tensor& z_reset, const Tensor& value, const Tensor& input,
                     const Tensor& bias) {
  tn::Program add;
  const Float given_value = add.full();
  add.output(given_value + add.per_column());
  const Tensor product = body.pointwise(add, {value, bias}).front();
  tn::Program forward;
  const Float r = sigmoid(forward.full()), factor = forward.full(), rest = forward.full();
  forward.output(r * factor + rest);
  forward.output(r);
  tn::GradientProgram backward(forward);
  const Float gate = backward.result(1), given = backward.result_gradient(0);
  backward.output(given * backward.input(1) * gate * (1 - gate));
  backward.output(given * gate);
  backward.output(given);
  return body.pointwise(forward, {z_reset, product, input}, 1, &backward).front();
}

// h for the next step. product(value, gate): by U of the gate; input(gate): the sum of the rest; bias: with reset_after
// that of the candidate's product.
template <typename Product, typename Input>
Tensor next_state(tn::Builder& body, const Tensor& h, const Product& product, const Input& input,
                  const std::optional<Tensor>& bias) {
  const auto gate = [&](const Tensor& value, Gate of) { return sum(body, product(value, of), input(of)); };
  const Tensor z_reset = gate(h, kReset);
  if (bias)
    return mixed(body, gate(h, kUpdate), reset_product(body, z_reset, product(h, kCandidate), input(kCandidate), *bias),
                 h);
  const std::vector<Tensor> gated = reset(body, z_reset, h);
  return mixed(body, gate(h, kUpdate), gate(gated.front(), kCandidate), h);
}

void describe_reset(tn::LayerDescription& d) {
  d.attribute(
      tn::bool_attribute("reset_after", false)
          .doc("whether r multiplies the product with U_c, c = tanh(x_t W_c + b_c + r (h U_c + candidate_bias)), "
               "as in PyTorch and cuDNN; candidate_bias starts at 0"));
  d.parameter("candidate_bias");
}

void plan_reset(tn::Planner& planner, int64_t size) {
  if (planner.attributes().flag("reset_after"))
    planner.parameter("candidate_bias", tn::Spec({size}), tn::constant_initializer(0));
}

struct Gru {
  static void describe(tn::LayerDescription& d) {
    d.type(
        "gru",
        "Gated recurrent unit (Cho et al., \"Learning phrase representations using RNN encoder-decoder for "
        "statistical machine translation\", 2014): weight, recurrent_weight and bias are cut into W_u, W_r, W_c; U_u, "
        "U_r, U_c; b_u, b_r, b_c in this order. u = sigmoid(x_t W_u + h_{t-1} U_u + b_u), r = sigmoid(x_t W_r + "
        "h_{t-1} U_r + b_r), c = tanh(x_t W_c + (r h_{t-1}) U_c + b_c) and h_t = (1 - u) h_{t-1} + u c. Both weights "
        "start uniform in +-1 / sqrt(size), the bias at 0.");
    describe_common(d);
    describe_reset(d);
    d.output("output", "[rows, size]: h_t of each row");
    d.output("last", "[samples, size]: h after the last row; of an empty sequence the initial state");
  }

  static void plan(tn::Planner& planner) {
    plan_common(planner, 3, 2);
    plan_reset(planner, planner.attributes().integer("size"));
  }

  static void step(tn::Stepper& stepper) {
    const StepStart start = begin_step(stepper, 3);
    const tn_ref next = stepper.layer("gru_step", {start.gates, start.state},
                                      {{"reset_after", tn::bool_value(stepper.attributes().flag("reset_after"))}});
    stepper.next(start.state, next);
    stepper.output(0, next);
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    Recurrence recurrence(attributes, body, 3);
    const Tensor h = recurrence.memory(1);
    std::optional<Tensor> bias;
    if (attributes.flag("reset_after")) bias = body.parameter(attributes.flag("bias") ? 3 : 2);
    const Tensor next = next_state(
        body, h, [&](const Tensor& value, Gate gate) { return recurrence.product(value, gate); },
        [&](Gate gate) { return recurrence.input(gate); }, bias);
    recurrence.next(h, next);
    recurrence.end(next, {h});
  }
};

// One step of it, for scans that users write.
struct GruStep {
  static void describe(tn::LayerDescription& d) {
    d.type(
        "gru_step",
        "One step of the layer gru, for use inside of a scan: the input gates, cut into z_u, z_r, z_c in this order, "
        "is x W + b, such as an fc of the row; recurrent_weight is cut into U_u, U_r, U_c. u = sigmoid(z_u + state "
        "U_u), r = sigmoid(z_r + state U_r), c = tanh(z_c + (r state) U_c) and output = (1 - u) state + u c. "
        "recurrent_weight starts uniform in +-1 / sqrt(size).");
    d.input("gates", "[samples, 3 * size]: x W + b");
    d.input("state", "[samples, size]: what the step before left");
    d.parameter("recurrent_weight");
    describe_reset(d);
    d.output("output", "[samples, size]: the state for the next step");
  }

  static void plan(tn::Planner& planner) {
    const int64_t size = plan_step(planner, 3);
    plan_recurrent_weight(planner, 3, size);
    plan_reset(planner, size);
    planner.output(0, planner.input(1));
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const Tensor z = body.input(0), h = body.input(1);
    const int64_t size = h.spec()[1].offset;
    std::optional<Tensor> bias;
    if (attributes.flag("reset_after")) bias = body.parameter(1);
    const auto product = [&](const Tensor& value, Gate gate) {
      return body.gemm(value, part_of(body, body.parameter(0), gate, size));
    };
    body.output(0, next_state(
                       body, h, product, [&](Gate gate) { return part_of(body, z, gate, size); }, bias));
  }
};

}  // namespace

void add_gru(tn::Plugin& plugin) {
  plugin.layer<Gru>();
  plugin.layer<GruStep>();
}

}  // namespace tenon::recurrent
