// A model of one layer with fed inputs, for checks. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>
#include <random>
#include <string>
#include <tenon/tenon_machine.hpp>
#include <vector>

#include "check/cases/layer_case.h"
#include "check/cases/numbers.h"
#include "check/definitions/statements.h"

namespace tenon::check {

// The elements of a dense or ragged array of floats or integers.
[[nodiscard]] Numbers numbers_of(const Array& array);
[[nodiscard]] bool is_float(tn_dtype dtype);

// The kind of the floats that are fed.
enum class Draw {
  kDrawn,  // from their range
  kZeros,
  kEqual,  // all alike
  kTiny,   // times 1e-6
  kHuge    // times 500
};

// Samples [first, first + count) of those that are fed.
struct Part {
  int64_t first = 0, count = 0;
  bool empty = false;  // sequences have no rows
};

// Arrays for one forward, and their memory.
class Feeds {
 public:
  [[nodiscard]] const std::vector<Feed>& list() const { return list_; }

 private:
  friend class Bench;
  std::vector<Feed> list_;
  std::deque<std::vector<float>> narrow_;
  std::deque<Numbers> wide_;
  std::deque<std::vector<int32_t>> integers_;
  std::deque<std::vector<int64_t>> offsets_;
};

// What a step gives.
struct Step {
  std::vector<Numbers> outputs;              // of each output, or the values of a metric
  std::map<std::string, Numbers> gradients;  // of data layers and parameters
  double cost = 0;
};

class Bench {
 public:
  static constexpr int64_t kSamples = 5;
  static constexpr uint64_t kSeed = kMachineSeed;

  // `passed`: a layer copies each float input first, so that the layer under check reads the memory of other values.
  Bench(Host host, std::string type, const LayerCase& layer_case, uint64_t seed, Draw draw = Draw::kDrawn,
        bool passed = false);

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
  [[nodiscard]] static std::string input_name(size_t i) { return "in" + std::to_string(i); }
  [[nodiscard]] bool has_sequences() const { return !lengths_.empty(); }
  // The fed floats of an input; changing them changes later feeds. Multiples of 2^-10.
  [[nodiscard]] Numbers& values(size_t i) { return values_[i]; }
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
  void backward(const Machine& machine, tn_dtype compute) const;
  [[nodiscard]] bool can_go_back() const { return !is_metric() && has_float_output_ && has_derivative_; }
  // The sum over all float outputs of weight times value, in fp64.
  [[nodiscard]] double objective(const Machine& machine) const;
  [[nodiscard]] std::vector<Numbers> read(const Machine& machine) const { return read(machine, outputs_); }
  [[nodiscard]] std::vector<Numbers> read(const Machine& machine, const Layers& outputs) const;
  // The gradients after a backward; zeros where nothing depends on a variable.
  [[nodiscard]] std::map<std::string, Numbers> gradients(const Machine& machine) const;
  // A forward and, if the layer has gradients, a backward of a new machine for training.
  [[nodiscard]] Step step(tn_dtype compute, const Part& part, bool keep_all = false) const;

  // The place of a sample among the rows of an array of these dimensions: rows [begin, end) of sample i of the feeds.
  [[nodiscard]] int64_t rows_before(const InputSpec& input, int64_t sample) const;

 private:
  // Adds the outputs of `layer_`. Returns its role.
  std::string add_outputs();
  void draw_lengths(std::mt19937_64& random);
  void draw_values(std::mt19937_64& random, Draw draw);
  [[nodiscard]] Layer data(size_t i) const;
  [[nodiscard]] static double weight(size_t output, size_t element);
  void add_feed(Feeds& to, size_t i, tn_dtype compute, const Part& part) const;

  Host host_;
  std::string type_;
  LayerCase case_;
  std::string role_;
  Layers inputs_;          // of the layer; empty for a chain
  Attributes attributes_;  // likewise
  Layer layer_;
  Layers outputs_;
  bool has_float_output_ = false;
  bool has_derivative_ = true;  // false: the case says that no float input has a gradient
  Parameters parameters_;
  struct Lengths {
    std::vector<int64_t> outer;  // [samples + 1] rows, or inner sequences
    std::vector<int64_t> inner;  // [inner sequences + 1] rows; empty with one level
  };
  std::map<std::string, Lengths> lengths_;  // by the name of the sequence; of a sparse input its own
  std::vector<Numbers> values_;
  std::vector<std::vector<int64_t>> ids_;  // of sparse inputs: the column of each entry
  std::vector<size_t> variables_;
  std::vector<std::string> trained_, buffers_;
};

// Whether a machine computes the layer in fp64: a layer of native kernels for fp32 alone does not.
[[nodiscard]] bool offers_fp64(const Bench& bench);
// Returns whether a call of the machine is one of this kernel; the plan also names those that were passed over.
bool is_called(const Machine& machine, const std::string& kernel);

}  // namespace tenon::check
