// A model around the layer under test: inputs with gradients and a cost, for the checks of check_layer.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <tenon/tenon.hpp>
#include <utility>
#include <vector>

#include "tests/support/drawn_sequences.h"
#include "tests/support/layer_check.h"

namespace tenon_tests {

using namespace tenon;

[[nodiscard]] std::vector<double> as_doubles(const Array& array);

// Whether each entry of `a` agrees with that of `b` within `tolerance` times its scale: the size of the entry of `b`,
// or its scale in `scales` (one for each entry or one for all) if that is larger. Above the range of fp32 infinity
// agrees, and differences near its smallest numbers are ignored.
[[nodiscard]] testing::AssertionResult agree(const std::vector<double>& a, const std::vector<double>& b,
                                             double tolerance, const std::vector<double>& scales);
// Whether both have the same bits.
[[nodiscard]] bool identical(const std::vector<double>& a, const std::vector<double>& b);

// The sequences of a fed value: their name ("" without sequences) and the number of their levels.
using RowsKey = std::pair<std::string, uint32_t>;

// The kind of the floats that are fed to the layer under test.
enum class Numbers {
  kDrawn,  // from their range
  kZeros,
  kTies,  // one of two numbers each
  kTiny,  // drawn, and divided by a million
  kHuge   // drawn, and times 500
};

// Holds the model and all values that are fed to it. Float inputs are rows of parameters ("x0.values"), so that they
// have gradients.
class Bench {
 public:
  Bench(const LayerCase& layer, int threads, int64_t samples, Lengths lengths = Lengths::kDrawn,
        Numbers numbers = Numbers::kDrawn);

  // A new host with the same plugins.
  [[nodiscard]] Host another_host() const;
  [[nodiscard]] const Host& host() const { return host_; }
  [[nodiscard]] MachineOptions options(tn_dtype compute, bool training = true) const;
  [[nodiscard]] Machine machine(tn_dtype compute, bool training = true,
                                const std::vector<std::string>& immutable = {}) const;
  // Runs forward on the first `samples` samples; with `empty` their sequences have no rows.
  void forward(const Machine& machine, tn_dtype compute, int64_t samples, bool empty = false) const;

  // The arguments of a formula for the first `samples` samples, as the ParameterSet holds them, rounded to fp32.
  [[nodiscard]] FormulaArguments arguments(int64_t samples, bool training = true, bool empty = false) const;
  // The arguments with every float multiplied by 1 + d or 1 - d, d drawn between `share` / 2 and `share`.
  [[nodiscard]] FormulaArguments moved(FormulaArguments arguments, double share, std::mt19937_64& random) const;
  // Copies the floats of another bench of the same case, fed ones included and buffers excepted, changed in the same
  // way.
  void move_from(const Bench& other, double share, std::mt19937_64& random);
  // The cost that the machine must report, by the formulas: the sum over the outputs of the mean over samples or rows.
  [[nodiscard]] double cost(const FormulaArguments& arguments) const;

  [[nodiscard]] size_t outputs_count() const { return weights_.size(); }
  [[nodiscard]] const Formula& formula(size_t output) const;
  // A layer that stands for output number `output` of the layer under test.
  [[nodiscard]] Layer output(size_t output) const { return under_test_.output(static_cast<uint32_t>(output)); }
  // The outputs of the machines: those of the layer under test and the costs computed from them.
  [[nodiscard]] const Layers& outputs() const { return outputs_; }
  [[nodiscard]] const Parameters& parameters() const { return parameters_; }
  // Whether input i holds floats, which are rows of a parameter.
  [[nodiscard]] bool is_variable(size_t i) const {
    return case_.inputs[i].integers_below == 0 && !case_.inputs[i].sparse;
  }
  [[nodiscard]] const LayerCase& checked() const { return case_; }
  [[nodiscard]] int64_t samples() const { return samples_; }
  [[nodiscard]] Lengths lengths() const { return lengths_; }
  [[nodiscard]] Numbers numbers() const { return numbers_; }
  [[nodiscard]] bool has_sequences() const { return !sequences_.empty(); }
  // The names of all parameters with gradients: those of float inputs and those of the layer under test.
  [[nodiscard]] std::vector<std::string> trained() const;
  // The suffixes of the parameters and of the buffers of the layer under test.
  [[nodiscard]] const std::vector<std::string>& suffixes() const { return suffixes_; }
  [[nodiscard]] const std::vector<std::string>& buffers() const { return buffers_; }
  [[nodiscard]] std::vector<double> stored(const std::string& name) const { return as_doubles(parameters_.get(name)); }

  [[nodiscard]] static std::string input_parameter(size_t i) { return "x" + std::to_string(i) + ".values"; }
  [[nodiscard]] static std::string own(const std::string& suffix) { return "under_test." + suffix; }

 private:
  [[nodiscard]] HostOptions host_options() const;
  // Output 0 of a cost layer is the cost. Any other output becomes a cost by a weight for each element; output 0 made
  // of sequences, whose rows cannot be fed, is multiplied by itself.
  [[nodiscard]] bool is_squared(size_t output) const { return output == 0 && case_.output_rows && !case_.cost; }
  [[nodiscard]] bool is_weighted(size_t output) const { return output > 0 || !(case_.cost || case_.output_rows); }
  [[nodiscard]] static std::string weight_name(size_t output);
  [[nodiscard]] const std::vector<int64_t>& output_shape(size_t output) const;
  // The key of an input; of a sparse input, the key of its entries.
  [[nodiscard]] RowsKey key(size_t i) const;
  [[nodiscard]] int64_t rows_of(const RowsKey& key, int64_t samples) const;
  [[nodiscard]] const int64_t* ends(const RowsKey& key, size_t level, bool empty) const;
  // The array that is fed to a data layer.
  [[nodiscard]] Array rows(const RowsKey& key, tn_dtype dtype, std::vector<int64_t> shape, const void* data,
                           int64_t samples, bool empty) const;
  // A sparse input as a dense matrix.
  [[nodiscard]] std::vector<double> with_zeros(size_t i, int64_t samples, bool empty) const;
  void draw_sequences();
  void build();
  Layer input(size_t i);
  Layer sparse_input(size_t i);
  void fill_inputs();
  float draw(const CheckedInput& wanted);
  float drawn_from_range(const CheckedInput& wanted);
  void fill_own();

  const LayerCase& case_;
  int threads_;
  int64_t samples_;
  Lengths lengths_;
  Numbers numbers_;
  std::mt19937_64 random_;
  Host host_;
  std::map<std::string, DrawnSequences> sequences_;
  std::vector<int32_t> ids_;
  std::vector<int64_t> zeros_;
  std::map<RowsKey, Layer> ids_layers_;
  Layer under_test_;
  Layers outputs_;
  Parameters parameters_;
  std::vector<std::vector<int32_t>> integers_;
  std::vector<std::vector<int64_t>> entries_;  // of sparse inputs: columns; their values are in values_
  std::vector<std::vector<float>> values_;
  std::vector<std::vector<double>> weights_;  // of each output; empty for the output of a cost
  std::vector<std::string> suffixes_, buffers_;
};

}  // namespace tenon_tests
