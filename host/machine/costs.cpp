// SPDX-License-Identifier: Apache-2.0
#include "host/machine/costs.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/error.h"

namespace tenon::host {

ValueId Inverses::of(Graph& graph, int32_t symbol, int32_t layer) {
  const auto rows = graph.rows.find(symbol);
  if (rows != graph.rows.end() && rows->second.count != kNoValue) {
    ValueId& inverse = computed_.try_emplace(symbol, kNoValue).first->second;
    if (inverse != kNoValue) return inverse;
    ProgramWriter program;
    const int32_t count = program.apply(TN_OP_MAX, program.input(TN_SCALAR, TN_INT), program.constant(1, TN_INT));
    program.output(program.apply(TN_OP_DIV, program.constant(1), program.cast(count, TN_FLOAT)));
    GraphWriter nodes(graph, layer, false, compute_);
    const ValueId scalar = nodes.view(rows->second.count, {});
    return inverse = nodes.pointwise(std::make_shared<Program>(program.finish()), {scalar}, 0)[0];
  }
  ValueId& inverse = by_symbol_.try_emplace(symbol, kNoValue).first->second;
  if (inverse == kNoValue) inverse = graph.add_external({compute_, {}, TN_DENSE, 0, {}}, "1/size");
  return inverse;
}

namespace {

// Returns the program coefficient * (sum of input 0) * (input 1).
std::shared_ptr<const Program> mean_times(double coefficient) {
  ProgramWriter writer;
  const int32_t sum = writer.reduce(TN_OP_REDUCE_SUM, writer.input(TN_FULL), TN_SCALAR);
  const int32_t mean = writer.apply(TN_OP_MUL, sum, writer.input(TN_SCALAR));
  writer.output(coefficient == 1 ? mean : writer.apply(TN_OP_MUL, mean, writer.constant(coefficient)));
  return std::make_shared<Program>(writer.finish());
}

}  // namespace

std::vector<Cost> add_costs(Graph& graph, const Topology& topology, const Lowered& lowered, tn_dtype compute,
                            Inverses& inverses) {
  std::map<const Layer*, int32_t> numbers;
  for (const LayerRef& leaf : topology.leaves) numbers.emplace(leaf.get(), static_cast<int32_t>(numbers.size()));
  std::vector<Cost> costs;
  std::set<ValueId> known;
  for (const LayerOutput& output : topology.outputs) {
    const LayerOutput leaf = resolved(output);
    if (leaf.layer->role != TN_ROLE_COST || leaf.output != 0) continue;
    const ValueId per_sample = lowered.value_of(leaf);
    const bool seen = !known.insert(per_sample).second;
    if (seen) continue;
    const int32_t number = numbers.at(leaf.layer.get());
    const ValueId inverse = inverses.of(graph, graph.spec(per_sample).shape[0].symbol, number);
    GraphWriter nodes(graph, number, false, compute);
    const double coefficient = leaf.layer->coefficient;
    costs.push_back({per_sample, nodes.pointwise(mean_times(coefficient), {per_sample, inverse}, 0)[0], coefficient,
                     output_name(output)});
  }
  return costs;
}

namespace {

[[noreturn]] void refuse_untrained(const Topology& topology, const Layer& cost) {
  const auto reads = [&](const LayerRef& layer) {
    return layer->role != TN_ROLE_METRIC &&
           std::any_of(layer->inputs.begin(), layer->inputs.end(),
                       [&](const LayerOutput& input) { return resolved(input).layer.get() == &cost; });
  };
  const auto reader = std::find_if(topology.leaves.begin(), topology.leaves.end(), reads);
  const std::string read =
      reader == topology.leaves.end() ? "" : "; " + layer_label(**reader) + ", which reads it, is not a cost";
  fail(TN_INVALID, "cost layer \"", cost.name, "\" would not be trained: it is not among the outputs", read,
       ". Training descends the costs that are outputs themselves, each times its \"coefficient\"; the cost sum_cost "
       "makes "
       "a cost of any value");
}

}  // namespace

// A layer that is computed from a cost, such as the cost times a number, is not a cost: a training with that layer as
// an output would silently ignore the cost. Therefore every cost that such an output depends on must be an output
// itself, or an output that is a cost must depend on it. Costs that only metrics read are exempt.
void check_costs(const Topology& topology) {
  std::set<const Layer*> trained, shown;  // layers on which costs, and other outputs, depend
  for (const LayerOutput& output : topology.outputs) {
    const LayerOutput leaf = resolved(output);
    if (leaf.layer->role == TN_ROLE_METRIC) continue;
    const bool cost = leaf.layer->role == TN_ROLE_COST && leaf.output == 0;
    (cost ? trained : shown).insert(leaf.layer.get());
  }
  for (size_t i = topology.leaves.size(); i-- > 0;) {  // each after its readers
    const Layer& leaf = *topology.leaves[i];
    if (shown.contains(&leaf) && leaf.role == TN_ROLE_COST && !trained.contains(&leaf))
      refuse_untrained(topology, leaf);
    for (std::set<const Layer*>* const part : {&trained, &shown})
      if (part->contains(&leaf))
        for (const LayerOutput& input : leaf.inputs) part->insert(resolved(input).layer.get());
  }
}

}  // namespace tenon::host
