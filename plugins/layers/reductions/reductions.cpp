// Sum, mean, extremes, spread and length of the elements along an axis, or of all elements of a sample.
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

struct Row {
  double columns;
  const tn::Attributes& attributes;
};

// A layer made of per_row(x, row), which reduces x [rows, columns] to [rows], and gradient(g, row), the gradient of x.
template <typename Formula>
struct Reduction {
  static void describe(tn::LayerDescription& d) {
    d.type(Formula::kType, Formula::kDoc);
    d.input("input", "[samples, ...]");
    d.output("output", "the shape of the input without the axis; without one, [samples]");
    d.attribute(tn::int_attribute("axis").doc(
        "dimension; negative ones count from the end; absent, all elements of a sample. Not 0, the samples"));
    Formula::declare(d);
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
    const Row row = {static_cast<double>(columns), attributes};
    forward.output(Formula::per_row(x, row));
    tn::GradientProgram backward(forward);
    backward.output(Formula::gradient(backward, row));
    body.output(0, body.pointwise(forward, {input}, leading, &backward).front());
  }
};

// Formulas without attributes of their own.
struct Plain {
  static void declare(tn::LayerDescription&) {}
};

struct Sum : Plain {
  static constexpr const char* kType = "sum";
  static constexpr const char* kDoc = "The sum along an axis, or of all elements of a sample.";
  static Float per_row(const Float& x, const Row&) { return sum_per_row(x); }
  static Float gradient(tn::GradientProgram& g, const Row&) { return g.result_gradient(); }
};

struct Mean : Plain {
  static constexpr const char* kType = "mean";
  static constexpr const char* kDoc =
      "The mean along an axis, or of all elements of a sample. (The metric that gives the mean over samples is "
      "average.)";
  static Float per_row(const Float& x, const Row& row) { return sum_per_row(x) * (1 / row.columns); }
  static Float gradient(tn::GradientProgram& g, const Row& row) { return g.result_gradient() * (1 / row.columns); }
};

struct Max : Plain {
  static constexpr const char* kType = "max";
  static constexpr const char* kDoc =
      "The largest element along an axis, or of all elements of a sample. Equals share the derivative.";
  static Float per_row(const Float& x, const Row&) { return max_per_row(x); }
  static Float gradient(tn::GradientProgram& g, const Row&) {
    const tn::Logical reached = g.input() == g.result();
    return select(reached, g.result_gradient() / sum_per_row(to_float(reached)), 0.0);
  }
};

struct Min : Plain {
  static constexpr const char* kType = "min";
  static constexpr const char* kDoc =
      "The smallest element along an axis, or of all elements of a sample. Equals share the derivative.";
  static Float per_row(const Float& x, const Row&) { return min_per_row(x); }
  static Float gradient(tn::GradientProgram& g, const Row&) {
    const tn::Logical reached = g.input() == g.result();
    return select(reached, g.result_gradient() / sum_per_row(to_float(reached)), 0.0);
  }
};

// Deviations from the mean, and the factor from the sum of their squares to the variance.
struct Spread {
  static void declare(tn::LayerDescription& d) {
    d.attribute(tn::bool_attribute("unbiased", false)
                    .doc("divide by the number of elements less 1 (of one element by 1), as PyTorch does"));
  }
  static Float centred(const Float& x, const Row& row) { return x - sum_per_row(x) * (1 / row.columns); }
  static double share(const Row& row) {
    return 1 / (row.attributes.flag("unbiased") && row.columns > 1 ? row.columns - 1 : row.columns);
  }
};

struct Variance : Spread {
  static constexpr const char* kType = "variance";
  static constexpr const char* kDoc =
      "The mean of the squared deviations from the mean along an axis, or of all elements of a sample.";
  static Float per_row(const Float& x, const Row& row) {
    const Float from_mean = centred(x, row);
    return sum_per_row(from_mean * from_mean) * share(row);
  }
  static Float gradient(tn::GradientProgram& g, const Row& row) {
    return g.result_gradient() * (2 * share(row)) * centred(g.input(), row);
  }
};

struct StandardDeviation : Spread {
  static constexpr const char* kType = "standard_deviation";
  static constexpr const char* kDoc =
      "The root of the variance along an axis, or of all elements of a sample; where it is 0, so is its derivative.";
  static Float per_row(const Float& x, const Row& row) { return sqrt(Variance::per_row(x, row)); }
  static Float gradient(tn::GradientProgram& g, const Row& row) {
    const Float y = g.result();
    const Float slope = g.result_gradient() * share(row) / select(y > 0, y, 1.0);
    return select(y > 0, slope * centred(g.input(), row), 0.0);
  }
};

struct Norm {
  static constexpr const char* kType = "norm";
  static constexpr const char* kDoc =
      "The length of the elements along an axis, or of all elements of a sample: the root of the sum of their squares, "
      "or with order 1 the sum of their absolute values. Where it is 0, so is its derivative.";
  static void declare(tn::LayerDescription& d) {
    d.attribute(tn::int_attribute("order", 2).at_least(1).at_most(2).doc("2: Euclidean length; 1: absolute values"));
  }
  static bool is_euclidean(const Row& row) { return row.attributes.integer("order") == 2; }
  static Float per_row(const Float& x, const Row& row) {
    return is_euclidean(row) ? sqrt(sum_per_row(x * x)) : sum_per_row(abs(x));
  }
  static Float gradient(tn::GradientProgram& g, const Row& row) {
    const Float x = g.input(), y = g.result(), dy = g.result_gradient();
    if (!is_euclidean(row)) return dy * sign(x);
    return select(y > 0, dy * (x / select(y > 0, y, 1.0)), 0.0);
  }
};

struct LogSumExp : Plain {
  static constexpr const char* kType = "log_sum_exp";
  static constexpr const char* kDoc =
      "The logarithm of the sum of exponentials along an axis, or of all elements of a sample, computed as m + log(sum "
      "exp(x - m)) with the largest element m, so that nothing overflows. The derivative is exp(x - output).";
  static Float per_row(const Float& x, const Row&) {
    const Float most = max_per_row(x);
    return most + log(sum_per_row(exp(x - most)));
  }
  static Float gradient(tn::GradientProgram& g, const Row&) {
    return g.result_gradient() * exp(g.input() - g.result());
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.reductions", "0.1.0", "Sum, mean, extremes, spread and length along an axis", "Apache-2.0");
  plugin.layer<Reduction<Sum>>();
  plugin.layer<Reduction<Mean>>();
  plugin.layer<Reduction<Max>>();
  plugin.layer<Reduction<Min>>();
  plugin.layer<Reduction<Variance>>();
  plugin.layer<Reduction<StandardDeviation>>();
  plugin.layer<Reduction<Norm>>();
  plugin.layer<Reduction<LogSumExp>>();
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
