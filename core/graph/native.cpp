// Native kernels as nodes of the graph.
// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"
#include "core/graph/differentiator.h"

namespace tenon::core {

// inputs and outputs: the operands of forward in the order of tenon/kernel.h, outputs as specs
std::vector<ValueId> GraphWriter::native(NativeCall call, const std::vector<ValueId>& inputs,
                                         const std::vector<Spec>& outputs, const std::vector<int32_t>& layers) {
  append(std::move(call), inputs);
  Node& node = graph_.nodes.back();
  node.fused = layers;
  if (!layers.empty()) node.layer = layers.front();
  std::vector<ValueId> made;
  for (const Spec& spec : outputs) made.push_back(output(spec));
  return made;
}

namespace {

// Returns the inputs of the backward call: the operands of forward that it reads, saved tensors, and the gradients of
// layer outputs and next carried states (kNoValue if zero).
std::vector<ValueId> backward_inputs(const Differentiator& gradients, const Node& node, const NativeCall& call) {
  const NativeOperands& of = call.operands;
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < of.all_in(); ++i) inputs.push_back(call.reads_in[i] != 0 ? node.inputs[i] : kNoValue);
  for (size_t i = 0; i < of.outputs; ++i) inputs.push_back(call.reads_out[i] != 0 ? node.outputs[i] : kNoValue);
  for (size_t i = of.first_saved(); i < of.all_out(); ++i) inputs.push_back(node.outputs[i]);
  for (size_t i = 0; i < of.outputs; ++i) inputs.push_back(gradients.gradient(node.outputs[i]));
  for (size_t i = 0; i < of.carried; ++i)
    inputs.push_back(gradients.gradient(node.outputs[of.outputs + of.buffers + i]));
  return inputs;
}

// Returns, for each gradient of a layer input, the number of the backward call's input whose memory it may share.
std::vector<int32_t> shared_gradients(const NativeCall& call) {
  const NativeOperands& of = call.operands;
  const auto first = static_cast<int32_t>(of.all_in() + of.outputs + of.saved);
  std::vector<int32_t> shared;
  for (const int32_t output : call.backward_in_place) shared.push_back(output < 0 ? -1 : first + output);
  return shared;
}

}  // namespace

// Appends the backward call of a native kernel, with the operands of tenon/kernel.h. Gradients have the shapes of their
// values; an output is kNoValue if its gradient is not needed.
void NativeCall::derive(Differentiator& gradients, const Node& node) const {
  const NativeOperands& of = operands;
  const size_t wanted = of.inputs + of.parameters;
  bool any = false;
  for (size_t i = 0; i < wanted; ++i) any = any || gradients.needed(node.inputs[i]);
  if (!any) return;
  if (!no_gradient.empty()) return gradients.no_backward(no_gradient);
  Node backward;
  NativeCall call = *this;
  call.in_place = shared_gradients(*this);
  backward.operation = std::move(call);
  backward.inputs = backward_inputs(gradients, node, *this);
  backward.layer = node.layer;
  backward.fused = node.fused;
  backward.backward = true;
  const int32_t number = gradients.append(std::move(backward));
  std::vector<std::pair<ValueId, GraphWriter::Contribution>> rows;  // per parameter with row gradients: the table
  for (size_t i = 0; i < wanted; ++i) {
    const auto by_rows = i < of.inputs ? row_gradients.end() : row_gradients.find(i - of.inputs);
    if (by_rows == row_gradients.end()) {
      gradients.append_output(number, node.inputs[i], node.layer);
      continue;
    }
    Spec spec = gradients.graph().spec(node.inputs[i]);
    spec.shape[0] = by_rows->second;
    const bool needed = gradients.needed(node.inputs[i]);
    if (!needed) gradients.append_nothing(number);
    rows.push_back({node.inputs[i], {needed ? gradients.append_value(number, spec) : kNoValue, kNoValue, kNoValue}});
  }
  for (size_t i = 0; i < of.carried; ++i) gradients.append_nothing(number);
  for (auto& [table, contribution] : rows) {
    if (contribution.values == kNoValue) {
      gradients.append_nothing(number);
      continue;
    }
    const Dim count = gradients.graph().spec(contribution.values).shape[0];
    contribution.ids = gradients.append_value(number, {TN_I64, {count}, TN_DENSE, 0, {}});
    gradients.add_rows(table, contribution, node.layer);
  }
}

}  // namespace tenon::core
