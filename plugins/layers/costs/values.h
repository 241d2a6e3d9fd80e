// What the costs of values of one shape share. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/plugin.hpp>
#include <vector>

namespace tenon::costs {

using tn::Attributes;
using tn::Float;
using tn::GradientProgram;

// The smallest probability whose logarithm is taken, as in cross_entropy.
inline constexpr double kLeastProbability = 1e-30;

// The shape without trailing ones, so that [samples] and [samples, 1] are equal.
inline tn::Spec without_ones(const tn::Spec& spec) {
  int32_t rank = spec.rank();
  while (rank > 1 && spec[rank - 1].same(1)) --rank;
  return spec.leading(rank);
}

// Throws unless all connected inputs have the shape of the first, except for trailing ones.
inline void plan_values(tn::Planner& planner) {
  const tn::Spec input = planner.input(0);
  if (input.rank() == 0) throw planner.bad_input(0, "must have a dimension for the samples");
  planner.elements(0, 1);
  for (uint32_t i = 1; i < planner.inputs_count(); ++i)
    if (planner.has_input(i) && !without_ones(planner.input(i)).same_shape(without_ones(input)))
      throw planner.bad_input(i, "must have the shape of the first input").expected(input);
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

// A cost of inputs of one shape: the cost of a sample is the sum over its values, [samples, values] -> [samples].
struct CostOfValues {
  static void describe_output(tn::LayerDescription& d) { d.output("output", "[samples]: the cost of each"); }

  static void plan(tn::Planner& planner) {
    plan_values(planner);
    planner.output(0, tn::Spec({planner.input(0)[0]}));
  }

  static void record(tn::Builder& body, const tn::Program& cost, const GradientProgram* gradient = nullptr) {
    body.output(0, body.pointwise(cost, values_of(body, cost.get()->inputs_count), 1, gradient).front());
  }
};

// log(1 + exp(z)) without overflow and without loss of small values, and its derivative.
inline Float softplus(const Float& z) { return max(z, 0) + log1p(exp(-abs(z))); }
inline Float softplus_slope(const Float& z) { return 1 / (1 + exp(-z)); }

// Adds the layers of losses.cpp.
void add_losses(tn::Plugin& plugin);

}  // namespace tenon::costs
