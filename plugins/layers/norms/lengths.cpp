// Normalisations without statistics of their own: by a length, and by neighbouring channels.
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "norms.h"

namespace tenon::norms {

namespace {

using tn::Float;

struct Normalize {
  static void describe(tn::LayerDescription& d) {
    d.type(
        "normalize",
        "Vectors along an axis divided by their length: output = x / length, the root of the sum of squares, or with "
        "order 1 the sum of absolute values. Where the length is at most epsilon the output is 0, and so is its "
        "derivative (PyTorch divides by epsilon there).");
    d.input("input", "[samples, ...]");
    d.output("output", "the shape of the input");
    d.attribute(tn::int_attribute("axis", -1).doc("dimension; negative ones count from the end, 0 is the samples"));
    d.attribute(tn::int_attribute("order", 2).at_least(1).at_most(2).doc("2: Euclidean length; 1: absolute values"));
    d.attribute(
        tn::float_attribute("epsilon", 1e-12).at_least(1e-18).doc("length up to which a vector has no direction"));
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec input = planner.input(0);
    planner.axis_of(0, planner.attributes().integer("axis"));
    planner.elements(0, 1);
    planner.output(0, input.as(TN_COMPUTE));
  }

  // The divisor is bounded, so that no derivative divides by 0, not even one that select discards.
  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const bool euclidean = attributes.integer("order") == 2;
    const double epsilon = attributes.number("epsilon"), least = euclidean ? epsilon * epsilon : epsilon;
    tn::Program program;
    const Float x = program.full();
    const Float sum = sum_per_row(euclidean ? x * x : abs(x));
    const Float bounded = max(sum, least);
    program.output(select(sum > least, x / (euclidean ? sqrt(bounded) : bounded), 0.0));
    const tn::Tensor input = body.input(0);
    const int32_t last = input.spec().rank() - 1;
    const int32_t axis = input.spec().axis(attributes.integer("axis"));
    const tn::Tensor rows = body.exchange(input, axis, last);
    body.output(0, body.exchange(body.pointwise(program, {rows}, last).front(), axis, last));
  }
};

struct LocalResponseNorm {
  static void describe(tn::LayerDescription& d) {
    d.type("local_response_norm",
           "Normalisation by neighbouring channels, the last dimension: output_c = x_c / (k + alpha / size sum_j "
           "x_j^2)^beta, where j are the size channels from c - size / 2 (rounded down) on, as far as they exist "
           "(Krizhevsky, Sutskever and Hinton, \"ImageNet classification with deep convolutional neural networks\", "
           "2012; alpha is divided by size as in PyTorch).");
    d.input("input", "[samples, ..., channels]");
    d.output("output", "the shape of the input");
    d.attribute(tn::int_attribute("size", 5).at_least(1).at_most(kMostChannels).doc("channels of a sum"));
    d.attribute(tn::float_attribute("alpha", 1e-4).at_least(0).doc("factor of the mean square"));
    d.attribute(tn::float_attribute("beta", 0.75).doc("exponent"));
    d.attribute(tn::float_attribute("k", 1).at_least(1e-18).doc("added to the mean square"));
  }

  static void plan(tn::Planner& planner) {
    if (planner.input(0).rank() < 2) throw planner.bad_input(0, "must be [samples, ..., channels]");
    planner.elements(0, 1);
    planner.output(0, planner.input(0).as(TN_COMPUTE));
  }

  // Operand i holds for each channel the one i - size / 2 places after it, or 0.
  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Tensor input = body.input(0);
    const int64_t size = attributes.integer("size");
    const int32_t last = input.spec().rank() - 1;
    const tn::Tensor padded = body.pad(input, last, size / 2, (size - 1) / 2);
    tn::Program program;
    const Float x = program.full();
    Float squares = x * x;
    std::vector<tn::Tensor> operands{input};
    for (int64_t i = 0; i < size; ++i) {
      if (i == size / 2) continue;
      const Float next = program.full();
      squares = squares + next * next;
      operands.push_back(body.slice(padded, last, i, input.spec().back().offset));
    }
    const double share = attributes.number("alpha") / static_cast<double>(size);
    program.output(x * pow(attributes.number("k") + share * squares, -attributes.number("beta")));
    body.output(0, body.pointwise(program, operands, last).front());
  }

 private:
  static constexpr int64_t kMostChannels = 15;  // operands of one program
};

}  // namespace

void add_lengths(tn::Plugin& plugin) {
  plugin.layer<Normalize>();
  plugin.layer<LocalResponseNorm>();
}

}  // namespace tenon::norms
