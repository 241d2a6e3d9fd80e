// The harness that proves a layer. A test declares shapes, attributes and the formula in plain fp64; check_layer does
// the rest: forward against the formula, in training and not; gradients against finite differences of the formula, all
// at once and each alone; mutants of the gradient that must be found out; batch 0 and 1 and odd sizes; every thread
// count; repetition; buffers committed once; saving and loading. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tenon/tenon.hpp>
#include <vector>

namespace tenon::test {

// One input of the layer under test.
struct CheckedInput {
  std::vector<int64_t> shape;  // of one sample
  int64_t integers_below = 0;  // 0: floats; else integers in [0, integers_below)
  double low = -2, high = 2;   // floats are drawn from here
  double away_from = 0;        // floats keep at least `gap` from this kink
  double gap = 0;
};

// What the formula is given: row-major values, [samples, shape...] for inputs, [shape...] for parameters and buffers.
struct FormulaArguments {
  int64_t samples = 0;
  bool training = true;
  std::vector<std::vector<double>> inputs;
  std::map<std::string, std::vector<double>> parameters, buffers;  // by suffix
};
// The output, [samples, shape...] row-major. For a cost one value per sample.
using Formula = std::function<std::vector<double>(const FormulaArguments&)>;

// An output behind the first one. Where it is not differentiable the formula is a step, away from its kinks.
struct MoreOutput {
  std::vector<int64_t> shape;  // of one sample
  Formula formula;
};

struct LayerCase {
  std::string type;
  Attributes attributes;
  std::vector<CheckedInput> inputs;
  Formula formula;
  bool cost = false;
  std::vector<int64_t> output_shape;             // of one sample; not for costs
  std::vector<int64_t> samples = {1, 2, 7, 33};  // minibatch sizes to try
  std::vector<std::string> plugin_paths;         // beside Tenon's own plugins
  std::vector<MoreOutput> more_outputs;          // output 1 and so on
  std::map<std::string, Formula> buffers;        // the next value of each buffer, by suffix
  bool couples_samples = false;                  // a sample's output depends on the others in the minibatch
  // Allowed error of fp32, relative to the largest element; of fp64 it is 1e-12, and 1e-6 for gradients.
  double tolerance = 2e-6;
  double gradient_tolerance = 1e-4;
};

// Reports through GoogleTest; gives the number of single checks that were made, prints it with the sum of all calls so
// far, and records it as a property of the test, "checks_<type>".
int64_t check_layer(const LayerCase& layer);

}  // namespace tenon::test
