// A model of one layer with fed inputs, for checks. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <tenon/tenon_machine.hpp>
#include <vector>

#include "check/bench/fed_values.h"
#include "check/cases/layer_case.h"
#include "check/cases/numbers.h"
#include "check/definitions/statements.h"

namespace tenon::check {

// The elements of a dense or ragged array of floats or integers.
[[nodiscard]] Numbers numbers_of(const Array& array);
[[nodiscard]] bool is_float(tn_dtype dtype);

// What a step gives.
struct Step {
  std::vector<Numbers> outputs;              // of each output, or the values of a metric
  std::map<std::string, Numbers> gradients;  // of data layers and parameters
  double cost = 0;
};

// How a float input comes to the layer.
enum class Source {
  kFed,        // as it is fed
  kCopied,     // a layer copies it first, so that the layer under check reads the memory of other values
  kParameters  // as rows of a parameter "x<number>.values", which has the gradient
};

// What a bench needs where the kit draws nothing itself.
struct BenchModel {
  FedValues fed;  // kept as they are, like the first values of parameters
  Attributes attributes;
  std::string name = "checked";  // of the layer
  Source source = Source::kFed;
  uint64_t seed = 1;  // of parameters
  uint64_t machine_seed = 0;
  bool from_cost = false;     // backward begins with the cost
  size_t outputs = SIZE_MAX;  // of the layer, the first so many
  // The gradient from which backward begins, of an output with so many rows; null: weight().
  std::function<double(size_t output, size_t element, int64_t rows)> weight;
};

class Bench {
 public:
  static constexpr int64_t kSamples = 5;
  static constexpr uint64_t kSeed = kMachineSeed;

  // Draws what is fed. `passed`: Source::kCopied.
  Bench(Host host, std::string type, const LayerCase& layer_case, uint64_t seed, Draw draw = Draw::kDrawn,
        bool passed = false);
  Bench(Host host, std::string type, const LayerCase& layer_case, BenchModel model);

  [[nodiscard]] const Host& host() const { return host_; }
  [[nodiscard]] const Layer& layer() const { return layer_; }
  [[nodiscard]] const Layers& outputs() const { return outputs_; }
  [[nodiscard]] const Parameters& parameters() const { return parameters_; }
  [[nodiscard]] const LayerCase& layer_case() const { return case_; }
  [[nodiscard]] bool is_cost() const { return role_ == "cost"; }
  [[nodiscard]] bool is_metric() const { return role_ == "metric"; }
  // The numbers of float inputs that are fed as such, and the names of parameters, which both have gradients; buffers.
  [[nodiscard]] const std::vector<size_t>& variables() const { return variables_; }
  [[nodiscard]] const std::vector<std::string>& trained() const { return trained_; }
  [[nodiscard]] const std::vector<std::string>& buffers() const { return buffers_; }
  [[nodiscard]] bool is_variable(size_t i) const { return case_.inputs[i].below == 0 && !case_.inputs[i].sparse; }
  [[nodiscard]] static std::string input_parameter(size_t i) { return "x" + std::to_string(i) + ".values"; }
  [[nodiscard]] bool has_sequences() const { return !fed_.lengths.empty(); }
  [[nodiscard]] const FedValues& fed() const { return fed_; }
  [[nodiscard]] std::string lengths_name(size_t i) const { return check::lengths_name(case_.inputs[i], i); }
  void store(const std::string& name, const Numbers& values) const;  // of a parameter
  // The fed floats of an input; changing them changes later feeds. Multiples of 2^-10.
  [[nodiscard]] Numbers& values(size_t i) { return fed_.values[i]; }
  [[nodiscard]] static Part all() { return {0, kSamples}; }

  // For training only if the layer has gradients; `of_inputs`: those of data layers too.
  [[nodiscard]] Machine machine(tn_dtype compute, bool training, bool keep_all = false,
                                const std::vector<std::string>& immutable = {}, bool of_inputs = true) const;
  // The outputs of a machine for training with this seed, after so many updates of the parameters.
  [[nodiscard]] std::vector<Numbers> drawn(uint64_t seed, uint64_t updates) const;
  // The outputs of the layer, and of a second one with equal inputs and parameters in the same machine for training.
  [[nodiscard]] std::pair<std::vector<Numbers>, std::vector<Numbers>> of_twins() const;
  [[nodiscard]] Feeds feeds(tn_dtype compute, const Part& part) const;
  void forward(const Machine& machine, tn_dtype compute, const Part& part) const;
  // Backward from drawn gradients of all float outputs, which objective() weighs.
  void backward(const Machine& machine, tn_dtype compute) const { backward(machine, compute, outputs_); }
  void backward(const Machine& machine, tn_dtype compute, const Layers& outputs) const;
  [[nodiscard]] static double weight(size_t output, size_t element);
  [[nodiscard]] bool can_go_back() const { return !is_metric() && has_float_output_ && has_derivative_; }
  // The sum over all float outputs of weight times value, in fp64.
  [[nodiscard]] double objective(const Machine& machine) const;
  [[nodiscard]] std::vector<Numbers> read(const Machine& machine) const { return read(machine, outputs_); }
  [[nodiscard]] std::vector<Numbers> read(const Machine& machine, const Layers& outputs) const;
  // The outputs of a model with the same data layers, in its host.
  [[nodiscard]] std::vector<Numbers> answers(const Host& host, const Model& model) const;
  // The gradients after a backward; zeros where nothing depends on a variable.
  [[nodiscard]] std::map<std::string, Numbers> gradients(const Machine& machine) const;
  // A forward and, if the layer has gradients, a backward of a new machine for training.
  [[nodiscard]] Step step(tn_dtype compute, const Part& part, bool keep_all = false) const;
  [[nodiscard]] Step step_of(const Machine& machine, tn_dtype compute, const Part& part) const;

  // The rows of an input before a sample.
  [[nodiscard]] int64_t rows_before(size_t i, int64_t sample) const {
    return fed_.rows_before(case_.inputs[i], i, sample);
  }

 private:
  // Adds the outputs of `layer_`. Returns its role.
  std::string add_outputs();
  void build(uint64_t seed);
  [[nodiscard]] Layer input(size_t i) const;
  [[nodiscard]] json schema_of(const std::string& type) const;

  Host host_;
  std::string type_, name_ = "checked";  // of the layer
  LayerCase case_;
  Source source_;
  bool from_cost_ = false;
  uint64_t machine_seed_ = kSeed;
  size_t outputs_count_ = SIZE_MAX;  // of a layer
  std::function<double(size_t, size_t, int64_t)> weight_;
  FedValues fed_;
  std::string role_;
  Layers inputs_;          // of the layer; empty for a chain
  Attributes attributes_;  // likewise
  Layer layer_;
  Layers outputs_;
  bool has_float_output_ = false;
  bool has_derivative_ = true;  // false: the case says that no float input has a gradient
  Parameters parameters_;
  std::vector<size_t> variables_;
  std::vector<std::string> trained_, buffers_;
};

// Whether a machine computes the layer in fp64: a layer of native kernels for fp32 alone does not.
[[nodiscard]] bool offers_fp64(const Bench& bench);
// The kernels of the machine's calls, of which the plan also names those that were passed over.
[[nodiscard]] std::vector<std::string> kernels_of(const Machine& machine);
bool is_called(const Machine& machine, const std::string& kernel);

}  // namespace tenon::check
