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

int64_t elements_of(const std::vector<int64_t>& shape) {
  int64_t product = 1;
  for (const int64_t extent : shape) product *= extent;
  return product;
}

template <typename T>
Numbers widened(const Array& array) {
  const auto* const data = static_cast<const T*>(array.data);
  return {data, data + array.count()};
}

// The sub-list [first, first + count] of offsets, from 0 on.
std::vector<int64_t> rebased(const std::vector<int64_t>& offsets, int64_t first, int64_t count) {
  std::vector<int64_t> result;
  for (int64_t i = first; i <= first + count; ++i)
    result.push_back(offsets[static_cast<size_t>(i)] - offsets[static_cast<size_t>(first)]);
  return result;
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
    : host_(std::move(host)), type_(std::move(type)), case_(layer_case) {
  std::mt19937_64 random(seed);
  draw_lengths(random);
  draw_values(random, draw);
  Layers inputs;
  for (size_t i = 0; i < case_.inputs.size(); ++i) {
    const Layer fed = data(i);
    const bool copied = passed && case_.inputs[i].below == 0 && !case_.inputs[i].sparse;
    inputs.push_back(copied ? host_.layer("check.copy", {fed}, {}, "copy" + std::to_string(i)) : fed);
  }
  if (case_.chain.empty()) {
    const json schema = json::parse(host_.describe_type("layer", type_));
    attributes_ = attributes_of(case_.attributes, schema.at("attributes"));
    inputs_ = inputs;
    layer_ = host_.layer(type_, inputs_, attributes_, "checked");
  }
  for (size_t k = 0; k < case_.chain.size(); ++k) {
    const ChainLayer& link = case_.chain[k];
    Layers from;
    for (const int64_t i : link.inputs)
      from.push_back(i == ChainLayer::kBefore ? layer_.output(0) : inputs.at(static_cast<size_t>(i)));
    const json schema = json::parse(host_.describe_type("layer", link.type));
    layer_ = host_.layer(link.type, from, attributes_of(link.attributes, schema.at("attributes")),
                         "checked" + std::to_string(k));
    if (case_.reads_inner && k + 1 < case_.chain.size()) add_outputs();
  }
  role_ = add_outputs();
  if (outputs_.empty()) outputs_.push_back(layer_);
  parameters_ = host_.parameters(outputs_, seed);
  for (const json& entry : json::parse(parameters_.describe()))
    (entry.at("kind") == "buffer" ? buffers_ : trained_).push_back(entry.at("name"));
  // Noise on the first values, so that zeros hide no error; multiples of 2^-10, so that steps of differences are exact.
  for (const std::string& name : trained_) {
    const Array stored = parameters_.get(name);
    if (stored.dtype != TN_F32) continue;
    std::vector<float> values;
    for (const double value : numbers_of(stored))
      values.push_back(
          static_cast<float>(std::round((value + static_cast<double>(random() % 1024) / 1024 - 0.5) * 1024) / 1024));
    parameters_.set(name, {TN_F32, stored.shape, values.data()});
  }
  for (size_t i = 0; i < case_.inputs.size(); ++i)
    if (case_.inputs[i].below == 0 && !case_.inputs[i].sparse) variables_.push_back(i);
  const auto has_gradient = [&](size_t i) { return case_.inputs[i].gradient; };
  has_derivative_ = variables_.empty() || std::any_of(variables_.begin(), variables_.end(), has_gradient);
}

std::string Bench::add_outputs() {
  const json described = json::parse(layer_.describe());
  uint32_t number = 0;
  for (const json& output : described.at("outputs")) {
    outputs_.push_back(layer_.output(number++));
    if (output.at("dtype").dump().find("int") == std::string::npos) has_float_output_ = true;
  }
  return described.at("role");
}

void Bench::draw_lengths(std::mt19937_64& random) {
  const auto drawn = [&](int64_t count, uint64_t most) {
    std::vector<int64_t> offsets = {0};
    for (int64_t i = 0; i < count; ++i)
      offsets.push_back(offsets.back() + (i == 0 ? 2 : i == 1 ? 0 : static_cast<int64_t>(random() % (most + 1))));
    return offsets;
  };
  for (size_t i = 0; i < case_.inputs.size(); ++i) {
    const InputSpec& input = case_.inputs[i];
    const std::string name = input.sparse ? input_name(i) : input.sequence;
    if (name.empty() || lengths_.count(name) != 0) continue;
    Lengths& drawn_lengths = lengths_[name];
    drawn_lengths.outer =
        drawn(kSamples, input.sparse ? static_cast<uint64_t>(std::min<int64_t>(input.shape.at(0), 3)) : 4);
    if (input.levels == 2) drawn_lengths.inner = drawn(drawn_lengths.outer.back(), 3);
  }
}

int64_t Bench::rows_before(const InputSpec& input, int64_t sample) const {
  const auto entry = lengths_.find(input.sequence);
  if (entry == lengths_.end()) return sample;
  const int64_t outer = entry->second.outer[static_cast<size_t>(sample)];
  return entry->second.inner.empty() ? outer : entry->second.inner[static_cast<size_t>(outer)];
}

void Bench::draw_values(std::mt19937_64& random, Draw draw) {
  ids_.resize(case_.inputs.size());
  for (size_t i = 0; i < case_.inputs.size(); ++i) {
    const InputSpec& input = case_.inputs[i];
    Numbers values(static_cast<size_t>(input.sparse ? lengths_.at(input_name(i)).outer.back()
                                                    : rows_before(input, kSamples) * elements_of(input.shape)));
    for (double& value : values) {
      if (input.below > 0) {
        value = static_cast<double>(random() % static_cast<uint64_t>(input.below));
        continue;
      }
      const double share = static_cast<double>(random() % 4096) / 4096;
      value = std::round((input.low + share * (input.high - input.low)) * 1024) / 1024;
      if (draw == Draw::kZeros) value = std::max(0.0, input.low);
      if (draw == Draw::kEqual) value = std::round((input.low + 0.75 * (input.high - input.low)) * 1024) / 1024;
      if (draw == Draw::kTiny) value *= 1e-6;
      if (draw == Draw::kHuge) value *= 500;
    }
    if (input.sparse)
      for (int64_t sample = 0; sample < kSamples; ++sample) {
        const std::vector<int64_t>& ends = lengths_.at(input_name(i)).outer;
        const int64_t count = ends[static_cast<size_t>(sample + 1)] - ends[static_cast<size_t>(sample)];
        for (int64_t k = 0; k < count; ++k) ids_[i].push_back(k * input.shape.at(0) / count);
      }
    values_.push_back(std::move(values));
  }
}

Layer Bench::data(size_t i) const {
  const InputSpec& input = case_.inputs[i];
  DataOptions options;
  options.name = input_name(i);
  options.shape = input.shape;
  options.dtype = input.below > 0 ? TN_I32 : input.sparse ? TN_F32 : TN_COMPUTE;
  if (input.below > 0) options.index_limit = input.below;
  if (input.sparse) options.storage = TN_CSR;
  if (!input.sequence.empty()) {
    options.storage = TN_RAGGED;
    options.levels = input.levels;
    options.sequence = input.sequence;
  }
  return host_.data(options);
}

Machine Bench::machine(tn_dtype compute, bool training, bool keep_all, const std::vector<std::string>& immutable,
                       bool of_inputs) const {
  MachineOptions options;
  options.compute = compute;
  options.max_samples = kSamples;
  options.training = training && can_go_back();
  options.keep_all = keep_all;
  options.seed = kSeed;
  options.immutable_parameters = immutable;
  options.device = case_.device;
  if (options.training) options.flags = TN_MACHINE_GIVEN_GRADIENTS;
  if (options.training && of_inputs) options.flags |= TN_MACHINE_DATA_GRADIENTS;
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

void Bench::add_feed(Feeds& to, size_t i, tn_dtype compute, const Part& part) const {
  const InputSpec& input = case_.inputs[i];
  const bool sparse = input.sparse;
  const std::string sequence = sparse ? input_name(i) : input.sequence;
  const auto entry = lengths_.find(sequence);
  std::vector<int64_t> outer, inner;
  int64_t begin = part.first, rows = part.count;
  if (entry != lengths_.end()) {
    const Lengths& lengths = entry->second;
    outer = rebased(lengths.outer, part.first, part.count);
    begin = lengths.outer[static_cast<size_t>(part.first)];
    rows = outer.back();
    if (!lengths.inner.empty()) {
      inner = rebased(lengths.inner, begin, rows);
      begin = lengths.inner[static_cast<size_t>(begin)];
      rows = inner.back();
    }
    if (part.empty) {
      std::fill(outer.begin(), outer.end(), 0);
      if (!inner.empty()) inner = {0};
      rows = 0;
    }
  }
  const int64_t width = sparse ? 1 : elements_of(input.shape);
  const auto from = values_[i].begin() + begin * width, end = from + rows * width;
  Array array;
  array.shape = input.shape;
  array.shape.insert(array.shape.begin(), sparse ? part.count : rows);
  if (input.below > 0) {
    auto& elements = to.integers_.emplace_back();
    for (auto place = from; place != end; ++place) elements.push_back(static_cast<int32_t>(*place));
    array.dtype = TN_I32, array.data = elements.data();
  } else if (compute == TN_F64 && !sparse) {
    array.dtype = TN_F64, array.data = to.wide_.emplace_back(from, end).data();
  } else {
    auto& elements = to.narrow_.emplace_back();
    for (auto place = from; place != end; ++place) elements.push_back(static_cast<float>(*place));
    array.dtype = TN_F32, array.data = elements.data();
  }
  if (entry != lengths_.end()) {
    array.storage = sparse ? TN_CSR : TN_RAGGED;
    array.levels = sparse ? 0 : inner.empty() ? 1 : 2;
    array.samples = part.count;
    array.offsets[0] = to.offsets_.emplace_back(std::move(outer)).data();
    if (!inner.empty()) array.offsets[1] = to.offsets_.emplace_back(std::move(inner)).data();
    if (sparse) {
      auto& elements = to.offsets_.emplace_back(ids_[i].begin() + begin, ids_[i].begin() + begin + rows);
      array.ids = elements.data();
    }
  }
  to.list_.push_back({input_name(i), array});
}

Feeds Bench::feeds(tn_dtype compute, const Part& part) const {
  Feeds result;
  for (size_t i = 0; i < case_.inputs.size(); ++i) add_feed(result, i, compute, part);
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

void Bench::backward(const Machine& machine, tn_dtype compute) const {
  std::deque<std::vector<float>> narrow;
  std::deque<Numbers> wide;
  std::vector<OutputGradient> list;
  for (size_t k = 0; k < outputs_.size(); ++k) {
    Array array = machine.output(outputs_[k]);
    if (!is_float(array.dtype)) continue;
    Numbers weights;
    for (int64_t i = 0; i < array.count(); ++i) weights.push_back(weight(k, static_cast<size_t>(i)));
    array.dtype = compute;
    array.storage = TN_DENSE;
    array.levels = 0;
    array.offsets = {nullptr, nullptr};
    array.samples = 0;
    array.data = compute == TN_F64 ? static_cast<const void*>(wide.emplace_back(weights).data())
                                   : narrow.emplace_back(weights.begin(), weights.end()).data();
    list.push_back({outputs_[k], array});
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
    add(input_name(i), values_[i].size(), [&] { return data_gradient(machine, input_name(i)); });
  for (const std::string& name : trained_)
    add(name, static_cast<size_t>(parameters_.get(name).count()), [&] { return machine.gradient(name); });
  return result;
}

Step Bench::step(tn_dtype compute, const Part& part, bool keep_all) const {
  const Machine stepper = machine(compute, true, keep_all);
  forward(stepper, compute, part);
  Step result;
  result.outputs = read(stepper);
  if (!can_go_back()) return result;
  backward(stepper, compute);
  result.gradients = gradients(stepper);
  return result;
}

bool offers_fp64(const Bench& bench) try {
  (void)bench.machine(TN_F64, true);
  return true;
} catch (const Error& error) {
  if (error.code() != TN_UNSUPPORTED) throw;
  return false;
}

bool is_called(const Machine& machine, const std::string& kernel) {
  const json plan = json::parse(machine.plan());
  const json& calls = plan.at("calls");
  return std::any_of(calls.begin(), calls.end(), [&](const json& call) { return call.at("kernel") == kernel; });
}

}  // namespace tenon::check
