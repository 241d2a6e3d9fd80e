// The costs of a machine: the mean of each, and that none of them is left out of a training.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "core/error.h"
#include "host/machine/machine.h"

namespace tenon {

// 1 / the size of a symbol, a device scalar.
ValueId Machine::inverse_of(Graph& graph, int32_t symbol) {
  ValueId& inverse = inverses_.try_emplace(symbol, kNoValue).first->second;
  if (inverse == kNoValue) inverse = graph.add_external({options_.compute, {}, TN_DENSE, 0, {}}, "1/size");
  return inverse;
}

// Every cost output is reduced at the root: the mean over samples, or over rows where it has one value for each.
void Machine::add_costs(Graph& graph) {
  ProgramWriter writer;
  const int32_t sum = writer.reduce(TN_OP_REDUCE_SUM, writer.input(TN_FULL), TN_SCALAR);
  writer.output(writer.apply(TN_OP_MUL, sum, writer.input(TN_SCALAR)));
  const auto mean = std::make_shared<Program>(writer.finish());
  for (const Expression& output : topology_.outputs) {
    const Expression leaf = resolved(output);
    if (leaf.layer->role != TN_ROLE_COST || leaf.output != 0) continue;
    const ValueId per_sample = lowered_.value_of(leaf);
    const bool seen =
        std::any_of(costs_.begin(), costs_.end(), [&](const auto& cost) { return cost.first == per_sample; });
    if (seen) continue;
    const auto layer = std::find(topology_.leaves.begin(), topology_.leaves.end(), leaf.layer);
    GraphWriter nodes(graph, static_cast<int32_t>(layer - topology_.leaves.begin()), false, options_.compute);
    const ValueId inverse = inverse_of(graph, graph.spec(per_sample).shape[0].symbol);
    costs_.emplace_back(per_sample, nodes.pointwise(mean, {per_sample, inverse}, 0)[0]);
  }
}

// What is computed from a cost, such as the cost times a number, is none, and a training that was given it as an output
// would silently leave the cost out. So each cost that such an output reads is an output itself, or makes part of a
// cost that is one. What a metric alone reads is only watched.
void Machine::check_costs() const {
  std::set<const Layer*> trained, shown;  // what costs and what other outputs are computed from
  for (const Expression& output : topology_.outputs) {
    const Expression leaf = resolved(output);
    if (leaf.layer->role == TN_ROLE_METRIC) continue;
    const bool cost = leaf.layer->role == TN_ROLE_COST && leaf.output == 0;
    (cost ? trained : shown).insert(leaf.layer.get());
  }
  for (size_t i = topology_.leaves.size(); i-- > 0;) {  // each after all that read it
    const Layer& leaf = *topology_.leaves[i];
    if (shown.contains(&leaf) && leaf.role == TN_ROLE_COST && !trained.contains(&leaf)) refuse_untrained(leaf);
    for (std::set<const Layer*>* const part : {&trained, &shown})
      if (part->contains(&leaf))
        for (const Expression& input : leaf.inputs) part->insert(resolved(input).layer.get());
  }
}

void Machine::refuse_untrained(const Layer& cost) const {
  const auto reads = [&](const LayerRef& layer) {
    return layer->role != TN_ROLE_METRIC &&
           std::any_of(layer->inputs.begin(), layer->inputs.end(),
                       [&](const Expression& input) { return resolved(input).layer.get() == &cost; });
  };
  const auto reader = std::find_if(topology_.leaves.begin(), topology_.leaves.end(), reads);
  const std::string read = reader == topology_.leaves.end() ? ""
                                                            : "; layer \"" + (*reader)->name + "\" (" +
                                                                  (*reader)->type + "), which reads it, is no cost";
  fail(TN_INVALID, "cost layer \"", cost.name, "\" would not be trained: it is not among the outputs", read,
       ". Training descends the costs that are outputs themselves");
}

}  // namespace tenon
