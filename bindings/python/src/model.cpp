// Hosts, layers and sets of parameters. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "core.h"
#include "kernels.h"

namespace tenon_python {

namespace {

using tenon::Host;
using tenon::Layer;
using tenon::Layers;
using tenon::Parameters;

// The bytes of an object with a buffer, which does not change its size as long as this lives.
class BorrowedBytes {
 public:
  explicit BorrowedBytes(const nb::object& owner) {
    if (PyObject_GetBuffer(owner.ptr(), &buffer_, PyBUF_SIMPLE) != 0) throw nb::python_error();
  }
  ~BorrowedBytes() { PyBuffer_Release(&buffer_); }
  BorrowedBytes(const BorrowedBytes&) = delete;
  BorrowedBytes& operator=(const BorrowedBytes&) = delete;
  [[nodiscard]] const void* data() const { return buffer_.buf == nullptr ? "" : buffer_.buf; }
  [[nodiscard]] uint64_t size() const { return static_cast<uint64_t>(buffer_.len); }

 private:
  Py_buffer buffer_ = {};
};

nb::dict parameter_dict(const tenon::ParameterInfo& info) {
  nb::dict entry;
  entry["name"] = info.name;
  entry["layer"] = info.layer;
  entry["dtype"] = info.dtype;
  entry["shape"] = info.shape;
  entry["buffer"] = info.buffer;
  return entry;
}

std::vector<nb::dict> entries_of(const Parameters& parameters) {
  std::vector<nb::dict> result;
  for (const tenon::ParameterInfo& info : tenon::entries(parameters)) result.push_back(parameter_dict(info));
  return result;
}

// The parameters and buffers of one layer.
std::vector<nb::dict> parameters_of(const Layer& layer) {
  std::vector<nb::dict> result;
  const uint32_t count = tenon::inspect(layer).parameters;
  for (uint32_t i = 0; i < count; ++i) result.push_back(parameter_dict(tenon::parameter(layer, i)));
  return result;
}

// Returns a copy of the values, between two steps if another thread trains the set.
nb::object read_parameter(const Parameters& parameters, const std::string& name) {
  for (const tenon::ParameterInfo& info : unlocked([&] { return tenon::entries(parameters); })) {
    if (info.name != name) continue;
    const std::vector<float> values = unlocked([&] { return tenon::read(parameters, name); });
    tenon::Array array;
    array.dtype = info.dtype;
    array.shape = info.shape;
    array.data = values.data();
    return python_array(array);
  }
  throw tenon::Error(TN_NOT_FOUND, "the set has no parameter \"" + name + "\"", {}, name);
}

// Whether all values are finite, between two steps if another thread trains the set.
bool is_finite(const Parameters& parameters, const std::string& name) {
  return unlocked([&] {
    const std::vector<float> values = tenon::read(parameters, name);
    return std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
  });
}

void make_host(Host* place, int threads, const std::vector<std::string>& plugin_paths, bool installed_plugins,
               const std::string& plugin_set, bool check_finite, uint32_t arithmetic) {
  tenon::HostOptions options;
  options.threads = threads;
  options.added_plugin_paths = plugin_paths;
  options.installed_plugins = installed_plugins;
  options.plugin_set = plugin_set;
  options.check_finite = check_finite;
  options.arithmetic = arithmetic;
  options.log = KernelTypes::new_log();
  new (place) Host(unlocked([&] { return Host(options); }));
}

Layer make_data(const Host& host, const std::string& name, uint32_t dtype, const std::vector<int64_t>& shape,
                int64_t index_limit, int32_t storage, uint32_t levels, const std::string& sequence, double scale,
                double offset, uint32_t layout) {
  tenon::DataOptions options;
  options.name = name;
  options.dtype = dtype;
  options.shape = shape;
  options.index_limit = index_limit;
  options.storage = storage;
  options.levels = levels;
  options.sequence = sequence;
  options.scale = scale;
  options.offset = offset;
  options.layout = layout;
  return unlocked([&] { return host.data(options); });
}

void bind_host(nb::module_& module) {
  nb::class_<Host>(module, "Host")
      .def("__init__", make_host, nb::arg("threads") = 0, nb::arg("plugin_paths") = std::vector<std::string>(),
           nb::arg("installed_plugins") = true, nb::arg("plugin_set") = std::string(), nb::arg("check_finite") = false,
           nb::arg("arithmetic") = uint32_t{TN_ARITHMETIC_DEFAULT})
      .def("plugins", released(&Host::plugins))
      .def("describe_type", released(&Host::describe_type))
      .def("threads", [](const Host& host) { return host.count().threads; })
      .def("data", make_data, nb::arg("name"), nb::arg("dtype"), nb::arg("shape"), nb::arg("index_limit") = -1,
           nb::arg("storage") = 0, nb::arg("levels") = 1, nb::arg("sequence") = "", nb::arg("scale") = 1.0,
           nb::arg("offset") = 0.0, nb::arg("layout") = 0)
      .def(
          "layer",
          // None: an optional input that is absent.
          [](const Host& host, const std::string& type, const std::vector<std::optional<Layer>>& inputs,
             const nb::dict& attributes, const std::string& name) {
            const tenon::Attributes list = attributes_from(attributes);
            Layers layers;
            for (const std::optional<Layer>& each : inputs) layers.push_back(each.value_or(Layer()));
            return unlocked([&] { return host.layer(type, layers, list, name); });
          },
          nb::arg("type"), nb::arg("inputs"), nb::arg("attributes"), nb::arg("name") = "")
      .def("parameters", [](const Host& host, const Layers& outputs,
                            uint64_t seed) { return unlocked([&] { return host.parameters(outputs, seed); }); })
      .def(
          "team_parameters",
          [](const Host& host, const Layers& outputs, uint64_t seed, const std::vector<std::string>& tables,
             const std::optional<tenon::Team>& team) {
            return unlocked([&] { return host.parameters(outputs, seed, tables, team.value_or(tenon::Team())); });
          },
          nb::arg("outputs"), nb::arg("seed"), nb::arg("tables"), nb::arg("team").none())
      .def("declare", released(&Host::declare))
      .def("load",
           [](const Host& host, const std::string& path) {
             tenon::Model model = unlocked([&] { return host.load(path); });
             return std::make_pair(model.outputs, model.parameters);
           })
      .def("load_memory",
           [](const Host& host, const nb::object& bytes) {
             const BorrowedBytes view(bytes);
             tenon::Model model = unlocked([&] { return host.load_memory(view.data(), view.size()); });
             return std::make_pair(model.outputs, model.parameters);
           })
      .def("describe_model", released(&Host::describe_model))
      .def("updater",
           [](const Host& host, const std::string& type, const nb::dict& attributes) {
             const tenon::Attributes list = attributes_from(attributes);
             return unlocked([&] { return host.updater(type, list); });
           })
      .def("read_topology", [](const Host& host, const std::string& json) {
        return unlocked([&] { return tenon::read_topology(host, json); });
      });
}

// A scan while it is built; tenon._model.scan drives it.
void bind_scan(nb::module_& module) {
  using tenon::Step;
  nb::class_<Step>(module, "Step")
      .def("input", [](const Step& step, size_t number) { return step.input(number); })
      .def("memory",
           [](Step& step, const std::vector<int64_t>& shape, double initial_value, const std::string& name,
              bool carry) { return unlocked([&] { return step.memory(shape, initial_value, name, carry); }); })
      .def("memory_from", [](Step& step, const Layer& initial,
                             const std::string& name) { return unlocked([&] { return step.memory(initial, name); }); })
      .def("next", [](const Step& step, const Layer& memory,
                      const Layer& value) { return unlocked([&] { step.next(memory, value); }); })
      .def("end", [](Step& step, const Layers& results) {
        const tenon::ScanResult made = unlocked([&] { return tenon::end_scan(step, results); });
        return nb::make_tuple(made.results, made.last);
      });
  module.def("begin_scan", [](const Layers& inputs, bool reverse, const std::string& name) {
    tenon::ScanOptions options;
    options.reverse = reverse, options.name = name;
    return unlocked([&] { return tenon::begin_scan(inputs, options); });
  });
}

// Branches while they are built; tenon._model.cond drives them.
void bind_cond(nb::module_& module) {
  using tenon::Cond;
  nb::class_<Cond>(module, "Cond")
      .def("input", [](const Cond& cond, uint32_t branch,
                       const Layer& value) { return unlocked([&] { return cond.input(branch, value); }); })
      .def("end", [](Cond& cond, const std::vector<Layers>& results) {
        return unlocked([&] { return tenon::end_cond(cond, results); }).results;
      });
  module.def("begin_cases", [](const Layer& choice, uint32_t cases, const std::string& name) {
    return unlocked([&] { return tenon::begin_cases(choice, cases, name); });
  });
}

void bind_layer(nb::module_& module) {
  nb::class_<Layer>(module, "Layer")
      .def("describe", released(&Layer::describe))
      .def("find", &Layer::find)
      .def("is_of", [](const Layer& layer, const Host& host) { return layer.host_ref() == host.host_ref(); })
      .def("output", &Layer::output)
      .def("info",
           [](const Layer& layer) {
             const tenon::LayerInfo info = tenon::inspect(layer);
             return nb::make_tuple(info.name, info.type, info.role, info.output, info.inputs, info.outputs);
           })
      .def("input", [](const Layer& layer, uint32_t number) { return tenon::input(layer, number); })
      .def("output_type",
           [](const Layer& layer) {
             const tenon::OutputInfo info = tenon::inspect_output(layer, tenon::inspect(layer).output);
             return nb::make_tuple(info.dtype, info.storage, info.levels);
           })
      .def("parameters", parameters_of)
      .def("data_options", [](const Layer& layer) { return dict_of(tenon::inspect_data(layer)); })
      .def("attributes", [](const Layer& layer) { return dict_of(tenon::attributes(layer)); })
      .def("same", [](const Layer& a, const Layer& b) {
        const tn_layer x = a.handle(), y = b.handle();
        return a.host() == b.host() && x.index == y.index && x.generation == y.generation;
      });
  module.def("data_layers", &tenon::data_layers);
  module.def("topology", &tenon::topology);
}

void bind_parameters(nb::module_& module) {
  nb::class_<tenon::Lease>(module, "Lease")
      .def("__init__",
           [](tenon::Lease* place, const Parameters& set, const std::string& name, int32_t mode) {
             new (place) tenon::Lease(unlocked([&] { return tenon::Lease(set, name, mode); }));
           })
      .def("values",
           [](const nb::object& self) { return python_array(nb::cast<const tenon::Lease&>(self).values(), self); });
  nb::class_<Parameters>(module, "Parameters")
      .def("entries", entries_of)
      .def("read", read_parameter)
      .def("is_finite", is_finite)
      .def("dlpack",
           [](const Parameters& set, const std::string& name, int32_t mode, bool versioned) {
             if (versioned)
               return exported_capsule<DLManagedTensorVersioned>([&](auto** tensor, tn_error* error) {
                 return tn_parameters_dlpack_versioned(set.host(), set.handle(), name.c_str(), mode, tensor, error);
               });
             return exported_capsule<DLManagedTensor>([&](auto** tensor, tn_error* error) {
               return tn_parameters_dlpack(set.host(), set.handle(), name.c_str(), mode, tensor, error);
             });
           })
      .def("set", [](const Parameters& set, const std::string& name,
                     const Values& values) { unlocked([&] { set.set(name, values.array); }); })
      .def("names", [](const Parameters& set) { return python_names(unlocked([&] { return set.names(); })); })
      .def("known", [](const Parameters& set) { return unlocked([&] { return set.names(); }); })
      .def("set_names",
           [](const Parameters& set, const SlotTexts& texts) {
             const std::vector<tenon::Names> names = names_from(texts);
             unlocked([&] { set.set_names(names); });
           })
      .def("set_known", [](const Parameters& set,
                           const std::vector<tenon::Names>& names) { unlocked([&] { set.set_names(names); }); })
      .def("save", [](const Parameters& set, const Layers& outputs,
                      const std::string& path) { unlocked([&] { set.save(outputs, path); }); })
      .def(
          "copy_from",
          [](const Parameters& to, const Parameters& from,
             const std::vector<std::pair<std::string, std::string>>& renames, const std::vector<std::string>& skip,
             bool partial) {
            tenon::CopyOptions options;
            options.renames = renames;
            options.skip = skip;
            options.partial = partial;
            return unlocked([&] { return tenon::copy(to, from, options); });
          },
          nb::arg("source"), nb::arg("renames"), nb::arg("skip"), nb::arg("partial"))
      .def("updates", [](const Parameters& set) { return unlocked([&] { return tenon::updates_of(set); }); })
      .def("same", [](const Parameters& a, const Parameters& b) {
        const tn_parameters x = a.handle(), y = b.handle();
        return a.host() == b.host() && x.index == y.index && x.generation == y.generation;
      });
}

}  // namespace

void bind_model(nb::module_& module) {
  module.def("file_target", [](const std::string& path) {
    const std::string target = tenon::file_target(path);
    return nb::bytes(target.data(), target.size());
  });
  bind_layer(module);
  bind_scan(module);
  bind_cond(module);
  bind_parameters(module);
  bind_host(module);
}

}  // namespace tenon_python
