// Sum, mean and maximum of the elements along an axis, or of all elements of a sample.
// SPDX-License-Identifier: Apache-2.0
#include <tenon/plugin.hpp>

namespace {

using tn::Float;

// The number of the dimension `axis`, or 0 if the layer reduces all elements of a sample.
int32_t axis_in(const tn::Attributes& attributes, int32_t rank) {
  if (!attributes.has("axis")) return 0;
  const int64_t axis = attributes.integer("axis");
  return static_cast<int32_t>(axis < 0 ? axis + rank : axis);
}

// A layer made of per_row(x, columns), which reduces x [rows, columns] to [rows], and gradient(g, columns), the
// gradient of x.
template <typename Formula>
struct Reduction {
  static void describe(tn::LayerDescription& d) {
    d.type(Formula::kType, Formula::kDoc);
    d.input("input", "[samples, ...]");
    d.output("output", "the shape of the input without the axis; without one, [samples]");
    d.attribute(tn::int_attribute("axis").doc(
        "dimension; negative ones count from the end; absent, all elements of a sample. Not 0, the samples"));
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec input = planner.input(0).as(TN_COMPUTE);
    const int32_t rank = input.rank();
    if (rank == 0) throw planner.bad_input(0, "must have a dimension for the samples");
    if (!planner.attributes().has("axis")) {
      planner.elements(0, 1);
      return planner.output(0, input.leading(1));
    }
    const int64_t given = planner.attributes().integer("axis");
    if (given == 0 || given == -static_cast<int64_t>(rank))
      throw planner.bad_input(0,
                              "cannot be reduced along axis 0, the samples: only costs and metrics join samples, in "
                              "the host",
                              TN_UNSUPPORTED);
    if (given >= rank || given < -static_cast<int64_t>(rank))
      throw planner.bad_input(0, "has no axis " + std::to_string(given));
    const int32_t axis = axis_in(planner.attributes(), rank);
    if (!input[axis].is_constant()) throw planner.bad_input(0, "varies along axis " + std::to_string(axis));
    if (input[axis].offset <= 0) throw planner.bad_input(0, "has no elements along axis " + std::to_string(axis));
    tn::Spec output = input.leading(axis);
    for (int32_t i = axis + 1; i < rank; ++i) output.push_back(input[i]);
    planner.output(0, output);
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    tn::Tensor input = body.input(0);
    const int32_t rank = input.spec().rank();
    int32_t leading = axis_in(attributes, rank);
    if (leading == 0) {
      leading = 1;
    } else if (leading != rank - 1) {  // rows are leading dimensions, so the axis moves to the end
      std::vector<int32_t> order;
      for (int32_t i = 0; i < rank; ++i)
        if (i != leading) order.push_back(i);
      order.push_back(leading);
      input = body.transpose(input, order);
      leading = rank - 1;
    }
    int64_t columns = 1;
    for (int32_t i = leading; i < rank; ++i) columns *= input.spec()[i].offset;
    tn::Program forward;
    const Float x = forward.full();
    forward.output(Formula::per_row(x, static_cast<double>(columns)));
    tn::GradientProgram backward(forward);
    backward.output(Formula::gradient(backward, static_cast<double>(columns)));
    body.output(0, body.pointwise(forward, {input}, leading, &backward).front());
  }
};

struct Sum {
  static constexpr const char* kType = "sum";
  static constexpr const char* kDoc = "The sum along an axis, or of all elements of a sample.";
  static Float per_row(const Float& x, double) { return sum_per_row(x); }
  static Float gradient(tn::GradientProgram& g, double) { return g.result_gradient(); }
};

struct Mean {
  static constexpr const char* kType = "mean";
  static constexpr const char* kDoc =
      "The mean along an axis, or of all elements of a sample. (The metric that gives the mean over samples is "
      "average.)";
  static Float per_row(const Float& x, double columns) { return sum_per_row(x) * (1 / columns); }
  static Float gradient(tn::GradientProgram& g, double columns) { return g.result_gradient() * (1 / columns); }
};

struct Max {
  static constexpr const char* kType = "max";
  static constexpr const char* kDoc =
      "The largest element along an axis, or of all elements of a sample. Equals share the derivative.";
  static Float per_row(const Float& x, double) { return max_per_row(x); }
  static Float gradient(tn::GradientProgram& g, double) {
    const tn::Logical reached = g.input() == g.result();
    return select(reached, g.result_gradient() / sum_per_row(to_float(reached)), 0.0);
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.reductions", "0.1.0", "Sum, mean and largest along an axis", "Apache-2.0");
  plugin.layer<Reduction<Sum>>();
  plugin.layer<Reduction<Mean>>();
  plugin.layer<Reduction<Max>>();
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
