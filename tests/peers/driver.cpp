// Computes cases of the peer test on the public API alone. Reads JSON {cases: [case]} and writes {plugins, answers:
// [answer]}, an answer for each case in its order, {error: text} where it failed. Numbers that are not finite are
// texts.
//   layer case: {compute: "float32" or "float64", type, attributes, training, inputs: [input or null], parameters:
//     {suffix: {shape, values}}, gradients: [values or null]}; an input is {shape, values} of floats, with `limit` of
//     integers below it, with `lengths` of sequences. A gradient is that of an output; backward runs if there is one.
//   its answer: {outputs: [{shape, values}], metrics: [number], parameters: {suffix: values}, input_gradients: [values
//     or null], parameter_gradients: {suffix: values}}; parameters are those after the step, with buffers.
//   updater case: {compute, updater, attributes, shape, values, gradients: [values]}, a gradient for each step.
//   its answer: {steps: [values]}, the parameter after each step.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <tenon/tenon.hpp>
#include <tenon/tenon_machine.hpp>
#include <tenon/tenon_topology.hpp>
#include <vector>

namespace {

using nlohmann::json;

double number(const json& value) {
  return value.is_string() ? std::stod(value.get<std::string>()) : value.get<double>();
}

template <typename Number>
std::vector<Number> numbers(const json& values) {
  std::vector<Number> result;
  for (const json& each : values) result.push_back(static_cast<Number>(number(each)));
  return result;
}

json from(double value) { return std::isfinite(value) ? json(value) : json(std::to_string(value)); }

json values_of(const tenon::Array& array) {
  json result = json::array();
  const auto add = [&](const auto* values) {
    for (int64_t i = 0; i < array.count(); ++i) result.push_back(from(static_cast<double>(values[i])));
  };
  if (array.dtype == TN_F32)
    add(static_cast<const float*>(array.data));
  else if (array.dtype == TN_F64)
    add(static_cast<const double*>(array.data));
  else if (array.dtype == TN_I32)
    add(static_cast<const int32_t*>(array.data));
  else if (array.dtype == TN_I64)
    add(static_cast<const int64_t*>(array.data));
  else
    throw std::runtime_error("an array of a type that the driver does not read");
  return result;
}

tenon::Value attribute(const json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) return value.get<std::string>();
  const auto all = [&](auto test) { return std::all_of(value.begin(), value.end(), test); };
  if (all([](const json& each) { return each.is_number_integer(); })) return value.get<std::vector<int64_t>>();
  if (all([](const json& each) { return each.is_number(); })) return value.get<std::vector<double>>();
  return value.get<std::vector<std::string>>();
}
tenon::Attributes attributes(const json& values) {
  tenon::Attributes result;
  for (const auto& [name, value] : values.items()) result.push_back({name, attribute(value)});
  return result;
}

// Values of a parameter or a gradient, which the array borrows.
struct Values {
  std::vector<double> values;
  tenon::Array array;
  std::vector<float> narrow;

  Values(std::vector<int64_t> shape, const json& given, tn_dtype dtype) : values(numbers<double>(given)) {
    narrow.assign(values.begin(), values.end());
    array = {dtype, std::move(shape), dtype == TN_F64 ? static_cast<const void*>(values.data()) : narrow.data()};
  }
};

// An input of a layer: a data layer, and what it is fed with.
struct Input {
  std::string name;
  tenon::DataOptions options;
  std::vector<float> floats;
  std::vector<int32_t> integers;
  std::vector<int64_t> offsets = {0};
  tenon::Array array;

  Input(const json& given, size_t place) : name("input_" + std::to_string(place)) {
    const auto shape = given.at("shape").get<std::vector<int64_t>>();
    options.name = name;
    options.shape.assign(shape.begin() + 1, shape.end());
    if (given.contains("limit")) {
      options.dtype = TN_I32;
      options.index_limit = given["limit"].get<int64_t>();
      integers = numbers<int32_t>(given.at("values"));
    } else {
      floats = numbers<float>(given.at("values"));
    }
    const void* data = given.contains("limit") ? static_cast<const void*>(integers.data()) : floats.data();
    array = {options.dtype, shape, data};
    if (!given.contains("lengths")) return;
    for (const json& length : given["lengths"]) offsets.push_back(offsets.back() + length.get<int64_t>());
    options.storage = TN_RAGGED;
    options.sequence = given.value("sequence", "");
    array =
        tenon::Array::sequences(options.dtype, shape, data, static_cast<int64_t>(offsets.size()) - 1, offsets.data());
  }
  [[nodiscard]] int64_t samples() const { return options.storage == TN_RAGGED ? array.samples : array.shape.at(0); }
};

// A layer called "layer" over data layers, its parameters with the values of the case, and a machine of it.
class LayerCase {
 public:
  LayerCase(const tenon::Host& host, const json& given) : given_(given) {
    inputs_.reserve(given.at("inputs").size());  // arrays point into them
    tenon::Layers layers;
    for (const json& input : given["inputs"]) {
      layers.emplace_back();
      if (input.is_null()) continue;
      inputs_.emplace_back(input, layers.size() - 1);
      layers.back() = host.data(inputs_.back().options);
    }
    layer_ = host.layer(given.at("type").get<std::string>(), layers, attributes(given.at("attributes")), "layer");
    const uint32_t count = tenon::inspect(layer_).outputs;
    for (uint32_t i = 0; i < count; ++i) outputs_.push_back(layer_.output(i));
    if (outputs_.empty()) outputs_.push_back(layer_);  // a metric
    parameters_ = host.parameters(outputs_, 1);
    set_parameters(given.at("parameters"));

    tenon::MachineOptions options;
    for (const Input& input : inputs_) options.max_samples = std::max(options.max_samples, input.samples());
    options.compute = given.at("compute") == "float64" ? TN_F64 : TN_F32;
    options.training = given.at("training").get<bool>();
    if (options.training) options.flags = TN_MACHINE_GIVEN_GRADIENTS | TN_MACHINE_DATA_GRADIENTS;
    dtype_ = options.compute;
    machine_ = host.machine(parameters_, outputs_, options);
  }

  json run() {
    std::vector<tenon::Feed> feeds;
    for (const Input& input : inputs_) feeds.push_back({input.name, input.array});
    machine_.forward(feeds);
    json answer = {{"outputs", json::array()}, {"metrics", json::array()}};
    for (const tenon::Metric& metric : machine_.metrics()) answer["metrics"].push_back(from(metric.value));
    if (tenon::inspect(layer_).role != "metric")
      for (const tenon::Layer& output : outputs_) answer["outputs"].push_back(shaped(machine_.output(output)));
    backward(answer);
    answer["parameters"] = json::object();
    for (const std::string& suffix : suffixes_)
      answer["parameters"][suffix] = values_of(parameters_.get("layer." + suffix));
    return answer;
  }

 private:
  static json shaped(const tenon::Array& array) { return {{"shape", array.shape}, {"values", values_of(array)}}; }

  // Every parameter must be given, with its shape: the table states how parameters lie.
  void set_parameters(const json& values) {
    const std::string prefix = "layer.";
    for (const tenon::ParameterInfo& info : tenon::entries(parameters_)) {
      const std::string suffix = info.name.substr(prefix.size());
      if (!values.contains(suffix)) throw std::runtime_error("the row lacks the parameter " + suffix);
      suffixes_.push_back(suffix);
    }
    for (const auto& [suffix, value] : values.items())
      parameters_.set(prefix + suffix,
                      Values(value.at("shape").get<std::vector<int64_t>>(), value.at("values"), TN_F32).array);
  }

  void backward(json& answer) {
    std::vector<Values> held;
    std::vector<tenon::OutputGradient> gradients;
    held.reserve(outputs_.size());
    for (size_t i = 0; i < given_.at("gradients").size(); ++i) {
      const json& gradient = given_["gradients"][i];
      if (gradient.is_null()) continue;
      held.emplace_back(machine_.output(outputs_.at(i)).shape, gradient, dtype_);
      gradients.push_back({outputs_[i], held.back().array});
    }
    if (gradients.empty()) return;
    tenon::backward_from(machine_, gradients);
    answer["input_gradients"] = json::array();
    for (const Input& input : inputs_)
      answer["input_gradients"].push_back(known([&] { return tenon::data_gradient(machine_, input.name); }));
    for (const std::string& suffix : suffixes_)
      answer["parameter_gradients"][suffix] = known([&] { return machine_.gradient("layer." + suffix); });
  }

  // The values that `get` returns; null if nothing depends on the thing, or it is one without a gradient.
  template <typename Get>
  static json known(Get get) {
    try {
      return values_of(get());
    } catch (const tenon::Error& error) {
      if (error.code() != TN_NOT_FOUND && error.code() != TN_INVALID) throw;
      return nullptr;
    }
  }

  const json& given_;
  std::vector<Input> inputs_;
  tenon::Layer layer_;
  tenon::Layers outputs_;
  tenon::Parameters parameters_;
  std::vector<std::string> suffixes_;
  tenon::Machine machine_;
  tn_dtype dtype_ = TN_F32;
};

json run_updater(const tenon::Host& host, const json& given) {
  const auto shape = given.at("shape").get<std::vector<int64_t>>();
  tenon::DataOptions data;
  data.name = "like";
  const tenon::Layer weight = host.layer("parameter", {host.data(data)}, {{"shape", shape}}, "layer");
  const tenon::Parameters parameters = host.parameters({weight}, 1);
  const std::string name = "layer.value";
  parameters.set(name, Values(shape, given.at("values"), TN_F32).array);
  tenon::MachineOptions options;
  options.training = true;
  options.flags = TN_MACHINE_GIVEN_GRADIENTS;
  options.compute = given.at("compute") == "float64" ? TN_F64 : TN_F32;
  const tenon::Machine machine = host.machine(parameters, {weight}, options);
  const tenon::Updater updater =
      host.updater(given.at("updater").get<std::string>(), attributes(given.at("attributes")));
  json answer = {{"steps", json::array()}};
  for (const json& gradient : given.at("gradients")) {
    tenon::set_gradient(machine, name, Values(shape, gradient, options.compute).array);
    updater.update(machine);
    answer["steps"].push_back(values_of(parameters.get(name)));
  }
  return answer;
}

}  // namespace

int main() {
  try {
    const json given = json::parse(std::cin);
    tenon::HostOptions options;
    options.threads = 1;
    const tenon::Host host(options);
    json result = {{"plugins", json::parse(host.plugins())}, {"answers", json::array()}};
    for (const json& each : given.at("cases")) {
      try {
        result["answers"].push_back(each.contains("updater") ? run_updater(host, each) : LayerCase(host, each).run());
      } catch (const std::exception& error) {
        result["answers"].push_back({{"error", error.what()}});
      }
    }
    std::cout << result << "\n";
  } catch (const std::exception& error) {
    std::fprintf(stderr, "driver: %s\n", error.what());
    return 1;
  }
  return 0;
}
