// Metrics that are means: of numbers, of errors, and of the cost of a model of language.
// SPDX-License-Identifier: Apache-2.0
#include <tenon/elementary.h>

#include "metrics.h"

namespace tenon::metrics {

namespace {

using tn::Float;

double mean(const double* state) { return ratio(state[0], state[1]); }

// Adds the sum of `each` over all elements, as a mean over those of a sample, and the number of samples to the state.
void add(tn::Builder& body, tn::Program& program, const Float& each, const std::vector<tn::Tensor>& operands) {
  const tn::Spec shape = operands[0].spec();
  double elements = 1;
  for (int32_t i = 1; i < shape.rank(); ++i) elements *= static_cast<double>(shape[i].offset);
  program.output(sum_all(each) * (1 / elements), TN_F64);
  program.output(sum_all(to_float(program.row() >= 0)), TN_F64);  // exact for minibatches below 2^24 rows
  const std::vector<tn::Tensor> outputs = body.pointwise(program, operands);
  for (uint32_t i = 0; i < 2; ++i) body.state(i, outputs[i]);
}

// A mean of Formula::of(difference) over all samples and their elements.
template <typename Formula>
struct MeanError {
  static void describe(tn::LayerDescription& d) {
    d.type(Formula::kType, Formula::kDoc);
    d.role(TN_ROLE_METRIC);
    d.input("input", "[samples, ...]: the prediction");
    d.input("label", "the shape of the input, except for trailing ones: what is right");
  }
  static void plan(tn::Planner& planner) { plan_values(planner, true, 2); }
  static void lower(const tn::Attributes&, tn::Builder& body) {
    tn::Program program;
    const Float input = program.full();
    add(body, program, Formula::of(input - program.full()), pair_of(body));
  }
  static void finalize(const tn::Attributes&, const double* state, tn::Results& results) {
    results.add(Formula::kType, mean(state));
  }
};

struct Squared {
  static constexpr const char* kType = "mean_squared_error";
  static constexpr const char* kDoc =
      "The mean of the squares of input - label over all samples and their elements. Without samples it is 0.";
  static Float of(const Float& difference) { return difference * difference; }
};

struct Absolute {
  static constexpr const char* kType = "mean_absolute_error";
  static constexpr const char* kDoc =
      "The mean of the sizes of input - label over all samples and their elements. Without samples it is 0.";
  static Float of(const Float& difference) { return abs(difference); }
};

// The mean of the input, of which Formula::of makes the result.
template <typename Formula>
struct Mean {
  static void describe(tn::LayerDescription& d) {
    d.type(Formula::kType, Formula::kDoc);
    d.role(TN_ROLE_METRIC);
    d.input("input", Formula::kInput);
  }
  static void plan(tn::Planner& planner) { plan_values(planner, false, 2); }
  static void lower(const tn::Attributes&, tn::Builder& body) {
    tn::Program program;
    const Float input = program.full();
    add(body, program, input, {body.input(0)});
  }
  static void finalize(const tn::Attributes&, const double* state, tn::Results& results) {
    results.add(Formula::kType, Formula::of(mean(state)));
  }
};

struct Average {
  static constexpr const char* kType = "average";
  static constexpr const char* kDoc =
      "The mean of the input over all samples and their elements, such as the mean of a cost that is only "
      "watched. Without samples it is 0.";
  static constexpr const char* kInput = "[samples, ...]";
  static double of(double mean) { return mean; }
};

struct Perplexity {
  static constexpr const char* kType = "perplexity";
  static constexpr const char* kDoc =
      "The exponential of the mean of the input, which is the cross-entropy of each word, as a cost makes it: the "
      "number of words of equal probability that would be as hard to guess. Of a cost of several positions it is that "
      "of whole samples, unless the cost is an average of positions: cross_entropy with average = \"weights\". Without "
      "samples it is 1.";
  static constexpr const char* kInput = "[samples, ...]: the cross-entropy of each word, in nats";
  static double of(double mean) { return tn_math_exp(mean); }
};

}  // namespace

void add_means(tn::Plugin& plugin) {
  plugin.layer<Mean<Average>>();
  plugin.layer<MeanError<Squared>>();
  plugin.layer<MeanError<Absolute>>();
  plugin.layer<Mean<Perplexity>>();
}

}  // namespace tenon::metrics
