// Gated recurrent unit. SPDX-License-Identifier: Apache-2.0
#include "recurrent.h"

namespace tenon::recurrent {

namespace {

using tn::Float;
using tn::Tensor;

struct Gru {
  enum Gate : int64_t { kUpdate = 0, kReset = 1, kCandidate = 2 };

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

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    Recurrence recurrence(attributes, body, 3);
    const Tensor h = recurrence.memory(1);
    const std::vector<Tensor> gates = reset(body, recurrence.gate(h, kReset), h);
    const Tensor next = mixed(body, recurrence.gate(h, kUpdate), recurrence.gate(gates.front(), kCandidate), h);
    recurrence.next(h, next);
    recurrence.end(next, {h});
  }

 private:
  // sigmoid(z) h, and the gate. The gradients read the values of the gates, not what these are computed from.
  static std::vector<Tensor> reset(tn::Builder& body, const Tensor& z, const Tensor& h) {
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
  static Tensor mixed(tn::Builder& body, const Tensor& z_update, const Tensor& z_candidate, const Tensor& h) {
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
};

}  // namespace

void add_gru(tn::Plugin& plugin) { plugin.layer<Gru>(); }

}  // namespace tenon::recurrent
