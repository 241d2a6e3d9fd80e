// The test harness of layers. A test states shapes, attributes and the formula in fp64. check_layer compares outputs
// with the formula, in training and not, each number relative to its own scale; compares gradients with finite
// differences of the formula, all at once and each alone; checks that this comparison rejects mutants of the gradient;
// and repeats checks with zeros, equal, tiny and huge numbers, minibatches of 0, 1 and odd numbers of samples, every
// thread count, repeated runs, and sequences that are all empty. It checks that buffers are committed once and that a
// saved model can be loaded.
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
  double low = -2, high = 2;   // range of drawn floats; if low >= 0, the layer takes no negative numbers
  double away_from = 0;        // floats are at least `gap` away from this kink
  double gap = 0;
  bool limited = false;       // the layer takes no floats outside of the range
  std::string sequence = {};  // not empty: sequences of rows of `shape`; inputs with the same name have equal lengths
  uint32_t levels = 1;        // of a sequence
  bool sparse = false;        // CSR with shape[0] columns; its values are fed directly, without a gradient
  bool weighted = true;       // sparse: entries have values, else all are 1
};

// The arguments of a formula: row-major values, [samples, shape...] for inputs, [rows, shape...] for sequences, a
// dense matrix for sparse inputs; [shape...] for parameters and buffers.
struct FormulaArguments {
  int64_t samples = 0;
  bool training = true;
  std::vector<std::vector<double>> inputs;
  // By input, for sequences: the offsets of the samples; with two levels these index the inner sequences, whose offsets
  // follow.
  std::vector<std::vector<std::vector<int64_t>>> offsets;
  std::map<std::string, std::vector<double>> parameters, buffers;  // by suffix
};
// The output, [samples, shape...] or [rows, shape...] row-major. For a cost one value per sample or row.
using Formula = std::function<std::vector<double>(const FormulaArguments&)>;

// An output after the first one. If it is not differentiable, its formula is a step function and the inputs stay away
// from the steps.
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
  std::vector<std::string> plugin_paths;         // in addition to Tenon's own plugins
  std::vector<MoreOutput> more_outputs;          // output 1 and so on
  std::map<std::string, Formula> buffers;        // the next value of each buffer, by suffix
  bool couples_samples = false;                  // a sample's output depends on the others in the minibatch
  // Allowed error in fp32, relative to the scale of each number (layer_rounding.h). In fp64 it is 1e-12.
  double tolerance = 2e-6;
  double gradient_tolerance = 1e-5;
  // The size of the rounded terms of each number of output 0, where it exceeds the scale of the number, such as that of
  // the terms of log(sum) - x. Empty: no such terms.
  Formula rounded;
  // The same for gradients: one number for all, for a cost summed over the samples; 1 if the layer computes 1 - y * y.
  double gradient_rounded = 0;
  bool jumps = false;        // not continuous where floats are 0 or equal; gradients are then not compared with slopes
  bool output_rows = false;  // output 0 is made of sequences, and output_shape is that of a row
};

// The case of a layer of samples, applied to the rows of sequences: each row takes the place of a sample.
LayerCase on_rows(LayerCase layer, uint32_t levels = 1);

// Runs all checks and reports failures through GoogleTest. Returns the number of single checks, prints it with the sum
// over all calls so far, and records it as the property "checks_<type>" of the test.
int64_t check_layer(const LayerCase& layer);

// Checks 10,000 sequences of one row each, and one sequence of 10,000 rows among empty ones: outputs, equal bits with
// every thread count, and some elements of each gradient.
int64_t check_long_sequences(const LayerCase& layer);

}  // namespace tenon_tests
