// A model with fed gradients, of three parameters by default, for tests of updaters.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <numeric>
#include <string>
#include <tenon/tenon.hpp>
#include <vector>

#include "tests/support/paths.h"
#include "tests/support/test_layers.h"

namespace tenon_tests {

using namespace tenon;

// The derivative of test_cost is its weight, so the gradients are the fed weights divided by kSamples.
class UpdateModel {
 public:
  static constexpr int64_t kSamples = 4;
  using Shapes = std::vector<std::vector<int64_t>>;         // of one sample
  inline static const Shapes kShapes = {{5}, {3, 4}, {1}};  // 20, 48, 4 elements in all

  // attributes: those of the layer test_input of each parameter, whose suffix is "values".
  explicit UpdateModel(int threads, const std::vector<std::string>& immutable = {}, const Shapes& shapes = kShapes,
                       const std::vector<Attributes>& attributes = {}, tn_dtype compute = TN_F32)
      : host_(HostOptions{threads, {tenon_tests::plugin_folder()}, nullptr, {}}), shapes_(shapes) {
    host_.add_plugin(&test_layers());
    DataOptions ids;
    ids.name = "ids";
    ids.dtype = TN_I32;
    const Layer ids_layer = host_.data(ids);
    for (size_t i = 0; i < shapes_.size(); ++i) {
      const std::string number = std::to_string(i);
      Attributes given = {{"rows", kSamples}, {"shape", shapes_[i]}};
      if (!attributes.empty()) given.insert(given.end(), attributes[i].begin(), attributes[i].end());
      const Layer input = host_.layer("test_input", {ids_layer}, given, "x" + number);
      DataOptions weight;
      weight.name = "w" + number;
      weight.shape = shapes_[i];
      outputs_.push_back(host_.layer("test_cost", {input, host_.data(weight)}, {}, "cost" + number));
    }
    parameters_ = host_.parameters(outputs_, 1);
    options_.max_samples = kSamples;
    options_.training = true;
    options_.compute = compute;
    options_.immutable_parameters = immutable;
    machine_ = host_.machine(parameters_, outputs_, options_);
  }

  [[nodiscard]] Updater updater(const std::string& type, const Attributes& attributes) const {
    return host_.updater(type, attributes);
  }
  void set(size_t i, const std::vector<float>& values) const {
    parameters_.set(name(i), {TN_F32, parameters_.get(name(i)).shape, values.data()});
  }
  [[nodiscard]] std::vector<double> get(size_t i) const {
    const Array array = parameters_.get(name(i));
    const auto* data = static_cast<const float*>(array.data);
    return {data, data + array.count()};
  }
  void step(const Updater& updater, const std::vector<std::vector<float>>& weights) const {
    backward(weights);
    updater.update(machine_);
  }
  void backward(const std::vector<std::vector<float>>& weights) const {
    std::vector<size_t> all(shapes_.size());
    std::iota(all.begin(), all.end(), size_t{0});
    backward_of(machine_, all, weights);
  }
  // Another machine on the same ParameterSet, for some of the parameters.
  [[nodiscard]] Machine machine_of(const std::vector<size_t>& numbers) const {
    Layers outputs;
    for (const size_t i : numbers) outputs.push_back(outputs_[i]);
    return host_.machine(parameters_, outputs, options_);
  }
  // numbers: the parameters of the machine. weights: those of all parameters, by number.
  void backward_of(const Machine& machine, const std::vector<size_t>& numbers,
                   const std::vector<std::vector<float>>& weights) const {
    const std::vector<int32_t> ids = {0, 1, 2, 3};
    std::vector<Feed> feeds = {{"ids", {TN_I32, {kSamples}, ids.data()}}};
    for (const size_t i : numbers) {
      std::vector<int64_t> shape = shapes_[i];
      shape.insert(shape.begin(), kSamples);
      feeds.push_back({"w" + std::to_string(i), {TN_F32, shape, weights[i].data()}});
    }
    machine.forward(feeds);
    machine.backward();
  }
  [[nodiscard]] const Machine& machine() const { return machine_; }
  [[nodiscard]] const Parameters& parameters() const { return parameters_; }
  [[nodiscard]] const Layer& output(size_t i) const { return outputs_[i]; }

 private:
  static std::string name(size_t i) { return "x" + std::to_string(i) + ".values"; }
  Host host_;
  Shapes shapes_;
  Layers outputs_;
  Parameters parameters_;
  MachineOptions options_;
  Machine machine_;
};

}  // namespace tenon_tests
