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

// The layer between test inputs and a cost, with everything that is fed.
class Bench {
 public:
  Bench(const LayerCase& layer, int threads, int64_t samples)
      : case_(layer),
        samples_(samples),
        random_(static_cast<uint64_t>(samples) * 7919 + 17),
        host_(HostOptions{threads, paths(layer), nullptr, {}}) {
    host_.add_plugin(&test_layers());
    ids_.resize(static_cast<size_t>(samples));
    std::iota(ids_.begin(), ids_.end(), 0);
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

  void forward(const Machine& machine, tn_dtype compute, int64_t samples) const {
    std::vector<Feed> feeds;
    if (needs_ids_) feeds.push_back({"ids", {TN_I32, {samples}, ids_.data()}});
    for (size_t i = 0; i < case_.inputs.size(); ++i)
      if (case_.inputs[i].integers_below > 0) {
        std::vector<int64_t> shape = case_.inputs[i].shape;
        shape.insert(shape.begin(), samples);
        feeds.push_back({"input" + std::to_string(i), {TN_I32, shape, integers_[i].data()}});
      }
    std::vector<std::vector<float>> narrow;
    for (const std::vector<double>& weights : weights_) narrow.emplace_back(weights.begin(), weights.end());
    for (size_t i = 0; i < weights_.size(); ++i) {
      if (!is_weighted(i)) continue;
      std::vector<int64_t> shape = output_shape(i);
      shape.insert(shape.begin(), samples);
      const void* data = compute == TN_F64 ? static_cast<const void*>(weights_[i].data()) : narrow[i].data();
      feeds.push_back({weight_name(i), {compute, shape, data}});
    }
    machine.forward(feeds);
  }

  // The arguments as the set holds them: rounded to fp32.
  [[nodiscard]] FormulaArguments arguments() const {
    FormulaArguments arguments;
    arguments.samples = samples_;
    for (size_t i = 0; i < case_.inputs.size(); ++i) {
      if (case_.inputs[i].integers_below > 0)
        arguments.inputs.emplace_back(integers_[i].begin(), integers_[i].end());
      else
        arguments.inputs.push_back(as_doubles(parameters_.get("x" + std::to_string(i) + ".values")));
    }
    for (const std::string& suffix : suffixes_)
      arguments.parameters[suffix] = as_doubles(parameters_.get("under_test." + suffix));
    return arguments;
  }

  // The cost that the machine reports, from the formula.
  [[nodiscard]] double cost(const FormulaArguments& arguments) const {
    double sum = 0;
    for (size_t k = 0; k < weights_.size(); ++k) {
      const std::vector<double> output = formula(k)(arguments);
      for (size_t i = 0; i < output.size(); ++i) sum += output[i] * (is_weighted(k) ? weights_[k][i] : 1.0);
    }
    return sum / static_cast<double>(samples_);
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
      if (case_.inputs[i].integers_below == 0) names.push_back(input_parameter(i));
    for (const std::string& suffix : suffixes_) names.push_back("under_test." + suffix);
    return names;
  }

  [[nodiscard]] const Layer& under_test() const { return under_test_; }
  [[nodiscard]] const std::vector<std::string>& suffixes() const { return suffixes_; }
  [[nodiscard]] static std::string input_parameter(size_t i) { return "x" + std::to_string(i) + ".values"; }

 private:
  static std::vector<std::string> paths(const LayerCase& layer) {
    std::vector<std::string> result = layer.plugin_paths;
    result.insert(result.begin(), TENON_PLUGINS);
    return result;
  }

  // Output 0 of a cost is its own cost; any other output is made one by a weight for each element.
  [[nodiscard]] bool is_weighted(size_t output) const { return output > 0 || !case_.cost; }
  static std::string weight_name(size_t output) { return "weight" + (output == 0 ? "" : std::to_string(output)); }
  [[nodiscard]] const std::vector<int64_t>& output_shape(size_t output) const {
    return output == 0 ? case_.output_shape : case_.more_outputs[output - 1].shape;
  }

  void build() {
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
    fill_parameters();
  }

  Layer input(size_t i) {
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

  void fill_parameters() {
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
  std::mt19937_64 random_;
  Host host_;
  std::vector<int32_t> ids_;
  bool needs_ids_ = false;
  Layer ids_layer_, under_test_;
  Layers outputs_;
  Parameters parameters_;
  std::vector<std::vector<int32_t>> integers_;
  std::vector<std::vector<double>> weights_;  // of each output; empty for the output of a cost
  std::vector<std::string> suffixes_;
};

// Central differences of the formula along every element of `values`, which lie inside `arguments`.
std::vector<double> finite_differences(const Bench& bench, FormulaArguments& arguments, std::vector<double>& values) {
  std::vector<double> result(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
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
    if (layer.inputs[i].integers_below > 0) continue;
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
  bench.forward(machine, TN_F64, samples - 1);
  std::vector<double> part = as_doubles(machine.output(bench.under_test()));
  EXPECT_LT(part.size(), whole.size()) << layer.type;
  EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin())) << layer.type << ": one sample less changes others";
  return 4;
}

// The bits of output and gradients in fp32.
std::vector<double> bits(const LayerCase& layer, int threads, int64_t samples) {
  const Bench bench(layer, threads, samples);
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

}  // namespace

int64_t check_layer(const LayerCase& layer) {
  int64_t checks = 0;
  for (const int64_t samples : layer.samples) {
    const Bench bench(layer, 2, samples);
    checks += check_forward(layer, bench);
    checks += check_gradients(layer, bench);
    checks += check_requests(layer, bench, samples);
    checks += check_smaller(layer, bench, samples);
  }
  const int64_t samples = layer.samples.back();
  const std::vector<double> one = bits(layer, 1, samples);
  for (const int threads : {2, 3, 8}) {
    const std::vector<double> other = bits(layer, threads, samples);
    EXPECT_TRUE(one.size() == other.size() && std::memcmp(one.data(), other.data(), one.size() * sizeof(double)) == 0)
        << layer.type << ": " << threads << " threads give other bits than one";
    ++checks;
  }
  static std::atomic<int64_t> total{0};
  total += checks;
  testing::Test::RecordProperty("checks_" + layer.type, std::to_string(checks));
  std::printf("[  CHECKS  ] %s: %lld (%lld so far)\n", layer.type.c_str(), static_cast<long long>(checks),
              static_cast<long long>(total));
  return checks;
}

}  // namespace tenon::test
