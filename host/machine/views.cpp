// Read access to a machine: cost, outputs, gradients, metrics, plan. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/checked.h"
#include "core/error.h"
#include "host/machine/machine.h"
#include "host/machine/shards.h"

namespace tenon::host {

double Machine::scalar(ValueId value) const {
  if (samples_ <= 0) return 0;
  const bool wide = model_.calls->graph().spec(value).dtype == TN_F64;
  const void* data = access_->view(model_.calls->memory(value), wide ? sizeof(double) : sizeof(float));
  return wide ? *static_cast<const double*>(data) : static_cast<double>(*static_cast<const float*>(data));
}

double Machine::cost() const { return shards_ == nullptr ? own_cost() : shards_->cost(); }

double Machine::own_cost() const {
  double sum = 0;
  for (const Cost& cost : model_.costs) sum += scalar(cost.mean);
  return sum;
}

std::vector<double> Machine::costs() const { return shards_ == nullptr ? own_costs() : shards_->costs(); }

std::vector<double> Machine::own_costs() const {
  std::vector<double> values;
  for (const Cost& cost : model_.costs) values.push_back(scalar(cost.mean));
  return values;
}

std::vector<std::string> Machine::cost_names() const {
  std::vector<std::string> names;
  for (const Cost& cost : model_.costs) names.push_back(cost.name);
  return names;
}

std::vector<double> Machine::metric_state(const LayerRef& metric) const {
  return shards_ == nullptr ? own_metric_state(metric) : shards_->metric_state(metric);
}

std::vector<double> Machine::own_metric_state(const LayerRef& metric) const {
  for (const MetricUse& use : model_.lowered.metrics) {
    if (use.layer != metric) continue;
    std::vector<double> state;
    for (const ValueId value : use.state) state.push_back(scalar(value));
    return state;
  }
  fail(TN_NOT_FOUND, "the machine has no metric \"", metric->name, "\"");
}

// Returns type and shape of a value, without its data.
ArrayView Machine::described(ValueId value) const {
  const Spec& spec = model_.calls->graph().spec(value);
  ArrayView result;
  result.dtype = spec.dtype;
  for (const Dim& dim : spec.shape) result.shape.push_back(tn_dim_value(&dim, symbols_.data()));
  return result;
}

ArrayView Machine::view(ValueId value) const {
  ArrayView result = described(value);
  result.data = access_->view(model_.calls->memory(value), element_bytes(result));
  const Spec ragged = model_.calls->graph().in_sequences(value);
  if (ragged.storage != TN_RAGGED) return result;
  result.storage = TN_RAGGED;
  result.levels = ragged.levels;
  result.samples = samples_;
  const Graph& graph = model_.calls->graph();
  Dim rows = ragged.shape[0];
  for (size_t level = ragged.outer.size(); level-- > 0;) {  // innermost first
    const RaggedDim& of = graph.rows.at(rows.symbol);
    const auto offsets = static_cast<uint64_t>(tn_dim_value(&of.outer, symbols_.data())) + 1;
    result.offsets[level] =
        static_cast<const int64_t*>(access_->view(model_.calls->memory(of.offsets), offsets * sizeof(int64_t)));
    rows = of.outer;
  }
  return result;
}

bool Machine::is_kept(ValueId value) const {
  if (std::find(model_.kept.begin(), model_.kept.end(), value) != model_.kept.end()) return true;
  return std::any_of(model_.lowered.feeds.begin(), model_.lowered.feeds.end(),
                     [&](const Feed& feed) { return feed.value == value; });
}

ArrayView Machine::output(const LayerOutput& output) const {
  return shards_ == nullptr ? own_output(output) : shards_->output(output);
}

ArrayView Machine::own_output(const LayerOutput& output) const {
  require_outside({output});
  const ValueId value = model_.lowered.value_of(output);
  if (value == kNoValue) fail(TN_NOT_FOUND, "layer \"", output_name(output), "\" has no output in this machine");
  if (!is_kept(value))
    fail(TN_NOT_KEPT, "the output of layer \"", output_name(output),
         "\" is not kept; make it one of the machine's outputs, or set keep_all");
  if (samples_ < 0) fail(TN_MISUSE, "an output needs a forward that succeeded before it");
  return view(value);
}

// Returns the parameter of that name, which has a gradient in this machine.
const ParameterUse& Machine::with_gradient(const std::string& parameter) const {
  std::vector<std::string> names;
  for (const ParameterUse& use : model_.lowered.parameters) {
    names.push_back(use.name);
    if (use.name != parameter) continue;
    if (use.gradient == kNoValue)
      fail_parameter(TN_NOT_FOUND, parameter, "parameter \"", parameter, "\" has no gradient in this machine");
    return use;
  }
  fail_parameter(TN_NOT_FOUND, parameter, "the machine has no parameter \"", parameter, "\"",
                 suggestion(parameter, names));
}

const ParameterUse& Machine::differentiated(const std::string& parameter) const {
  const ParameterUse& use = with_gradient(parameter);
  if (!accumulated_ && !used_)
    fail_parameter(TN_MISUSE, parameter, "parameter \"", parameter, "\": no backward since the last update");
  return use;
}

const SparseGradient* Machine::sparse_gradient(ValueId value) const {
  for (const auto& gradient : model_.sparse_gradients)
    if (gradient->value() == value) return gradient.get();
  return nullptr;
}

std::set<std::string> Machine::trained(const std::vector<std::string>& names) const {
  std::set<std::string> result;
  std::vector<std::string> known;
  for (const ParameterUse& use : model_.lowered.parameters)
    if (use.gradient != kNoValue) known.push_back(use.name);
  std::string missing, first;
  for (const std::string& name : names) {
    bool found = false;
    for (const std::string& parameter : known) {
      if (!is_below(parameter, name)) continue;
      result.insert(parameter);
      found = true;
    }
    if (found) continue;
    if (missing.empty()) first = name;
    missing += text(missing.empty() ? "" : ", ", "\"", name, "\"");
  }
  if (!missing.empty())
    fail_parameter(TN_INVALID, first, "the machine trains no parameter ", missing, suggestion(first, known));
  return result;
}

ArrayView Machine::gradient(const std::string& parameter) {
  const ParameterUse& use = differentiated(parameter);
  const SparseGradient* const sparse = sparse_gradient(use.gradient);
  return sparse == nullptr ? view(use.gradient) : dense_copy(*sparse);
}

Machine::SparseGradientView Machine::sparse_gradient(const std::string& parameter) const {
  const SparseGradient* const gradient = sparse_gradient(differentiated(parameter).gradient);
  if (gradient == nullptr)
    fail_parameter(TN_INVALID, parameter, "parameter \"", parameter, "\" has a dense gradient, not one of rows");
  return rows_of(*gradient);
}

Machine::SparseGradientView Machine::rows_of(const SparseGradient& gradient) const {
  const int64_t count = gradient.count();
  SparseGradientView rows;
  rows.ids = {TN_I64, {count}};
  rows.ids.data = access_->view(gradient.rows().ids, element_bytes(rows.ids));
  rows.values = {gradient.dtype(), set_->entries()[gradient.entry()].shape};
  rows.values.shape[0] = count;
  rows.values.data = access_->view(gradient.values(), element_bytes(rows.values));
  return rows;
}

ArrayView Machine::dense_copy(const SparseGradient& gradient) {
  const uint64_t row_bytes = gradient.row_bytes();
  const uint64_t bytes = checked_multiply(static_cast<uint64_t>(gradient.height()), row_bytes, "gradient");
  if (dense_gradient_.size() < bytes) dense_gradient_ = Buffer(set_->allocator(), bytes);
  if (bytes > 0) std::memset(dense_gradient_.data(), 0, bytes);
  const SparseGradientView rows = rows_of(gradient);
  const auto* const ids = static_cast<const int64_t*>(rows.ids.data);
  for (int64_t i = 0; i < rows.ids.shape[0]; ++i)
    std::memcpy(dense_gradient_.data() + static_cast<uint64_t>(ids[i]) * row_bytes,
                static_cast<const std::byte*>(rows.values.data) + static_cast<uint64_t>(i) * row_bytes, row_bytes);
  return {gradient.dtype(), set_->entries()[gradient.entry()].shape, dense_gradient_.data()};
}

std::string Machine::compute_name() const {
  if (options_.precision == TN_PRECISION_FULL) return dtype_name(options_.compute);
  return options_.precision == TN_PRECISION_BF16 ? "bf16" : "tf32";
}

nlohmann::json Machine::describe() const {
  const MachineMemory::Sections& sections = model_.memory.sections;
  nlohmann::json layers = nlohmann::json::array();
  for (const LayerRef& leaf : topology_.leaves) {
    layers.push_back({{"name", leaf->name},
                      {"type", leaf->type},
                      {"output", leaf->outputs.empty() ? std::string() : to_string(leaf->outputs[0])}});
    const auto kernels = model_.lowered.passed_over.find(leaf.get());
    if (kernels != model_.lowered.passed_over.end() && !kernels->second.empty())
      layers.back()["passed_over"] = to_json(kernels->second);
  }
  nlohmann::json missing = nlohmann::json::array();
  for (const UntrainableLayer& each : model_.untrainable)
    missing.push_back({{"layer", each.layer},
                       {"type", each.type},
                       {"plugin", each.plugin},
                       {"kernel", each.kernel},
                       {"reason", each.reason}});
  uint64_t parameter_bytes = 0;
  for (const ParameterSlab& slab : set_->slabs()) parameter_bytes += slab.padded_elements * sizeof(float);
  uint64_t rows_bytes = 0;
  for (const auto& gradient : model_.sparse_gradients) rows_bytes += gradient->bytes();
  nlohmann::json result = {{"device", device_->kind()},
                           {"compute", compute_name()},
                           {"max_samples", max_samples_},
                           {"training", options_.training},
                           {"batch_invariant", model_.calls->is_batch_invariant()},
                           {"layers", layers},
                           {"calls", model_.calls->describe()},
                           {"missing_backward", missing},
                           {"saved", model_.calls->describe_saved()},
                           {"bytes",
                            {{"parameters", parameter_bytes},
                             {"control", sections.feeds - sections.control},
                             {"feeds", sections.gradients - sections.feeds},
                             {"gradients", sections.arena - sections.gradients},
                             {"row_sparse", rows_bytes},
                             {"arena", sections.workspace - sections.arena},
                             {"workspace", sections.total - sections.workspace},
                             {"machine", sections.total + rows_bytes},
                             {"live_bound", model_.memory_plan.live_bound}}}};
  if (const uint64_t launches = model_.calls->launches().value_or(0); launches > 0) result["replays"] = launches;
  if (shards_ == nullptr) return result;
  for (const std::shared_ptr<Device>& device : devices()) result["devices"].push_back(device->name());
  result["shard_samples"] = options_.max_samples;
  return result;
}

}  // namespace tenon::host
