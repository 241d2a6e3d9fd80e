// Native kernels as nodes.
// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"
#include "core/graph/differentiator.h"

namespace tenon {

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

// Backward of a native kernel: inputs, parameters, outputs, gradients of outputs; kNoValue where not read.
void Differentiator::derive(const Node& node, const NativeCall& native) {
  bool any = false;
  for (const ValueId input : node.inputs) any = any || needed(input);
  if (!any) return;
  const std::string& layer = graph_.layers[static_cast<size_t>(node.layer)];
  if (!native.differentiable) fail(TN_UNSUPPORTED, "layer \"", layer, "\": its kernel has no backward");
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < node.inputs.size(); ++i)
    inputs.push_back((native.backward_inputs >> i & 1U) != 0 ? node.inputs[i] : kNoValue);
  for (size_t i = 0; i < node.outputs.size(); ++i)
    inputs.push_back((native.backward_outputs >> i & 1U) != 0 ? node.outputs[i] : kNoValue);
  for (const ValueId output : node.outputs) inputs.push_back(gradient(output));
  Node backward;
  backward.operation = native;
  backward.inputs = std::move(inputs);
  backward.layer = node.layer;
  backward.fused = node.fused;
  backward.backward = true;
  const auto number = static_cast<int32_t>(graph_.nodes.size());
  graph_.nodes.push_back(backward);
  for (const ValueId input : node.inputs) {
    ValueId made = kNoValue;
    if (needed(input)) {
      const Spec spec = graph_.spec(input);
      made = graph_.add_value(spec, number);
      add(input, made, node.layer);
    }
    graph_.nodes[static_cast<size_t>(number)].outputs.push_back(made);
  }
}

}  // namespace tenon
