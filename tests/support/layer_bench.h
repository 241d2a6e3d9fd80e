// The kit's bench around the layer under test, and what its formulas say of the same values: for the checks of
// check_layer. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <tenon/tenon.hpp>
#include <vector>

#include "check/bench/layer_bench.h"
#include "tests/support/drawn_sequences.h"
#include "tests/support/layer_check.h"

namespace tenon_tests {

using namespace tenon;
using check::identical;
using check::Numbers;
using check::numbers_of;

// Whether each entry of `a` agrees with that of `b` within `tolerance` times its scale: the size of the entry of `b`,
// or its scale in `scales` (one for each entry or one for all) if that is larger. Above the range of fp32 infinity
// agrees, and differences near its smallest numbers are ignored.
[[nodiscard]] testing::AssertionResult agree(const Numbers& a, const Numbers& b, double tolerance,
                                             const Numbers& scales);

// Holds the model and all values that are fed to it. Float inputs are rows of parameters, so that they have gradients
// of their own. Backward begins with the cost of a cost layer; of other layers with a weight for each element of each
// output, divided by the number of its rows.
class Bench {
 public:
  Bench(const LayerCase& layer, int threads, int64_t samples, Lengths lengths = Lengths::kDrawn,
        check::Draw draw = check::Draw::kDrawn);

  // A new host with the same plugins.
  [[nodiscard]] Host another_host() const;
  [[nodiscard]] const Host& host() const { return bench_.host(); }
  [[nodiscard]] Machine machine(tn_dtype compute, bool training = true,
                                const std::vector<std::string>& immutable = {}) const {
    return bench_.machine(compute, training, false, immutable);
  }
  // A machine for training of a loaded model.
  [[nodiscard]] Machine machine_of(const Host& host, const Model& model, tn_dtype compute) const;
  // Runs forward on the first `samples` samples; with `empty` their sequences have no rows.
  void forward(const Machine& machine, tn_dtype compute, int64_t samples, bool empty = false) const {
    bench_.forward(machine, compute, {0, samples, empty});
  }
  void backward(const Machine& machine, tn_dtype compute) const { backward(machine, compute, outputs()); }
  void backward(const Machine& machine, tn_dtype compute, const Layers& outputs) const {
    if (bench_.can_go_back()) bench_.backward(machine, compute, outputs);
  }
  // The gradient after a backward; zeros if the layer has none, as one of integers.
  [[nodiscard]] Numbers gradient(const Machine& machine, const std::string& name) const {
    return bench_.can_go_back() ? numbers_of(machine.gradient(name)) : Numbers(stored(name).size());
  }

  // The arguments of a formula for the first `samples` samples, as the ParameterSet holds them, rounded to fp32.
  [[nodiscard]] FormulaArguments arguments(int64_t samples, bool training = true, bool empty = false) const;
  // The arguments with every float multiplied by 1 + d or 1 - d, d drawn between `share` / 2 and `share`.
  [[nodiscard]] FormulaArguments moved(FormulaArguments arguments, double share, std::mt19937_64& random) const;
  // Copies the floats of another bench of the same case, fed ones included and buffers excepted, changed in the same
  // way, as are the weights.
  void move_from(const Bench& other, double share, std::mt19937_64& random);
  // What backward derives, by the formulas: the mean of the cost over its samples or rows, or of what is weighted.
  [[nodiscard]] double objective(const FormulaArguments& arguments) const;

  [[nodiscard]] size_t outputs_count() const { return 1 + case_.more_outputs.size(); }
  [[nodiscard]] const Formula& formula(size_t output) const;
  [[nodiscard]] const Layer& output(size_t output) const { return bench_.outputs()[output]; }
  [[nodiscard]] const Layers& outputs() const { return bench_.outputs(); }
  [[nodiscard]] const Parameters& parameters() const { return bench_.parameters(); }
  // Whether input i holds floats, which are rows of a parameter.
  [[nodiscard]] bool is_variable(size_t i) const { return bench_.is_variable(i); }
  [[nodiscard]] const LayerCase& checked() const { return case_; }
  [[nodiscard]] int64_t samples() const { return bench_.fed().samples; }
  [[nodiscard]] Lengths lengths() const { return lengths_; }
  [[nodiscard]] check::Draw draw() const { return draw_; }
  [[nodiscard]] bool has_sequences() const { return bench_.has_sequences(); }
  // The names of all parameters with gradients: those of float inputs and those of the layer under test.
  [[nodiscard]] const std::vector<std::string>& trained() const { return bench_.trained(); }
  // The suffixes of the parameters and of the buffers of the layer under test.
  [[nodiscard]] const std::vector<std::string>& suffixes() const { return suffixes_; }
  [[nodiscard]] const std::vector<std::string>& buffers() const { return buffers_; }
  [[nodiscard]] Numbers stored(const std::string& name) const { return numbers_of(bench_.parameters().get(name)); }

  [[nodiscard]] static std::string input_parameter(size_t i) { return check::Bench::input_parameter(i); }
  [[nodiscard]] static std::string own(const std::string& suffix) { return "under_test." + suffix; }

 private:
  [[nodiscard]] static check::LayerCase kit_case(const LayerCase& layer);
  [[nodiscard]] bool is_ragged(size_t output) const { return output == 0 && case_.output_rows; }
  [[nodiscard]] check::BenchModel model(int64_t samples);
  [[nodiscard]] check::FedValues fed_values(int64_t samples);
  void draw_rows(check::FedValues& fed, const check::InputSpec& spec, size_t i);
  void draw_weights(size_t output, size_t count);
  float drawn(const CheckedInput& input);
  float drawn_from_range(const CheckedInput& input);
  [[nodiscard]] const std::vector<int64_t>& output_shape(size_t output) const;
  // A sparse input as a dense matrix.
  [[nodiscard]] Numbers with_zeros(size_t i, int64_t samples, bool empty) const;
  void add_noise();

  const LayerCase& case_;
  int threads_;
  Lengths lengths_;
  check::Draw draw_;
  std::mt19937_64 random_;
  // Of each output, [elements]; none of a cost. Shared with the kit's bench.
  std::shared_ptr<std::vector<Numbers>> weights_ = std::make_shared<std::vector<Numbers>>();
  check::Bench bench_;
  std::vector<std::string> suffixes_, buffers_;
};

}  // namespace tenon_tests
