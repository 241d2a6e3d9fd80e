// Layers, topologies and sets of parameters as data, for C++17 and later: over tenon_topology.h. Texts are copied.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENON_TENON_TOPOLOGY_HPP
#define TENON_TENON_TOPOLOGY_HPP

#include <tenon/tenon_topology.h>

#include <cstdint>
#include <optional>
#include <string>
#include <tenon/tenon.hpp>
#include <utility>
#include <vector>

namespace tenon {
inline namespace v0 {

struct LayerInfo {
  std::string name, type, role, plugin;  // as in tn_layer_info
  uint32_t output = 0;
  uint32_t inputs = 0, outputs = 0, parameters = 0;  // numbers of them
};
struct OutputInfo {
  tn_dtype dtype = TN_COMPUTE;
  int32_t storage = TN_DENSE;
  uint32_t levels = 0;
  std::vector<tn_dimension> shape;
  std::string port;
};
// The block that a layer belongs to, as in tn_block_info.
struct BlockInfo {
  uint32_t kind = TN_BLOCK_GLOBAL;
  std::string name;
  uint32_t branch = 0;
};
struct ParameterInfo {
  std::string name, layer;
  tn_dtype dtype = TN_F32;
  bool buffer = false;
  std::vector<int64_t> shape;
  std::string path;  // of a layer's: as in tn_parameter_info
};

namespace detail {
template <typename Info, typename Call>
Info inspected(Call call) {
  Info info = {};
  info.size = sizeof info;
  checked([&](tn_error* error) { return call(&info, error); });
  return info;
}
inline ParameterInfo parameter_from(const tn_parameter_info& info) {
  return {info.name,
          info.layer,
          info.dtype,
          info.kind == TN_PARAMETER_BUFFER,
          {info.shape, info.shape + info.rank},
          info.path == nullptr ? "" : info.path};
}
inline Value value_from(const tn_value& value) {
  switch (value.kind) {
    case TN_ATTR_BOOL:
      return value.as.i != 0;
    case TN_ATTR_INT:
      return value.as.i;
    case TN_ATTR_FLOAT:
      return value.as.f;
    case TN_ATTR_STRING:
      return std::string(value.as.s);
    case TN_ATTR_INTS:
      return std::vector<int64_t>(value.as.ints, value.as.ints + value.count);
    case TN_ATTR_FLOATS:
      return std::vector<double>(value.as.floats, value.as.floats + value.count);
    default:
      return std::vector<std::string>(value.as.strings, value.as.strings + value.count);
  }
}
// call(handles, &error) -> status, which makes `count` handles. Returns the layers.
template <typename Call>
Layers layers_from(const HostRef& host, size_t count, Call call) {
  Layers layers;  // places first: no allocation can fail once there are handles to release
  for (size_t i = 0; i < count; ++i) layers.emplace_back(host);
  std::vector<tn_layer> handles(count);
  checked([&](tn_error* error) { return call(handles.data(), error); });
  for (size_t i = 0; i < count; ++i) layers[i].make([&](tn_layer* to) { *to = handles[i]; });
  return layers;
}
// call(handles, &count, &error) -> status, by the protocol of capacities. Returns the layers.
template <typename Call>
Layers layers_from(const HostRef& host, Call call) {
  uint32_t count = 0;
  try {
    checked([&](tn_error* error) { return call(static_cast<tn_layer*>(nullptr), &count, error); });
    return {};
  } catch (const Error& error) {
    if (error.code() != TN_NEED_CAPACITY) throw;
  }
  return layers_from(host, count, [&](tn_layer* to, tn_error* error) { return call(to, &count, error); });
}
}  // namespace detail

inline LayerInfo inspect(const Layer& layer) {
  const auto info = detail::inspected<tn_layer_info>(
      [&](tn_layer_info* to, tn_error* error) { return tn_layer_inspect(layer.host(), layer.handle(), to, error); });
  return {info.name,   info.type,         info.role,          info.plugin,
          info.output, info.inputs_count, info.outputs_count, info.parameters_count};
}
// Input `number` of a layer; empty for an optional one that is absent.
inline std::optional<Layer> input(const Layer& layer, uint32_t number) {
  bool absent = false;
  Layer made(layer.host_ref());
  made.make([&](tn_layer* to) {
    detail::checked([&](tn_error* error) { return tn_layer_input(layer.host(), layer.handle(), number, to, error); });
    absent = to->generation == 0;
  });
  if (!absent) return made;
  made.forget();
  return std::nullopt;
}
inline OutputInfo inspect_output(const Layer& layer, uint32_t number) {
  const auto info = detail::inspected<tn_output_info>([&](tn_output_info* to, tn_error* error) {
    return tn_layer_inspect_output(layer.host(), layer.handle(), number, to, error);
  });
  return {info.dtype, info.storage, info.levels, {info.shape, info.shape + info.rank}, info.port};
}
inline BlockInfo inspect_block(const Layer& layer) {
  const auto info = detail::inspected<tn_block_info>(
      [&](tn_block_info* to, tn_error* error) { return tn_layer_block(layer.host(), layer.handle(), to, error); });
  return {info.kind, info.name, info.branch};
}
// The name of the port of input `number` of a layer.
inline std::string input_port(const Layer& layer, uint32_t number) {
  const char* port = nullptr;
  detail::checked([&](tn_error* error) { return tn_layer_port(layer.host(), layer.handle(), number, &port, error); });
  return port;
}
inline ParameterInfo parameter(const Layer& layer, uint32_t number) {
  return detail::parameter_from(detail::inspected<tn_parameter_info>([&](tn_parameter_info* to, tn_error* error) {
    return tn_layer_parameter(layer.host(), layer.handle(), number, to, error);
  }));
}
// The attributes of a layer, as tn_layer_attributes documents them.
inline Attributes attributes(const Layer& layer) {
  Attributes result;
  detail::collect<void, const tn_named_value*>(
      [&](const tn_named_value* attribute) {
        result.push_back({attribute->name, detail::value_from(attribute->value)});
      },
      [&](auto take, void* user, tn_error* error) {
        return tn_layer_attributes(layer.host(), layer.handle(), take, user, error);
      });
  return result;
}

// All layers that the outputs depend on, inputs first. `outputs` must not be empty.
inline Layers layers(const Layers& outputs) {
  const std::vector<tn_layer> list = detail::handles(outputs);
  return detail::layers_from(outputs.at(0).host_ref(), [&](tn_layer* to, uint32_t* count, tn_error* error) {
    return tn_topology_layers(outputs[0].host(), list.data(), detail::count_of(list.size()), to, count, error);
  });
}
// The data layers that the outputs depend on. `outputs` must not be empty.
inline Layers data_layers(const Layers& outputs) {
  const std::vector<tn_layer> list = detail::handles(outputs);
  return detail::layers_from(outputs.at(0).host_ref(), [&](tn_layer* to, uint32_t* count, tn_error* error) {
    return tn_topology_data(outputs[0].host(), list.data(), detail::count_of(list.size()), to, count, error);
  });
}
// The options by which Host::data makes an equal data layer.
inline DataOptions inspect_data(const Layer& layer) {
  const auto info = detail::inspected<tn_data_options>(
      [&](tn_data_options* to, tn_error* error) { return tn_data_inspect(layer.host(), layer.handle(), to, error); });
  DataOptions options;
  options.name = info.name;
  options.dtype = info.dtype;
  options.shape.assign(info.shape, info.shape + info.rank);
  options.index_limit = info.index_limit;
  options.storage = info.storage;
  options.levels = info.levels;
  options.sequence = info.sequence == nullptr ? "" : info.sequence;
  options.scale = info.scale;
  options.offset = info.offset;
  options.layout = info.layout;
  return options;
}
// JSON, without values. `outputs` must not be empty.
inline std::string topology(const Layers& outputs) {
  const std::vector<tn_layer> list = detail::handles(outputs);
  return detail::written([&](tn_write write, void* user, tn_error* error) {
    return tn_topology_write(outputs.at(0).host(), list.data(), detail::count_of(list.size()), write, user, error);
  });
}
// The outputs of a topology that `topology` wrote, made anew.
inline Layers read_topology(const Host& host, const std::string& json) {
  return detail::layers_from(host.host_ref(), [&](tn_layer* to, uint32_t* count, tn_error* error) {
    return tn_topology_read(host.get(), json.data(), json.size(), to, count, error);
  });
}

// The topology as a text for people, as tn_topology_print documents it. `outputs` must not be empty.
inline std::string print(const Layers& outputs) {
  const std::vector<tn_layer> list = detail::handles(outputs);
  return detail::written([&](tn_write write, void* user, tn_error* error) {
    return tn_topology_print(outputs.at(0).host(), list.data(), detail::count_of(list.size()), write, user, error);
  });
}
// A file of the topology, without values. `outputs` must not be empty.
inline void save_topology(const Layers& outputs, const std::string& path) {
  const std::vector<tn_layer> list = detail::handles(outputs);
  detail::checked([&](tn_error* error) {
    return tn_topology_save(outputs.at(0).host(), list.data(), detail::count_of(list.size()),
                            detail::c_text(path, "path"), error);
  });
}
// The outputs of such a file, or of a model file, made anew.
inline Layers load_topology(const Host& host, const std::string& path) {
  return detail::layers_from(host.host_ref(), [&](tn_layer* to, uint32_t* count, tn_error* error) {
    return tn_topology_load(host.get(), detail::c_text(path, "path"), to, count, error);
  });
}

using Renames = std::vector<std::pair<std::string, std::string>>;  // the name before, the name now
struct LayerSetting {
  std::string layer;
  std::string attribute;
  std::optional<Value> value;  // none: the layer loses the attribute
};
struct CloneOptions {
  Renames layers = {};
  Renames parameters = {};  // each with everything below it
  std::vector<LayerSetting> settings = {};
};
// Makes all layers of a topology anew, as tn_topology_clone documents. `outputs` must not be empty.
inline Layers clone(const Layers& outputs, const CloneOptions& options = {}) {
  const auto renames_of = [](const Renames& renames, const char* what) {
    std::vector<tn_rename> list;
    for (const auto& [from, to] : renames) list.push_back({detail::c_text(from, what), detail::c_text(to, what)});
    return list;
  };
  const std::vector<tn_rename> layers = renames_of(options.layers, "options.layers"),
                               parameters = renames_of(options.parameters, "options.parameters");
  Attributes given;
  for (const LayerSetting& each : options.settings) given.push_back({each.attribute, each.value.value_or(false)});
  const detail::NamedValues values(given);
  std::vector<tn_layer_setting> settings;
  for (size_t i = 0; i < options.settings.size(); ++i) {
    settings.push_back({detail::c_text(options.settings[i].layer, "options.settings"), values.data()[i]});
    if (!options.settings[i].value) settings.back().attribute.value.kind = 0;
  }
  tn_clone_options c = {};
  c.size = sizeof c;
  c.layers = layers.data();
  c.layers_count = detail::count_of(layers.size());
  c.parameters = parameters.data();
  c.parameters_count = detail::count_of(parameters.size());
  c.settings = settings.data();
  c.settings_count = detail::count_of(settings.size());
  const std::vector<tn_layer> list = detail::handles(outputs);
  return detail::layers_from(outputs.at(0).host_ref(), list.size(), [&](tn_layer* to, tn_error* error) {
    return tn_topology_clone(outputs[0].host(), list.data(), detail::count_of(list.size()), &c, to, error);
  });
}

inline std::vector<ParameterInfo> entries(const Parameters& parameters) {
  uint32_t count = 0;
  detail::checked(
      [&](tn_error* error) { return tn_parameters_count(parameters.host(), parameters.handle(), &count, error); });
  std::vector<ParameterInfo> result;
  for (uint32_t i = 0; i < count; ++i)
    result.push_back(
        detail::parameter_from(detail::inspected<tn_parameter_info>([&](tn_parameter_info* to, tn_error* error) {
          return tn_parameters_entry(parameters.host(), parameters.handle(), i, to, error);
        })));
  return result;
}

struct CopyOptions {
  Renames renames = {};                // name of the source, name in the target
  std::vector<std::string> skip = {};  // names of the target that keep their values
  bool partial = false;                // parameters that are missing or have another shape keep their values
};
// Copies values by name, and returns the report of tn_parameters_copy, JSON.
inline std::string copy(const Parameters& to, const Parameters& from, const CopyOptions& options = {}) {
  std::vector<tn_rename> renames;
  for (const auto& [source, target] : options.renames)
    renames.push_back({detail::c_text(source, "options.renames"), detail::c_text(target, "options.renames")});
  std::vector<const char*> skip;
  for (const std::string& name : options.skip) skip.push_back(detail::c_text(name, "options.skip"));
  tn_copy_options c = {};
  c.size = sizeof c;
  c.flags = options.partial ? TN_COPY_PARTIAL : 0;
  c.renames = renames.data();
  c.renames_count = detail::count_of(renames.size());
  c.skip = skip.data();
  c.skip_count = detail::count_of(skip.size());
  return detail::written([&](tn_write write, void* user, tn_error* error) {
    return tn_parameters_copy(to.host(), to.handle(), from.handle(), &c, write, user, error);
  });
}

}  // namespace v0
}  // namespace tenon
#endif
