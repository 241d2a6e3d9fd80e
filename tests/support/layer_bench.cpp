// SPDX-License-Identifier: Apache-2.0
#include "tests/support/layer_bench.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "tests/support/paths.h"
#include "tests/support/test_layers.h"

namespace tenon_tests {

using namespace tenon;

namespace {

int64_t product(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

std::string ids_name(const RowsKey& key) { return "ids" + key.first + std::to_string(key.second); }

DataOptions integers(std::string name, const RowsKey& key) {
  DataOptions data;
  data.name = std::move(name);
  data.dtype = TN_I32;
  if (key.second == 0) return data;
  data.storage = TN_RAGGED;
  data.levels = key.second;
  data.sequence = key.first;
  return data;
}

}  // namespace

std::vector<double> as_doubles(const Array& array) {
  std::vector<double> result(static_cast<size_t>(array.count()));
  const auto read = [&]<typename T>(const T* values) {
    for (size_t i = 0; i < result.size(); ++i) result[i] = static_cast<double>(values[i]);
  };
  if (array.dtype == TN_F64)
    read(static_cast<const double*>(array.data));
  else if (array.dtype == TN_I64)
    read(static_cast<const int64_t*>(array.data));
  else
    read(static_cast<const float*>(array.data));
  return result;
}

testing::AssertionResult agree(const std::vector<double>& a, const std::vector<double>& b, double tolerance,
                               const std::vector<double>& scales) {
  if (a.size() != b.size()) return testing::AssertionFailure() << a.size() << " numbers, expected " << b.size();
  constexpr double kLargest = std::numeric_limits<float>::max();
  constexpr double kSmallest = 1e-35;  // a product with a factor that is 0 in fp32
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    if (std::abs(b[i]) > kLargest && a[i] == std::copysign(INFINITY, b[i])) continue;
    const double allowed = tolerance * std::max(std::abs(b[i]), scales.size() == 1 ? scales[0] : scales[i]) + kSmallest;
    if (!(std::abs(a[i] - b[i]) <= allowed))
      return testing::AssertionFailure() << "number " << i << " of " << a.size() << " is " << a[i] << ", expected "
                                         << b[i] << " within " << allowed << ", off by " << a[i] - b[i];
  }
  return testing::AssertionSuccess();
}

bool identical(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

Bench::Bench(const LayerCase& layer, int threads, int64_t samples, Lengths lengths, Numbers numbers)
    : case_(layer),
      threads_(threads),
      samples_(samples),
      lengths_(lengths),
      numbers_(numbers),
      random_(static_cast<uint64_t>(samples) * 7919 + 17),
      host_(host_options()) {
  host_.add_plugin(&test_layers());
  build();
}

HostOptions Bench::host_options() const {
  std::vector<std::string> paths = case_.plugin_paths;
  paths.insert(paths.begin(), tenon_tests::plugin_folder());
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

RowsKey Bench::key(size_t i) const {
  const CheckedInput& input = case_.inputs[i];
  if (input.sparse) return {"sparse" + std::to_string(i), 1};
  return {input.sequence, input.sequence.empty() ? 0 : input.levels};
}

int64_t Bench::rows_of(const RowsKey& key, int64_t samples) const {
  return key.second == 0 ? samples : sequences_.at(key.first).rows(samples, key.second);
}

const int64_t* Bench::ends(const RowsKey& key, size_t level, bool empty) const {
  return level >= key.second ? nullptr : empty ? zeros_.data() : sequences_.at(key.first).offsets[level].data();
}

Array Bench::rows(const RowsKey& key, tn_dtype dtype, std::vector<int64_t> shape, const void* data, int64_t samples,
                  bool empty) const {
  shape.insert(shape.begin(), empty && key.second > 0 ? 0 : rows_of(key, samples));
  if (key.second == 0) return {dtype, std::move(shape), data};
  const int64_t* outer = ends(key, 0, empty);
  return key.second == 1 ? Array::sequences(dtype, std::move(shape), data, samples, outer)
                         : Array::nested(dtype, std::move(shape), data, samples, outer, ends(key, 1, empty));
}

void Bench::forward(const Machine& machine, tn_dtype compute, int64_t samples, bool empty) const {
  std::vector<Feed> feeds;
  for (const auto& [key, layer] : ids_layers_)
    feeds.push_back({ids_name(key), rows(key, TN_I32, {}, ids_.data(), samples, empty)});
  for (size_t i = 0; i < case_.inputs.size(); ++i) {
    const CheckedInput& input = case_.inputs[i];
    const std::string name = "input" + std::to_string(i);
    if (input.sparse)
      feeds.push_back({name, Array::sparse(samples, input.shape[0], ends(key(i), 0, empty), entries_[i].data(),
                                           input.weighted ? values_[i].data() : nullptr)});
    else if (input.integers_below > 0)
      feeds.push_back({name, rows(key(i), TN_I32, input.shape, integers_[i].data(), samples, empty)});
  }
  std::vector<std::vector<float>> narrow;
  for (const std::vector<double>& weights : weights_) narrow.emplace_back(weights.begin(), weights.end());
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (!is_weighted(i)) continue;
    const void* data = compute == TN_F64 ? static_cast<const void*>(weights_[i].data()) : narrow[i].data();
    feeds.push_back({weight_name(i), rows({}, compute, output_shape(i), data, samples, empty)});
  }
  machine.forward(feeds);
}

FormulaArguments Bench::arguments(int64_t samples, bool training, bool empty) const {
  FormulaArguments arguments;
  arguments.samples = samples;
  arguments.training = training;
  for (size_t i = 0; i < case_.inputs.size(); ++i) {
    const RowsKey of = key(i);
    const bool none = empty && of.second > 0;
    arguments.offsets.emplace_back();
    int64_t count = samples;  // of sequences at this level
    for (uint32_t level = 0; level < of.second; ++level) {
      const int64_t* offsets = ends(of, level, none);
      arguments.offsets.back().emplace_back(offsets, offsets + count + 1);
      count = offsets[count];
    }
    if (case_.inputs[i].sparse) {
      arguments.inputs.push_back(with_zeros(i, samples, none));
      continue;
    }
    if (case_.inputs[i].integers_below > 0)
      arguments.inputs.emplace_back(integers_[i].begin(), integers_[i].end());
    else
      arguments.inputs.push_back(stored(input_parameter(i)));
    arguments.inputs.back().resize(static_cast<size_t>(count * product(case_.inputs[i].shape)));
  }
  for (const std::string& suffix : suffixes_) arguments.parameters[suffix] = stored(own(suffix));
  for (const std::string& suffix : buffers_) arguments.buffers[suffix] = stored(own(suffix));
  return arguments;
}

namespace {

double move(double value, double share, std::mt19937_64& random) {
  const double by = share * std::uniform_real_distribution<double>(0.5, 1)(random);
  return value * (random() % 2 == 0 ? 1 + by : 1 - by);
}

}  // namespace

FormulaArguments Bench::moved(FormulaArguments arguments, double share, std::mt19937_64& random) const {
  for (size_t i = 0; i < arguments.inputs.size(); ++i)
    for (double& value : arguments.inputs[i])
      if (case_.inputs[i].integers_below == 0) value = move(value, share, random);
  for (auto* list : {&arguments.parameters, &arguments.buffers})
    for (auto& [suffix, values] : *list)
      for (double& value : values) value = move(value, share, random);
  return arguments;
}

void Bench::move_from(const Bench& other, double share, std::mt19937_64& random) {
  for (const std::string& name : trained()) {
    std::vector<float> values;
    for (const double value : other.stored(name)) values.push_back(static_cast<float>(move(value, share, random)));
    parameters_.set(name, {TN_F32, parameters_.get(name).shape, values.data()});
  }
  weights_ = other.weights_;
  for (std::vector<double>& weights : weights_)
    for (double& value : weights) value = move(value, share, random);
  values_ = other.values_;
  for (std::vector<float>& values : values_)
    for (float& value : values) value = static_cast<float>(move(value, share, random));
}

std::vector<double> Bench::with_zeros(size_t i, int64_t samples, bool empty) const {
  const auto width = static_cast<size_t>(case_.inputs[i].shape[0]);
  std::vector<double> matrix(static_cast<size_t>(samples) * width, 0.0);
  if (empty) return matrix;
  const int64_t* offsets = ends(key(i), 0, false);
  for (size_t row = 0; row < static_cast<size_t>(samples); ++row)
    for (auto k = static_cast<size_t>(offsets[row]); k < static_cast<size_t>(offsets[row + 1]); ++k)
      matrix[row * width + static_cast<size_t>(entries_[i][k])] +=
          case_.inputs[i].weighted ? static_cast<double>(values_[i][k]) : 1.0;
  return matrix;
}

double Bench::cost(const FormulaArguments& arguments) const {
  double result = 0;
  for (size_t k = 0; k < weights_.size(); ++k) {
    const std::vector<double> output = formula(k)(arguments);
    double sum = 0;
    for (size_t i = 0; i < output.size(); ++i)
      sum += output[i] * (is_weighted(k) ? weights_[k][i] : is_squared(k) ? output[i] : 1.0);
    const int64_t each = is_weighted(k) || is_squared(k) ? product(output_shape(k)) : 1;
    if (!output.empty()) result += sum / (static_cast<double>(output.size()) / static_cast<double>(each));
  }
  return result;
}

const Formula& Bench::formula(size_t output) const {
  return output == 0 ? case_.formula : case_.more_outputs[output - 1].formula;
}

std::vector<std::string> Bench::trained() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < case_.inputs.size(); ++i)
    if (is_variable(i)) names.push_back(input_parameter(i));
  for (const std::string& suffix : suffixes_) names.push_back(own(suffix));
  return names;
}

std::string Bench::weight_name(size_t output) { return "weight" + (output == 0 ? "" : std::to_string(output)); }

const std::vector<int64_t>& Bench::output_shape(size_t output) const {
  return output == 0 ? case_.output_shape : case_.more_outputs[output - 1].shape;
}

void Bench::draw_sequences() {
  std::map<std::string, uint32_t> levels;
  for (size_t i = 0; i < case_.inputs.size(); ++i) levels[key(i).first] = std::max(levels[key(i).first], key(i).second);
  for (const auto& [name, count] : levels)
    if (!name.empty()) sequences_[name] = DrawnSequences::draw(count, samples_, lengths_, random_);
  zeros_.resize(static_cast<size_t>(samples_) + 1);
  int64_t most = samples_;
  for (size_t i = 0; i < case_.inputs.size(); ++i) most = std::max(most, rows_of(key(i), samples_));
  ids_.resize(static_cast<size_t>(most));
  std::iota(ids_.begin(), ids_.end(), 0);
}

void Bench::build() {
  draw_sequences();
  Layers inputs;
  integers_.resize(case_.inputs.size());
  entries_.resize(case_.inputs.size());
  values_.resize(case_.inputs.size());
  for (size_t i = 0; i < case_.inputs.size(); ++i) inputs.push_back(input(i));
  under_test_ = host_.layer(case_.type, inputs, case_.attributes, "under_test");
  outputs_ = {under_test_};
  weights_.resize(1 + case_.more_outputs.size());
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (i > 0) outputs_.push_back(output(i));
    if (is_squared(i)) outputs_.push_back(host_.layer("test_cost", {output(i), output(i)}, {}, "cost"));
    if (!is_weighted(i)) continue;
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
  if (wanted.sparse) return sparse_input(i);
  const int64_t rows = rows_of(key(i), samples_);
  if (wanted.integers_below > 0) {
    DataOptions data = integers("input" + std::to_string(i), key(i));
    data.shape = wanted.shape;
    std::uniform_int_distribution<int32_t> draw(0, static_cast<int32_t>(wanted.integers_below - 1));
    integers_[i].resize(static_cast<size_t>(rows * product(wanted.shape)));
    for (int32_t& value : integers_[i]) value = draw(random_);
    return host_.data(data);
  }
  Layer& ids = ids_layers_[key(i)];
  if (!ids) ids = host_.data(integers(ids_name(key(i)), key(i)));
  return host_.layer("test_input", {ids}, {{"rows", rows}, {"shape", wanted.shape}}, "x" + std::to_string(i));
}

Layer Bench::sparse_input(size_t i) {
  const CheckedInput& wanted = case_.inputs[i];
  DataOptions data;
  data.name = "input" + std::to_string(i);
  data.storage = TN_CSR;
  data.shape = wanted.shape;
  std::uniform_int_distribution<int64_t> draw_id(0, wanted.shape[0] - 1);
  for (int64_t k = rows_of(key(i), samples_); k > 0; --k) {
    // Consecutive ids, so that a sample with at most as many entries as columns has no duplicates.
    entries_[i].push_back(entries_[i].empty() ? draw_id(random_) : (entries_[i].back() + 1) % wanted.shape[0]);
    values_[i].push_back(draw(wanted));
  }
  return host_.data(data);
}

float Bench::drawn_from_range(const CheckedInput& wanted) {
  std::uniform_real_distribution<double> draw(wanted.low, wanted.high);
  float value = 0;
  do value = static_cast<float>(draw(random_));
  while (std::abs(static_cast<double>(value) - wanted.away_from) < wanted.gap);
  return value;
}

// Draws a number that the layer takes: only of the range if `limited`, and not negative if the range is not.
float Bench::draw(const CheckedInput& wanted) {
  const float drawn = drawn_from_range(wanted);
  switch (numbers_) {
    case Numbers::kDrawn:
      return drawn;
    case Numbers::kZeros:
      return static_cast<float>(std::max(wanted.low, 0.0));
    case Numbers::kTies:
      return static_cast<float>(wanted.low + (random_() % 2 == 0 ? 0.25 : 0.75) * (wanted.high - wanted.low));
    case Numbers::kTiny:
      return wanted.limited ? drawn : drawn * 1e-6F;
    case Numbers::kHuge:
      return wanted.limited ? drawn : drawn * 500;
  }
  return drawn;
}

void Bench::fill_inputs() {
  for (size_t i = 0; i < case_.inputs.size(); ++i) {
    const CheckedInput& wanted = case_.inputs[i];
    if (!is_variable(i)) continue;
    const Array stored = parameters_.get(input_parameter(i));
    std::vector<float> values(static_cast<size_t>(stored.count()));
    for (float& value : values) value = draw(wanted);
    parameters_.set(input_parameter(i), {TN_F32, stored.shape, values.data()});
  }
}

// Adds noise to the initial values of the layer's own parameters and buffers, so that zeros do not hide errors. A
// buffer may be a variance or a count, so its noise is positive.
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

}  // namespace tenon_tests
