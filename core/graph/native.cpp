// Native kernels as nodes of the graph.
// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"
#include "core/graph/differentiator.h"

namespace tenon::core {

// inputs: layer inputs, then parameters; outputs: the specs of layer outputs, or of the states of a metric
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

// Appends the backward call of a native kernel.
//   inputs: layer inputs, parameters and outputs of forward (kNoValue if backward does not read one), then gradients
//     of the outputs (kNoValue if an output has none), each with the shape of its output
//   outputs: the gradients of layer inputs and parameters (kNoValue if not needed), each with the shape of its value
void NativeCall::derive(Differentiator& gradients, const Node& node) const {
  bool any = false;
  for (const ValueId input : node.inputs) any = any || gradients.needed(input);
  if (!any) return;
  const std::string& layer = gradients.graph().layers[static_cast<size_t>(node.layer)];
  if (!differentiable) fail(TN_UNSUPPORTED, "layer \"", layer, "\": its kernel has no backward");
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < node.inputs.size(); ++i)
    inputs.push_back((backward_inputs >> i & 1U) != 0 ? node.inputs[i] : kNoValue);
  for (size_t i = 0; i < node.outputs.size(); ++i)
    inputs.push_back((backward_outputs >> i & 1U) != 0 ? node.outputs[i] : kNoValue);
  for (const ValueId output : node.outputs) inputs.push_back(gradients.gradient(output));
  Node backward;
  backward.operation = *this;
  backward.inputs = std::move(inputs);
  backward.layer = node.layer;
  backward.fused = node.fused;
  backward.backward = true;
  const int32_t number = gradients.append(std::move(backward));
  for (const ValueId input : node.inputs) gradients.append_output(number, input, node.layer);
}

}  // namespace tenon::core
