// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

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
  for (const ValueId value : wanted) needed_[at(value)] = true;
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
        if (output != kNoValue && !needed_[at(output)] && is_float(graph_.spec(output).dtype)) {
          needed_[at(output)] = true;
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

namespace {

// The node that moves boxes into a value which is zero elsewhere; null if there is none.
const Node* filled(const Graph& graph, ValueId value) {
  const int32_t producer = graph.values[static_cast<size_t>(value)].producer;
  const Node* const node = producer < 0 ? nullptr : &graph.nodes[static_cast<size_t>(producer)];
  const auto* const move = node == nullptr ? nullptr : node->as<Move>();
  return move != nullptr && move->fill && node->outputs[0] == value ? node : nullptr;
}

bool are_apart(const MovePart& a, const MovePart& b) {
  for (size_t i = 0; i < a.box.size(); ++i)
    for (size_t k = 0; k < b.box.size(); ++k) {
      if (a.axes[i] != b.axes[k] || a.box[i].symbol != TN_SYMBOL_NONE || b.box[k].symbol != TN_SYMBOL_NONE) continue;
      const auto at = static_cast<size_t>(a.axes[i]);
      if (a.to[at] + a.box[i].offset <= b.to[at] || b.to[at] + b.box[k].offset <= a.to[at]) return true;
    }
  return false;
}

// Whether boxes that are apart fill a value of `shape`.
bool cover(const std::vector<MovePart>& parts, const Shape& shape) {
  const Dim whole = elements(shape);
  Dim sum = whole;
  sum.coefficient = sum.offset = 0;
  for (const MovePart& part : parts) {
    const Dim size = elements(part.box);
    if (size.symbol != whole.symbol) return false;
    sum.coefficient += size.coefficient;
    sum.offset += size.offset;
  }
  return same(sum, whole);
}

// Returns the sum of two values that moves into boxes apart from each other make, as one move: the gradient of a value
// that is cut into parts is put together without zeros. Returns nothing for others.
std::optional<Node> joined(const Graph& graph, ValueId a, ValueId b, int32_t layer) {
  const Node *const first = filled(graph, a), *const second = filled(graph, b);
  if (first == nullptr || second == nullptr) return std::nullopt;
  Node node;
  Move move = *first->as<Move>();
  node.layer = layer;
  node.backward = true;
  node.inputs = first->inputs;
  for (MovePart part : second->as<Move>()->parts) {
    for (const MovePart& other : move.parts)
      if (!are_apart(part, other)) return std::nullopt;
    part.input += static_cast<uint32_t>(first->inputs.size());
    move.parts.push_back(std::move(part));
  }
  node.inputs.insert(node.inputs.end(), second->inputs.begin(), second->inputs.end());
  move.fill = !cover(move.parts, graph.spec(a).shape);
  node.operation = std::move(move);
  return node;
}

}  // namespace

void Differentiator::add(ValueId value, ValueId contribution, int32_t layer) {
  if (!needed(value)) return;
  ValueId& sum = gradients_[at(value)];
  if (sum == kNoValue) {
    sum = contribution;
    return;
  }
  if (std::optional<Node> node = joined(graph_, sum, contribution, layer)) {
    const Spec spec = graph_.spec(sum);
    sum = append_value(append(std::move(*node)), spec);
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
