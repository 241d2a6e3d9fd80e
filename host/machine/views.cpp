// Read access to a machine of a device: cost, outputs, metrics, plan. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "host/machine/device_machine.h"

namespace tenon::host {

double DeviceMachine::scalar(ValueId value) const {
  if (samples_ <= 0) return 0;
  const bool wide = model_.calls->graph().spec(value).dtype == TN_F64;
  const void* data = access_->view(model_.calls->memory(value), wide ? sizeof(double) : sizeof(float));
  return wide ? *static_cast<const double*>(data) : static_cast<double>(*static_cast<const float*>(data));
}

double DeviceMachine::cost() const {
  double sum = 0;
  for (const Cost& cost : model_.costs) sum += scalar(cost.mean);
  return sum;
}

std::vector<double> DeviceMachine::costs() const {
  std::vector<double> values;
  for (const Cost& cost : model_.costs) values.push_back(scalar(cost.mean));
  return values;
}

std::vector<double> DeviceMachine::metric_state(const LayerRef& metric) const {
  for (const MetricUse& use : model_.lowered.metrics) {
    if (use.layer != metric) continue;
    std::vector<double> state;
    for (const ValueId value : use.state) state.push_back(scalar(value));
    return state;
  }
  fail(TN_NOT_FOUND, "the machine has no metric \"", metric->name, "\"");
}

ArrayView DeviceMachine::described(ValueId value) const {
  const Spec& spec = model_.calls->graph().spec(value);
  ArrayView result;
  result.dtype = spec.dtype;
  for (const Dim& dim : spec.shape) result.shape.push_back(tn_dim_value(&dim, symbols_.data()));
  return result;
}

ArrayView DeviceMachine::view(ValueId value) const {
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

namespace {

bool is_kept(const CompiledModel& model, ValueId value) {
  if (std::find(model.kept.begin(), model.kept.end(), value) != model.kept.end()) return true;
  return std::any_of(model.lowered.feeds.begin(), model.lowered.feeds.end(),
                     [&](const Feed& feed) { return feed.value == value; });
}

}  // namespace

ArrayView DeviceMachine::output(const LayerOutput& output) const {
  require_outside({output});
  const ValueId value = model_.lowered.value_of(output);
  if (value == kNoValue) fail(TN_NOT_FOUND, "layer \"", output_name(output), "\" has no output in this machine");
  if (!is_kept(model_, value))
    fail(TN_NOT_KEPT, "the output of layer \"", output_name(output),
         "\" is not kept; make it one of the machine's outputs, or set keep_all");
  if (samples_ < 0) fail(TN_MISUSE, "an output needs a forward that succeeded before it");
  return view(value);
}

std::string DeviceMachine::compute_name() const {
  if (options_.precision == TN_PRECISION_FULL) return dtype_name(options_.compute);
  return options_.precision == TN_PRECISION_BF16 ? "bf16" : "tf32";
}

nlohmann::json DeviceMachine::describe() const {
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
  nlohmann::json row_gradients = nlohmann::json::array();
  for (const auto& gradient : model_.sparse_gradients) {
    rows_bytes += gradient->bytes();
    row_gradients.push_back({{"parameter", set_->entries()[gradient->entry()].name},
                             {"rows", gradient->capacity()},
                             {"width", gradient->width()}});
  }
  nlohmann::json result = {{"device", device_->kind()},
                           {"compute", compute_name()},
                           {"max_samples", options_.max_samples},
                           {"training", options_.training},
                           {"batch_invariant", model_.calls->is_batch_invariant()},
                           {"portable", model_.calls->is_portable()},
                           {"layers", layers},
                           {"calls", model_.calls->describe()},
                           {"missing_backward", missing},
                           {"saved", model_.calls->describe_saved()},
                           {"row_gradients", row_gradients},
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
  return result;
}

}  // namespace tenon::host
