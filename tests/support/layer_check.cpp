// SPDX-License-Identifier: Apache-2.0
#include "tests/support/layer_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <random>

#include "tests/support/drawn_sequences.h"
#include "tests/support/test_layers.h"

namespace tenon::test {

namespace {

int64_t product(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

std::vector<double> as_doubles(const Array& array) {
  std::vector<double> result(static_cast<size_t>(array.count()));
  for (size_t i = 0; i < result.size(); ++i)
    result[i] = array.dtype == TN_F64 ? static_cast<const double*>(array.data)[i]
                                      : static_cast<double>(static_cast<const float*>(array.data)[i]);
  return result;
}

// Whether all entries agree within `tolerance` of the largest one.
bool agree(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
  if (a.size() != b.size()) return false;
  double scale = 1e-6;
  for (const double value : b) scale = std::max(scale, std::abs(value));
  for (size_t i = 0; i < a.size(); ++i)
    if (!(std::abs(a[i] - b[i]) <= tolerance * scale)) return false;
  return true;
}

// What the rows of a fed value lie in: a name of sequences, "" for none, and how many of their levels.
using RowsKey = std::pair<std::string, uint32_t>;

// The layer between test inputs and a cost, with everything that is fed.
class Bench {
 public:
  Bench(const LayerCase& layer, int threads, int64_t samples, Lengths lengths = Lengths::kDrawn)
      : case_(layer),
        samples_(samples),
        lengths_(lengths),
        random_(static_cast<uint64_t>(samples) * 7919 + 17),
        host_(HostOptions{threads, paths(layer), nullptr, {}}) {
    host_.add_plugin(&test_layers());
    build();
  }

  [[nodiscard]] Machine machine(tn_dtype compute, bool training = true,
                                const std::vector<std::string>& immutable = {}) const {
    MachineOptions options;
    options.immutable_parameters = immutable;
    options.max_samples = samples_;
    options.training = training;
    options.compute = compute;
    return host_.machine(parameters_, outputs_, options);
  }

  // Of the first samples; `empty`: their sequences have no rows.
  void forward(const Machine& machine, tn_dtype compute, int64_t samples, bool empty = false) const {
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

  // The arguments as the set holds them: rounded to fp32.
  [[nodiscard]] FormulaArguments arguments(bool empty = false) const {
    FormulaArguments arguments;
    arguments.samples = samples_;
    for (size_t i = 0; i < case_.inputs.size(); ++i) {
      const auto& [name, levels] = key(i);
      const bool none = empty && !name.empty();
      arguments.offsets.emplace_back();
      for (uint32_t level = 0; level < levels; ++level) {
        arguments.offsets.back().push_back(sequences_.at(name).offsets[level]);
        if (none) arguments.offsets.back().back().assign(level == 0 ? static_cast<size_t>(samples_) + 1 : 1, 0);
      }
      if (case_.inputs[i].sparse)
        arguments.inputs.push_back(with_zeros(i, none));
      else if (none)
        arguments.inputs.emplace_back();
      else if (case_.inputs[i].integers_below > 0)
        arguments.inputs.emplace_back(integers_[i].begin(), integers_[i].end());
      else
        arguments.inputs.push_back(as_doubles(parameters_.get("x" + std::to_string(i) + ".values")));
    }
    for (const std::string& suffix : suffixes_)
      arguments.parameters[suffix] = as_doubles(parameters_.get("under_test." + suffix));
    return arguments;
  }

  // The cost that the machine reports, from the formula: for each output the mean over samples or rows.
  [[nodiscard]] double cost(const FormulaArguments& arguments) const {
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

  [[nodiscard]] size_t outputs_count() const { return weights_.size(); }
  [[nodiscard]] const Formula& formula(size_t output) const {
    return output == 0 ? case_.formula : case_.more_outputs[output - 1].formula;
  }
  // A layer that stands for output number `output` of the layer under test.
  [[nodiscard]] Layer output(size_t output) const { return under_test_.output(static_cast<uint32_t>(output)); }
  // Every parameter with a gradient: those behind float inputs and the layer's own.
  [[nodiscard]] std::vector<std::string> trained() const {
    std::vector<std::string> names;
    for (size_t i = 0; i < case_.inputs.size(); ++i)
      if (is_variable(i)) names.push_back(input_parameter(i));
    for (const std::string& suffix : suffixes_) names.push_back("under_test." + suffix);
    return names;
  }

  [[nodiscard]] const Layer& under_test() const { return under_test_; }
  [[nodiscard]] const std::vector<std::string>& suffixes() const { return suffixes_; }
  // Whether the input is floats, which come through a parameter.
  [[nodiscard]] bool is_variable(size_t i) const {
    return case_.inputs[i].integers_below == 0 && !case_.inputs[i].sparse;
  }
  [[nodiscard]] bool has_sequences() const { return !sequences_.empty(); }
  [[nodiscard]] static std::string input_parameter(size_t i) { return "x" + std::to_string(i) + ".values"; }

 private:
  static std::vector<std::string> paths(const LayerCase& layer) {
    std::vector<std::string> result = layer.plugin_paths;
    result.insert(result.begin(), TENON_PLUGINS);
    return result;
  }

  // Output 0 of a cost is its own cost; any other output is made one by a weight for each element, and one of
  // sequences, whose rows no feed may have, by itself: its squares.
  [[nodiscard]] bool is_squared(size_t output) const { return output == 0 && case_.output_rows && !case_.cost; }
  [[nodiscard]] bool is_weighted(size_t output) const { return output > 0 || !(case_.cost || case_.output_rows); }
  static std::string weight_name(size_t output) { return "weight" + (output == 0 ? "" : std::to_string(output)); }
  [[nodiscard]] const std::vector<int64_t>& output_shape(size_t output) const {
    return output == 0 ? case_.output_shape : case_.more_outputs[output - 1].shape;
  }

  // Of an input; of a sparse one that of its entries.
  [[nodiscard]] RowsKey key(size_t i) const {
    const CheckedInput& input = case_.inputs[i];
    if (input.sparse) return {"sparse" + std::to_string(i), 1};
    return {input.sequence, input.sequence.empty() ? 0 : input.levels};
  }
  static std::string ids_name(const RowsKey& key) { return "ids" + key.first + std::to_string(key.second); }
  [[nodiscard]] int64_t rows_of(const RowsKey& key, int64_t samples) const {
    return key.second == 0 ? samples : sequences_.at(key.first).rows(samples, key.second);
  }
  [[nodiscard]] const int64_t* ends(const RowsKey& key, size_t level, bool empty) const {
    return level >= key.second ? nullptr : empty ? zeros_.data() : sequences_.at(key.first).offsets[level].data();
  }
  // What is fed to a data layer.
  [[nodiscard]] Array rows(const RowsKey& key, tn_dtype dtype, std::vector<int64_t> shape, const void* data,
                           int64_t samples, bool empty) const {
    shape.insert(shape.begin(), empty && key.second > 0 ? 0 : rows_of(key, samples));
    if (key.second == 0) return {dtype, std::move(shape), data};
    const int64_t* outer = ends(key, 0, empty);
    return key.second == 1 ? Array::sequences(dtype, std::move(shape), data, samples, outer)
                           : Array::nested(dtype, std::move(shape), data, samples, outer, ends(key, 1, empty));
  }
  // A sparse input as a matrix.
  [[nodiscard]] std::vector<double> with_zeros(size_t i, bool empty) const {
    const auto width = static_cast<size_t>(case_.inputs[i].shape[0]);
    std::vector<double> matrix(static_cast<size_t>(samples_) * width, 0.0);
    if (empty) return matrix;
    const std::vector<int64_t>& offsets = sequences_.at(key(i).first).offsets[0];
    for (size_t row = 0; row + 1 < offsets.size(); ++row)
      for (auto k = static_cast<size_t>(offsets[row]); k < static_cast<size_t>(offsets[row + 1]); ++k)
        matrix[row * width + static_cast<size_t>(entries_[i][k])] +=
            case_.inputs[i].weighted ? static_cast<double>(values_[i][k]) : 1.0;
    return matrix;
  }

  void build() {
    Layers inputs;
    integers_.resize(case_.inputs.size());
    entries_.resize(case_.inputs.size());
    values_.resize(case_.inputs.size());
    zeros_.resize(static_cast<size_t>(samples_) + 1);
    draw_sequences();
    int64_t most = samples_;
    for (size_t i = 0; i < case_.inputs.size(); ++i) most = std::max(most, rows_of(key(i), samples_));
    ids_.resize(static_cast<size_t>(most));
    std::iota(ids_.begin(), ids_.end(), 0);
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
    fill_parameters();
  }

  void draw_sequences() {
    std::map<std::string, uint32_t> levels;
    for (size_t i = 0; i < case_.inputs.size(); ++i)
      levels[key(i).first] = std::max(levels[key(i).first], key(i).second);
    for (const auto& [name, count] : levels)
      if (!name.empty()) sequences_[name] = DrawnSequences::draw(count, samples_, lengths_, random_);
  }

  [[nodiscard]] static DataOptions data_options(std::string name, const RowsKey& key) {
    DataOptions data;
    data.name = std::move(name);
    data.dtype = TN_I32;
    if (key.second == 0) return data;
    data.storage = TN_RAGGED;
    data.levels = key.second;
    data.sequence = key.first;
    return data;
  }

  Layer input(size_t i) {
    const CheckedInput& wanted = case_.inputs[i];
    if (wanted.sparse) return sparse_input(i);
    const int64_t rows = rows_of(key(i), samples_);
    if (wanted.integers_below > 0) {
      DataOptions data = data_options("input" + std::to_string(i), key(i));
      data.shape = wanted.shape;
      std::uniform_int_distribution<int32_t> draw(0, static_cast<int32_t>(wanted.integers_below - 1));
      integers_[i].resize(static_cast<size_t>(rows * product(wanted.shape)));
      for (int32_t& value : integers_[i]) value = draw(random_);
      return host_.data(data);
    }
    Layer& ids = ids_layers_[key(i)];
    if (!ids) ids = host_.data(data_options(ids_name(key(i)), key(i)));
    return host_.layer("test_input", {ids}, {{"rows", rows}, {"shape", wanted.shape}}, "x" + std::to_string(i));
  }

  Layer sparse_input(size_t i) {
    const CheckedInput& wanted = case_.inputs[i];
    DataOptions data;
    data.name = "input" + std::to_string(i);
    data.storage = TN_CSR;
    data.shape = wanted.shape;
    std::uniform_int_distribution<int64_t> draw_id(0, wanted.shape[0] - 1);
    std::uniform_real_distribution<double> draw(wanted.low, wanted.high);
    for (int64_t k = rows_of(key(i), samples_); k > 0; --k) {
      // Consecutive ones, so that a sample with no more entries than columns has each at most once.
      entries_[i].push_back(entries_[i].empty() ? draw_id(random_) : (entries_[i].back() + 1) % wanted.shape[0]);
      values_[i].push_back(static_cast<float>(draw(random_)));
    }
    return host_.data(data);
  }

  void fill_parameters() {
    for (size_t i = 0; i < case_.inputs.size(); ++i) {
      const CheckedInput& wanted = case_.inputs[i];
      if (!is_variable(i)) continue;
      const Array stored = parameters_.get(input_parameter(i));
      std::uniform_real_distribution<double> draw(wanted.low, wanted.high);
      std::vector<float> values(static_cast<size_t>(stored.count()));
      for (float& value : values) {
        do value = static_cast<float>(draw(random_));
        while (std::abs(static_cast<double>(value) - wanted.away_from) < wanted.gap);
      }
      parameters_.set(input_parameter(i), {TN_F32, stored.shape, values.data()});
    }
    // Parameters of the layer itself: whatever their initialiser gave, plus noise, so that zeros hide nothing.
    const std::string json = parameters_.describe();
    const std::string prefix = "\"under_test.";
    for (size_t at = json.find(prefix); at != std::string::npos; at = json.find(prefix, at + 1)) {
      const size_t begin = at + prefix.size();
      suffixes_.push_back(json.substr(begin, json.find('"', begin) - begin));
      const Array stored = parameters_.get("under_test." + suffixes_.back());
      std::uniform_real_distribution<double> draw(-0.5, 0.5);
      std::vector<float> values(static_cast<size_t>(stored.count()));
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<const float*>(stored.data)[i] + static_cast<float>(draw(random_));
      parameters_.set("under_test." + suffixes_.back(), {TN_F32, stored.shape, values.data()});
    }
  }

  const LayerCase& case_;
  int64_t samples_;
  Lengths lengths_;
  std::mt19937_64 random_;
  Host host_;
  std::map<std::string, DrawnSequences> sequences_;
  std::vector<int32_t> ids_;
  std::vector<int64_t> zeros_;
  std::map<RowsKey, Layer> ids_layers_;
  Layer under_test_;
  Layers outputs_;
  Parameters parameters_;
  std::vector<std::vector<int32_t>> integers_;
  std::vector<std::vector<int64_t>> entries_;  // of sparse inputs: columns and values
  std::vector<std::vector<float>> values_;
  std::vector<std::vector<double>> weights_;  // of each output; empty for the output of a cost
  std::vector<std::string> suffixes_;
};

// Central differences of the formula along every `stride`th element of `values`, which lie inside `arguments`.
std::vector<double> finite_differences(const Bench& bench, FormulaArguments& arguments, std::vector<double>& values,
                                       size_t stride = 1) {
  std::vector<double> result(values.size());
  for (size_t i = 0; i < values.size(); i += stride) {
    const double kept = values[i];
    const double step = 1e-5 * std::max(1.0, std::abs(kept));
    values[i] = kept + step;
    const double above = bench.cost(arguments);
    values[i] = kept - step;
    const double below = bench.cost(arguments);
    values[i] = kept;
    result[i] = (above - below) / (2 * step);
  }
  return result;
}

constexpr double kGradientTolerance = 1e-6;  // fp64 against central differences

// Every mutant of a right gradient must be found out by the comparison that accepted it.
int64_t check_mutants(const std::vector<double>& gradient, const std::vector<double>& expected,
                      const std::vector<double>& twice, const std::string& name) {
  double largest = 0;
  for (const double value : expected) largest = std::max(largest, std::abs(value));
  if (largest < 1e-4) return 0;  // a gradient that is zero has no mutants
  const auto caught = [&](std::vector<double> mutant, const char* what) {
    EXPECT_FALSE(agree(mutant, expected, kGradientTolerance)) << name << ": mutant \"" << what << "\" was not found";
  };
  std::vector<double> mutant = gradient;
  for (double& value : mutant) value *= 1.001;
  caught(mutant, "times 1.001");
  mutant = gradient;
  mutant[mutant.size() / 2] += 1e-3 * largest;
  caught(mutant, "one element");
  mutant = gradient;
  for (double& value : mutant) value = -value;
  caught(mutant, "sign");
  caught(twice, "added instead of written");
  return 4;
}

int64_t check_gradients(const LayerCase& layer, const Bench& bench) {
  const Machine narrow = bench.machine(TN_F32);
  FormulaArguments arguments = bench.arguments();
  const auto samples = arguments.samples;
  bench.forward(narrow, TN_F32, samples);
  narrow.backward();
  int64_t checks = 0;
  const auto check = [&](const std::string& parameter, std::vector<double>& values) {
    const Machine machine = bench.machine(TN_F64);  // its gradients begin at nothing
    bench.forward(machine, TN_F64, samples);
    machine.backward();
    const std::vector<double> gradient = as_doubles(machine.gradient(parameter));
    const std::vector<double> expected = finite_differences(bench, arguments, values);
    EXPECT_TRUE(agree(gradient, expected, kGradientTolerance)) << layer.type << ": gradient of " << parameter;
    EXPECT_TRUE(agree(as_doubles(narrow.gradient(parameter)), expected, layer.gradient_tolerance))
        << layer.type << ": fp32 " << parameter;
    checks += 2;
    bench.forward(machine, TN_F64, samples);
    machine.backward();  // adds: the second backward doubles what the first one wrote
    const std::vector<double> twice = as_doubles(machine.gradient(parameter));
    std::vector<double> doubled = gradient;
    for (double& value : doubled) value *= 2;
    EXPECT_TRUE(agree(twice, doubled, 1e-12)) << layer.type << ": accumulation of " << parameter;
    checks += 1 + check_mutants(gradient, expected, twice, layer.type + " " + parameter);
  };
  for (size_t i = 0; i < layer.inputs.size(); ++i) {
    if (!bench.is_variable(i)) continue;
    check(Bench::input_parameter(i), arguments.inputs[i]);
  }
  for (const std::string& suffix : bench.suffixes()) check("under_test." + suffix, arguments.parameters[suffix]);
  return checks;
}

// Whatever is asked for beside it, a gradient is the same: each one alone, the others frozen.
int64_t check_requests(const LayerCase& layer, const Bench& bench, int64_t samples) {
  const std::vector<std::string> names = bench.trained();
  if (names.size() < 2) return 0;
  const Machine all = bench.machine(TN_F64);
  bench.forward(all, TN_F64, samples);
  all.backward();
  for (const std::string& name : names) {
    std::vector<std::string> others = names;
    std::erase(others, name);
    const Machine one = bench.machine(TN_F64, true, others);
    bench.forward(one, TN_F64, samples);
    one.backward();
    EXPECT_TRUE(agree(as_doubles(one.gradient(name)), as_doubles(all.gradient(name)), 1e-12))
        << layer.type << ": gradient of " << name << " alone";
  }
  return static_cast<int64_t>(names.size());
}

int64_t check_forward(const LayerCase& layer, const Bench& bench) {
  const FormulaArguments arguments = bench.arguments();
  int64_t checks = 0;
  for (const auto& [compute, tolerance] : {std::pair{TN_F64, 1e-12}, std::pair{TN_F32, layer.tolerance}})
    for (const bool training : {true, false}) {
      const Machine machine = bench.machine(compute, training);
      for (int repeat = 0; repeat < 2; ++repeat) {
        bench.forward(machine, compute, arguments.samples);
        for (size_t k = 0; k < bench.outputs_count(); ++k, ++checks)
          EXPECT_TRUE(agree(as_doubles(machine.output(bench.output(k))), bench.formula(k)(arguments), tolerance))
              << layer.type << ": output " << k << (training ? " in training, " : ", ")
              << (compute == TN_F64 ? "fp64" : "fp32") << ", samples " << arguments.samples;
        EXPECT_NEAR(machine.cost(), bench.cost(arguments), 1e-4 * std::max(1.0, std::abs(machine.cost())));
        ++checks;
      }
    }
  return checks;
}

// An empty minibatch costs nothing; fewer samples than the machine was made for give the same values.
int64_t check_smaller(const LayerCase& layer, const Bench& bench, int64_t samples) {
  const Machine machine = bench.machine(TN_F64);
  bench.forward(machine, TN_F64, 0);
  machine.backward();
  EXPECT_EQ(machine.cost(), 0.0) << layer.type;
  EXPECT_EQ(machine.output(bench.under_test()).shape[0], 0) << layer.type;
  if (samples < 2) return 2;
  bench.forward(machine, TN_F64, samples);
  const std::vector<double> whole = as_doubles(machine.output(bench.under_test()));
  bench.forward(machine, TN_F64, samples / 2);
  std::vector<double> part = as_doubles(machine.output(bench.under_test()));
  EXPECT_LE(part.size() + (layer.output_rows || layer.cost ? 0 : 1), whole.size()) << layer.type;
  EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin())) << layer.type << ": fewer samples change others";
  return 4;
}

// Samples whose sequences have no rows at all.
int64_t check_empty(const LayerCase& layer, const Bench& bench, int64_t samples) {
  if (!bench.has_sequences()) return 0;
  const Machine machine = bench.machine(TN_F64);
  FormulaArguments arguments = bench.arguments(true);
  bench.forward(machine, TN_F64, samples);  // leaves something behind
  bench.forward(machine, TN_F64, samples, true);
  for (size_t k = 0; k < bench.outputs_count(); ++k)
    EXPECT_TRUE(agree(as_doubles(machine.output(bench.output(k))), bench.formula(k)(arguments), 1e-12))
        << layer.type << ": output " << k << " of empty sequences";
  EXPECT_NEAR(machine.cost(), bench.cost(arguments), 1e-9) << layer.type;
  machine.backward();
  int64_t checks = 2;
  const auto check = [&](const std::string& parameter, std::vector<double>& values) {
    std::vector<double> expected = finite_differences(bench, arguments, values);
    const std::vector<double> gradient = as_doubles(machine.gradient(parameter));
    expected.resize(gradient.size());  // rows that no sequence has get nothing
    EXPECT_TRUE(agree(gradient, expected, kGradientTolerance)) << layer.type << ": " << parameter << " without rows";
    ++checks;
  };
  for (size_t i = 0; i < layer.inputs.size(); ++i)
    if (bench.is_variable(i)) check(Bench::input_parameter(i), arguments.inputs[i]);
  for (const std::string& suffix : bench.suffixes()) check("under_test." + suffix, arguments.parameters[suffix]);
  return checks;
}

// The bits of output and gradients in fp32.
std::vector<double> bits(const LayerCase& layer, int threads, int64_t samples, Lengths lengths = Lengths::kDrawn) {
  const Bench bench(layer, threads, samples, lengths);
  const Machine machine = bench.machine(TN_F32);
  bench.forward(machine, TN_F32, samples);
  machine.backward();
  std::vector<double> all = as_doubles(machine.output(bench.under_test()));
  for (const std::string& name : bench.trained()) {
    const std::vector<double> values = as_doubles(machine.gradient(name));
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

// Whether any number of threads gives the same bits.
int64_t check_threads(const LayerCase& layer, int64_t samples, Lengths lengths) {
  const std::vector<double> one = bits(layer, 1, samples, lengths);
  for (const int threads : {2, 3, 8}) {
    const std::vector<double> other = bits(layer, threads, samples, lengths);
    EXPECT_TRUE(one.size() == other.size() && std::memcmp(one.data(), other.data(), one.size() * sizeof(double)) == 0)
        << layer.type << ": " << threads << " threads give other bits than one";
  }
  return 3;
}

// Some elements of every gradient, in fp64.
int64_t check_sample_of_gradients(const LayerCase& layer, const Bench& bench) {
  FormulaArguments arguments = bench.arguments();
  const Machine machine = bench.machine(TN_F64);
  bench.forward(machine, TN_F64, arguments.samples);
  machine.backward();
  int64_t checks = 0;
  const auto check = [&](const std::string& parameter, std::vector<double>& values) {
    constexpr size_t kElements = 12;
    const size_t stride = values.size() / kElements + 1;
    std::vector<double> gradient = as_doubles(machine.gradient(parameter));
    for (size_t i = 0; i < gradient.size(); ++i)
      if (i % stride != 0) gradient[i] = 0;  // not looked at
    EXPECT_TRUE(agree(gradient, finite_differences(bench, arguments, values, stride), 1e-5))
        << layer.type << ": gradient of " << parameter;
    ++checks;
  };
  for (size_t i = 0; i < layer.inputs.size(); ++i)
    if (bench.is_variable(i)) check(Bench::input_parameter(i), arguments.inputs[i]);
  for (const std::string& suffix : bench.suffixes()) check("under_test." + suffix, arguments.parameters[suffix]);
  return checks;
}

int64_t reported(const LayerCase& layer, int64_t checks) {
  static std::atomic<int64_t> total{0};
  total += checks;
  testing::Test::RecordProperty("checks_" + layer.type, std::to_string(checks));
  std::printf("[  CHECKS  ] %s: %lld (%lld so far)\n", layer.type.c_str(), static_cast<long long>(checks),
              static_cast<long long>(total));
  return checks;
}

}  // namespace

int64_t check_layer(const LayerCase& layer) {
  int64_t checks = 0;
  for (const int64_t samples : layer.samples) {
    const Bench bench(layer, 2, samples);
    checks += check_forward(layer, bench);
    checks += check_gradients(layer, bench);
    checks += check_requests(layer, bench, samples);
    checks += check_smaller(layer, bench, samples);
    checks += check_empty(layer, bench, samples);
  }
  return reported(layer, checks + check_threads(layer, layer.samples.back(), Lengths::kDrawn));
}

int64_t check_long_sequences(const LayerCase& layer) {
  LayerCase loose = layer;  // sums of 10,000 numbers
  loose.tolerance = 1e-4;
  int64_t checks = 0;
  for (const auto& [lengths, samples] :
       {std::pair{Lengths::kManyShort, DrawnSequences::kLong}, std::pair{Lengths::kOneLong, int64_t{3}}}) {
    const Bench bench(loose, 2, samples, lengths);
    checks += check_forward(loose, bench);
    checks += check_sample_of_gradients(loose, bench);
    checks += check_threads(loose, samples, lengths);
  }
  return reported(loose, checks);
}

}  // namespace tenon::test
