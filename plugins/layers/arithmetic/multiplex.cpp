// The choice of one value of several for each sample. SPDX-License-Identifier: Apache-2.0
#include "broadcast.h"

namespace tenon::arithmetic {

namespace {

struct Multiplex {
  static void describe(tn::LayerDescription& d) {
    d.type("multiplex",
           "For each sample the one of the inputs that its index names: output[i] = inputs[index[i]][i]. What is not "
           "chosen has no gradient and may be not a number. A computed index that names no input gives 0.");
    d.input("index", "[samples], integers from 0", TN_PORT_INTEGER);
    d.input("inputs", "[samples, ...]: all of one shape", TN_PORT_VARIADIC);
    d.output("output", "the shape of an input");
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec first = planner.input(1);
    if (first.rank() == 0) throw planner.bad_input(1, "must have a dimension for the samples");
    for (uint32_t i = 2; i < planner.inputs_count(); ++i)
      if (!planner.input(i).same_shape(first))
        throw planner.bad_input(i, "number " + std::to_string(i - 1) + " must have the shape of number 0")
            .expected(first);
    planner.require_per_row(0, first.leading(1));
    planner.index_limit(0, planner.inputs_count() - 1);
    planner.output(0, first);
  }

  // A program for each input, which the host fuses: their number has no bound.
  static void lower(const tn::Attributes&, tn::Builder& body) {
    const tn::Tensor index = body.input(0).view(body.input(1).spec().leading(1));
    std::optional<tn::Tensor> chosen;
    uint32_t number = 0;
    for (std::optional<tn::Tensor> input = body.input(1); input; input = body.optional_input(1, ++number)) {
      tn::Program program;
      std::vector<tn::Tensor> operands{*input, index};
      const tn::Float x = program.full();
      const tn::Logical is_this = program.per_row<tn::Int>() == static_cast<int64_t>(number);
      program.output(select(is_this, x, chosen ? program.full() : program.constant(0)));
      if (chosen) operands.push_back(*chosen);
      chosen = body.pointwise(program, operands).front();
    }
    body.output(0, *chosen);
  }
};

}  // namespace

void add_multiplex(tn::Plugin& plugin) { plugin.layer<Multiplex>(); }

}  // namespace tenon::arithmetic
