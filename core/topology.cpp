// SPDX-License-Identifier: Apache-2.0
#include "core/topology.h"

#include <nlohmann/json.hpp>
#include <unordered_set>

#include "core/error.h"

namespace tenon::core {

Layer::~Layer() {
  // Layers without another owner, linked through `dropped_next`: a destructor must not allocate.
  LayerRef dropped;
  const auto owned = [](const LayerRef& layer) -> Layer& { return const_cast<Layer&>(*layer); };
  const auto take = [&](std::vector<LayerOutput>& from) {
    for (LayerOutput& each : from) {
      const LayerRef layer = std::move(each.layer);
      if (layer == nullptr || layer.use_count() != 1) continue;
      owned(layer).dropped_next = std::move(dropped);
      dropped = layer;
    }
  };
  take(inputs);
  take(expansion);
  while (dropped != nullptr) {
    const LayerRef last = std::move(dropped);  // destroyed at the end of this iteration
    dropped = std::move(owned(last).dropped_next);
    take(owned(last).inputs);
    take(owned(last).expansion);
  }
}

std::string layer_label(const Layer& layer) { return "layer \"" + layer.name + "\" (" + layer.type + ")"; }

std::string branch_label(const Branch& branch) {
  return text("branch ", branch.number, " of cond \"", branch.cond->name, "\"");
}

LayerOutput resolved(LayerOutput output) {
  while (output.layer != nullptr && output.layer->expanded()) output = output.layer->expansion.at(output.output);
  return output;
}

LayerOutput entered(LayerOutput output) {
  output = resolved(output);
  while (output.layer != nullptr && output.layer->scan_part() &&
         output.layer->scan_part()->kind == ScanPart::Kind::kInput)
    output = resolved(output.layer->inputs.at(0));
  return output;
}

bool is_within(const Scan* inner, const Scan* outer) {
  while (inner != nullptr && inner != outer) inner = inner->around.get();
  return inner == outer;
}

void require_outside(const std::vector<LayerOutput>& outputs) {
  for (const LayerOutput& output : outputs) {
    if (output.layer == nullptr) continue;
    if (output.layer->scan != nullptr)
      fail(TN_INVALID, ComponentName{layer_label(*output.layer)}, "it is inside of scan \"", output.layer->scan->name,
           "\", whose results and last values alone can be read outside");
    if (output.layer->branch != nullptr)
      fail(TN_INVALID, ComponentName{layer_label(*output.layer)}, "it is inside of ",
           branch_label(*output.layer->branch), ", whose results alone can be read outside");
  }
}

std::string output_name(const LayerOutput& output) {
  if (output.layer == nullptr) return "";
  return output.output == 0 ? output.layer->name : text(output.layer->name, ":", output.output);
}

namespace {

// Returns the layers that `outputs` depend on, each after those that next(layer) returns. Depth-first without
// recursion, so that a chain of a million layers does not overflow the stack.
template <typename Next>
std::vector<LayerRef> in_order(const std::vector<LayerOutput>& outputs, Next next) {
  std::vector<LayerRef> order;
  std::unordered_set<const Layer*> seen;
  struct Visit {
    LayerRef layer;
    std::vector<LayerRef> before;
    size_t done = 0;
  };
  std::vector<Visit> path;
  const auto enter = [&](const LayerRef& layer) {
    if (layer != nullptr && seen.insert(layer.get()).second) path.push_back({layer, next(*layer), 0});
  };
  for (const LayerOutput& output : outputs) {
    enter(output.layer);
    while (!path.empty()) {
      Visit& visit = path.back();
      if (visit.done < visit.before.size()) {
        enter(LayerRef(visit.before[visit.done++]));
        continue;
      }
      order.push_back(visit.layer);
      path.pop_back();
    }
  }
  return order;
}

// Returns the layers before a leaf, or the inner layers that an expanded layer stands for.
std::vector<LayerRef> before_leaf(const Layer& layer) {
  std::vector<LayerRef> before;
  for (const LayerOutput& each : layer.expanded() ? layer.expansion : layer.inputs) before.push_back(each.layer);
  return before;
}

// Returns "fc of x, float32 [samples, 3]": the type, the inputs and the first output.
std::string outline(const Layer& layer) {
  std::string inputs;
  for (const LayerOutput& input : layer.inputs) inputs += (inputs.empty() ? " of " : " and ") + output_name(input);
  return layer.type + inputs + (layer.outputs.empty() ? "" : ", " + to_string(layer.outputs[0]));
}

void check_names(const std::vector<LayerRef>& layers) {
  std::map<std::string, const Layer*> known;
  for (const LayerRef& layer : layers) {
    const auto [entry, fresh] = known.try_emplace(layer->name, layer.get());
    if (!fresh)
      fail(TN_INVALID, "two different layers are named \"", layer->name, "\": ", outline(*entry->second), "; and ",
           outline(*layer));
  }
}

}  // namespace

Topology Topology::trace(std::vector<LayerOutput> outputs) {
  Topology topology;
  topology.outputs = std::move(outputs);
  if (topology.outputs.empty()) fail(TN_INVALID, "a topology needs at least one output layer");
  require_outside(topology.outputs);
  topology.layers = in_order(topology.outputs, [](const Layer& layer) {
    std::vector<LayerRef> before;
    for (const LayerOutput& input : layer.inputs) before.push_back(input.layer);
    return before;
  });
  check_names(topology.layers);
  topology.leaves = in_order(topology.outputs, before_leaf);
  std::erase_if(topology.leaves, [](const LayerRef& layer) { return layer->expanded(); });
  return topology;
}

std::vector<LayerRef> leaves_of(const LayerRef& layer) {
  std::unordered_set<const Layer*> outside;
  for (const LayerOutput& input : layer->inputs) outside.insert(input.layer.get());
  std::vector<LayerRef> leaves = in_order({{layer, 0}}, [&](const Layer& inside) {
    return outside.contains(&inside) ? std::vector<LayerRef>() : before_leaf(inside);
  });
  std::erase_if(leaves, [&](const LayerRef& leaf) { return leaf->expanded() || outside.contains(leaf.get()); });
  return leaves;
}

std::vector<ParameterDeclaration> Topology::declarations() const {
  std::vector<ParameterDeclaration> result;
  const auto add = [&](const Layer& layer, const LayerParameter& parameter, bool buffer) {
    ParameterDeclaration declaration;
    declaration.name = parameter.name;
    for (const Dim& dim : parameter.spec.shape) declaration.shape.push_back(dim.offset);
    declaration.dtype = parameter.spec.dtype == TN_COMPUTE ? TN_F32 : parameter.spec.dtype;
    declaration.initializer = parameter.initializer;
    declaration.initializer_stated = parameter.initializer_stated;
    declaration.buffer = buffer;
    declaration.merge = parameter.merge;
    declaration.owner = layer.name;
    declaration.multipliers = parameter.multipliers;
    result.push_back(std::move(declaration));
  };
  for (const LayerRef& leaf : leaves) {
    for (const LayerParameter& parameter : leaf->parameters) add(*leaf, parameter, false);
    for (const LayerParameter& buffer : leaf->buffers) add(*leaf, buffer, true);
  }
  return result;
}

namespace {

nlohmann::json to_json(const TypeVersion& from) {
  return {{"id", from.plugin}, {"version", from.version}, {"state_version", from.state_version}};
}

nlohmann::json to_json(const Values& values) {
  nlohmann::json result = nlohmann::json::object();
  for (const auto& [name, value] : values) result[name] = to_json(value);
  return result;
}

// The members of a data layer, except name, type and names.
nlohmann::json members_of(const DataSource& data) {
  nlohmann::json result = {{"dtype", dtype_name(data.dtype)},
                           {"shape", data.shape},
                           {"index_limit", data.index_limit},
                           {"scale", data.scale},
                           {"offset", data.offset}};
  if (data.storage != TN_DENSE) result["storage"] = storage_name(data.storage);
  if (data.storage == TN_RAGGED) {
    result["levels"] = data.levels;
    result["sequence"] = data.sequence;
  }
  if (data.channels_first) result["layout"] = "channels_first";
  return result;
}

nlohmann::json names_of(const std::vector<LayerOutput>& outputs) {
  nlohmann::json names = nlohmann::json::array();
  for (const LayerOutput& output : outputs) names.push_back(output_name(output));
  return names;
}

// The members of a layer that is a part of a scan, except name and type.
nlohmann::json members_of(const ScanPart& part, const Layer& layer) {
  nlohmann::json result = {{"inputs", names_of(layer.inputs)},
                           {"scan", {{"name", part.scan->name}, {"reverse", part.scan->reverse}}}};
  if (part.kind == ScanPart::Kind::kScan) result["results"] = part.results;
  if (part.kind != ScanPart::Kind::kMemory) return result;
  result["initial_value"] = part.initial_value;
  if (!layer.carried.empty()) result["carry"] = true;
  nlohmann::json& shape = result["shape"] = nlohmann::json::array();
  for (size_t i = 1; i < layer.outputs[0].shape.size(); ++i) shape.push_back(layer.outputs[0].shape[i].offset);
  return result;
}

// The members of a layer that is a part of branches, except name and type.
nlohmann::json members_of(const CondPart& part, const Layer& layer) {
  nlohmann::json result = {{"inputs", names_of(layer.inputs)},
                           {"cond", {{"name", part.cond->name}, {"branches", part.cond->branches}}}};
  if (part.kind == CondPart::Kind::kInput) result["branch"] = part.branch;
  return result;
}

// The members of a layer of a plugin, except name and type.
nlohmann::json members_of(const LayerRef& layer) {
  nlohmann::json result = {{"plugin", to_json(layer->type_version)}, {"inputs", names_of(layer->inputs)}};
  nlohmann::json& attributes = result["attributes"] = to_json(layer->given);
  for (const auto& [name, value] : layer->resolved) attributes[name] = to_json(value);
  // Always stored, so that layers share parameters by name after loading even if the name was generated.
  attributes["parameter_name"] = layer->parameter_name;
  for (const InnerLayer& inner : layer->inner)
    result["inner"].push_back({{"name", inner.name},
                               {"type", inner.type},
                               {"plugin", to_json(inner.type_version)},
                               {"attributes", to_json(inner.attributes)}});
  for (const LayerRef& leaf : leaves_of(layer))
    for (const LayerParameter& buffer : leaf->buffers) result["buffers"][buffer.name] = merge_name(buffer.merge);
  return result;
}

}  // namespace

nlohmann::json Topology::to_json(const DataNames& names) const {
  uint64_t name_bytes = 0;
  nlohmann::json result = {{"version", 1}, {"layers", nlohmann::json::array()}};
  for (const LayerRef& layer : layers) {
    nlohmann::json entry = layer->data()        ? members_of(*layer->data())
                           : layer->scan_part() ? members_of(*layer->scan_part(), *layer)
                           : layer->cond_part() ? members_of(*layer->cond_part(), *layer)
                                                : members_of(layer);
    entry["name"] = layer->name;
    entry["type"] = layer->type;
    if (const auto known = names.find(layer->name); layer->data() && known != names.end()) {
      const auto store = [&](const char* key, const Names& list) {
        for (const std::string& text : list.texts) name_bytes += text.size();
        entry[key] = core::to_json(list, name_bytes <= kMostModelNameBytes);
      };
      if (known->second->count > 0) store("names", *known->second);
      if (known->second->columns != nullptr) store("columns", *known->second->columns);
    }
    result["layers"].push_back(std::move(entry));
  }
  result["outputs"] = names_of(outputs);
  return result;
}

}  // namespace tenon::core
