// Machines of models in fp64, and the gradients of models beside differences of their costs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tenon/tenon_machine.hpp>
#include <utility>
#include <vector>

#include "tests/host/machine/attending_decoder.h"

namespace tenon_tests {

// most: relative to numbers above 1.
inline void expect_near(const Numbers& a, const Numbers& b, const char* what, double most = 1e-12) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (size_t i = 0; i < a.size(); ++i)
    ASSERT_NEAR(a[i], b[i], most * std::max(1.0, std::abs(b[i]))) << what << " " << i;
}

inline Machine machine_of(const Host& host, const Parameters& parameters, const Layers& outputs, bool training = true) {
  MachineOptions options;
  options.max_samples = 16, options.training = training, options.compute = TN_F64;
  if (training) options.flags = TN_MACHINE_DATA_GRADIENTS;
  return host.machine(parameters, outputs, options);
}

// Compares the gradients of parameters and data of a model with differences of its cost, which are of fourth order.
inline void check_gradients(const Host& host, const Model& model, Minibatch of) {
  constexpr double kStep = 0x1p-12;
  const Parameters parameters = host.parameters(model.outputs, 5);
  const Machine machine = machine_of(host, parameters, model.outputs);
  std::map<std::string, std::vector<float>> values;
  const auto set = [&](const std::string& name) {
    const std::vector<int64_t> shape = parameters.get(name).shape;
    parameters.set(name, {TN_F32, shape, values.at(name).data()});
  };
  for (const std::string& name : model.parameters) {
    const Array array = parameters.get(name);
    const auto* data = static_cast<const float*>(array.data);
    for (int64_t i = 0; i < array.count(); ++i)  // so that steps are exact
      values[name].push_back(std::round(data[i] * 0x1p20F) * 0x1p-20F);
    set(name);
  }
  const auto cost = [&] {
    machine.forward(of.feeds(model.feeds));
    return machine.cost();
  };
  static_cast<void>(cost());
  machine.backward();
  std::map<std::string, Numbers> gradients;
  for (const std::string& name : model.parameters) gradients[name] = numbers(machine.gradient(name));
  for (const std::string& name : model.feeds)
    if (name != "truth") gradients[name] = numbers(data_gradient(machine, name));
  // put(by): changes number i by that much, from what it was first.
  const auto compare = [&](const std::string& name, size_t i, const auto& put) {
    const auto at = [&](double steps) {
      put(steps * kStep);
      return cost();
    };
    const double difference = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * kStep);
    put(0);
    EXPECT_NEAR(gradients.at(name)[i], difference, 1e-7 * std::max(1.0, std::abs(difference))) << name << " " << i;
  };
  for (const std::string& name : model.parameters)
    for (size_t i = 0; i < values[name].size(); i += 2)
      compare(name, i, [&, before = values[name][i]](double by) {
        values[name][i] = before + static_cast<float>(by);
        set(name);
      });
  for (const auto& [name, data] : {std::pair{"x", &of.x}, {"y", &of.y}, {"first", &of.first}, {"part", &of.part}}) {
    if (!gradients.contains(name)) continue;
    ASSERT_EQ(gradients.at(name).size(), data->size()) << name;
    for (size_t i = 0; i < data->size(); i += 3)
      compare(name, i, [&number = (*data)[i], before = (*data)[i]](double by) { number = before + by; });
  }
}

}  // namespace tenon_tests
