// SPDX-License-Identifier: Apache-2.0
#include "tests/support/layer_bench.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>

#include "tests/support/test_layers.h"

namespace tenon::test {

namespace {

int64_t product(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

std::vector<int64_t> with_samples(int64_t samples, std::vector<int64_t> shape) {
  shape.insert(shape.begin(), samples);
  return shape;
}

}  // namespace

std::vector<double> as_doubles(const Array& array) {
  std::vector<double> result(static_cast<size_t>(array.count()));
  for (size_t i = 0; i < result.size(); ++i)
    result[i] = array.dtype == TN_F64 ? static_cast<const double*>(array.data)[i]
                                      : static_cast<double>(static_cast<const float*>(array.data)[i]);
  return result;
}

bool agree(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
  if (a.size() != b.size()) return false;
  double scale = 1e-6;
  for (const double value : b) scale = std::max(scale, std::abs(value));
  for (size_t i = 0; i < a.size(); ++i)
    if (!(std::abs(a[i] - b[i]) <= tolerance * scale)) return false;
  return true;
}

bool identical(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

Bench::Bench(const LayerCase& layer, int threads, int64_t samples)
    : case_(layer),
      threads_(threads),
      samples_(samples),
      random_(static_cast<uint64_t>(samples) * 7919 + 17),
      host_(host_options()) {
  host_.add_plugin(&test_layers());
  ids_.resize(static_cast<size_t>(samples));
  std::iota(ids_.begin(), ids_.end(), 0);
  build();
}

HostOptions Bench::host_options() const {
  std::vector<std::string> paths = case_.plugin_paths;
  paths.insert(paths.begin(), TENON_PLUGINS);
  return {threads_, paths, nullptr, {}};
}

Host Bench::another_host() const {
  Host host(host_options());
  host.add_plugin(&test_layers());
  return host;
}

MachineOptions Bench::options(tn_dtype compute, bool training) const {
  MachineOptions options;
  options.max_samples = samples_;
  options.training = training;
  options.compute = compute;
  return options;
}

Machine Bench::machine(tn_dtype compute, bool training, const std::vector<std::string>& immutable) const {
  MachineOptions wanted = options(compute, training);
  wanted.immutable_parameters = immutable;
  return host_.machine(parameters_, outputs_, wanted);
}

void Bench::forward(const Machine& machine, tn_dtype compute, int64_t samples) const {
  std::vector<Feed> feeds;
  if (needs_ids_) feeds.push_back({"ids", {TN_I32, {samples}, ids_.data()}});
  for (size_t i = 0; i < case_.inputs.size(); ++i)
    if (case_.inputs[i].integers_below > 0)
      feeds.push_back(
          {"input" + std::to_string(i), {TN_I32, with_samples(samples, case_.inputs[i].shape), integers_[i].data()}});
  std::vector<std::vector<float>> narrow;
  for (const std::vector<double>& weights : weights_) narrow.emplace_back(weights.begin(), weights.end());
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (!is_weighted(i)) continue;
    const void* data = compute == TN_F64 ? static_cast<const void*>(weights_[i].data()) : narrow[i].data();
    feeds.push_back({weight_name(i), {compute, with_samples(samples, output_shape(i)), data}});
  }
  machine.forward(feeds);
}

FormulaArguments Bench::arguments(int64_t samples, bool training) const {
  FormulaArguments arguments;
  arguments.samples = samples;
  arguments.training = training;
  for (size_t i = 0; i < case_.inputs.size(); ++i) {
    if (case_.inputs[i].integers_below > 0)
      arguments.inputs.emplace_back(integers_[i].begin(), integers_[i].end());
    else
      arguments.inputs.push_back(stored(input_parameter(i)));
    arguments.inputs.back().resize(static_cast<size_t>(samples * product(case_.inputs[i].shape)));
  }
  for (const std::string& suffix : suffixes_) arguments.parameters[suffix] = stored(own(suffix));
  for (const std::string& suffix : buffers_) arguments.buffers[suffix] = stored(own(suffix));
  return arguments;
}

double Bench::cost(const FormulaArguments& arguments) const {
  double sum = 0;
  for (size_t k = 0; k < weights_.size(); ++k) {
    const std::vector<double> output = formula(k)(arguments);
    for (size_t i = 0; i < output.size(); ++i) sum += output[i] * (is_weighted(k) ? weights_[k][i] : 1.0);
  }
  return sum / static_cast<double>(arguments.samples);
}

const Formula& Bench::formula(size_t output) const {
  return output == 0 ? case_.formula : case_.more_outputs[output - 1].formula;
}

std::vector<std::string> Bench::trained() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < case_.inputs.size(); ++i)
    if (case_.inputs[i].integers_below == 0) names.push_back(input_parameter(i));
  for (const std::string& suffix : suffixes_) names.push_back(own(suffix));
  return names;
}

std::string Bench::weight_name(size_t output) { return "weight" + (output == 0 ? "" : std::to_string(output)); }

const std::vector<int64_t>& Bench::output_shape(size_t output) const {
  return output == 0 ? case_.output_shape : case_.more_outputs[output - 1].shape;
}

void Bench::build() {
  Layers inputs;
  integers_.resize(case_.inputs.size());
  for (size_t i = 0; i < case_.inputs.size(); ++i) inputs.push_back(input(i));
  under_test_ = host_.layer(case_.type, inputs, case_.attributes, "under_test");
  outputs_ = {under_test_};
  weights_.resize(1 + case_.more_outputs.size());
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (!is_weighted(i)) continue;
    if (i > 0) outputs_.push_back(output(i));
    DataOptions weight;
    weight.name = weight_name(i);
    weight.dtype = TN_COMPUTE;
    weight.shape = output_shape(i);
    const std::string number = i == 0 ? "" : std::to_string(i);
    outputs_.push_back(host_.layer("test_cost", {output(i), host_.data(weight)}, {}, "cost" + number));
    std::uniform_real_distribution<double> draw(-1, 1);
    weights_[i].resize(static_cast<size_t>(samples_ * product(output_shape(i))));
    for (double& value : weights_[i]) value = static_cast<float>(draw(random_));
  }
  parameters_ = host_.parameters(outputs_, 3);
  fill_inputs();
  fill_own();
}

Layer Bench::input(size_t i) {
  const CheckedInput& wanted = case_.inputs[i];
  if (wanted.integers_below > 0) {
    DataOptions data;
    data.name = "input" + std::to_string(i);
    data.dtype = TN_I32;
    data.shape = wanted.shape;
    std::uniform_int_distribution<int32_t> draw(0, static_cast<int32_t>(wanted.integers_below - 1));
    integers_[i].resize(static_cast<size_t>(samples_ * product(wanted.shape)));
    for (int32_t& value : integers_[i]) value = draw(random_);
    return host_.data(data);
  }
  if (!needs_ids_) {
    DataOptions ids;
    ids.name = "ids";
    ids.dtype = TN_I32;
    ids_layer_ = host_.data(ids);
    needs_ids_ = true;
  }
  return host_.layer("test_input", {ids_layer_}, {{"rows", samples_}, {"shape", wanted.shape}},
                     "x" + std::to_string(i));
}

void Bench::fill_inputs() {
  for (size_t i = 0; i < case_.inputs.size(); ++i) {
    const CheckedInput& wanted = case_.inputs[i];
    if (wanted.integers_below > 0) continue;
    const Array stored = parameters_.get(input_parameter(i));
    std::uniform_real_distribution<double> draw(wanted.low, wanted.high);
    std::vector<float> values(static_cast<size_t>(stored.count()));
    for (float& value : values) {
      do value = static_cast<float>(draw(random_));
      while (std::abs(static_cast<double>(value) - wanted.away_from) < wanted.gap);
    }
    parameters_.set(input_parameter(i), {TN_F32, stored.shape, values.data()});
  }
}

// Parameters and buffers of the layer itself: whatever their initialiser gave, plus noise, so that zeros hide nothing.
// A buffer may be a variance or a count, so its noise is positive.
void Bench::fill_own() {
  const std::string prefix = own("");
  for (const nlohmann::json& entry : nlohmann::json::parse(parameters_.describe())) {
    const std::string name = entry.at("name");
    if (name.rfind(prefix, 0) != 0) continue;
    const bool buffer = entry.at("kind") == "buffer";
    (buffer ? buffers_ : suffixes_).push_back(name.substr(prefix.size()));
    const Array stored = parameters_.get(name);
    std::uniform_real_distribution<double> draw(buffer ? 0 : -0.5, 0.5);
    std::vector<float> values(static_cast<size_t>(stored.count()));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<const float*>(stored.data)[i] + static_cast<float>(draw(random_));
    parameters_.set(name, {TN_F32, stored.shape, values.data()});
  }
}

}  // namespace tenon::test
