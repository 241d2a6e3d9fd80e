// The public C API: layers, parameters, model files. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "core/files/model_file.h"
#include "host/api/api.h"
#include "host/api/topologies.h"
#include "host/layers/renames.h"
#include "host/plugins/type_json.h"

namespace api = tenon::host::api;
using namespace tenon::host;

tn_status tn_data_create(tn_host* host, const tn_data_options* options, tn_layer* layer, tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    const tn_data_options given = api::sized(options, "options");
    api::required(layer, "layer");
    DataSource source;
    source.dtype = given.dtype;
    static_cast<void>(dtype_from_name(dtype_name(given.dtype)));  // throws for an unknown type
    if (given.rank < 0 || given.rank >= TN_MAX_RANK)
      fail(TN_INVALID, SubjectName{"options.rank"}, "options.rank is ", given.rank);
    if (given.rank > 0) source.shape.assign(&api::required(given.shape, "options.shape"), given.shape + given.rank);
    source.index_limit = given.index_limit == 0 ? -1 : given.index_limit;
    source.scale = given.scale == 0 ? 1 : given.scale;
    source.offset = given.offset;
    source.storage = given.storage;
    source.levels = given.levels;
    if (given.sequence != nullptr) source.sequence = api::string(given.sequence, "options.sequence");
    source.channels_first = api::channels_first(given.layout, "options.layout");
    const SetupLock lock = it.registry.setup();
    *layer = it.layers.add<tn_layer>({it.factory.data(api::string(given.name, "options.name"), source), 0});
  });
}

tn_status tn_layer_create(tn_host* host, const tn_layer_options* options, tn_layer* layer, tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    const tn_layer_options given = api::sized(options, "options");
    api::required(layer, "layer");
    const SetupLock lock = it.registry.setup();
    const LayerRef like = given.like.generation == 0 ? nullptr : it.layers.at(given.like).layer;
    const std::string type = api::string(given.type, "options.type"), name = given.name == nullptr ? "" : given.name;
    std::vector<LayerOutput> inputs = api::layer_outputs(it, given.inputs, given.inputs_count, "options.inputs");
    if (given.ports != nullptr)
      inputs =
          it.factory.in_port_order(type, name, inputs, api::strings(given.ports, given.inputs_count, "options.ports"));
    *layer = it.layers.add<tn_layer>(
        it.factory.layer(type, name, std::move(inputs),
                         api::values(given.attributes, given.attributes_count, "options.attributes"), like.get()));
  });
}

tn_status tn_layer_find(tn_host* host, tn_layer layer, const char* name, tn_layer* found, tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    const std::string wanted = api::string(name, "name");
    api::required(found, "found");
    const Topology topology = Topology::trace({it.layers.at(layer)});
    const auto at = std::find_if(topology.layers.begin(), topology.layers.end(),
                                 [&](const LayerRef& each) { return each->name == wanted; });
    if (at == topology.layers.end())
      fail(TN_NOT_FOUND, SubjectName{wanted}, "layer \"", topology.outputs[0].layer->name,
           "\" does not depend on a layer \"", wanted, "\"");
    *found = it.layers.add<tn_layer>(LayerOutput{*at, 0});
  });
}

tn_status tn_layer_describe(tn_host* host, tn_layer layer, tn_write write, void* user, tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    const LayerOutput output = it.layers.at(layer);
    const Layer& described = *output.layer;
    nlohmann::json json = {{"name", described.name}, {"type", described.type}, {"role", role_name(described.role)}};
    json["inputs"] = nlohmann::json::array();
    for (const LayerOutput& input : described.inputs) json["inputs"].push_back(output_name(input));
    json["attributes"] = nlohmann::json::object();
    for (const auto& [name, value] : described.given) json["attributes"][name] = to_json(value);
    for (const auto& [name, value] : described.resolved)
      if (!std::holds_alternative<Absent>(value)) json["attributes"][name] = to_json(value);
    if (!described.outputs.empty()) {
      json["shape"] = to_string(described.outputs[output.output].shape);
      json["dtype"] = dtype_name(described.outputs[output.output].dtype);
    }
    json["outputs"] = nlohmann::json::array();
    for (uint32_t i = 0; i < described.outputs.size(); ++i)
      json["outputs"].push_back({{"name", output_name({output.layer, i})},
                                 {"shape", to_string(described.outputs[i].shape)},
                                 {"dtype", dtype_name(described.outputs[i].dtype)}});
    json["parameters"] = nlohmann::json::array();
    for (const LayerRef& leaf : leaves_of(output.layer))
      for (const auto* list : {&leaf->parameters, &leaf->buffers})
        for (const LayerParameter& parameter : *list) json["parameters"].push_back(parameter.name);
    api::write_json(json, write, user);
  });
}

tn_status tn_layer_output(tn_host* host, tn_layer layer, uint32_t number, tn_layer* output, tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    api::required(output, "output");
    const LayerOutput of = it.layers.at(layer);
    const size_t count = of.layer->outputs.size();
    if (number >= count)
      fail(TN_NOT_FOUND, "layer \"", of.layer->name, "\" has no output ", number, "; it has ", count);
    *output = it.layers.add<tn_layer>(LayerOutput{of.layer, number});
  });
}

tn_status tn_layer_release(tn_host* host, tn_layer layer, tn_error* error) {
  return api::call(host, error, [&](Host& it) { it.layers.take(layer); });
}

// ---- parameters

namespace {

// Returns the parameters of all outputs. Traces each output on its own, since several topologies may use one name for
// different layers.
std::vector<ParameterDeclaration> declarations_of(Host& host, const tn_layer* outputs, uint32_t count) {
  if (count == 0) fail(TN_INVALID, SubjectName{"outputs"}, "outputs is empty");
  api::required(outputs, "outputs");
  std::vector<ParameterDeclaration> declarations;
  for (uint32_t i = 0; i < count; ++i)
    for (ParameterDeclaration& declaration : api::topology_of(host, outputs + i, 1).declarations())
      declarations.push_back(std::move(declaration));
  return declarations;
}

}  // namespace

tn_status tn_parameters_create(tn_host* host, const tn_layer* outputs, uint32_t outputs_count, uint64_t seed,
                               tn_parameters* parameters, tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    api::required(parameters, "parameters");
    *parameters = it.parameters.add<tn_parameters>(std::make_shared<HeldParameters>(
        ParameterSet::create(declarations_of(it, outputs, outputs_count), seed, it.allocator)));
  });
}

tn_status tn_parameters_declare(tn_host* host, const tn_layer* outputs, uint32_t outputs_count,
                                tn_parameters* parameters, tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    api::required(parameters, "parameters");
    *parameters = it.parameters.add<tn_parameters>(std::make_shared<HeldParameters>(
        ParameterSet::declare(declarations_of(it, outputs, outputs_count), it.allocator)));
  });
}

tn_status tn_parameters_describe(tn_host* host, tn_parameters parameters, tn_write write, void* user, tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    nlohmann::json json = nlohmann::json::array();
    const std::shared_ptr<HeldParameters> held = it.parameters.at(parameters);
    for (const ParameterEntry& entry : held->set->entries())
      json.push_back({{"name", entry.name},
                      {"shape", entry.shape},
                      {"dtype", dtype_name(entry.dtype)},
                      {"kind", entry.buffer ? "buffer" : "parameter"}});
    api::write_json(json, write, user);
  });
}

tn_status tn_parameters_get(tn_host* host, tn_parameters parameters, const char* name, tn_array* values,
                            tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    const std::shared_ptr<HeldParameters> held = it.parameters.at(parameters);
    const ParameterEntry& entry = held->set->find(api::string(name, "name"));
    held->gate.require_viewable();
    api::required(values, "values") = api::array({entry.dtype, entry.shape, held->set->values(entry)});
  });
}

tn_status tn_parameters_set(tn_host* host, tn_parameters parameters, const char* name, const tn_array* values,
                            tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    const ArrayView view = api::view(api::required(values, "values"), [] { return "values"; });
    if (view.data == nullptr) fail(TN_MISUSE, SubjectName{"values"}, "values.data is null");
    const std::shared_ptr<HeldParameters> held = it.parameters.at(parameters);
    const SetWrite write(held->gate);
    held->set->set(api::string(name, "name"), view);
  });
}

tn_status tn_parameters_names(tn_host* host, tn_parameters parameters, const tn_names* const** names, uint32_t* count,
                              tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    const std::shared_ptr<HeldParameters> held = it.parameters.at(parameters);
    std::vector<SlotNames> known;
    {
      const SetRead read(held->gate);
      for (const auto& [layer, list] : held->set->names()) known.push_back({layer, list});
    }
    api::give_names(it, std::move(known), names, count);
  });
}

tn_status tn_parameters_set_names(tn_host* host, tn_parameters parameters, const tn_names* const* names, uint32_t count,
                                  tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    const std::shared_ptr<HeldParameters> held = it.parameters.at(parameters);
    const SetWrite write(held->gate);
    DataNames changed = held->set->names();
    for (const SlotNames& given : api::names(names, count, "names")) {
      NamesRef& known = changed[given.slot];
      if (given.names == nullptr || known == nullptr || given.names->dtype != 0) {
        known = given.names;
      } else {  // a list of 0.3 says nothing of columns, type and shape
        Names all = *given.names;
        if (all.columns == nullptr) all.columns = known->columns;
        all.dtype = known->dtype;
        all.shape = known->shape;
        all.index_limit = known->index_limit;
        known = std::make_shared<Names>(std::move(all));
      }
      if (known == nullptr) changed.erase(given.slot);
    }
    held->set->set_names(std::move(changed));
  });
}

tn_status tn_parameters_release(tn_host* host, tn_parameters parameters, tn_error* error) {
  return api::call(host, error, [&](Host& it) { it.parameters.take(parameters); });
}

// ---- model files

tn_status tn_model_save(tn_host* host, tn_parameters parameters, const tn_layer* outputs, uint32_t outputs_count,
                        const char* path, tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    const Topology topology = api::topology_of(it, outputs, outputs_count);
    std::vector<std::string> names;
    std::set<std::string> known;
    for (const ParameterDeclaration& declaration : topology.declarations())
      if (known.insert(declaration.name).second) names.push_back(declaration.name);
    const std::shared_ptr<HeldParameters> held = it.parameters.at(parameters);
    const SetRead read(held->gate);
    const ParameterSet& set = *held->set;
    write_model(*it.files, api::string(path, "path"), topology.to_json(set.names()).dump(), set, names);
  });
}

tn_status tn_model_load(tn_host* host, const char* path, tn_layer* outputs, uint32_t* outputs_count,
                        tn_parameters* parameters, tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    const std::string file = api::string(path, "path");
    api::required(outputs_count, "outputs_count");
    api::required(parameters, "parameters");
    const ModelFile header = read_model_header(*it.files, file);
    api::ReadTopology contents = api::naming_file(file, [&] { return api::topology_of_model(it, header, file); });
    const std::vector<LayerOutput>& layer_outputs = contents.topology.outputs;
    const api::LayerRoom room{outputs, outputs_count, "outputs", "outputs_count"};
    api::check_capacity(layer_outputs.size(), room, file);
    auto set =
        api::naming_file(file, [&] { return ParameterSet::declare(contents.topology.declarations(), it.allocator); });
    api::naming_file(file, [&] { return load_model(*it.files, file, *set, &header, contents.changes); });
    set->set_names(std::move(contents.names));
    const auto loaded = it.parameters.add<tn_parameters>(std::make_shared<HeldParameters>(std::move(set)));
    try {
      api::give_layers(it, layer_outputs, room);
    } catch (...) {
      it.parameters.take(loaded);
      throw;
    }
    *parameters = loaded;
  });
}

tn_status tn_model_describe(tn_host* host, const char* path, tn_write write, void* user, tn_error* error) {
  return api::call(host, error, [&](Host& it) {
    const std::string file = api::string(path, "path");
    const ModelFile header = read_model_header(*it.files, file);
    nlohmann::json json = {{"verified", header.verified}, {"checksum", header.checksum}, {"metadata", header.metadata}};
    json["topology"] = header.topology.empty() ? nlohmann::json() : api::parse_topology(header.topology, file);
    rename_layer_types(json["topology"]);
    json["tensors"] = nlohmann::json::array();
    for (const ModelTensor& tensor : header.tensors)
      json["tensors"].push_back(
          {{"name", tensor.name}, {"dtype", tensor.type}, {"shape", tensor.shape}, {"bytes", tensor.bytes}});
    api::write_json(json, write, user);
  });
}
