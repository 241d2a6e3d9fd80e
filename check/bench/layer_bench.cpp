// SPDX-License-Identifier: Apache-2.0
#include "check/bench/layer_bench.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <tenon/tenon_updater.hpp>

#include "check/bench/subject.h"
#include "check/cases/attributes.h"
#include "check/cases/fault.h"

namespace tenon::check {

namespace {

template <typename T>
Numbers widened(const Array& array) {
  const auto* const data = static_cast<const T*>(array.data);
  return {data, data + array.count()};
}

}  // namespace

bool is_float(tn_dtype dtype) { return tn_dtype_code(dtype) == 2; }

Numbers numbers_of(const Array& array) {
  if (array.count() == 0) return {};
  switch (array.dtype) {
    case TN_F32:
      return widened<float>(array);
    case TN_F64:
      return widened<double>(array);
    case TN_I32:
      return widened<int32_t>(array);
    case TN_I64: {
      const auto* const data = static_cast<const int64_t*>(array.data);
      Numbers result;
      for (int64_t i = 0; i < array.count(); ++i) result.push_back(static_cast<double>(data[i]));
      return result;
    }
    case TN_U8:
    case TN_BOOL:
      return widened<uint8_t>(array);
    default:
      throw Skip("the element type of an output is unknown to the kit");
  }
}

Bench::Bench(Host host, std::string type, const LayerCase& layer_case, uint64_t seed, Draw draw, bool passed)
    : host_(std::move(host)),
      type_(std::move(type)),
      case_(layer_case),
      source_(passed ? Source::kCopied : Source::kFed) {
  std::mt19937_64 random(seed);
  fed_ = drawn_values(case_, kSamples, draw, random);
  if (case_.chain.empty()) attributes_ = attributes_of(case_.attributes, schema_of(type_));
  build(seed);
  // Noise on the first values, so that zeros hide no error; multiples of 2^-10, so that steps of differences are exact.
  for (const std::string& name : trained_) {
    const Array stored = parameters_.get(name);
    if (stored.dtype != TN_F32) continue;
    Numbers values = numbers_of(stored);
    for (double& value : values)
      value = std::round((value + static_cast<double>(random() % 1024) / 1024 - 0.5) * 1024) / 1024;
    store(name, values);
  }
}

Bench::Bench(Host host, std::string type, const LayerCase& layer_case, BenchModel model)
    : host_(std::move(host)),
      type_(std::move(type)),
      name_(std::move(model.name)),
      case_(layer_case),
      source_(model.source),
      from_cost_(model.from_cost),
      machine_seed_(model.machine_seed),
      outputs_count_(model.outputs),
      weight_(std::move(model.weight)),
      fed_(std::move(model.fed)),
      attributes_(std::move(model.attributes)) {
  build(model.seed);
}

json Bench::schema_of(const std::string& type) const {
  return json::parse(host_.describe_type("layer", type)).at("attributes");
}

Layer Bench::input(size_t i) const {
  const InputSpec& spec = case_.inputs[i];
  const bool variable = is_variable(i);
  Layer data = data_layer(host_, spec, i, variable && source_ == Source::kParameters);
  if (!variable || source_ == Source::kFed) return data;
  if (source_ == Source::kCopied) return host_.layer("check.copy", {data}, {}, "copy" + std::to_string(i));
  const int64_t rows = fed_.rows_before(spec, i, fed_.samples);
  return host_.layer("check.input", {data}, {{"rows", rows}, {"shape", spec.shape}}, "x" + std::to_string(i));
}

void Bench::build(uint64_t seed) {
  Layers inputs;
  for (size_t i = 0; i < case_.inputs.size(); ++i) inputs.push_back(input(i));
  if (case_.chain.empty()) {
    inputs_ = inputs;
    layer_ = host_.layer(type_, inputs_, attributes_, name_);
  }
  for (size_t k = 0; k < case_.chain.size(); ++k) {
    const ChainLayer& link = case_.chain[k];
    Layers from;
    for (const int64_t i : link.inputs)
      from.push_back(i == ChainLayer::kBefore ? layer_.output(0) : inputs.at(static_cast<size_t>(i)));
    layer_ = host_.layer(link.type, from, attributes_of(link.attributes, schema_of(link.type)),
                         "checked" + std::to_string(k));
    if (case_.reads_inner && k + 1 < case_.chain.size()) add_outputs();
  }
  role_ = add_outputs();
  if (outputs_.empty()) outputs_.push_back(layer_);
  parameters_ = host_.parameters(outputs_, seed);
  for (const json& entry : json::parse(parameters_.describe()))
    (entry.at("kind") == "buffer" ? buffers_ : trained_).push_back(entry.at("name"));
  std::vector<size_t> variables;
  for (size_t i = 0; i < case_.inputs.size(); ++i)
    if (is_variable(i)) variables.push_back(i);
  const auto has_gradient = [&](size_t i) { return case_.inputs[i].gradient; };
  has_derivative_ = variables.empty() || std::any_of(variables.begin(), variables.end(), has_gradient);
  if (source_ != Source::kParameters)
    variables_ = std::move(variables);
  else
    for (const size_t i : variables) store(input_parameter(i), fed_.values[i]);
}

void Bench::store(const std::string& name, const Numbers& values) const {
  const std::vector<float> narrow(values.begin(), values.end());
  parameters_.set(name, {TN_F32, parameters_.get(name).shape, narrow.data()});
}

std::string Bench::add_outputs() {
  const json described = json::parse(layer_.describe());
  uint32_t number = 0;
  for (const json& output : described.at("outputs")) {
    if (number == outputs_count_) break;
    outputs_.push_back(layer_.output(number++));
    if (output.at("dtype").dump().find("int") == std::string::npos) has_float_output_ = true;
  }
  return described.at("role");
}

Machine Bench::machine(tn_dtype compute, bool training, bool keep_all, const std::vector<std::string>& immutable,
                       bool of_inputs) const {
  MachineOptions options;
  options.compute = compute;
  options.max_samples = fed_.samples;
  options.training = training && can_go_back();
  options.keep_all = keep_all;
  options.seed = machine_seed_;
  options.immutable_parameters = immutable;
  options.device = case_.device;
  if (options.training && !from_cost_) options.flags = TN_MACHINE_GIVEN_GRADIENTS;
  if (options.training && of_inputs && source_ != Source::kParameters) options.flags |= TN_MACHINE_DATA_GRADIENTS;
  return host_.machine(parameters_, outputs_, options);
}

std::vector<Numbers> Bench::drawn(uint64_t seed, uint64_t updates) const {
  MachineOptions options;
  options.max_samples = kSamples;
  options.training = can_go_back();
  options.seed = seed;
  if (options.training) options.flags = TN_MACHINE_GIVEN_GRADIENTS;
  set_updates(parameters_, updates);
  const Machine machine = host_.machine(parameters_, outputs_, options);
  forward(machine, TN_F32, all());
  set_updates(parameters_, 0);
  return read(machine);
}

std::pair<std::vector<Numbers>, std::vector<Numbers>> Bench::of_twins() const {
  Attributes attributes = attributes_;
  if (!trained_.empty()) attributes.push_back({"parameter_name", "checked"});
  const Layer twin = host_.layer(type_, inputs_, attributes, "twin");
  Layers twins, both = outputs_;
  for (size_t k = 0; k < outputs_.size(); ++k) twins.push_back(twin.output(static_cast<uint32_t>(k)));
  both.insert(both.end(), twins.begin(), twins.end());
  MachineOptions options;
  options.max_samples = kSamples;
  options.training = true;
  options.flags = TN_MACHINE_GIVEN_GRADIENTS;
  const Machine machine = host_.machine(host_.parameters(both, kSeed), both, options);
  forward(machine, TN_F32, all());
  return {read(machine, outputs_), read(machine, twins)};
}

Feeds Bench::feeds(tn_dtype compute, const Part& part) const {
  Feeds result;
  for (size_t i = 0; i < case_.inputs.size(); ++i)
    fed_.add_feed(result, case_.inputs[i], i, compute, part, is_variable(i) && source_ == Source::kParameters);
  return result;
}

void Bench::forward(const Machine& machine, tn_dtype compute, const Part& part) const {
  machine.reset_carried();
  const Feeds fed = feeds(compute, part);
  tenon::forward(machine, fed.list(), TN_FORWARD_IGNORE_UNUSED);
}

double Bench::weight(size_t output, size_t element) {
  const auto mixed = static_cast<uint32_t>((element + 1) * 2654435761U + output * 40503U);
  return static_cast<double>(mixed >> 16 & 1023U) / 512 - 1;
}

void Bench::backward(const Machine& machine, tn_dtype compute, const Layers& outputs) const {
  if (from_cost_) return machine.backward();
  std::deque<std::vector<float>> narrow;
  std::deque<Numbers> wide;
  std::vector<OutputGradient> list;
  for (size_t k = 0; k < outputs.size(); ++k) {
    Array array = machine.output(outputs[k]);
    if (!is_float(array.dtype)) continue;
    Numbers weights;
    for (int64_t i = 0; i < array.count(); ++i) {
      const auto element = static_cast<size_t>(i);
      weights.push_back(weight_ ? weight_(k, element, array.shape[0]) : weight(k, element));
    }
    array.dtype = compute;
    array.storage = TN_DENSE;
    array.levels = 0;
    array.offsets = {nullptr, nullptr};
    array.samples = 0;
    array.data = compute == TN_F64 ? static_cast<const void*>(wide.emplace_back(weights).data())
                                   : narrow.emplace_back(weights.begin(), weights.end()).data();
    list.push_back({outputs[k], array});
  }
  backward_from(machine, list);
}

double Bench::objective(const Machine& machine) const {
  double sum = 0;
  for (size_t k = 0; k < outputs_.size(); ++k) {
    const Array array = machine.output(outputs_[k]);
    if (!is_float(array.dtype)) continue;
    const Numbers values = numbers_of(array);
    for (size_t i = 0; i < values.size(); ++i) sum += weight(k, i) * values[i];
  }
  return sum;
}

std::vector<Numbers> Bench::read(const Machine& machine, const Layers& outputs) const {
  std::vector<Numbers> result;
  if (is_metric()) {
    Numbers& values = result.emplace_back();
    for (const Metric& metric : machine.metrics()) values.push_back(metric.value);
    return result;
  }
  for (const Layer& output : outputs) result.push_back(numbers_of(machine.output(output)));
  return result;
}

std::vector<Numbers> Bench::answers(const Host& host, const Model& model) const {
  MachineOptions options;
  options.max_samples = kSamples;
  options.seed = kSeed;
  const Machine loaded = host.machine(model.parameters, model.outputs, options);
  forward(loaded, TN_F32, all());
  return read(loaded, model.outputs);
}

std::map<std::string, Numbers> Bench::gradients(const Machine& machine) const {
  std::map<std::string, Numbers> result;
  const auto add = [&](const std::string& name, size_t size, const auto& read) {
    try {
      result[name] = numbers_of(read());
    } catch (const Error& error) {
      if (error.code() != TN_NOT_FOUND) throw;
      result[name] = Numbers(size, 0);  // nothing depends on it
    }
  };
  for (const size_t i : variables_)
    add(input_name(i), fed_.values[i].size(), [&] { return data_gradient(machine, input_name(i)); });
  for (const std::string& name : trained_)
    add(name, static_cast<size_t>(parameters_.get(name).count()), [&] { return machine.gradient(name); });
  return result;
}

Step Bench::step(tn_dtype compute, const Part& part, bool keep_all) const {
  return step_of(machine(compute, true, keep_all), compute, part);
}

Step Bench::step_of(const Machine& machine, tn_dtype compute, const Part& part) const {
  forward(machine, compute, part);
  Step result;
  result.outputs = read(machine);
  if (!can_go_back()) return result;
  backward(machine, compute);
  result.gradients = gradients(machine);
  return result;
}

bool offers_fp64(const Bench& bench) try {
  (void)bench.machine(TN_F64, true);
  return true;
} catch (const Error& error) {
  if (error.code() != TN_UNSUPPORTED) throw;
  return false;
}

std::vector<std::string> kernels_of(const Machine& machine) {
  const json plan = json::parse(machine.plan());
  std::vector<std::string> result;
  for (const json& call : plan.at("calls")) result.push_back(call.at("kernel"));
  return result;
}

bool is_called(const Machine& machine, const std::string& kernel) {
  const std::vector<std::string> kernels = kernels_of(machine);
  return std::find(kernels.begin(), kernels.end(), kernel) != kernels.end();
}

}  // namespace tenon::check
