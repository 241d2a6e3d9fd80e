// What the costs of values of one shape share. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <tenon/draft/numbers.hpp>
#include <tenon/plugin.hpp>
#include <vector>

namespace tenon::costs {

using tn::Attributes;
using tn::Float;
using tn::GradientProgram;

// The smallest probability whose logarithm is taken, as in cross_entropy.
inline constexpr double kLeastProbability = 1e-30;

// Throws unless the first `count` inputs have the shape of the first, except for trailing ones.
inline void plan_values(tn::Planner& planner, uint32_t count) {
  const tn::Spec input = planner.input(0);
  if (input.rank() == 0) throw planner.bad_input(0, "must have a dimension for the samples");
  planner.elements(0, 1);
  for (uint32_t i = 1; i < count; ++i)
    if (planner.has_input(i)) planner.require_values(i);
}

// The first `count` inputs, all in the shape of the first one.
inline std::vector<tn::Tensor> values_of(tn::Builder& body, uint32_t count) {
  const tn::Spec shape = body.input(0).spec();
  std::vector<tn::Tensor> values;
  for (uint32_t i = 0; i < count; ++i) {
    const tn::Tensor input = body.input(i);
    values.push_back(input.spec().same_shape(shape) ? input : input.view(shape));
  }
  return values;
}

// ---- weights

inline constexpr const char* kWeightDoc =
    "the shape of the first input, or [samples]: the weight of each value, such as a mask of 1 and 0; where it is 0, "
    "values do not count, whatever they are";

inline constexpr const char* kRowWeightDoc =
    "[samples]: the weight of each; a sample of weight 0 does not count, whatever it is";

inline bool is_per_sample(const tn::Spec& spec) { return spec.without_trailing_ones().rank() == 1; }

// Throws unless input i, if connected, has the shape of the first input or one number for each sample.
inline void plan_weight(const tn::Planner& planner, uint32_t i) {
  const tn::Spec input = planner.input(0);
  if (planner.has_input(i) && !(is_per_sample(planner.input(i)) && planner.input(i)[0].same(input[0])) &&
      !planner.input(i).without_trailing_ones().same_shape(input.without_trailing_ones()))
    throw planner.bad_input(i, "must have the shape of the first input, or be [samples]").expected(input);
}

// The weights as an input of programs over rows of `shape`: one for each row, or for each element.
class Weights {
 public:
  // The rows are the first `leading` dimensions of `shape`.
  Weights(const tn::Tensor& weight, const tn::Spec& shape, int32_t leading)
      : rank_(shape.rank()),
        leading_(leading),
        per_row_(weight.spec().without_trailing_ones().rank() <= leading),
        weight_(weight.view(per_row_ ? shape.leading(leading) : shape)) {}

  // The values with 0 where the weight is 0, so that neither what is there nor its derivative counts, not even if it is
  // not a number: 0 * NaN is NaN. Integers and numbers of rows stay.
  std::vector<tn::Tensor> guarded(tn::Builder& body, std::vector<tn::Tensor> values) const {
    tn::Program program;
    std::vector<tn::Tensor> floats;
    std::vector<Float> read;
    for (const tn::Tensor& value : values)
      if (is_guarded(value)) floats.push_back(value), read.push_back(program.full());
    const Float weight = input_of(program);
    for (const Float& value : read) program.output(select(weight == 0, 0.0, value));
    floats.push_back(weight_);
    const std::vector<tn::Tensor> made = body.pointwise(program, floats, leading_);
    auto next = made.begin();
    for (tn::Tensor& value : values)
      if (is_guarded(value)) value = *next++;
    return values;
  }

  // The costs of rows, or of elements, times their weights: a number for each row.
  tn::Tensor weighed(tn::Builder& body, const tn::Tensor& costs) const {
    tn::Program program;
    const bool of_rows = costs.spec().rank() == leading_ && per_row_;
    const Float cost = of_rows ? program.per_row() : program.full();
    const Float weight = input_of(program);
    const Float value = select(weight == 0, 0.0, cost * weight);
    program.output(of_rows ? value : sum_per_row(value));
    return body.pointwise(program, {costs, weight_}, leading_).front();
  }

  const tn::Tensor& value() const { return weight_; }
  Float input_of(tn::Program& program) const { return per_row_ ? program.per_row() : program.full(); }

 private:
  bool is_guarded(const tn::Tensor& value) const { return !value.spec().is_integer() && value.spec().rank() == rank_; }

  int32_t rank_, leading_;
  bool per_row_;
  tn::Tensor weight_;
};

// Applies `cost`, which gives a number for each row, to values whose first `leading` dimensions are rows; `weight`, if
// any, has a number for each row.
inline tn::Tensor costs_of_rows(tn::Builder& body, const tn::Program& cost, std::vector<tn::Tensor> values,
                                int32_t leading, const std::optional<tn::Tensor>& weight,
                                const GradientProgram* gradient = nullptr) {
  if (!weight) return body.pointwise(cost, values, leading, gradient).front();
  const Weights weights(*weight, values[0].spec(), leading);
  values = weights.guarded(body, values);
  return weights.weighed(body, body.pointwise(cost, values, leading, gradient).front());
}

// A cost of kValues inputs of one shape, and weights: the cost of a sample is the sum over its values,
// [samples, values] -> [samples].
template <uint32_t kValues>
struct CostOfValues {
  static constexpr uint32_t kWeight = kValues;

  // The last input, and the output.
  static void describe_rest(tn::LayerDescription& d) {
    d.input("weight", kWeightDoc, TN_PORT_OPTIONAL);
    d.output("output", "[samples]: the cost of each");
  }

  static void plan(tn::Planner& planner) {
    plan_values(planner, kValues);
    plan_weight(planner, kWeight);
    planner.output(0, tn::Spec({planner.input(0)[0]}));
  }

  // value: the cost of each value, in `cost`, which has no output yet. The host derives the gradient.
  static void record(tn::Builder& body, tn::Program& cost, const Float& value) {
    record(body, cost, value, nullptr, body.optional_input(kWeight));
  }
  // backward: adds the outputs of a gradient program, for costs of values as well as for sums of them.
  template <typename Backward>
  static void record(tn::Builder& body, tn::Program& cost, const Float& value, const Backward& backward) {
    record(body, cost, value, backward, body.optional_input(kWeight));
  }
  template <typename Backward>
  static void record(tn::Builder& body, tn::Program& cost, const Float& value, const Backward& backward,
                     const std::optional<tn::Tensor>& weight) {
    std::vector<tn::Tensor> values = values_of(body, kValues);
    std::optional<Weights> weights;
    if (weight) weights.emplace(*weight, values[0].spec(), 1);
    if (weights) values = weights->guarded(body, values);
    cost.output(weights ? value : sum_per_row(value));
    std::optional<GradientProgram> own;
    if constexpr (!std::is_null_pointer_v<Backward>) backward(own.emplace(cost));
    const tn::Tensor costs = body.pointwise(cost, values, 1, own ? &*own : nullptr).front();
    body.output(0, weights ? weights->weighed(body, costs) : costs);
  }
};

// log(1 + exp(z)) without overflow and without loss of small values, and its derivative.
inline Float softplus(const Float& z) { return max(z, 0) + log1p(exp(-abs(z))); }
inline Float softplus_slope(const Float& z) { return 1 / (1 + exp(-z)); }

// Add the layers of losses.cpp and embeddings.cpp.
void add_losses(tn::Plugin& plugin);
void add_embeddings(tn::Plugin& plugin);

}  // namespace tenon::costs
