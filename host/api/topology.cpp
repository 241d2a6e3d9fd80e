// The public C API: layers, topologies and sets of parameters as data. SPDX-License-Identifier: Apache-2.0
#include <tenon/tenon_topology.h>

#include <iterator>

#include "host/api/parameter_copy.h"
#include "host/api/topologies.h"
#include "host/layers/layer_ports.h"
#include "host/layers/topology_clone.h"
#include "host/layers/topology_text.h"
#include "host/plugins/type_json.h"

namespace api = tenon::host::api;
using namespace tenon::host;

namespace {

static_assert(std::size(tn_output_info().shape) == TN_MAX_RANK && std::size(tn_parameter_info().shape) == TN_MAX_RANK);
static_assert(int{TN_DIMENSION_SAMPLES} == int{TN_SYMBOL_SAMPLES});
static_assert(int{TN_DIMENSION_ROWS} == int{TN_SYMBOL_FIRST_RAGGED});

tn_dimension dimension_of(const Dim& dim) {
  tn_dimension result = {};
  if (dim.symbol == TN_SYMBOL_NONE) {
    result.extent = dim.offset;
    return result;
  }
  result.extent = -1;
  result.factor = dim.coefficient;
  result.added = dim.offset;
  result.symbol = dim.symbol;
  return result;
}

// Refuses a number that is not below `count`.
void check_number(const Layer& layer, uint32_t number, size_t count, const char* what) {
  if (number >= count)
    fail(TN_NOT_FOUND, SubjectName{layer.name}, "layer \"", layer.name, "\" has no ", what, " ", number, "; it has ",
         count);
}

// Parameters, then buffers, of the leaves of a layer.
struct DeclaredParameter {
  const LayerParameter* parameter;
  const Layer* owner;
  bool buffer;
};
std::vector<DeclaredParameter> parameters_of(const LayerRef& layer) {
  std::vector<DeclaredParameter> result;
  for (const bool buffers : {false, true})
    for (const LayerRef& leaf : leaves_of(layer))
      for (const LayerParameter& each : buffers ? leaf->buffers : leaf->parameters)
        result.push_back({&each, leaf.get(), buffers});
  return result;
}

uint32_t number_of(size_t count) { return static_cast<uint32_t>(count); }

}  // namespace

tn_status tn_layer_inspect(tn_host* host, tn_layer layer, tn_layer_info* info, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const LayerOutput of = owner.layers.at(layer);
    tn_layer_info made = {};
    made.output = of.output;
    made.name = of.layer->name.c_str();
    made.type = of.layer->type.c_str();
    made.role = role_name(of.layer->role);
    made.plugin = of.layer->type_version.plugin.c_str();
    made.inputs_count = number_of(of.layer->inputs.size());
    made.outputs_count = number_of(of.layer->outputs.size());
    made.parameters_count = number_of(parameters_of(of.layer).size());
    api::give(info, "info", made);
  });
}

tn_status tn_layer_block(tn_host* host, tn_layer layer, tn_block_info* info, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const LayerOutput of = owner.layers.at(layer);
    tn_block_info made = {};
    made.name = "";
    if (const Scan* const scan = of.layer->scan.get()) {
      made.kind = TN_BLOCK_STEP;
      made.name = scan->name.c_str();
    } else if (const Branch* const branch = of.layer->branch.get()) {
      made.kind = TN_BLOCK_BRANCH;
      made.name = branch->cond->name.c_str();
      made.branch = number_of(branch->number);
    }
    api::give(info, "info", made);
  });
}

tn_status tn_layer_port(tn_host* host, tn_layer layer, uint32_t number, const char** port, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const LayerOutput of = owner.layers.at(layer);
    check_number(*of.layer, number, of.layer->inputs.size(), "input");
    const SetupLock lock = owner.registry.setup();
    api::required(port, "port") = input_port(owner.registry, *of.layer, number);
  });
}

tn_status tn_layer_input(tn_host* host, tn_layer layer, uint32_t number, tn_layer* input, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const LayerOutput of = owner.layers.at(layer);
    check_number(*of.layer, number, of.layer->inputs.size(), "input");
    const LayerOutput& read = of.layer->inputs[number];
    api::required(input, "input") = read.layer == nullptr ? tn_layer{} : owner.layers.add<tn_layer>(read);
  });
}

tn_status tn_layer_inspect_output(tn_host* host, tn_layer layer, uint32_t number, tn_output_info* info,
                                  tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const LayerOutput of = owner.layers.at(layer);
    check_number(*of.layer, number, of.layer->outputs.size(), "output");
    const Spec& spec = of.layer->outputs[number];
    tn_output_info made = {};
    made.dtype = spec.dtype;
    made.storage = spec.storage;
    made.levels = spec.levels;
    made.rank = static_cast<int32_t>(spec.shape.size());
    std::transform(spec.shape.begin(), spec.shape.end(), made.shape, dimension_of);
    const SetupLock lock = owner.registry.setup();
    made.port = output_port(owner.registry, *of.layer, number);
    api::give(info, "info", made);
  });
}

tn_status tn_layer_attributes(tn_host* host, tn_layer layer, void (*take)(void* user, const tn_named_value* attribute),
                              void* user, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    api::required(take, "take");
    const LayerOutput of = owner.layers.at(layer);
    Values all = part_attributes(*of.layer);
    all.insert(of.layer->resolved.begin(), of.layer->resolved.end());
    for (const auto& [name, value] : of.layer->given) all.emplace(name, value);
    std::vector<std::vector<const char*>> texts;
    for (const auto& [name, value] : all) {
      const tn_named_value attribute = {name.c_str(), view_of(value, texts)};
      if (!std::holds_alternative<Absent>(value)) take(user, &attribute);
    }
  });
}

tn_status tn_layer_parameter(tn_host* host, tn_layer layer, uint32_t number, tn_parameter_info* info, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const LayerOutput of = owner.layers.at(layer);
    const std::vector<DeclaredParameter> all = parameters_of(of.layer);
    check_number(*of.layer, number, all.size(), "parameter");
    const auto& [parameter, declarer, buffer] = all[number];
    tn_parameter_info made = {};
    made.dtype = parameter->spec.dtype == TN_COMPUTE ? TN_F32 : parameter->spec.dtype;  // the type of stored values
    made.name = parameter->name.c_str();
    made.layer = declarer->name.c_str();
    made.kind = buffer ? TN_PARAMETER_BUFFER : TN_PARAMETER_TRAINED;
    made.rank = static_cast<int32_t>(parameter->spec.shape.size());
    for (size_t i = 0; i < parameter->spec.shape.size(); ++i) made.shape[i] = parameter->spec.shape[i].offset;
    made.path = parameter->path.c_str();
    api::give(info, "info", made);
  });
}

namespace {

// Gives the layers of a topology for which `wanted` holds.
template <typename Wanted>
void give_some(Host& host, const Topology& topology, const api::LayerRoom& room, const Wanted& wanted) {
  std::vector<LayerOutput> found;
  for (const LayerRef& layer : topology.layers)
    if (wanted(*layer)) found.push_back({layer, 0});
  api::check_capacity(found.size(), room, room.list);
  api::give_layers(host, found, room);
}

}  // namespace

tn_status tn_topology_layers(tn_host* host, const tn_layer* outputs, uint32_t outputs_count, tn_layer* layers,
                             uint32_t* layers_count, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    give_some(owner, api::topology_of(owner, outputs, outputs_count), {layers, layers_count, "layers", "layers_count"},
              [](const Layer&) { return true; });
  });
}

tn_status tn_topology_data(tn_host* host, const tn_layer* outputs, uint32_t outputs_count, tn_layer* data,
                           uint32_t* data_count, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    give_some(owner, api::topology_of(owner, outputs, outputs_count), {data, data_count, "data", "data_count"},
              [](const Layer& layer) { return layer.data() != nullptr; });
  });
}

tn_status tn_data_inspect(tn_host* host, tn_layer layer, tn_data_options* data, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const LayerOutput of = owner.layers.at(layer);
    if (!of.layer->data()) fail(TN_INVALID, SubjectName{of.layer->name}, layer_label(*of.layer), " is no data layer");
    const DataSource& source = *of.layer->data();
    tn_data_options made = {};
    made.dtype = source.dtype;
    made.name = of.layer->name.c_str();
    made.shape = source.shape.data();
    made.rank = static_cast<int32_t>(source.shape.size());
    made.index_limit = source.index_limit;
    made.scale = source.scale;
    made.offset = source.offset;
    made.storage = source.storage;
    made.levels = source.levels;
    made.sequence = source.storage == TN_RAGGED ? source.sequence.c_str() : nullptr;
    made.layout = source.channels_first ? TN_CHANNELS_FIRST : TN_CHANNELS_LAST;
    api::give(data, "data", made);
  });
}

namespace {

Topology some_topology_of(Host& host, const tn_layer* outputs, uint32_t count) {
  if (count == 0) fail(TN_INVALID, SubjectName{"outputs"}, "outputs is empty");
  return api::topology_of(host, outputs, count);
}

}  // namespace

tn_status tn_topology_write(tn_host* host, const tn_layer* outputs, uint32_t outputs_count, tn_write write, void* user,
                            tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    api::give_text(write, user, some_topology_of(owner, outputs, outputs_count).to_json().dump());
  });
}

tn_status tn_topology_print(tn_host* host, const tn_layer* outputs, uint32_t outputs_count, tn_write write, void* user,
                            tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    api::required(write, "write");
    const Topology topology = some_topology_of(owner, outputs, outputs_count);
    std::string text;
    {
      const SetupLock lock = owner.registry.setup();
      text = text_of(topology, owner.registry, owner.factory.symbols());
    }
    write(user, text.data(), text.size());
  });
}

tn_status tn_topology_save(tn_host* host, const tn_layer* outputs, uint32_t outputs_count, const char* path,
                           tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const std::string text = some_topology_of(owner, outputs, outputs_count).to_json().dump(2) + "\n";
    const std::unique_ptr<FileSystem::Output> file = owner.files->replace(api::string(path, "path"));
    file->write(text.data(), text.size());
    file->commit();
  });
}

tn_status tn_topology_load(tn_host* host, const char* path, tn_layer* outputs, uint32_t* outputs_count,
                           tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const std::string file = api::string(path, "path");
    api::required(outputs_count, "outputs_count");
    const api::ReadTopology read = api::naming_file(file, [&] { return api::load_topology(owner, file); });
    const api::LayerRoom room{outputs, outputs_count, "outputs", "outputs_count"};
    api::check_capacity(read.topology.outputs.size(), room, file);
    api::give_layers(owner, read.topology.outputs, room);
  });
}

namespace {

std::vector<CloneOptions::Rename> renames_of(const tn_rename* renames, uint32_t count, const char* list) {
  std::vector<CloneOptions::Rename> result;
  if (count > 0) api::required(renames, list);
  for (uint32_t i = 0; i < count; ++i)
    result.emplace_back(api::string(renames[i].from, list, i, ".from"), api::string(renames[i].to, list, i, ".to"));
  return result;
}

CloneOptions clone_options_of(const tn_clone_options* options) {
  CloneOptions wanted;
  if (options == nullptr) return wanted;
  const tn_clone_options request = api::sized(options, "options");
  wanted.layers = renames_of(request.layers, request.layers_count, "options.layers");
  wanted.parameters = renames_of(request.parameters, request.parameters_count, "options.parameters");
  if (request.settings_count > 0) api::required(request.settings, "options.settings");
  for (uint32_t i = 0; i < request.settings_count; ++i) {
    const tn_layer_setting& setting = request.settings[i];
    for (auto& [name, value] : api::values(&setting.attribute, 1, "options.settings"))
      wanted.settings.push_back({api::string(setting.layer, "options.settings", i, ".layer"), name, value});
  }
  return wanted;
}

}  // namespace

tn_status tn_topology_clone(tn_host* host, const tn_layer* outputs, uint32_t outputs_count,
                            const tn_clone_options* options, tn_layer* clones, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const CloneOptions wanted = clone_options_of(options);
    api::required(clones, "clones");
    const Topology topology = some_topology_of(owner, outputs, outputs_count);
    std::vector<LayerOutput> made;
    {
      const SetupLock lock = owner.registry.setup();
      made = clone(owner.factory, topology, wanted);
    }
    uint32_t room = outputs_count;
    api::give_layers(owner, made, {clones, &room, "clones", "outputs_count"});
  });
}

tn_status tn_topology_read(tn_host* host, const char* json, uint64_t size, tn_layer* outputs, uint32_t* outputs_count,
                           tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const std::string text(&api::required(json, "json"), size);
    api::required(outputs_count, "outputs_count");
    const api::ReadTopology read = api::read_topology(owner, api::parse_topology(text, "json"), nullptr);
    const api::LayerRoom room{outputs, outputs_count, "outputs", "outputs_count"};
    api::check_capacity(read.topology.outputs.size(), room, "outputs");
    api::give_layers(owner, read.topology.outputs, room);
  });
}

tn_status tn_parameters_count(tn_host* host, tn_parameters parameters, uint32_t* count, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    api::required(count, "count") = number_of(owner.parameters.at(parameters)->set->entries().size());
  });
}

tn_status tn_parameters_entry(tn_host* host, tn_parameters parameters, uint32_t number, tn_parameter_info* info,
                              tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const std::shared_ptr<ParameterSet> set = owner.parameters.at(parameters)->set;
    if (number >= set->entries().size())
      fail(TN_NOT_FOUND, "the set has no parameter ", number, "; it has ", set->entries().size());
    const ParameterEntry& entry = set->entries()[number];
    tn_parameter_info made = {};
    made.dtype = entry.dtype;
    made.name = entry.name.c_str();
    made.layer = entry.owner.c_str();
    made.kind = entry.buffer ? TN_PARAMETER_BUFFER : TN_PARAMETER_TRAINED;
    made.rank = static_cast<int32_t>(entry.shape.size());
    std::copy(entry.shape.begin(), entry.shape.end(), made.shape);
    api::give(info, "info", made);
  });
}

namespace {

// Takes the gates in the order of their addresses: two threads may copy between two sets in both directions.
nlohmann::json copy(HeldParameters& to, HeldParameters& from, const CopyOptions& options) {
  if (&to == &from) fail(TN_INVALID, SubjectName{"from"}, "the values of a set cannot be copied to the set itself");
  if (std::less<>()(&to, &from)) {
    const SetWrite write(to.gate);
    const SetRead read(from.gate);
    return copy_parameters(*to.set, *from.set, options);
  }
  const SetRead read(from.gate);
  const SetWrite write(to.gate);
  return copy_parameters(*to.set, *from.set, options);
}

}  // namespace

tn_status tn_parameters_copy(tn_host* host, tn_parameters to, tn_parameters from, const tn_copy_options* options,
                             tn_write write, void* user, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    CopyOptions wanted;
    if (options != nullptr) {
      const tn_copy_options request = api::sized(options, "options");
      if ((request.flags & ~static_cast<uint32_t>(TN_COPY_PARTIAL)) != 0)
        fail(TN_UNSUPPORTED, SubjectName{"options.flags"}, "options.flags is ", request.flags, "; expected TN_COPY_*");
      wanted.partial = (request.flags & TN_COPY_PARTIAL) != 0;
      wanted.skip = api::strings(request.skip, request.skip_count, "options.skip");
      wanted.renames = renames_of(request.renames, request.renames_count, "options.renames");
    }
    const nlohmann::json report = copy(*owner.parameters.at(to), *owner.parameters.at(from), wanted);
    if (write != nullptr) api::give_text(write, user, report.dump());
  });
}
