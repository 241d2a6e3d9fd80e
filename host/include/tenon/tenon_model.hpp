// Layers, parameters, machines and updaters of tenon.hpp. Include <tenon/tenon.hpp>.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENON_TENON_MODEL_HPP
#define TENON_TENON_MODEL_HPP

#include <tenon/tenon_lease.h>

#include <cstdint>
#include <optional>
#include <string>
#include <tenon/tenon_base.hpp>
#include <tenon/tenon_machine_options.hpp>
#include <utility>
#include <vector>

namespace tenon {
inline namespace v0 {

// A data layer: an input of the model.
struct DataOptions {
  std::string name;
  tn_dtype dtype = TN_F32;
  std::vector<int64_t> shape;  // of one sample, as fed
  int64_t index_limit = -1;    // integers are in [0, index_limit); -1 if unknown
  int32_t storage = TN_DENSE;  // TN_RAGGED: sequences of rows of `shape`; TN_CSR: sparse vectors of shape[0] numbers
  uint32_t levels = 1;         // TN_RAGGED: 1 or 2
  std::string sequence = {};   // TN_RAGGED: data layers of one `sequence` have equal lengths; empty: the name
  double scale = 1;            // integers become scale * x + offset at a float port
  double offset = 0;
  uint32_t layout = TN_CHANNELS_LAST;  // TN_CHANNELS_FIRST: fed as [channels, height, width], the order of `shape`
};

// One output of a layer. As an output of a model it stands for all layers that it depends on.
class Layer : public detail::Owned<tn_layer, tn_layer_release> {
 public:
  using Owned::Owned;
  // JSON, in the form that tn_layer_describe documents.
  [[nodiscard]] std::string describe() const {
    return detail::written([this](tn_write write, void* user, tn_error* error) {
      return tn_layer_describe(host(), handle(), write, user, error);
    });
  }
  // The layer called `name` among those that this one depends on, itself included; empty if there is none.
  [[nodiscard]] std::optional<Layer> find(const std::string& name) const {
    try {
      return detail::made<Layer>(host_ref(), [&](tn_layer* to, tn_error* error) {
        return tn_layer_find(host(), handle(), detail::c_text(name, "name"), to, error);
      });
    } catch (const Error& error) {
      if (error.code() != TN_NOT_FOUND) throw;
      return std::nullopt;
    }
  }
  // Output `number`, from 0, of a layer with several outputs; used like a layer.
  [[nodiscard]] Layer output(uint32_t number) const {
    return detail::made<Layer>(host_ref(), [&](tn_layer* to, tn_error* error) {
      return tn_layer_output(host(), handle(), number, to, error);
    });
  }
};
using Layers = std::vector<Layer>;

namespace detail {
inline std::vector<tn_layer> handles(const Layers& layers) {
  std::vector<tn_layer> result;
  for (const Layer& layer : layers) result.push_back(layer.handle());
  return result;
}
}  // namespace detail

namespace detail {
// Makes a layer; Host::layer documents the arguments.
inline Layer made_layer(const HostRef& host, const std::string& type, const Layers& inputs,
                        const Attributes& attributes, const std::string& name, const Layer* like = nullptr,
                        const std::vector<std::string>& ports = {}) {
  if (!ports.empty() && ports.size() != inputs.size())
    throw Error(TN_INVALID,
                std::to_string(ports.size()) + " ports for " + std::to_string(inputs.size()) + " inputs of a layer", {},
                "ports");
  const std::vector<tn_layer> list = handles(inputs);
  const NamedValues values(attributes);
  std::vector<const char*> port_names;
  for (const std::string& port : ports) port_names.push_back(c_text(port, "ports"));
  tn_layer_options c = {};
  c.size = sizeof c;
  c.inputs_count = count_of(list.size());
  c.type = c_text(type, "type");
  c.name = name.empty() ? nullptr : c_text(name, "name");
  c.inputs = list.data();
  c.attributes = values.data();
  c.attributes_count = values.size();
  if (like != nullptr) c.like = like->handle();
  if (!ports.empty()) c.ports = port_names.data();
  return made<Layer>(host, [&](tn_layer* to, tn_error* error) { return tn_layer_create(host->host, &c, to, error); });
}
}  // namespace detail

class Parameters : public detail::Owned<tn_parameters, tn_parameters_release> {
 public:
  using Owned::Owned;
  [[nodiscard]] std::string describe() const {
    return detail::written([this](tn_write write, void* user, tn_error* error) {
      return tn_parameters_describe(host(), handle(), write, user, error);
    });
  }
  // Borrowed until the set is trained, changed or released.
  [[nodiscard]] Array get(const std::string& name) const {
    tn_array array = {};
    detail::checked([&](tn_error* error) {
      return tn_parameters_get(host(), handle(), detail::c_text(name, "name"), &array, error);
    });
    return detail::array_from(array);
  }
  void set(const std::string& name, const Array& values) const {
    const tn_array array = detail::c_array(values);
    detail::checked([&](tn_error* error) {
      return tn_parameters_set(host(), handle(), detail::c_text(name, "name"), &array, error);
    });
  }
  // What readers of other data must agree with, as tn_parameters_read_names documents.
  [[nodiscard]] std::vector<Names> names() const {
    return detail::names_from([this](tn_names_sink sink, void* user, tn_error* error) {
      return tn_parameters_read_names(host(), handle(), sink, user, error);
    });
  }
  // Replaces the names of these data layers, as tn_parameters_set_names documents.
  void set_names(const std::vector<Names>& names) const {
    const detail::NamesLists lists(names);
    detail::checked(
        [&](tn_error* error) { return tn_parameters_set_names(host(), handle(), lists.data(), lists.size(), error); });
  }
  // A text that files of the set hold, as tn_parameters_set_metadata documents. Null: the set loses it.
  void set_metadata(const std::string& key, const char* text) const {
    detail::checked([&](tn_error* error) {
      return tn_parameters_set_metadata(host(), handle(), detail::c_text(key, "key"), text, error);
    });
  }
  // Writes the topology of `outputs` and its parameters as one file.
  void save(const Layers& outputs, const std::string& path) const {
    const std::vector<tn_layer> list = detail::handles(outputs);
    detail::checked([&](tn_error* error) {
      return tn_model_save(host(), handle(), list.data(), detail::count_of(list.size()), detail::c_text(path, "path"),
                           error);
    });
  }
};

struct Model {
  Layers outputs;
  Parameters parameters;
};

namespace detail {
// Makes a model. call: tn_model_load without the file, (outputs, count, parameters, error).
template <typename Call>
Model loaded_model(const HostRef& host, Call&& call) {
  // Allocates the result first: no allocation can fail once there are handles to release.
  Model result;
  result.parameters = Parameters(host);
  std::vector<tn_layer> list;
  const auto load = [&](uint32_t* count, tn_error* error) {
    tn_parameters set = {};
    const tn_status status = call(list.data(), count, &set, error);
    if (status == TN_OK) result.parameters.make([&](tn_parameters* to) { *to = set; });
    return status;
  };
  uint32_t count = 16;
  checked([&](tn_error* error) {
    tn_status status = TN_NEED_CAPACITY;
    while (status == TN_NEED_CAPACITY) {
      list.resize(count);
      while (result.outputs.size() < count) result.outputs.push_back(Layer(host));
      status = load(&count, error);
    }
    return status;
  });
  for (uint32_t i = 0; i < count; ++i) result.outputs[i].make([&](tn_layer* to) { *to = list[i]; });
  result.outputs.resize(count);
  return result;
}
}  // namespace detail

struct Feed {
  std::string name;  // of the data layer
  Array values;      // [samples, shape of a sample...]
};

namespace detail {
inline std::vector<tn_feed> c_feeds(const std::vector<Feed>& feeds) {
  std::vector<tn_feed> list;
  for (const Feed& feed : feeds) list.push_back({c_text(feed.name, "the name of a feed"), c_array(feed.values)});
  return list;
}
}  // namespace detail

class Machine : public detail::Owned<tn_machine, tn_machine_release> {
 public:
  using Owned::Owned;
  void forward(const std::vector<Feed>& feeds) const {
    const std::vector<tn_feed> list = detail::c_feeds(feeds);
    detail::checked([&](tn_error* error) {
      return tn_machine_forward(host(), handle(), list.data(), detail::count_of(list.size()), error);
    });
  }
  void backward() const {
    detail::checked([this](tn_error* error) { return tn_machine_backward(host(), handle(), error); });
  }
  // Sets the states that layers carry from minibatch to minibatch to zero.
  void reset_carried() const {
    detail::checked([this](tn_error* error) { return tn_machine_reset_carried(host(), handle(), error); });
  }
  // Both are borrowed until the next call on this machine.
  [[nodiscard]] Array output(const Layer& layer) const {
    tn_array array = {};
    detail::checked(
        [&](tn_error* error) { return tn_machine_output(host(), handle(), layer.handle(), &array, error); });
    return detail::array_from(array);
  }
  // A row-sparse gradient: the numbers of the rows and their gradients.
  struct Rows {
    Array ids, values;
  };
  [[nodiscard]] Rows sparse_gradient(const std::string& parameter) const {
    tn_array ids = {}, values = {};
    detail::checked([&](tn_error* error) {
      return tn_machine_sparse_gradient(host(), handle(), detail::c_text(parameter, "parameter"), &ids, &values, error);
    });
    return {detail::array_from(ids), detail::array_from(values)};
  }
  [[nodiscard]] Array gradient(const std::string& parameter) const {
    tn_array array = {};
    detail::checked([&](tn_error* error) {
      return tn_machine_gradient(host(), handle(), detail::c_text(parameter, "parameter"), &array, error);
    });
    return detail::array_from(array);
  }
  [[nodiscard]] double cost() const {
    double result = 0;
    detail::checked([&](tn_error* error) { return tn_machine_cost(host(), handle(), &result, error); });
    return result;
  }
  // Each of two or more costs by name, as tn_machine_costs documents them; else empty.
  [[nodiscard]] std::vector<Metric> costs() const {
    const tn_metric* costs = nullptr;
    uint32_t count = 0;
    detail::checked([&](tn_error* error) { return tn_machine_costs(host(), handle(), &costs, &count, error); });
    return detail::metrics_from(costs, count);
  }
  // The values over the last forward.
  [[nodiscard]] std::vector<Metric> metrics() const {
    const tn_metric* list = nullptr;
    uint32_t count = 0;
    detail::checked([&](tn_error* error) { return tn_machine_metrics(host(), handle(), &list, &count, error); });
    return detail::metrics_from(list, count);
  }
  // JSON: the call array with layers, groups and bytes.
  [[nodiscard]] std::string plan() const {
    return detail::written([this](tn_write write, void* user, tn_error* error) {
      return tn_machine_plan(host(), handle(), write, user, error);
    });
  }
};

class Updater : public detail::Owned<tn_updater, tn_updater_release> {
 public:
  using Owned::Owned;
  // Updates only the parameters that `output` depends on; drops the other gradients.
  void update(const Machine& machine, const Layer& output) const {
    detail::checked(*host_ref(), [&](tn_error* error) {
      return tn_updater_update_model(host(), handle(), machine.handle(), output.handle(), error);
    });
  }
  void update(const Machine& machine) const {
    detail::checked(*host_ref(),
                    [&](tn_error* error) { return tn_updater_update(host(), handle(), machine.handle(), error); });
  }
  void set_learning_rate(double rate) const {
    detail::checked(*host_ref(),
                    [&](tn_error* error) { return tn_updater_set_learning_rate(host(), handle(), rate, error); });
  }
  // JSON: {type, learning_rate, state_bytes, workspace_bytes, last_update}, as tn_updater_describe documents it.
  [[nodiscard]] std::string describe(const Parameters& parameters) const {
    return detail::written([&](tn_write write, void* user, tn_error* error) {
      return tn_updater_describe(host(), handle(), parameters.handle(), write, user, error);
    });
  }
};

}  // namespace v0
}  // namespace tenon
#endif
