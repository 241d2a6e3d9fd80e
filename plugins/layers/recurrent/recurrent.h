// Shared code of the recurrent layers. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/plugin.hpp>

namespace tenon::recurrent {

// Declares the inputs, the outputs and the attributes that all recurrent layers have. doc: of the initial value.
void describe_common(tn::LayerDescription& d);

// Plans the outputs, and the parameters "weight" [D, gates * size] and "recurrent_weight" [size, gates * size], both
// uniform in +-1 / sqrt(size), and "bias" [gates * size]. A second output of one row per sequence is the last one.
void plan_common(tn::Planner& planner, int64_t gates, uint32_t outputs);

// Checks the inputs of a layer that computes one step: the sums of the gates [samples, gates * size], and the state
// [samples, size]. Returns the size.
int64_t plan_step(tn::Planner& planner, int64_t gates);

// Number k of the parts of `size` along the last dimension of a value or parameter.
inline tn::Tensor part_of(tn::Builder& body, const tn::Tensor& value, int64_t k, int64_t size) {
  return body.slice(value, value.spec().rank() - 1, k * size, size);
}

// Plans "recurrent_weight" [size, gates * size] of such a layer.
void plan_recurrent_weight(tn::Planner& planner, int64_t gates, int64_t size);

// a + b, of one shape.
inline tn::Tensor sum(tn::Builder& body, const tn::Tensor& a, const tn::Tensor& b) {
  tn::Program add;
  const tn::Float x = add.full();
  add.output(x + add.full());
  return body.pointwise(add, {a, b}).front();
}

// What the steps of the recurrent layers begin with.
struct StepStart {
  tn::Spec state_spec;  // [samples, size]
  tn_ref state, gates;  // what the step before left, and x W + b [samples, gates * size]
};
StepStart begin_step(tn::Stepper& stepper, int64_t gates);

// The scan of a recurrent layer.
class Recurrence {
 public:
  // Begins the scan, and projects the input for all gates.
  Recurrence(const tn::Attributes& attributes, tn::Builder& body, int64_t gates);

  // x W_k + b_k of gate k, [steps, size]. No memory has a part in it: the host computes it for all steps at once.
  tn::Tensor input(int64_t k) const { return inputs_[static_cast<size_t>(k)]; }
  // value U_k, [steps, size].
  tn::Tensor product(const tn::Tensor& value, int64_t k);
  // The sum of input(k) and product(value, k).
  tn::Tensor gate(const tn::Tensor& value, int64_t k);
  // A memory of [size]; port: of its optional initial value.
  tn::Tensor memory(uint32_t port);
  // Sets what a memory of the layer leaves to the next step.
  void next(const tn::Tensor& memory, const tn::Tensor& value) { body_.scan_next(memory, value); }
  // Ends the scan and sets the outputs: `value` at all steps, and the last values of memories.
  void end(const tn::Tensor& value, const std::vector<tn::Tensor>& memories);

  tn::Builder& body() { return body_; }
  int64_t size() const { return size_; }

 private:
  tn::Tensor part(const tn::Tensor& parameter, int64_t k) { return part_of(body_, parameter, k, size_); }

  tn::Builder& body_;
  int64_t size_;
  std::vector<tn::Tensor> inputs_, weights_;
};

// 1 / (1 + exp(-x)).
inline tn::Float sigmoid(const tn::Float& x) { return 1 / (1 + exp(-x)); }

void add_lstm(tn::Plugin& plugin);
void add_gru(tn::Plugin& plugin);

}  // namespace tenon::recurrent
