// The harness that proves a layer. A test declares shapes, attributes and the formula in plain fp64; check_layer does
// the rest: forward against the formula, gradients against finite differences of the formula, mutants of the gradient
// that must be found out, batch 0 and 1 and odd sizes, every thread count, repetition. SPDX-License-Identifier:
// Apache-2.0
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

// What the formula is given: row-major values, [samples, shape...] for inputs, [shape...] for parameters.
struct FormulaArguments {
  int64_t samples = 0;
  std::vector<std::vector<double>> inputs;
  std::map<std::string, std::vector<double>> parameters;  // by suffix
};
// The output, [samples, shape...] row-major. For a cost one value per sample.
using Formula = std::function<std::vector<double>(const FormulaArguments&)>;

struct LayerCase {
  std::string type;
  Attributes attributes;
  std::vector<CheckedInput> inputs;
  Formula formula;
  bool cost = false;
  std::vector<int64_t> output_shape;             // of one sample; not for costs
  std::vector<int64_t> samples = {1, 2, 7, 33};  // minibatch sizes to try
  std::vector<std::string> plugin_paths;         // beside Tenon's own plugins
};

// Reports through GoogleTest; gives the number of single checks that were made.
int64_t check_layer(const LayerCase& layer);

}  // namespace tenon::test
