// The public C API: layers, parameters, model files. SPDX-License-Identifier: Apache-2.0
#include <tenon/tenon_team.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/utf8.h"
#include "core/files/model_file.h"
#include "host/api/api.h"
#include "host/api/held_team.h"
#include "host/api/topologies.h"
#include "host/layers/renames.h"
#include "host/machine/tables/table_reader.h"
#include "host/plugins/type_json.h"

namespace api = tenon::host::api;
using namespace tenon::host;

tn_status tn_data_create(tn_host* host, const tn_data_options* options, tn_layer* layer, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const tn_data_options request = api::sized(options, "options");
    api::required(layer, "layer");
    DataSource source;
    source.dtype = request.dtype;
    static_cast<void>(dtype_from_name(dtype_name(request.dtype)));  // throws for an unknown type
    if (request.rank < 0 || request.rank >= TN_MAX_RANK)
      fail(TN_INVALID, SubjectName{"options.rank"}, "options.rank is ", request.rank);
    if (request.rank > 0)
      source.shape.assign(&api::required(request.shape, "options.shape"), request.shape + request.rank);
    source.index_limit = request.index_limit == 0 ? -1 : request.index_limit;
    source.scale = request.scale == 0 ? 1 : request.scale;
    source.offset = request.offset;
    source.storage = request.storage;
    source.levels = request.levels;
    if (request.sequence != nullptr) source.sequence = api::string(request.sequence, "options.sequence");
    source.channels_first = api::channels_first(request.layout, "options.layout");
    const SetupLock lock = owner.registry.setup();
    *layer = owner.layers.add<tn_layer>({owner.factory.data(api::string(request.name, "options.name"), source), 0});
  });
}

tn_status tn_layer_create(tn_host* host, const tn_layer_options* options, tn_layer* layer, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const tn_layer_options request = api::sized(options, "options");
    api::required(layer, "layer");
    const SetupLock lock = owner.registry.setup();
    const LayerRef like = request.like.generation == 0 ? nullptr : owner.layers.at(request.like).layer;
    const std::string type = api::string(request.type, "options.type"),
                      name = request.name == nullptr ? "" : request.name;
    std::vector<LayerOutput> inputs = api::layer_outputs(owner, request.inputs, request.inputs_count, "options.inputs");
    if (request.ports != nullptr)
      inputs = owner.factory.in_port_order(type, name, inputs,
                                           api::strings(request.ports, request.inputs_count, "options.ports"));
    *layer = owner.layers.add<tn_layer>(owner.factory.layer(
        type, name, std::move(inputs), api::values(request.attributes, request.attributes_count, "options.attributes"),
        like.get()));
  });
}

tn_status tn_layer_find(tn_host* host, tn_layer layer, const char* name, tn_layer* found, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const std::string wanted = api::string(name, "name");
    api::required(found, "found");
    const Topology topology = Topology::trace({owner.layers.at(layer)});
    const auto at = std::find_if(topology.layers.begin(), topology.layers.end(),
                                 [&](const LayerRef& each) { return each->name == wanted; });
    if (at == topology.layers.end())
      fail(TN_NOT_FOUND, SubjectName{wanted}, "layer \"", topology.outputs[0].layer->name,
           "\" does not depend on a layer \"", wanted, "\"");
    *found = owner.layers.add<tn_layer>(LayerOutput{*at, 0});
  });
}

tn_status tn_layer_describe(tn_host* host, tn_layer layer, tn_write write, void* user, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const LayerOutput output = owner.layers.at(layer);
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
    api::give_text(write, user, json.dump());
  });
}

tn_status tn_layer_output(tn_host* host, tn_layer layer, uint32_t number, tn_layer* output, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    api::required(output, "output");
    const LayerOutput of = owner.layers.at(layer);
    const size_t count = of.layer->outputs.size();
    if (number >= count)
      fail(TN_NOT_FOUND, "layer \"", of.layer->name, "\" has no output ", number, "; it has ", count);
    *output = owner.layers.add<tn_layer>(LayerOutput{of.layer, number});
  });
}

tn_status tn_layer_release(tn_host* host, tn_layer layer, tn_error* error) {
  return api::call(host, error, [&](Host& owner) { owner.layers.take(layer); });
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
  return api::call(host, error, [&](Host& owner) {
    api::required(parameters, "parameters");
    *parameters = owner.parameters.add<tn_parameters>(std::make_shared<HeldParameters>(
        ParameterSet::create(declarations_of(owner, outputs, outputs_count), seed, owner.allocator)));
  });
}

tn_status tn_team_parameters(tn_host* host, tn_team team, const tn_layer* outputs, uint32_t outputs_count,
                             uint64_t seed, const char* const* tables, uint32_t tables_count, tn_parameters* parameters,
                             tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    api::required(parameters, "parameters");
    TablePlacement placement = {api::strings(tables, tables_count, "tables"), {}};
    const std::shared_ptr<HeldTeam> held_team = team.generation == 0 ? nullptr : owner.teams.at(team);
    const Team* const processes = held_team == nullptr ? nullptr : held_team->team.get();
    if (const int64_t owners = owners_of(processes); owners > kTableBlocks)
      fail(TN_UNSUPPORTED, SubjectName{"tables"}, "the rows of tables can have ", kTableBlocks,
           " owners; the team has ", owners);
    if (processes != nullptr && processes->processes() > 1 && !placement.names.empty())
      placement.blocks = owned_blocks(processes, processes->rank());
    const auto held = std::make_shared<HeldParameters>(
        ParameterSet::create(declarations_of(owner, outputs, outputs_count), seed, owner.allocator, placement));
    held->team = held_team;
    *parameters = owner.parameters.add<tn_parameters>(held);
  });
}

tn_status tn_parameters_declare(tn_host* host, const tn_layer* outputs, uint32_t outputs_count,
                                tn_parameters* parameters, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    api::required(parameters, "parameters");
    *parameters = owner.parameters.add<tn_parameters>(std::make_shared<HeldParameters>(
        ParameterSet::declare(declarations_of(owner, outputs, outputs_count), owner.allocator)));
  });
}

tn_status tn_parameters_describe(tn_host* host, tn_parameters parameters, tn_write write, void* user, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    nlohmann::json json = nlohmann::json::array();
    const std::shared_ptr<HeldParameters> held = owner.parameters.at(parameters);
    for (const ParameterEntry& entry : held->set->entries())
      json.push_back({{"name", entry.name},
                      {"shape", entry.shape},
                      {"dtype", dtype_name(entry.dtype)},
                      {"kind", entry.buffer ? "buffer" : "parameter"}});
    api::give_text(write, user, json.dump());
  });
}

tn_status tn_parameters_get(tn_host* host, tn_parameters parameters, const char* name, tn_array* values,
                            tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const std::shared_ptr<HeldParameters> held = owner.parameters.at(parameters);
    const ParameterEntry& entry = held->set->find(api::string(name, "name"));
    held->gate.require_viewable();
    api::required(values, "values") = api::array({entry.dtype, entry.shape, held->set->values(entry)});
  });
}

tn_status tn_parameters_set(tn_host* host, tn_parameters parameters, const char* name, const tn_array* values,
                            tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const ArrayView view = api::view(api::required(values, "values"), [] { return "values"; });
    if (view.data == nullptr) fail(TN_MISUSE, SubjectName{"values"}, "values.data is null");
    const std::shared_ptr<HeldParameters> held = owner.parameters.at(parameters);
    const SetWrite write(held->gate);
    held->set->set(api::string(name, "name"), view);
  });
}

tn_status tn_parameters_names(tn_host* host, tn_parameters parameters, const tn_names* const** names, uint32_t* count,
                              tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    api::give_names(owner, api::names_of(*owner.parameters.at(parameters)), names, count);
  });
}

tn_status tn_parameters_set_names(tn_host* host, tn_parameters parameters, const tn_names* const* names, uint32_t count,
                                  tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const std::shared_ptr<HeldParameters> held = owner.parameters.at(parameters);
    const SetWrite write(held->gate);
    DataNames changed = held->set->names();
    for (const SlotNames& request : api::names(names, count, "names")) {
      NamesRef& known = changed[request.slot];
      if (request.names == nullptr || known == nullptr || request.names->dtype != 0) {
        known = request.names;
      } else {  // a list of 0.3 says nothing of columns, type and shape
        Names all = *request.names;
        if (all.columns == nullptr) all.columns = known->columns;
        all.dtype = known->dtype;
        all.shape = known->shape;
        all.index_limit = known->index_limit;
        known = std::make_shared<Names>(std::move(all));
      }
      if (known == nullptr) changed.erase(request.slot);
    }
    held->set->set_names(std::move(changed));
  });
}

tn_status tn_parameters_set_metadata(tn_host* host, tn_parameters parameters, const char* key, const char* text,
                                     tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const std::string name = api::string(key, "key"), value = text == nullptr ? "" : text;
    if (!is_metadata_key(name))
      fail(TN_INVALID, SubjectName{name}, "metadata \"", name,
           "\": the key is empty or one of the format of model files");
    for (const auto& [what, content] : {std::pair{"key", name}, std::pair{"text", value}})
      if (!tenon::base::is_utf8(content))
        fail(TN_INVALID, SubjectName{name}, "metadata \"", name, "\": the ", what, " is not UTF-8");
    const std::shared_ptr<HeldParameters> held = owner.parameters.at(parameters);
    const SetWrite write(held->gate);
    ParameterSet::Metadata changed = held->set->metadata();
    text == nullptr ? void(changed.erase(name)) : void(changed[name] = value);
    held->set->set_metadata(std::move(changed));
  });
}

tn_status tn_parameters_release(tn_host* host, tn_parameters parameters, tn_error* error) {
  return api::call(host, error, [&](Host& owner) { owner.parameters.take(parameters); });
}

// ---- model files

namespace {

// Writes a model of which this process and the others of its team own rows.
void write_with_team(Host& host, const HeldParameters& held, const std::string& path, const std::string& topology,
                     const std::vector<std::string>& names) {
  const std::shared_ptr<HeldTeam> team = held.team.lock();
  if (team == nullptr)
    fail(TN_MISUSE, SubjectName{"parameters"},
         "the parameters have tables, whose rows lie with the processes of a team ",
         "that this one has left; save the model before");
  const Use use(team->mark, "team");
  TableReader rows(*team->team, *held.set);
  if (team->team->rank() != 0) return rows.serve();
  try {
    write_model(*host.files, path, topology, *held.set, names, {},
                [&](const ParameterEntry& table, int64_t first, int64_t count, float* to) {
                  rows.read(table, first, count, to);
                });
  } catch (...) {
    try {
      rows.end(true);
    } catch (const Error&) {  // the first failure is the one to report
    }
    throw;
  }
  rows.end(false);
}

}  // namespace

tn_status tn_model_save(tn_host* host, tn_parameters parameters, const tn_layer* outputs, uint32_t outputs_count,
                        const char* path, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const Topology topology = api::topology_of(owner, outputs, outputs_count);
    std::vector<std::string> names;
    std::set<std::string> known;
    for (const ParameterDeclaration& declaration : topology.declarations())
      if (known.insert(declaration.name).second) names.push_back(declaration.name);
    const std::shared_ptr<HeldParameters> held = owner.parameters.at(parameters);
    const SetRead read(held->gate);
    const ParameterSet& set = *held->set;
    const std::string file = api::string(path, "path"), json = topology.to_json(set.names()).dump();
    if (set.owned() != nullptr) return write_with_team(owner, *held, file, json, names);
    write_model(*owner.files, file, json, set, names);
  });
}

namespace {

// A model file of bytes that the application lends.
class LentFile final : public FileSystem {
 public:
  static constexpr const char* kName = "the model in memory";  // its path
  LentFile(const void* data, uint64_t bytes) : input_{data, bytes} {}
  std::unique_ptr<InputFile> open(const std::filesystem::path& path) override {
    if (path != kName)
      fail(TN_UNSUPPORTED, SubjectName{kName}, "a model in memory is one file; join its parts (tn_model_join)");
    return std::make_unique<Input>(input_);
  }
  std::unique_ptr<Output> replace(const std::filesystem::path& path) override {
    fail(TN_UNSUPPORTED, path.string(), ": cannot be written");
  }

 private:
  class Input final : public InputFile {
   public:
    Input(const void* data, uint64_t bytes) : data_(static_cast<const char*>(data)), bytes_(bytes) {}
    [[nodiscard]] uint64_t size() const override { return bytes_; }
    void read(uint64_t offset, void* to, uint64_t bytes) override {
      if (offset > bytes_ || bytes > bytes_ - offset)
        fail(TN_BAD_DATA, "expected ", bytes, " bytes at byte ", offset, "; there are ", bytes_);
      if (bytes > 0) std::memcpy(to, data_ + offset, bytes);
    }

   private:
    const char* data_;
    uint64_t bytes_;
  };

  Input input_;
};

// Loads a model, as tn_model_load documents. file: its path in `files`, and its name in errors.
void load(Host& owner, FileSystem& files, const std::string& file, tn_layer* outputs, uint32_t* outputs_count,
          tn_parameters* parameters) {
  api::required(outputs_count, "outputs_count");
  api::required(parameters, "parameters");
  const ModelFile header = read_model_header(files, file);
  api::ReadTopology contents =
      api::naming_file(file, [&] { return api::topology_of_model(owner, header, files, file); });
  const std::vector<LayerOutput>& layer_outputs = contents.topology.outputs;
  const api::LayerRoom room{outputs, outputs_count, "outputs", "outputs_count"};
  api::check_capacity(layer_outputs.size(), room, file);
  auto set =
      api::naming_file(file, [&] { return ParameterSet::declare(contents.topology.declarations(), owner.allocator); });
  api::naming_file(file, [&] { return load_model(files, file, *set, &header, contents.changes); });
  set->set_names(std::move(contents.names));
  ParameterSet::Metadata metadata = header.metadata;
  std::erase_if(metadata, [](const auto& entry) { return !is_metadata_key(entry.first); });
  set->set_metadata(std::move(metadata));
  const auto loaded = owner.parameters.add<tn_parameters>(std::make_shared<HeldParameters>(std::move(set)));
  try {
    api::give_layers(owner, layer_outputs, room);
  } catch (...) {
    owner.parameters.take(loaded);
    throw;
  }
  *parameters = loaded;
}

}  // namespace

tn_status tn_model_load(tn_host* host, const char* path, tn_layer* outputs, uint32_t* outputs_count,
                        tn_parameters* parameters, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    load(owner, *owner.files, api::string(path, "path"), outputs, outputs_count, parameters);
  });
}

tn_status tn_model_load_memory(tn_host* host, const void* data, uint64_t bytes, tn_layer* outputs,
                               uint32_t* outputs_count, tn_parameters* parameters, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    if (data == nullptr) fail(TN_MISUSE, SubjectName{"data"}, "data is null");
    LentFile file(data, bytes);
    load(owner, file, LentFile::kName, outputs, outputs_count, parameters);
  });
}

tn_status tn_model_describe(tn_host* host, const char* path, tn_write write, void* user, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const std::string file = api::string(path, "path");
    const ModelFile header = read_model_header(*owner.files, file);
    nlohmann::json json = {{"verified", header.verified}, {"checksum", header.checksum}, {"metadata", header.metadata}};
    json["topology"] = header.topology.empty() ? nlohmann::json() : api::parse_topology(header.topology, file);
    rename_layer_types(json["topology"]);
    json["tensors"] = nlohmann::json::array();
    for (const ModelTensor& tensor : header.tensors) {
      json["tensors"].push_back(
          {{"name", tensor.name}, {"dtype", tensor.type}, {"shape", tensor.shape}, {"bytes", tensor.bytes}});
      if (tensor.in_parts) json["tensors"].back()["in_parts"] = true;
    }
    for (const ModelPart& part : header.parts)
      json["parts"].push_back({{"file", part.file},
                               {"first_block", part.blocks.first},
                               {"blocks", part.blocks.count},
                               {"checksum", part.checksum}});
    api::give_text(write, user, json.dump());
  });
}

tn_status tn_model_join(tn_host* host, const char* from, const char* to, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const std::string source = api::string(from, "from");
    join_model(*owner.files, source, api::string(to, "to"));
  });
}

tn_status tn_model_split(tn_host* host, const char* from, const char* to, const char* const* tables,
                         uint32_t tables_count, uint32_t parts, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const std::string source = api::string(from, "from"), target = api::string(to, "to");
    const std::vector<std::string> names = api::strings(tables, tables_count, "tables");
    std::error_code unknown;
    if (std::filesystem::exists(target, unknown))
      fail(TN_INVALID, SubjectName{target}, target, ": there is a file of this name; expected a new one");
    split_model(*owner.files, source, target, names, parts);
  });
}
