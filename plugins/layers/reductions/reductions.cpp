// Sum, product, mean, extremes, spread and length of the elements along axes, or of all elements of a sample.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <tenon/plugin.hpp>
#include <vector>

namespace {

using tn::Float;

// What all reductions declare.
void describe_axes(tn::LayerDescription& d, const char* type, const char* doc) {
  d.type(type, doc);
  d.input("input", "[samples, ...]");
  d.output("output",
           "the shape of the input without the reduced axes, which keep_dimensions leaves as 1; without axis and axes, "
           "[samples]");
  d.attribute(tn::int_attribute("axis").doc(
      "dimension; negative ones count from the end; absent, all elements of a sample. Not 0, the samples"));
  d.attribute(tn::ints_attribute("axes").doc("several dimensions, in place of axis"));
  d.attribute(tn::bool_attribute("keep_dimensions")
                  .doc("whether the reduced dimensions remain, with length 1; when absent, they do not"));
}

// The dimensions that are reduced, in ascending order: all of a sample without axis and axes.
std::vector<int32_t> reduced_axes(const tn::Attributes& attributes, const tn::Spec& input) {
  std::vector<int32_t> result;
  if (attributes.has("axis") || attributes.has("axes")) {
    const std::vector<int64_t> given =
        attributes.has("axes") ? attributes.integers("axes") : std::vector<int64_t>{attributes.integer("axis")};
    for (const int64_t axis : given) result.push_back(input.axis(axis));
    std::sort(result.begin(), result.end());
  } else {
    for (int32_t i = 1; i < input.rank(); ++i) result.push_back(i);
  }
  return result;
}

// The shape of the result.
tn::Spec reduced_shape(const tn::Attributes& attributes, const tn::Spec& input) {
  const std::vector<int32_t> reduced = reduced_axes(attributes, input);
  const bool keep = attributes.has("keep_dimensions") && attributes.flag("keep_dimensions");
  tn::Spec result = input.leading(1);
  for (int32_t i = 1; i < input.rank(); ++i) {
    const bool gone = std::binary_search(reduced.begin(), reduced.end(), i);
    if (!gone || keep) result.push_back(gone ? tn::Dim(1) : input[i]);
  }
  return result;
}

void require_axis(const tn::Planner& planner, int64_t given) {
  const int64_t rank = planner.input(0).rank();
  if (given == 0 || given == -rank)
    throw planner.bad_input(
        0, "cannot be reduced along axis 0, the samples: only costs and metrics join samples, in the host",
        TN_UNSUPPORTED);
  if (given >= rank || given < -rank) throw planner.bad_input(0, "has no axis " + std::to_string(given));
}

void plan_reduction(tn::Planner& planner) {
  const tn::Spec input = planner.input(0).as(TN_COMPUTE);
  const tn::Attributes attributes = planner.attributes();
  if (input.rank() == 0) throw planner.bad_input(0, "must have a dimension for the samples");
  if (attributes.has("axis") && attributes.has("axes"))
    throw tn::Failure(TN_INVALID, "axes", "cannot be given with \"axis\"");
  if (attributes.has("axis")) require_axis(planner, attributes.integer("axis"));
  if (attributes.has("axes")) {
    if (attributes.integers("axes").empty())
      throw tn::Failure(TN_INVALID, "axes", "is empty; without it all elements of a sample are reduced").actual(input);
    for (const int64_t axis : attributes.integers("axes")) require_axis(planner, axis);
  }
  const std::vector<int32_t> reduced = reduced_axes(attributes, input);
  if (std::adjacent_find(reduced.begin(), reduced.end()) != reduced.end())
    throw tn::Failure(TN_INVALID, "axes", "names a dimension twice").actual(input);
  int64_t columns = 1;
  for (const int32_t axis : reduced) {
    if (!input[axis].is_constant()) throw planner.bad_input(0, "varies along axis " + std::to_string(axis));
    if (input[axis].offset <= 0) throw planner.bad_input(0, "has no elements along axis " + std::to_string(axis));
    if (columns > INT64_MAX / input[axis].offset) throw planner.bad_input(0, "has too many elements");
    columns *= input[axis].offset;
  }
  const tn::Spec output = reduced_shape(attributes, input);
  planner.output(0, output);
}

// The input with its reduced dimensions behind the `leading` others, which are the rows of a program.
struct Rows {
  tn::Tensor input;
  int32_t leading;
  int64_t columns;  // elements of a row
};
Rows rows_of(const tn::Attributes& attributes, tn::Builder& body) {
  const tn::Tensor input = body.input(0);
  const int32_t rank = input.spec().rank();
  const std::vector<int32_t> reduced = reduced_axes(attributes, input.spec());
  std::vector<int32_t> order;
  for (int32_t i = 0; i < rank; ++i)
    if (!std::binary_search(reduced.begin(), reduced.end(), i)) order.push_back(i);
  Rows rows = {input, static_cast<int32_t>(order.size()), 1};
  order.insert(order.end(), reduced.begin(), reduced.end());
  if (!std::is_sorted(order.begin(), order.end())) rows.input = body.transpose(input, order);
  for (const int32_t axis : reduced) rows.columns *= input.spec()[axis].offset;
  return rows;
}

// Sets the output, of one number for each row.
void output_rows(const tn::Attributes& attributes, tn::Builder& body, const tn::Tensor& result) {
  const tn::Spec shape = reduced_shape(attributes, body.input(0).spec());
  body.output(0, result.spec().same_shape(shape) ? result : result.view(shape));
}

struct Row {
  double columns;
  const tn::Attributes& attributes;
};

// A layer made of per_row(x, row), which reduces x [rows, columns] to [rows], and gradient(g, row), the gradient of x.
template <typename Formula>
struct Reduction {
  static void describe(tn::LayerDescription& d) {
    describe_axes(d, Formula::kType, Formula::kDoc);
    Formula::declare(d);
  }

  static void plan(tn::Planner& planner) { plan_reduction(planner); }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const Rows rows = rows_of(attributes, body);
    tn::Program forward;
    const Float x = forward.full();
    const Row row = {static_cast<double>(rows.columns), attributes};
    forward.output(Formula::per_row(x, row));
    tn::GradientProgram backward(forward);
    backward.output(Formula::gradient(backward, row));
    output_rows(attributes, body, body.pointwise(forward, {rows.input}, rows.leading, &backward).front());
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

// Each step multiplies the first half of a row with the second one, so the derivative, the product of the other
// elements, is right where elements are 0.
struct Product {
  static void describe(tn::LayerDescription& d) {
    describe_axes(d, "product", "The product along an axis, or of all elements of a sample.");
  }

  static void plan(tn::Planner& planner) { plan_reduction(planner); }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const Rows rows = rows_of(attributes, body);
    tn::Spec shape = rows.input.spec().leading(rows.leading);
    shape.push_back(rows.columns);
    tn::Tensor left = rows.input.view(shape);
    tn::Program multiply;
    const Float factor = multiply.full();
    multiply.output(factor * multiply.full());
    for (int64_t columns = rows.columns; columns > 1; columns -= columns / 2) {
      const int64_t half = columns / 2;
      const int32_t axis = rows.leading;
      const std::vector<tn::Tensor> halves{body.slice(left, axis, 0, half), body.slice(left, axis, half, half)};
      const tn::Tensor products = body.pointwise(multiply, halves, rows.leading).front();
      left = columns % 2 == 0 ? products : body.concat({products, body.slice(left, axis, columns - 1, 1)}, axis);
    }
    output_rows(attributes, body, left);
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.reductions", "0.1.0", "Sum, product, mean, extremes, spread and length along axes", "Apache-2.0");
  plugin.layer<Reduction<Sum>>();
  plugin.layer<Reduction<Mean>>();
  plugin.layer<Reduction<Max>>();
  plugin.layer<Reduction<Min>>();
  plugin.layer<Reduction<Variance>>();
  plugin.layer<Reduction<StandardDeviation>>();
  plugin.layer<Reduction<Norm>>();
  plugin.layer<Reduction<LogSumExp>>();
  plugin.layer<Product>();
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
