// Operands that no layer computes: a free parameter and a constant. SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <string>
#include <tenon/plugin.hpp>

namespace {

// What both types share: an output [rows, shape...] that holds the same numbers in every row. The rows are those of
// the input `like`, whose numbers are not read.

void describe_shape(tn::LayerDescription& d) {
  d.input("like", "[samples, ...]: only its shape is used; at least one element in a row", TN_PORT_ANY);
  d.output("output", "[samples, shape...], or of rows as like");
  d.attribute(
      tn::ints_attribute("shape").at_least(1).doc("of one row; [] is one number; absent: that of a row of like"));
}

// The shape of one row, all of it constant.
tn::Spec row_shape(const tn::Attributes& attributes, const tn::Spec& like) {
  tn::Spec shape;
  if (!attributes.has("shape")) {
    for (int32_t i = 1; i < like.rank(); ++i) shape.push_back(like[i]);
    return shape;
  }
  for (const int64_t size : attributes.integers("shape")) shape.push_back(size);
  return shape;
}

int64_t elements(const tn::Spec& shape) {
  int64_t product = 1;
  for (int32_t i = 0; i < shape.rank(); ++i) {
    if (product > std::numeric_limits<int64_t>::max() / shape[i].offset)
      throw tn::Failure(TN_INVALID, "shape", "has more than 2^63 - 1 elements");
    product *= shape[i].offset;
  }
  return product;
}

// Declares the output and returns the shape of one row.
tn::Spec plan_rows(tn::Planner& planner) {
  const tn::Spec like = planner.input(0);
  if (like.rank() == 0) throw planner.bad_input(0, "must have a dimension for the samples");
  planner.elements(0, 1);
  const tn::Attributes attributes = planner.attributes();
  if (attributes.has("shape") && attributes.integers("shape").size() >= TN_MAX_RANK)
    throw tn::Failure(TN_INVALID, "shape",
                      "has more than " + std::to_string(TN_MAX_RANK - 1) + " dimensions: the output has one more");
  const tn::Spec shape = row_shape(attributes, like);
  elements(shape);
  tn::Spec output({like[0]});
  for (int32_t i = 0; i < shape.rank(); ++i) output.push_back(shape[i]);
  planner.output(0, output);
  return shape;
}

// Repeats `row`, a tensor of the shape of one row, for each row of like. A program gets its rows from an operand: one
// number of each row of like, which is declared but has no part in the formula. The derivative by `row` is the sum over
// the rows.
void lower_rows(tn::Builder& body, const tn::Tensor& row) {
  const tn::Tensor like = body.input(0);
  const tn::Spec rows({like.spec()[0]});
  int64_t columns = 1;
  for (int32_t i = 1; i < like.spec().rank(); ++i) columns *= like.spec()[i].offset;
  const tn::Tensor flat = like.view(tn::Spec({rows[0], columns}));
  const tn::Tensor first = (columns == 1 ? flat : body.slice(flat, 1, 0, 1)).view(rows);
  tn::Program repeat;
  if (first.spec().is_float())
    repeat.per_row();
  else
    repeat.per_row<tn::Int>();
  repeat.output(select(repeat.row() < 0, 0.0, repeat.per_column()));
  body.output(0, body.pointwise(repeat, {first, row}, 1).front());
}

struct Parameter {
  static void describe(tn::LayerDescription& d) {
    d.type("parameter",
           "A trained tensor, the same for every sample: a vector that is added to all rows, a factor, a first state. "
           "output[i] = value for each row i of like; the gradient of value is the sum over the rows. It starts at 0, "
           "or as param.value.init says.");
    describe_shape(d);
    d.parameter("value");
  }
  static void plan(tn::Planner& planner) {
    planner.parameter("value", plan_rows(planner), tn::constant_initializer(0));
  }
  static void lower(const tn::Attributes&, tn::Builder& body) { lower_rows(body, body.parameter(0)); }
};

struct Constant {
  static void describe(tn::LayerDescription& d) {
    d.type("constant", "Given numbers, the same for every sample: output[i] = value for each row i of like.");
    describe_shape(d);
    d.attribute(tn::floats_attribute("value").required().doc("one number, or all of a row in row-major order"));
  }
  static void plan(tn::Planner& planner) {
    const int64_t count = elements(plan_rows(planner));
    const auto values = planner.attributes().numbers("value");
    if (values.size() != 1 && values.size() != static_cast<size_t>(count))
      throw tn::Failure(TN_INVALID, "value",
                        "has " + std::to_string(values.size()) + " numbers; expected 1 or " + std::to_string(count));
    for (const double value : values)
      if (!(std::abs(value) <= std::numeric_limits<float>::max()))
        throw tn::Failure(TN_INVALID, "value", "has a number that float32 cannot hold");
  }
  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Spec shape = row_shape(attributes, body.input(0).spec());
    const auto given = attributes.numbers("value");
    std::vector<double> values(given.begin(), given.end());
    if (values.size() == 1) values.assign(static_cast<size_t>(elements(shape)), values.front());
    lower_rows(body, body.constant(shape, values));
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.operands", "0.1.0", "Free parameters and constants", "Apache-2.0");
  plugin.layer<Parameter>();
  plugin.layer<Constant>();
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
