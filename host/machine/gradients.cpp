// SPDX-License-Identifier: Apache-2.0
#include "host/machine/gradients.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/nearest.h"
#include "base/text.h"
#include "core/alignment.h"
#include "core/error.h"
#include "host/machine/compiled_model.h"

namespace tenon::host {

namespace {

// The values that cannot be bound to the memory of a gradient. Backward writes, or adds, a gradient directly to that
// memory, so its value must not be external, be a view or have one, or be read by a node.
std::set<ValueId> shared_values(const Graph& graph) {
  std::set<ValueId> shared;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const auto value = static_cast<ValueId>(i);
    if (graph.values[i].producer < 0) shared.insert(value);
    if (const ValueId root = graph.root(value); root != value) shared.insert({value, root});
  }
  for (const Node& node : graph.nodes) shared.insert(node.inputs.begin(), node.inputs.end());
  return shared;
}

// Returns a copy of a gradient, with memory of its own.
ValueId copied(Graph& graph, ValueId value, tn_dtype compute) {
  const int32_t producer = graph.values[static_cast<size_t>(graph.root(value))].producer;
  const int32_t layer = producer < 0 ? -1 : graph.nodes[static_cast<size_t>(producer)].layer;
  return GraphWriter(graph, layer, true, compute).convert(value, 1, 0);
}

// Returns the derivative of coefficient * mean: coefficient / samples for every sample, or coefficient / rows for every
// row. The input is the inverse number.
std::shared_ptr<const Program> slope_of_mean(double coefficient) {
  ProgramWriter writer;
  const int32_t slope = writer.expand(writer.input(TN_SCALAR), TN_FULL);
  writer.output(coefficient == 1 ? slope : writer.apply(TN_OP_MUL, slope, writer.constant(coefficient)));
  return std::make_shared<Program>(writer.finish());
}

// Returns the value of a data layer of dense or ragged floats in the compute type; kNoValue for other data layers.
ValueId differentiable(const Lowered& lowered, const Feed& feed) {
  if (!is_float(feed.spec.dtype) || feed.weights != kNoValue) return kNoValue;
  const auto converted = lowered.converted.find(feed.value);
  return converted == lowered.converted.end() ? feed.value : converted->second;
}

// Throws TN_INVALID: none of the outputs has a gradient.
[[noreturn]] void refuse_given(const std::vector<LayerOutput>& outputs) {
  std::string listed;
  for (const LayerOutput& output : outputs) {
    const LayerOutput leaf = resolved(output);
    std::string kind = "a metric";
    if (leaf.layer->role != TN_ROLE_METRIC) {
      const Spec& spec = leaf.layer->outputs.at(leaf.output);
      kind = (spec.storage == TN_CSR ? "sparse " : "") + to_string(spec);
    }
    base::append(listed, text("\"", output_name(output), "\" (", kind, ")"));
  }
  fail(TN_INVALID, "gradients can be given for outputs of dense or ragged floats alone; the outputs are ", listed);
}

}  // namespace

ValueId value_with_gradient(const Graph& graph, const Lowered& lowered, const LayerOutput& output) {
  const LayerOutput leaf = resolved(output);
  const ValueId value = lowered.value_of(leaf);
  if (value == kNoValue) return kNoValue;
  if (!leaf.layer->data()) return is_float(graph.spec(value).dtype) ? value : kNoValue;
  const auto feed =
      std::find_if(lowered.feeds.begin(), lowered.feeds.end(), [&](const Feed& each) { return each.value == value; });
  return feed == lowered.feeds.end() ? kNoValue : differentiable(lowered, *feed);
}

std::vector<GivenGradient> add_given_gradients(Graph& graph, const Topology& topology, const Lowered& lowered) {
  std::vector<GivenGradient> given;
  std::set<ValueId> known;
  for (const LayerOutput& output : topology.outputs) {
    const ValueId value = value_with_gradient(graph, lowered, output);
    if (value == kNoValue || !known.insert(value).second) continue;
    const Spec spec{graph.spec(value).dtype, graph.spec(value).shape, TN_DENSE, 0, {}};
    given.push_back({value, graph.add_external(spec, "gradient of " + output_name(output))});
  }
  if (given.empty()) refuse_given(topology.outputs);
  return given;
}

namespace {

// Returns the seeds of backward at the costs.
std::vector<GradientSeed> seeds_of(Graph& graph, const std::vector<Cost>& costs, const MachineOptions& options,
                                   Inverses& inverses) {
  std::vector<GradientSeed> seeds;
  for (const Cost& cost : costs) {
    const int32_t maker = graph.values[static_cast<size_t>(cost.mean)].producer;
    const int32_t layer = graph.nodes[static_cast<size_t>(maker)].layer;
    GraphWriter nodes(graph, layer, true, options.compute);
    const Shape& shape = graph.spec(cost.per_sample).shape;
    const ValueId inverse = inverses.of(graph, shape[0].symbol, layer);
    const ValueId seed = nodes.pointwise_on(slope_of_mean(cost.coefficient), {inverse}, shape, 1)[0];
    seeds.push_back({cost.per_sample, seed});
  }
  return seeds;
}

}  // namespace

void differentiate_machine(Graph& graph, Lowered& lowered, const BackwardStart& start, const MachineOptions& options,
                           Inverses& inverses, std::vector<MissingBackward>* missing) {
  std::vector<GradientSeed> seeds;
  if (options.given_gradients) {
    for (const GivenGradient& given : start.given) seeds.push_back({given.value, given.gradient});
  } else {
    if (start.costs.empty()) fail(TN_INVALID, "training needs a cost among the outputs; none of them has that role");
    seeds = seeds_of(graph, start.costs, options, inverses);
  }
  std::vector<ValueId> wanted;
  if (options.data_gradients)
    for (const Feed& feed : lowered.feeds)
      if (const ValueId value = differentiable(lowered, feed); value != kNoValue) wanted.push_back(value);
  std::set<ValueId> row_sparse;
  for (const ParameterUse& parameter : lowered.parameters) {
    if (options.is_immutable(parameter.name)) continue;
    wanted.push_back(parameter.computed);
    if (parameter.row_sparse) row_sparse.insert(parameter.computed);
  }
  if (wanted.empty() && !options.immutable.empty())
    fail(TN_INVALID, "every parameter is immutable: nothing is left to train");
  const std::map<ValueId, ValueId> gradients =
      differentiate(graph, seeds, wanted, options.compute, row_sparse, missing);
  std::map<ValueId, int> owners;  // per gradient: number of its parameters
  for (const auto& [computed, gradient] : gradients) ++owners[gradient];
  const std::set<ValueId> shared = shared_values(graph);
  for (ParameterUse& parameter : lowered.parameters) {
    if (options.is_immutable(parameter.name)) continue;
    const ValueId gradient = gradients.at(parameter.computed);
    if (gradient == kNoValue) continue;
    // A gradient of two parameters is copied for each: a copy for only one of them would read the sum that the other
    // accumulates.
    const bool copies =
        graph.spec(gradient).storage != TN_ROW_SPARSE && (owners.at(gradient) > 1 || shared.contains(gradient));
    parameter.gradient = copies ? copied(graph, gradient, options.compute) : gradient;
  }
  if (!options.data_gradients) return;
  for (Feed& feed : lowered.feeds)
    if (const ValueId value = differentiable(lowered, feed); value != kNoValue) feed.gradient = gradients.at(value);
}

const ParameterUse& parameter_with_gradient(const Lowered& lowered, const std::string& name) {
  std::vector<std::string> names;
  for (const ParameterUse& use : lowered.parameters) {
    names.push_back(use.name);
    if (use.name != name) continue;
    if (use.gradient == kNoValue)
      fail_parameter(TN_NOT_FOUND, name, "parameter \"", name, "\" has no gradient in this machine");
    return use;
  }
  fail_parameter(TN_NOT_FOUND, name, "the machine has no parameter \"", name, "\"", base::suggestion(name, names));
}

std::vector<PlacedGradient> place_gradients(const Graph& graph, const Lowered& lowered, const ParameterSet& set) {
  std::map<size_t, ValueId> by_entry;
  for (const ParameterUse& use : lowered.parameters)
    if (use.gradient != kNoValue && graph.spec(use.gradient).storage != TN_ROW_SPARSE)
      by_entry[set.index(use.name)] = use.gradient;
  std::vector<PlacedGradient> placed;
  uint64_t offset = 0;
  for (const auto& [number, gradient] : by_entry) {
    const uint64_t bytes = tn_dtype_storage(graph.spec(gradient).dtype, padded_elements(set.entries()[number].count));
    placed.push_back({gradient, number, offset, bytes});
    offset += bytes;
  }
  return placed;
}

}  // namespace tenon::host
