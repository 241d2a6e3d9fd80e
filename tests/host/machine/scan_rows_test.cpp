// Layers that compute each sample by itself, between a memory and the next step: against the same steps one after the
// other. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <tenon/tenon.hpp>
#include <tenon/tenon_scan.hpp>
#include <vector>

#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using Shape = std::vector<int64_t>;

// One step: from the memory and the row of the input, both [6], to what is left in the memory.
struct RowStep {
  std::string name;
  std::function<Layer(const Host& host, const Layer& memory, const Layer& row)> make;
};

void PrintTo(const RowStep& step, std::ostream* out) { *out << step.name; }

Layer shaped(const Host& host, const Layer& value, const Shape& shape) {
  return host.layer("reshape", {value}, {{"shape", shape}});
}
// A layer of images of 6 pixels, added to the row.
Layer of_image(const Host& host, const std::string& type, Attributes attributes, const Layer& memory,
               const Layer& row) {
  attributes.push_back({"parameter_name", "op"});
  const Layer made = host.layer(type, {shaped(host, memory, {6, 1})}, attributes);
  return host.layer("add", {shaped(host, made, {6}), row});
}

std::vector<RowStep> row_steps() {
  const auto plain = [](const std::string& type, const Attributes& attributes) {
    return [=](const Host& host, const Layer& memory, const Layer& row) {
      return host.layer("add", {host.layer(type, {memory}, attributes), row});
    };
  };
  const auto image = [](const std::string& type, const Attributes& attributes) {
    return [=](const Host& host, const Layer& memory, const Layer& row) {
      return of_image(host, type, attributes, memory, row);
    };
  };
  return {
      {"conv", image("conv", {{"filters", 1}, {"kernel", 3}, {"same", true}})},
      {"conv_transpose", image("conv_transpose", {{"filters", 1}, {"kernel", 3}, {"padding", 1}})},
      {"max_pool", image("pool", {{"kind", "max"}, {"kernel", 3}, {"stride", 1}, {"padding", 1}})},
      {"average_pool", image("pool", {{"kind", "average"}, {"kernel", 3}, {"stride", 1}, {"padding", 1}})},
      {"fc_of_parts",
       [](const Host& host, const Layer& memory, const Layer& row) {
         const Layer parts =
             host.layer("fc", {shaped(host, memory, {3, 2})}, {{"size", 2}, {"axis", -1}, {"parameter_name", "op"}});
         return host.layer("add", {shaped(host, parts, {6}), row});
       }},
      {"multi_head_attention",
       [](const Host& host, const Layer& memory, const Layer& row) {
         const Layer both = shaped(host, host.layer("add", {memory, row}), {3, 2});
         const Attributes attributes = {{"heads", 2}, {"causal", true}, {"parameter_name", "op"}};
         return shaped(host, host.layer("multi_head_attention", {both}, attributes), {6});
       }},
      {"attention",
       [](const Host& host, const Layer& memory, const Layer& row) {
         const Layer of_row = shaped(host, row, {3, 2});
         return shaped(host, host.layer("attention", {shaped(host, memory, {3, 2}), of_row, of_row}), {6});
       }},
      {"matmul",
       [](const Host& host, const Layer& memory, const Layer& row) {
         const Layer product = host.layer("matmul", {shaped(host, memory, {2, 3}), shaped(host, row, {3, 2})});
         return host.layer("fc", {shaped(host, product, {4})}, {{"size", 6}, {"parameter_name", "op"}});
       }},
      {"transpose",
       [](const Host& host, const Layer& memory, const Layer& row) {
         const Layer turned = host.layer("transpose", {shaped(host, memory, {2, 3})}, {{"axes", Shape{0, 2, 1}}});
         return host.layer("add", {shaped(host, turned, {6}), row});
       }},
      {"layer_norm", plain("layer_norm", {{"parameter_name", "op"}})},
      {"cumsum", plain("cumsum", {{"axis", 1}})},
  };
}

class ScanRows : public testing::TestWithParam<RowStep> {
 protected:
  // The cost and the gradients of all parameters.
  struct Told {
    double cost = 0;
    std::vector<double> gradients;
  };
  [[nodiscard]] Told told(const Parameters& parameters, const Layer& cost, const std::vector<Feed>& feeds) const {
    MachineOptions options;
    options.max_samples = 2, options.training = true;
    options.compute = TN_F64;
    const Machine machine = host_.machine(parameters, {cost}, options);
    machine.forward(feeds);
    machine.backward();
    Told result{machine.cost(), {}};
    for (const auto& entry : nlohmann::json::parse(parameters.describe())) {
      const Array gradient = machine.gradient(entry.at("name").get<std::string>());
      const auto* const values = static_cast<const double*>(gradient.data);
      result.gradients.insert(result.gradients.end(), values, values + gradient.count());
    }
    return result;
  }
  [[nodiscard]] Layer cost_of(const Layer& last) const {
    return host_.layer("sum_cost", {host_.layer("square", {last})}, {}, "cost");
  }
  // Something trained before the step, so that gradients flow through it.
  [[nodiscard]] Layer entered(const Layer& row) const {
    return host_.layer("fc", {row}, {{"size", 6}, {"parameter_name", "entered"}});
  }

  Host host_{HostOptions{1, {plugin_folder()}, nullptr, {}}};
};

TEST_P(ScanRows, AreStepsOneAfterTheOther) {
  std::vector<float> rows(30);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(std::sin(1.7 * static_cast<double>(i)));
  DataOptions words;
  words.name = "x", words.shape = {6}, words.storage = TN_RAGGED, words.levels = 1;
  const ScanResult made = scan({host_.data(words)}, [&](Step& step) {
    const Layer memory = step.memory({6}, 0.3);
    step.next(memory, GetParam().make(host_, memory, entered(step.input(0))));
    return Layers{};
  });
  const Layer cost = cost_of(made.last[0]);
  const Parameters parameters = host_.parameters({cost}, 3);
  const std::vector<int64_t> offsets = {0, 3, 5};
  const Told whole = told(parameters, cost, {{"x", Array::sequences(TN_F32, {5, 6}, rows.data(), 2, offsets.data())}});
  Told apart;
  apart.gradients.resize(whole.gradients.size());
  for (const size_t sequence : {0, 1}) {
    const Layer first = host_.data({"x0", TN_F32, {6}});
    Layer memory = host_.layer("constant", {first}, {{"shape", Shape{6}}, {"value", std::vector<double>{0.3}}});
    std::vector<Feed> feeds;
    for (int64_t row = offsets[sequence]; row < offsets[sequence + 1]; ++row) {
      const std::string name = "x" + std::to_string(row - offsets[sequence]);
      const Layer x = feeds.empty() ? first : host_.data({name, TN_F32, {6}});
      memory = GetParam().make(host_, memory, entered(x));
      feeds.push_back({name, {TN_F32, {1, 6}, rows.data() + 6 * row}});
    }
    const Told one = told(parameters, cost_of(memory), feeds);
    apart.cost += one.cost / 2;
    for (size_t i = 0; i < one.gradients.size(); ++i) apart.gradients[i] += one.gradients[i] / 2;
  }
  EXPECT_NEAR(whole.cost, apart.cost, 1e-12 * std::abs(apart.cost));
  ASSERT_FALSE(whole.gradients.empty());
  for (size_t i = 0; i < whole.gradients.size(); ++i)
    EXPECT_NEAR(whole.gradients[i], apart.gradients[i], 1e-10 * (1 + std::abs(apart.gradients[i]))) << i;
}

INSTANTIATE_TEST_SUITE_P(Layers, ScanRows, testing::ValuesIn(row_steps()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace tenon_tests
