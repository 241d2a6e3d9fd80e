// Layers that sort along an axis, and sums up to each element. SPDX-License-Identifier: Apache-2.0
#include <string>

#include "axis.h"

namespace tenon::order {

namespace {

uint32_t direction(bool descending) { return descending ? TN_SORT_DESCENDING : 0; }

// Values and positions of the first `count` elements along an axis in sorted order; -1: of all.
struct Sorted {
  tn::Tensor values, positions;
};
Sorted sorted(tn::Builder& body, int32_t axis, uint32_t flags, int64_t count) {
  const tn::Tensor rows = exchanged(body, body.input(0), axis);
  const tn::Tensor positions = body.argsort(rows, flags, count);
  return {exchanged(body, elements_at(body, rows, positions), axis), exchanged(body, positions, axis)};
}

struct Sort {
  static void describe(tn::LayerDescription& d) {
    d.type(
        "sort",
        "The elements along an axis from the smallest to the largest. Equal ones are in the order of their positions, "
        "NaN comes last.");
    d.input("input", "[samples, ...]");
    d.output("output", "the shape of the input");
    d.output("indices", "the shape of the input, integers: the positions, from 0, of the elements in the input");
    d.attribute(axis_attribute());
    d.attribute(tn::bool_attribute("descending", false).doc("from the largest"));
  }
  static void plan(tn::Planner& planner) {
    checked_axis(planner, 0);
    planner.output(0, planner.input(0).as(TN_COMPUTE));
    planner.output(1, planner.input(0).as(TN_I64));
  }
  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const int32_t axis = body.input(0).spec().axis(attributes.integer("axis"));
    const Sorted made = sorted(body, axis, direction(attributes.flag("descending")), -1);
    body.output(0, made.values);
    body.output(1, made.positions);
  }
};

struct Argsort {
  static void describe(tn::LayerDescription& d) {
    d.type(
        "argsort",
        "The positions, from 0, that sort the elements along an axis. Equal ones are in the order of their positions, "
        "NaN comes last. No derivative.");
    d.input("input", "[samples, ...]");
    d.output("output", "the shape of the input, integers");
    d.attribute(axis_attribute());
    d.attribute(tn::bool_attribute("descending", false).doc("from the largest"));
  }
  static void plan(tn::Planner& planner) {
    checked_axis(planner, 0);
    planner.output(0, planner.input(0).as(TN_I64));
  }
  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const int32_t axis = body.input(0).spec().axis(attributes.integer("axis"));
    const tn::Tensor rows = exchanged(body, body.input(0), axis);
    const tn::Tensor positions = body.argsort(rows, direction(attributes.flag("descending")));
    body.output(0, exchanged(body, positions, axis));
  }
};

struct TopK {
  static void describe(tn::LayerDescription& d) {
    d.type(
        "top_k",
        "The k largest elements along an axis, from the largest. Equal ones are in the order of their positions, NaN "
        "comes last.");
    d.input("input", "[samples, ...]");
    d.output("output", "the shape of the input with k elements along the axis");
    d.output("indices", "the shape of the output, integers: the positions, from 0, of the elements in the input");
    d.attribute(tn::int_attribute("k").required().at_least(1).doc("number of elements"));
    d.attribute(axis_attribute());
    d.attribute(tn::bool_attribute("smallest", false).doc("the k smallest elements, from the smallest"));
  }
  static void plan(tn::Planner& planner) {
    const int32_t axis = checked_axis(planner, 0);
    const tn::Spec input = planner.input(0);
    const int64_t k = planner.attributes().integer("k");
    if (k > input[axis].offset)
      throw planner.bad_input(0, "has fewer than " + std::to_string(k) + " elements along axis " +
                                     std::to_string(planner.attributes().integer("axis")));
    const tn::Spec output = input.with(axis, k);
    planner.output(0, output.as(TN_COMPUTE));
    planner.output(1, output.as(TN_I64));
  }
  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const int32_t axis = body.input(0).spec().axis(attributes.integer("axis"));
    const Sorted made = sorted(body, axis, direction(!attributes.flag("smallest")), attributes.integer("k"));
    body.output(0, made.values);
    body.output(1, made.positions);
  }
};

// The shape without an axis.
tn::Spec without(const tn::Spec& spec, int32_t axis) {
  tn::Spec result = spec.leading(axis);
  for (int32_t i = axis + 1; i < spec.rank(); ++i) result.push_back(spec[i]);
  return result;
}

// The position of one extreme element along an axis.
template <bool kMaximum>
struct Extreme {
  static void describe(tn::LayerDescription& d) {
    d.type(kMaximum ? "argmax" : "argmin",
           kMaximum
               ? "The position, from 0, of the largest element along an axis: of equal ones the first, of a NaN only "
                 "if there is nothing else. No derivative."
               : "The position, from 0, of the smallest element along an axis: of equal ones the first, of a NaN "
                 "only if there is nothing else. No derivative.");
    d.input("input", "[samples, ...]");
    d.output("output", "the shape of the input without the axis, integers");
    d.attribute(axis_attribute());
  }
  static void plan(tn::Planner& planner) {
    const int32_t axis = checked_axis(planner, 0);
    planner.output(0, without(planner.input(0), axis).as(TN_I64));
  }
  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Spec input = body.input(0).spec();
    const int32_t axis = input.axis(attributes.integer("axis"));
    const tn::Tensor rows = exchanged(body, body.input(0), axis);
    body.output(0, exchanged(body, body.argsort(rows, direction(kMaximum), 1), axis).view(without(input, axis)));
  }
};

struct CumulativeSum {
  static void describe(tn::LayerDescription& d) {
    d.type("cumsum", "output_i = sum over j <= i of input_j along an axis.");
    d.input("input", "[samples, ...]");
    d.output("output", "the shape of the input");
    d.attribute(axis_attribute());
    d.attribute(tn::bool_attribute("exclusive", false).doc("without the element itself: over j < i"));
    d.attribute(tn::bool_attribute("reverse", false).doc("from the last element on: over j >= i"));
  }
  static void plan(tn::Planner& planner) {
    checked_axis(planner, 0);
    planner.output(0, planner.input(0).as(TN_COMPUTE));
  }
  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const int32_t axis = body.input(0).spec().axis(attributes.integer("axis"));
    const uint32_t flags =
        (attributes.flag("exclusive") ? TN_SUM_EXCLUSIVE : 0) | (attributes.flag("reverse") ? TN_SUM_REVERSE : 0);
    body.output(0, exchanged(body, body.prefix_sum(exchanged(body, body.input(0), axis), flags), axis));
  }
};

}  // namespace

tn::Tensor elements_at(tn::Builder& body, const tn::Tensor& values, const tn::Tensor& positions) {
  const tn::Spec shape = values.spec();
  const int64_t columns = shape.back().offset;
  tn::Dim all = shape[0].times(columns);  // the first dimension alone varies
  for (int32_t i = 1; i + 1 < shape.rank(); ++i) all = all.times(shape[i].offset);
  // Element p of row r is row r * columns + p of a table of single elements. Ints have 32 bits at least, so this holds
  // for values of up to 2^31 elements; above, ids are negative and end the step.
  tn::Program place;
  const tn::Int position = place.full<tn::Int>();
  place.output(select(tn::Int(0) <= position && position < columns, place.row() * columns + position, tn::Int(-1)));
  const tn::Tensor ids = body.pointwise(place, {positions}, shape.rank() - 1).front();
  return body.gather(values.view(tn::Spec({all})), ids);
}

void add_sorting(tn::Plugin& plugin) {
  plugin.layer<Sort>();
  plugin.layer<Argsort>();
  plugin.layer<TopK>();
  plugin.layer<Extreme<true>>();
  plugin.layer<Extreme<false>>();
  plugin.layer<CumulativeSum>();
}

}  // namespace tenon::order
