// The harness that proves a layer. A test declares shapes, attributes and the formula in plain fp64; check_layer does
// the rest: forward against the formula, in training and not, each number on its own scale; gradients against finite
// differences of the formula, all at once and each alone; mutants of the gradient that must be found out; zeros, equal
// numbers, tiny and huge ones; batch 0 and 1 and odd sizes; every thread count; repetition; sequences that are all
// empty; buffers committed once; saving and loading.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tenon/tenon.hpp>
#include <vector>

namespace tenon_tests {

using namespace tenon;

// One input of the layer under test.
struct CheckedInput {
  std::vector<int64_t> shape;  // of one sample
  int64_t integers_below = 0;  // 0: floats; else integers in [0, integers_below)
  double low = -2, high = 2;   // floats are drawn from here; what the layer takes begins at 0 if that does
  double away_from = 0;        // floats keep at least `gap` from this kink
  double gap = 0;
  bool limited = false;  // the layer takes no floats outside of the range
  std::string sequence =
      {};                // not empty: sequences of rows of `shape`; inputs that name the same one have equal lengths
  uint32_t levels = 1;   // of a sequence
  bool sparse = false;   // csr of shape[0] columns; its values are no variables, so they have no gradient
  bool weighted = true;  // sparse: entries have values, else all are 1
};

// What the formula is given: row-major values, [samples, shape...] for inputs, of sequences [rows, shape...], of sparse
// ones all zeros included; [shape...] for parameters and buffers.
struct FormulaArguments {
  int64_t samples = 0;
  bool training = true;
  std::vector<std::vector<double>> inputs;
  // By input, for sequences: offsets of the samples, with two levels into the inner sequences, whose follow.
  std::vector<std::vector<std::vector<int64_t>>> offsets;
  std::map<std::string, std::vector<double>> parameters, buffers;  // by suffix
};
// The output, [samples, shape...] or [rows, shape...] row-major. For a cost one value per sample or row.
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
  // Allowed error of fp32, relative to each number or, where that is smaller than what it is made of, to that
  // (layer_rounding.h); of fp64 it is 1e-12.
  double tolerance = 2e-6;
  double gradient_tolerance = 1e-5;
  // What is rounded on the way to each number of output 0, where it is larger than the number and all that moves it:
  // the terms of log(sum) - x, say. Absent: none.
  Formula rounded;
  // The same for gradients, one number for all, of a cost that is a sum over the samples: 1 where 1 - y * y is
  // computed.
  double gradient_rounded = 0;
  bool jumps = false;        // not continuous where floats are 0 or equal: there is no slope to compare gradients with
  bool output_rows = false;  // output 0 is made of sequences, and output_shape is that of a row
};

// The case of a layer that knows nothing of sequences, on their rows: each is what a sample was.
LayerCase on_rows(LayerCase layer, uint32_t levels = 1);

// Reports through GoogleTest; gives the number of single checks that were made, prints it with the sum of all calls so
// far, and records it as a property of the test, "checks_<type>".
int64_t check_layer(const LayerCase& layer);

// The same for 10,000 sequences of one row each and for one of 10,000 rows beside empty ones: forward, the bits of
// every thread count, and some elements of each gradient.
int64_t check_long_sequences(const LayerCase& layer);

}  // namespace tenon_tests
