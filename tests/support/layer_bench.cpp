// SPDX-License-Identifier: Apache-2.0
#include "tests/support/layer_bench.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "check/definitions/parts.h"
#include "tests/support/paths.h"
#include "tests/support/test_layers.h"

namespace tenon_tests {

using namespace tenon;

namespace {

Host host_of(const LayerCase& layer, int threads) {
  std::vector<std::string> paths = layer.plugin_paths;
  paths.insert(paths.begin(), tenon_tests::plugin_folder());
  Host host({threads, paths, nullptr, {}});
  host.add_plugin(&check::parts());
  host.add_plugin(&test_layers());
  return host;
}

// The number of rows of an output may depend on values that move.
double weight_of(const Numbers& weights, size_t element) {
  return weights.empty() ? 1 : weights[element % weights.size()];
}

double moved_by(double value, double share, std::mt19937_64& random) {
  const double by = share * std::uniform_real_distribution<double>(0.5, 1)(random);
  return value * (random() % 2 == 0 ? 1 + by : 1 - by);
}

}  // namespace

testing::AssertionResult agree(const Numbers& a, const Numbers& b, double tolerance, const Numbers& scales) {
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

Bench::Bench(const LayerCase& layer, int threads, int64_t samples, Lengths lengths, check::Draw draw)
    : case_(layer),
      threads_(threads),
      lengths_(lengths),
      draw_(draw),
      random_(static_cast<uint64_t>(samples) * 7919 + 17),
      bench_(host_of(layer, threads), layer.type, kit_case(layer), model(samples)) {
  add_noise();
  if (is_ragged(0) && !case_.cost) draw_weights(0, formula(0)(arguments(samples)).size());
}

Host Bench::another_host() const { return host_of(case_, threads_); }

Machine Bench::machine_of(const Host& host, const Model& model, tn_dtype compute) const {
  MachineOptions options;
  options.max_samples = samples();
  options.training = bench_.can_go_back();
  options.compute = compute;
  if (options.training && !case_.cost) options.flags = TN_MACHINE_GIVEN_GRADIENTS;
  return host.machine(model.parameters, model.outputs, options);
}

check::LayerCase Bench::kit_case(const LayerCase& layer) {
  check::LayerCase result;
  for (const CheckedInput& input : layer.inputs) {
    check::InputSpec& spec = result.inputs.emplace_back();
    spec.shape = input.shape;
    spec.below = input.integers_below;
    spec.sequence = input.sequence;
    spec.levels = input.levels;
    spec.sparse = input.sparse;
  }
  return result;
}

check::BenchModel Bench::model(int64_t samples) {
  check::BenchModel model;
  model.fed = fed_values(samples);
  model.attributes = case_.attributes;
  model.name = "under_test";
  model.source = check::Source::kParameters;
  model.seed = 3;
  model.from_cost = case_.cost;
  model.weight = [weights = weights_](size_t output, size_t element, int64_t rows) {
    return weight_of((*weights)[output], element) / static_cast<double>(rows);
  };
  model.machine_seed = MachineOptions().seed;
  model.outputs = outputs_count();
  return model;
}

check::FedValues Bench::fed_values(int64_t samples) {
  check::FedValues fed;
  fed.samples = samples;
  std::map<std::string, uint32_t> levels;  // by the name of lengths
  const check::LayerCase kit = kit_case(case_);
  for (size_t i = 0; i < kit.inputs.size(); ++i) {
    uint32_t& most = levels[check::lengths_name(kit.inputs[i], i)];
    most = std::max(most, kit.inputs[i].levels);
  }
  for (const auto& [name, count] : levels) {
    if (name.empty()) continue;
    DrawnSequences drawn = DrawnSequences::draw(count, samples, lengths_, random_);
    fed.lengths[name].outer = std::move(drawn.offsets[0]);
    if (count == 2) fed.lengths[name].inner = std::move(drawn.offsets[1]);
  }
  fed.columns.resize(kit.inputs.size());
  fed.values.resize(kit.inputs.size());
  for (const bool floats : {false, true}) {
    for (size_t i = 0; i < kit.inputs.size(); ++i)
      if (floats == (kit.inputs[i].below == 0 && !kit.inputs[i].sparse)) draw_rows(fed, kit.inputs[i], i);
    for (size_t k = 0; k < outputs_count() && !floats && !case_.cost; ++k)
      draw_weights(k, is_ragged(k) ? 0 : static_cast<size_t>(samples * check::elements_of(output_shape(k))));
  }
  return fed;
}

void Bench::draw_rows(check::FedValues& fed, const check::InputSpec& spec, size_t i) {
  const CheckedInput& input = case_.inputs[i];
  const int64_t rows = fed.rows_before(spec, i, fed.samples),
                width = input.sparse ? 1 : check::elements_of(input.shape);
  std::uniform_int_distribution<int64_t> integer(0, std::max<int64_t>(input.integers_below, 1) - 1);
  if (input.sparse) integer = std::uniform_int_distribution<int64_t>(0, input.shape[0] - 1);
  for (int64_t k = 0; k < rows * width; ++k) {
    // Consecutive columns, so that a sample with at most as many entries as columns has no duplicates.
    std::vector<int64_t>& columns = fed.columns[i];
    if (input.sparse) columns.push_back(k == 0 ? integer(random_) : (columns.back() + 1) % input.shape[0]);
    const double value = input.integers_below > 0 ? static_cast<double>(integer(random_)) : double{drawn(input)};
    if (!input.sparse || input.weighted) fed.values[i].push_back(value);  // else all are 1
  }
}

void Bench::draw_weights(size_t output, size_t count) {
  std::uniform_real_distribution<double> draw(-1, 1);
  weights_->resize(outputs_count());
  (*weights_)[output].resize(count);
  for (double& value : (*weights_)[output]) value = static_cast<float>(draw(random_));
}

FormulaArguments Bench::arguments(int64_t samples, bool training, bool empty) const {
  FormulaArguments arguments;
  arguments.samples = samples;
  arguments.training = training;
  for (size_t i = 0; i < case_.inputs.size(); ++i) {
    const CheckedInput& input = case_.inputs[i];
    std::vector<std::vector<int64_t>>& offsets = arguments.offsets.emplace_back();
    int64_t count = samples;  // of sequences at this level
    if (const auto entry = bench_.fed().lengths.find(bench_.lengths_name(i)); entry != bench_.fed().lengths.end())
      for (uint32_t level = 0; level < (input.sparse ? 1 : input.levels); ++level) {
        const std::vector<int64_t>& all = level == 0 ? entry->second.outer : entry->second.inner;
        offsets.emplace_back(static_cast<size_t>(count) + 1);
        if (!empty) std::copy_n(all.begin(), count + 1, offsets.back().begin());
        count = offsets.back().back();
      }
    if (input.sparse) {
      arguments.inputs.push_back(with_zeros(i, samples, empty));
      continue;
    }
    arguments.inputs.push_back(is_variable(i) ? stored(input_parameter(i)) : bench_.fed().values[i]);
    arguments.inputs.back().resize(static_cast<size_t>(count * check::elements_of(input.shape)));
  }
  for (const std::string& suffix : suffixes_) arguments.parameters[suffix] = stored(own(suffix));
  for (const std::string& suffix : buffers_) arguments.buffers[suffix] = stored(own(suffix));
  return arguments;
}

FormulaArguments Bench::moved(FormulaArguments arguments, double share, std::mt19937_64& random) const {
  for (size_t i = 0; i < arguments.inputs.size(); ++i)
    for (double& value : arguments.inputs[i])
      if (case_.inputs[i].integers_below == 0) value = moved_by(value, share, random);
  for (auto* list : {&arguments.parameters, &arguments.buffers})
    for (auto& [suffix, values] : *list)
      for (double& value : values) value = moved_by(value, share, random);
  return arguments;
}

void Bench::move_from(const Bench& other, double share, std::mt19937_64& random) {
  for (const std::string& name : trained()) {
    Numbers values = other.stored(name);
    for (double& value : values) value = moved_by(value, share, random);
    bench_.store(name, values);
  }
  *weights_ = *other.weights_;
  for (Numbers& weights : *weights_)
    for (double& value : weights) value = moved_by(value, share, random);
  for (size_t i = 0; i < case_.inputs.size(); ++i) {
    if (!case_.inputs[i].sparse) continue;
    bench_.values(i) = other.bench_.fed().values[i];
    for (double& value : bench_.values(i)) value = moved_by(value, share, random);
  }
}

Numbers Bench::with_zeros(size_t i, int64_t samples, bool empty) const {
  const auto width = static_cast<size_t>(case_.inputs[i].shape[0]);
  Numbers matrix(static_cast<size_t>(samples) * width, 0.0);
  const Numbers& values = bench_.fed().values[i];
  for (int64_t row = 0; row < samples && !empty; ++row)
    for (auto k = static_cast<size_t>(bench_.rows_before(i, row));
         k < static_cast<size_t>(bench_.rows_before(i, row + 1)); ++k)
      matrix[static_cast<size_t>(row) * width + static_cast<size_t>(bench_.fed().columns[i][k])] +=
          values.empty() ? 1.0 : values[k];
  return matrix;
}

double Bench::objective(const FormulaArguments& arguments) const {
  double result = 0;
  for (size_t k = 0; k < outputs_count(); ++k) {
    const Numbers output = formula(k)(arguments);
    double sum = 0;
    for (size_t i = 0; i < output.size(); ++i) sum += output[i] * (case_.cost ? 1 : weight_of((*weights_)[k], i));
    const int64_t each = case_.cost ? 1 : check::elements_of(output_shape(k));
    if (!output.empty()) result += sum / (static_cast<double>(output.size()) / static_cast<double>(each));
  }
  return result;
}

const Formula& Bench::formula(size_t output) const {
  return output == 0 ? case_.formula : case_.more_outputs[output - 1].formula;
}

const std::vector<int64_t>& Bench::output_shape(size_t output) const {
  return output == 0 ? case_.output_shape : case_.more_outputs[output - 1].shape;
}

float Bench::drawn_from_range(const CheckedInput& input) {
  std::uniform_real_distribution<double> draw(input.low, input.high);
  float value = 0;
  do value = static_cast<float>(draw(random_));
  while (std::abs(static_cast<double>(value) - input.away_from) < input.gap);
  return value;
}

// Draws a number that the layer takes: only of the range if `limited`, and not negative if the range is not.
float Bench::drawn(const CheckedInput& input) {
  const float value = drawn_from_range(input);
  switch (draw_) {
    case check::Draw::kZeros:
      return static_cast<float>(std::max(input.low, 0.0));
    case check::Draw::kTies:
      return static_cast<float>(input.low + (random_() % 2 == 0 ? 0.25 : 0.75) * (input.high - input.low));
    case check::Draw::kTiny:
      return input.limited ? value : value * 1e-6F;
    case check::Draw::kHuge:
      return input.limited ? value : value * 500;
    default:
      return value;
  }
}

// Adds noise to the initial values of the layer's own parameters and buffers, so that zeros do not hide errors. A
// buffer may be a variance or a count, so its noise is positive.
void Bench::add_noise() {
  const std::string prefix = own("");
  const auto add = [&](const std::string& name, double low, std::vector<std::string>& suffixes) {
    if (name.rfind(prefix, 0) != 0) return;
    suffixes.push_back(name.substr(prefix.size()));
    std::uniform_real_distribution<double> noise(low, 0.5);
    Numbers values = stored(name);
    for (double& value : values) value += noise(random_);
    bench_.store(name, values);
  };
  for (const std::string& name : bench_.trained()) add(name, -0.5, suffixes_);
  for (const std::string& name : bench_.buffers()) add(name, 0, buffers_);
}

}  // namespace tenon_tests
