// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/error.h"
#include "core/graph/differentiator.h"

namespace tenon::core {

Differentiator::Differentiator(Graph& graph, const std::vector<ValueId>& wanted, const std::set<ValueId>& row_sparse,
                               tn_dtype compute, std::vector<MissingBackward>* missing)
    : graph_(graph),
      wanted_(wanted.begin(), wanted.end()),
      row_sparse_(row_sparse),
      compute_(compute),
      missing_(missing),
      needed_(graph.values.size(), false),
      gradients_(graph.values.size(), kNoValue) {
  for (const ValueId value : wanted) needed_[index(value)] = true;
  find_needed();
}

// Nodes are in execution order, so one sweep reaches every value that depends on a wanted one; but memories also depend
// on later nodes.
void Differentiator::find_needed() {
  for (bool more = true; more;) {
    more = false;
    for (const Node& node : graph_.nodes) {
      if (std::none_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) { return needed(input); })) continue;
      for (const ValueId output : node.outputs)
        if (output != kNoValue && !needed_[index(output)] && is_float(graph_.spec(output).dtype)) {
          needed_[index(output)] = true;
          more = !graph_.loops.empty();
        }
    }
  }
}

void Differentiator::run(const std::vector<GradientSeed>& seeds) {
  for (const GradientSeed& seed : seeds) add(seed.value, seed.gradient, -1);
  for (size_t i = graph_.nodes.size(); i-- > 0;) {
    node_ = i;
    if (graph_.nodes[i].is<LastStep>()) begin_loop(i);
    const Node node = graph_.nodes[i];  // a copy: the rules append to the graph
    bool reached = false;
    for (const ValueId output : node.outputs) reached = reached || (output != kNoValue && gradient(output) != kNoValue);
    if (reached || node.is<Memory>())
      std::visit([&](const auto& operation) { operation.derive(*this, node); }, node.operation);
  }
  for (const auto& [value, contributions] : rows_) finish_rows(value, contributions);
}

void Differentiator::add(ValueId value, ValueId contribution, int32_t layer) {
  if (!needed(value)) return;
  ValueId& sum = gradients_[index(value)];
  if (sum == kNoValue) {
    sum = contribution;
    return;
  }
  ProgramWriter program;
  program.output(program.apply(TN_OP_ADD, program.input(TN_FULL), program.input(TN_FULL)));
  sum = writer(layer).pointwise(std::make_shared<Program>(program.finish()), {sum, contribution}, 0)[0];
}

void Differentiator::no_backward(const std::string& reason) {
  if (missing_ == nullptr)
    fail(TN_UNSUPPORTED, "layer \"", graph_.layers[static_cast<size_t>(graph_.nodes[node_].layer)], "\": ", reason);
  missing_->push_back({node_, reason});
}

int32_t Differentiator::append(Node node) {
  graph_.nodes.push_back(std::move(node));
  return static_cast<int32_t>(graph_.nodes.size()) - 1;
}

void Differentiator::append_output(int32_t number, ValueId input, int32_t layer) {
  ValueId made = kNoValue;
  if (needed(input)) {
    const Spec spec{graph_.spec(input).dtype, graph_.spec(input).shape, TN_DENSE, 0, {}};  // a feed may be ragged
    made = graph_.add_value(spec, number);
    add(input, made, layer);
  }
  graph_.nodes[static_cast<size_t>(number)].outputs.push_back(made);
}

ValueId Differentiator::append_value(int32_t number, const Spec& spec) {
  const ValueId made = graph_.add_value(spec, number);
  graph_.nodes[static_cast<size_t>(number)].outputs.push_back(made);
  return made;
}

void Differentiator::append_nothing(int32_t number) {
  graph_.nodes[static_cast<size_t>(number)].outputs.push_back(kNoValue);
}

std::map<ValueId, ValueId> differentiate(Graph& graph, const std::vector<GradientSeed>& seeds,
                                         const std::vector<ValueId>& wanted, tn_dtype compute,
                                         const std::set<ValueId>& row_sparse, std::vector<MissingBackward>* missing) {
  Differentiator differentiator(graph, wanted, row_sparse, compute, missing);
  differentiator.run(seeds);
  std::map<ValueId, ValueId> result;
  for (const ValueId value : wanted) result[value] = differentiator.gradient(value);
  return result;
}

}  // namespace tenon::core
