// Convolution of each feature with what follows. SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "sequences.h"

namespace tenon::sequences {

namespace {

using tn::Float;

struct RowConv {
  static constexpr int64_t kMostRows = 1024;

  static void describe(tn::LayerDescription& d) {
    d.type("row_conv",
           "Each feature of a row and of the rows after it, weighed and added: output row r is sum_{j < length} "
           "x[r + j] weight_j, element by element, without rows outside of the sequence (lookahead convolution: Wang "
           "et al., \"Lookahead convolution layer for unidirectional recurrent neural networks\", 2016). weight "
           "[length, D] starts uniform in +-1 / sqrt(length).");
    d.input("input", "[rows, ...]: sequences; all dimensions after the first are flattened to D");
    d.output("output", "[rows, D]");
    d.attribute(tn::int_attribute("length").required().at_least(1).at_most(kMostRows).doc("rows in the window"));
    d.parameter("weight");
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec input = ragged_input(planner, 0);
    const int64_t length = planner.attributes().integer("length"), depth = planner.elements(0, 1);
    if (depth > INT64_MAX / length) throw planner.bad_input(0, "makes a weight too large");
    const double limit = 1 / std::sqrt(static_cast<double>(length));
    planner.parameter("weight", tn::Spec({length, depth}), tn::uniform_initializer(-limit, limit));
    planner.output(0, tn::Spec({input[0], depth}));
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Tensor weight = body.parameter(0);
    const tn::Dim rows = body.input(0).spec()[0], depth = weight.spec()[1];
    const tn::Tensor input = body.input(0).view(tn::Spec({rows, depth}));
    std::optional<tn::Tensor> sum;
    for (int64_t j = 0; j < attributes.integer("length"); ++j) {
      tn::Program program;
      std::vector<tn::Tensor> operands{j == 0 ? input : body.segment(TN_SEGMENT_SHIFT, input, rows, j),
                                       body.slice(weight, 0, j, 1).view(tn::Spec({depth}))};
      const Float x = program.full(), product = x * program.per_column();
      program.output(sum ? product + program.full() : product);
      if (sum) operands.push_back(*sum);
      sum = body.pointwise(program, operands, kRows).front();
    }
    body.output(0, *sum);
  }
};

}  // namespace

void add_row_conv(tn::Plugin& plugin) { plugin.layer<RowConv>(); }

}  // namespace tenon::sequences
