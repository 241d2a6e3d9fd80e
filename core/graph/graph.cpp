// SPDX-License-Identifier: Apache-2.0
#include "core/graph/graph.h"

#include <algorithm>

namespace tenon::core {

const Pointwise* Node::pointwise() const { return epilogue ? &epilogue->pointwise : as<Pointwise>(); }

bool Node::is_product() const {
  const auto* conv = as<Conv>();
  return is<Gemm>() || (conv != nullptr && conv->op != TN_CONV_WEIGHTS);
}

ValueId Graph::root(ValueId value) const {
  while (values[static_cast<size_t>(value)].alias_of != kNoValue) value = values[static_cast<size_t>(value)].alias_of;
  return value;
}

void Node::serve(const Node& other) {
  std::vector<int32_t> all = served();
  for (const int32_t each : other.served())
    if (std::find(all.begin(), all.end(), each) == all.end()) all.push_back(each);
  if (all.size() > 1) fused = std::move(all);
}

void Graph::renumber() {
  for (GraphValue& value : values) value.producer = -1;
  for (size_t i = 0; i < nodes.size(); ++i)
    for (const ValueId output : nodes[i].outputs)
      if (output != kNoValue) values[static_cast<size_t>(output)].producer = static_cast<int32_t>(i);
}

Spec Graph::in_sequences(ValueId value) const {
  Spec spec = this->spec(value);
  if (spec.shape.empty() || !rows.contains(spec.shape[0].symbol) || !is_ragged(spec.shape[0])) return spec;
  spec.storage = TN_RAGGED;
  spec.outer.clear();
  for (Dim dim = spec.shape[0]; is_ragged(dim);) {
    const auto found = rows.find(dim.symbol);
    if (found == rows.end()) break;
    dim = found->second.outer;
    spec.outer.push_back(dim);
  }
  spec.levels = static_cast<uint32_t>(spec.outer.size());
  return spec;
}

ValueId Graph::add_value(Spec spec, int32_t producer, std::string name) {
  values.push_back({std::move(spec), producer, kNoValue, std::move(name)});
  return static_cast<ValueId>(values.size() - 1);
}

ValueId Graph::add_external(Spec spec, std::string name) { return add_value(std::move(spec), -1, std::move(name)); }

void GraphWriter::append(Operation operation, std::vector<ValueId> inputs) {
  Node node;
  node.operation = std::move(operation);
  node.inputs = std::move(inputs);
  node.layer = layer_;
  node.backward = backward_;
  graph_.nodes.push_back(std::move(node));
}

// Adds an output to the node that was appended last.
ValueId GraphWriter::output(Spec spec) {
  const ValueId value = graph_.add_value(std::move(spec), static_cast<int32_t>(graph_.nodes.size() - 1));
  graph_.nodes.back().outputs.push_back(value);
  return value;
}

}  // namespace tenon::core
