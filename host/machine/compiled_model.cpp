// SPDX-License-Identifier: Apache-2.0
#include "host/machine/compiled_model.h"

#include <algorithm>

#include "base/nearest.h"
#include "core/checked.h"
#include "core/error.h"
#include "core/graph/loops.h"
#include "core/graph/passes/passes.h"
#include "host/compile/native_kernel.h"
#include "host/compile/prepare_call.h"

namespace tenon::host {

namespace {

void check_options(const MachineOptions& options) {
  if (options.max_samples < 1) fail(TN_INVALID, "max_samples is ", options.max_samples, "; expected at least 1");
  if (options.compute != TN_F32 && options.compute != TN_F64)
    fail(TN_UNSUPPORTED, "compute type ", dtype_name(options.compute), "; expected float32, float64, bf16 or tf32");
  if ((options.data_gradients || options.given_gradients) && !options.training)
    fail(TN_INVALID, "gradients of data layers and given gradients need a machine for training");
  if (options.max_rows < 0) fail(TN_INVALID, "max_rows is ", options.max_rows, "; expected at least 0");
}

// Returns the most rows that a layer can make of rows within their bounds.
int64_t most_rows(const DerivedRows& derived, const std::vector<int64_t>& bounds) {
  const auto of = [&](const Dim& dim) { return std::max<int64_t>(tn_dim_value(&dim, bounds.data()), 0); };
  if (derived.rule == TN_ROWS_DATA) return of(derived.bound);
  const int64_t rows = bounds.at(static_cast<size_t>(derived.first));
  const int64_t sequences = of(derived.outer.at(0));
  if (derived.rule == TN_ROWS_CONCATENATED)
    return checked_add(rows, bounds.at(static_cast<size_t>(derived.second)), "rows");
  if (derived.rule == TN_ROWS_FIRST)
    return derived.count > 0 && sequences > rows / derived.count ? rows : sequences * derived.count;
  // floor((n + padding - window) / stride) + 1, summed over the sequences.
  const int64_t each = std::max<int64_t>(checked_add(derived.padding, derived.stride, "rows") - derived.window, 0);
  return checked_add(rows, checked_multiply(sequences, each, "rows"), "rows") / derived.stride;
}

// Returns the bound of a ragged dimension that is fed, until a minibatch has more.
int64_t first_rows(const MachineOptions& options) {
  constexpr int64_t kFirstRows = 16;  // per sample
  return options.max_rows > 0 ? options.max_rows : checked_multiply(options.max_samples, kFirstRows, "rows");
}

// Returns the bounds of all symbols of a topology.
std::vector<int64_t> bounds_of(const Topology& topology, const MachineOptions& options, const RaggedBounds& grown) {
  std::vector<int64_t> bounds = {0, options.max_samples};
  const auto put = [&](int32_t symbol, int64_t bound) {
    const auto at = static_cast<size_t>(symbol);
    if (bounds.size() <= at) bounds.resize(at + 1, 0);
    bounds[at] = bound;
  };
  const int64_t first = first_rows(options);
  const auto fed = [&](const Dim& dim) {
    if (!is_ragged(dim)) return;
    const auto found = grown.find(dim.symbol);
    put(dim.symbol, found == grown.end() ? first : found->second);
  };
  for (const LayerRef& leaf : topology.leaves) {
    for (const DerivedRows& derived : leaf->derived_rows) put(derived.rows, most_rows(derived, bounds));
    if (!leaf->data()) continue;
    fed(leaf->outputs[0].shape[0]);
    for (const Dim& outer : leaf->outputs[0].outer) fed(outer);
  }
  return bounds;
}

// Appends the bounds of the symbols of scans, which the lowering has numbered. A whole sequence is seen at every step
// of another one: at first there is room for sequences of equal lengths.
void bound_steps(const Graph& graph, const MachineOptions& options, const RaggedBounds& grown,
                 std::vector<int64_t>& bounds) {
  for (size_t i = 0; i < graph.orders.size(); ++i) {
    const StepOrder& order = graph.orders[i];
    const int64_t rows = bounds.at(static_cast<size_t>(order.rows));
    const Dim& outer = graph.rows.at(order.rows).outer;
    bounds.resize(std::max(bounds.size(), static_cast<size_t>(order.states.symbol) + 1), 0);
    bounds[static_cast<size_t>(order.steps.symbol)] = rows;
    bounds[static_cast<size_t>(order.states.symbol)] = checked_add(rows, tn_dim_value(&outer, bounds.data()), "states");
    for (const StepRows& seen : graph.step_rows) {
      if (static_cast<size_t>(seen.order) != i) continue;
      const auto at = static_cast<size_t>(seen.rows.symbol);
      bounds.resize(std::max(bounds.size(), at + 1), 0);
      bounds[at] = bounds.at(static_cast<size_t>(seen.source));
      if (!seen.whole) continue;
      const int64_t first = first_rows(options);
      const auto found = grown.find(seen.rows.symbol);
      bounds[at] = found != grown.end() ? found->second : checked_multiply(first, first, "rows") / options.max_samples;
    }
  }
}

void check_parameters(const Topology& topology, const ParameterSet& set) {
  std::vector<std::string> known;
  for (const ParameterEntry& entry : set.entries()) known.push_back(entry.name);
  for (const ParameterDeclaration& declaration : topology.declarations()) {
    if (!set.contains(declaration.name))
      fail_parameter(TN_INVALID, declaration.name, "parameter \"", declaration.name, "\": layer \"", declaration.owner,
                     "\" needs it, and the set holds none of that name", base::suggestion(declaration.name, known),
                     "; is this the set, or the model, of another topology?");
    if (const ParameterEntry& entry = set.find(declaration.name); entry.shape != declaration.shape)
      fail_parameter(TN_INVALID, declaration.name, "parameter \"", declaration.name, "\": layer \"", declaration.owner,
                     "\" needs ", to_string(declaration.shape), ", the set holds ", to_string(entry.shape));
  }
}

void check_immutable(const Topology& topology, const MachineOptions& options) {
  std::vector<std::string> names;
  for (const ParameterDeclaration& declaration : topology.declarations()) names.push_back(declaration.name);
  for (const std::string& immutable : options.immutable)
    if (std::none_of(names.begin(), names.end(), [&](const std::string& name) { return is_below(name, immutable); }))
      fail_parameter(TN_NOT_FOUND, immutable, "immutable parameter \"", immutable,
                     "\": the topology has none of that name", base::suggestion(immutable, names));
}

std::vector<ValueId> kept_values(const CompiledModel& model, const Topology& topology, const Graph& graph,
                                 const MachineOptions& options) {
  const Lowered& lowered = model.lowered;
  std::vector<ValueId> kept;
  for (const Cost& cost : model.costs) kept.push_back(cost.mean);
  for (const NumberCheck& check : lowered.number_checks) kept.insert(kept.end(), {check.any, check.by_row});
  for (const MetricUse& metric : lowered.metrics) kept.insert(kept.end(), metric.state.begin(), metric.state.end());
  for (const LayerOutput& output : topology.outputs)
    if (resolved(output).layer->role != TN_ROLE_METRIC) kept.push_back(lowered.value_of(output));
  for (const BufferUse& buffer : lowered.buffers)
    if (!options.is_immutable(buffer.name)) kept.push_back(buffer.next);
  for (const ParameterUse& parameter : lowered.parameters) kept.push_back(parameter.gradient);
  for (const Feed& feed : lowered.feeds) kept.push_back(feed.gradient);
  for (const CarriedUse& carried : lowered.carried) kept.push_back(carried.next);
  for (const RaggedUse& rows : lowered.rows)
    if (rows.is_written()) kept.insert(kept.end(), {rows.of.offsets, rows.of.count});
  if (options.keep_all)
    for (const auto& [output, value] : lowered.outputs)
      if (output.first->scan == nullptr && output.first->branch == nullptr) kept.push_back(value);
  std::erase_if(kept,
                [&](ValueId value) { return value == kNoValue || static_cast<size_t>(value) >= graph.values.size(); });
  return kept;
}

// Returns which values are the same in all forwards between changes of the parameters.
std::vector<bool> constant_values(const Graph& graph, const Lowered& lowered, const MachineOptions& options) {
  std::vector<bool> constant(graph.values.size(), false);
  if (options.training || options.runs_once) return constant;
  for (const ParameterUse& use : lowered.parameters) constant[static_cast<size_t>(use.stored)] = true;
  return constant;
}

// Returns which values have memory of their own: external values and gradients.
std::vector<bool> placed_values(const Graph& graph, const Lowered& lowered) {
  std::vector<bool> placed(graph.values.size(), false);
  for (size_t i = 0; i < graph.values.size(); ++i) placed[i] = graph.values[i].producer < 0;
  for (const RaggedUse& rows : lowered.rows)
    if (rows.is_written()) placed[static_cast<size_t>(rows.of.count)] = true;  // in the sizes of symbols
  for (const ParameterUse& use : lowered.parameters)
    if (use.gradient != kNoValue) placed[static_cast<size_t>(use.gradient)] = true;
  return placed;
}

// Makes the row-sparse gradients, each with room for as many rows as one backward can write.
void place_sparse_gradients(CompiledModel& model, const CompileTarget& target) {
  for (const ParameterUse& use : model.lowered.parameters) {
    if (use.gradient == kNoValue || model.calls->graph().spec(use.gradient).storage != TN_ROW_SPARSE) continue;
    const ParameterEntry& entry = target.set.find(use.name);
    auto gradient = std::make_unique<SparseGradient>(use.gradient, target.set.index(use.name), entry,
                                                     model.calls->graph().spec(use.gradient).dtype, target.access);
    const int64_t capacity = std::min(gradient->height(), model.calls->contributions(use.gradient, model.bounds));
    if (target.set.has_values())
      gradient->resize(capacity);
    else
      gradient->plan(capacity);
    model.calls->bind_rows(gradient->value(), gradient->values(), &gradient->rows());
    model.sparse_gradients.push_back(std::move(gradient));
  }
}

std::vector<UntrainableLayer> untrainable_layers(const Graph& graph, const std::vector<MissingBackward>& missing) {
  std::vector<UntrainableLayer> result;
  for (const MissingBackward& each : missing) {
    const auto& site = *static_cast<const KernelSite*>(graph.nodes[each.node].as<NativeCall>()->site.get());
    result.push_back({site.layer->name, site.layer->type, site.kernel->plugin, site.kernel->table.name, each.reason});
  }
  return result;
}

}  // namespace

bool MachineOptions::is_immutable(const std::string& name) const {
  return std::any_of(immutable.begin(), immutable.end(), [&](const std::string& of) { return is_below(name, of); });
}

const SparseGradient* CompiledModel::sparse_gradient(ValueId value) const {
  for (const auto& gradient : sparse_gradients)
    if (gradient->value() == value) return gradient.get();
  return nullptr;
}

CompiledModel compile(const Topology& topology, const CompileTarget& target, const MachineOptions& options,
                      RaggedBounds ragged_bounds) {
  check_options(options);
  const SharedObjects::Stream stream(target.device->shared(), &target.access);
  CompiledModel model;
  model.ragged_bounds = std::move(ragged_bounds);
  model.bounds = bounds_of(topology, options, model.ragged_bounds);
  check_parameters(topology, target.set);
  check_immutable(topology, options);
  model.lowered = lower(topology, target.registry, *target.device,
                        {options.compute, model.bounds, options.precision, options.training, options.data_gradients,
                         [&](const std::string& parameter) { return options.is_immutable(parameter); }});
  Graph graph = std::move(model.lowered.graph);
  bound_steps(graph, options, model.ragged_bounds, model.bounds);
  model.tables = read_caches(graph, model.lowered, target.set, options);
  model.inverses = Inverses(options.compute);
  model.costs = add_costs(graph, topology, model.lowered, options.compute, model.inverses);
  if (options.training) {
    if (options.given_gradients)
      model.given = add_given_gradients(graph, topology, model.lowered);
    else
      check_costs(topology);
    std::vector<MissingBackward> missing;
    differentiate_machine(graph, model.lowered, {model.costs, model.given}, options, model.inverses,
                          target.set.has_values() ? nullptr : &missing);
    model.untrainable = untrainable_layers(graph, missing);
  }
  model.kept = kept_values(model, topology, graph, options);
  arrange_loops(graph);
  fuse(graph, model.kept);
  join_bags(graph, model.kept);
  const auto reads_rows = [&](const Node& node) { return prefers_rows(*target.device, graph, model.bounds, node); };
  join_products(graph, model.kept, reads_rows);
  join_gathers(graph, model.kept, reads_rows);
  attach_epilogues(graph,
                   [&](const Node& product) { return prefers_epilogue(*target.device, graph, model.bounds, product); });
  const auto bytes_of = [&](const Node& product) { return packed_bytes(*target.device, graph, model.bounds, product); };
  const std::vector<ValueId> packed = pack_operands(graph, bytes_of, constant_values(graph, model.lowered, options));
  model.kept.insert(model.kept.end(), packed.begin(), packed.end());
  model.gradients = place_gradients(graph, model.lowered, target.set);
  model.memory_plan = plan_memory(graph, placed_values(graph, model.lowered), model.kept, model.bounds);
  model.calls = std::make_unique<CallArray>(std::move(graph), target.device, model.bounds, model.kept, options.checks);
  for (const RaggedUse& rows : model.lowered.rows)
    if (rows.is_written()) model.calls->expect_rows(rows.symbol, rows.derived.bound);
  place_sparse_gradients(model, target);
  lay_out(model);
  if (target.set.has_values()) allocate(model, target.set, target.access, {options.seed, 0});
  return model;
}

}  // namespace tenon::host
