// Gated recurrent unit. SPDX-License-Identifier: Apache-2.0
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

// h for the next step. gate(value, gate): the product of a value and U of the gate, added to the sum of the rest.
template <typename Sum>
Tensor next_state(tn::Builder& body, const Tensor& h, const Sum& gate) {
  const std::vector<Tensor> gated = reset(body, gate(h, kReset), h);
  return mixed(body, gate(h, kUpdate), gate(gated.front(), kCandidate), h);
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
    d.output("output", "[rows, size]: h_t of each row");
    d.output("last", "[samples, size]: h after the last row; of an empty sequence the initial state");
  }

  static void plan(tn::Planner& planner) { plan_common(planner, 3, 2); }

  static void step(tn::Stepper& stepper) {
    const StepStart start = begin_step(stepper, 3);
    const tn_ref next = stepper.layer("gru_step", {start.gates, start.state});
    stepper.next(start.state, next);
    stepper.output(0, next);
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    Recurrence recurrence(attributes, body, 3);
    const Tensor h = recurrence.memory(1);
    const Tensor next = next_state(body, h, [&](const Tensor& of, Gate gate) { return recurrence.gate(of, gate); });
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
    d.output("output", "[samples, size]: the state for the next step");
  }

  static void plan(tn::Planner& planner) {
    const int64_t size = plan_step(planner, 3);
    plan_recurrent_weight(planner, 3, size);
    planner.output(0, planner.input(1));
  }

  static void lower(const tn::Attributes& /*attributes*/, tn::Builder& body) {
    const Tensor z = body.input(0), h = body.input(1);
    const int64_t size = h.spec()[1].offset;
    body.output(0, next_state(body, h, [&](const Tensor& of, Gate gate) {
                  const Tensor product = body.gemm(of, part_of(body, body.parameter(0), gate, size));
                  return sum(body, product, part_of(body, z, gate, size));
                }));
  }
};

}  // namespace

void add_gru(tn::Plugin& plugin) {
  plugin.layer<Gru>();
  plugin.layer<GruStep>();
}

}  // namespace tenon::recurrent
