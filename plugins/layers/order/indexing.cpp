// Layers that choose elements by integers. SPDX-License-Identifier: Apache-2.0
#include <string>
#include <tenon/draft/numbers.hpp>

#include "axis.h"

namespace tenon::order {

namespace {

struct Gather {
  static void describe(tn::LayerDescription& d) {
    d.type("gather",
           "Elements along an axis by their positions, each place of the output its own: output_i = input_p with p = "
           "indices_i. A position that is not in the input ends the step with an error.");
    d.input("input", "[samples, ...]");
    d.input("indices", "integers: the shape of the input, with any size along the axis", TN_PORT_INTEGER);
    d.output("output", "the shape of the indices");
    d.attribute(axis_attribute());
  }
  static void plan(tn::Planner& planner) {
    const int32_t axis = checked_axis(planner, 0);
    const tn::Spec input = planner.input(0), indices = planner.input(1);
    bool fits = indices.rank() == input.rank();
    for (int32_t i = 0; fits && i < input.rank(); ++i) fits = i == axis || indices[i].same(input[i]);
    if (!fits)
      throw planner
          .bad_input(1, "must have the shape of the input, but along axis " +
                            std::to_string(planner.attributes().integer("axis")))
          .expected(input.as(indices.dtype()));
    planner.index_limit(1, input[axis].offset);
    planner.output(0, indices.as(TN_COMPUTE));
  }
  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const int32_t axis = body.input(0).spec().axis(attributes.integer("axis"));
    const tn::Tensor rows = exchanged(body, body.input(0), axis), positions = exchanged(body, body.input(1), axis);
    body.output(0, exchanged(body, elements_at(body, rows, positions), axis));
  }
};

struct IndexSelect {
  static void describe(tn::LayerDescription& d) {
    d.type("index_select", "Elements along an axis at fixed positions, in their order; a position may occur again.");
    d.input("input", "[samples, ...]");
    d.output("output", "the shape of the input with one element along the axis for each position");
    d.attribute(tn::ints_attribute("indices").required().doc("positions, from 0; negative ones count from the end"));
    d.attribute(axis_attribute());
  }
  static void plan(tn::Planner& planner) {
    const int32_t axis = checked_axis(planner, 0);
    const tn::Spec input = planner.input(0);
    const std::vector<int64_t> indices = planner.attributes().integers("indices");
    if (indices.empty()) throw tn::Failure(TN_INVALID, "indices", "has no position");
    for (const int64_t index : indices)
      if (index >= input[axis].offset || index < -input[axis].offset)
        throw planner.bad_input(0, "has no element " + std::to_string(index) + " along axis " +
                                       std::to_string(planner.attributes().integer("axis")));
    planner.output(0, input.with(axis, static_cast<int64_t>(indices.size())).as(TN_COMPUTE));
  }
  // The axis changes places with the samples, so that an element is a row of a table.
  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Spec input = body.input(0).spec();
    const int32_t axis = input.axis(attributes.integer("axis"));
    std::vector<int64_t> indices = attributes.integers("indices");
    for (int64_t& index : indices) index += index < 0 ? input[axis].offset : 0;
    const tn::Tensor chosen = body.constant(tn::Spec({static_cast<int64_t>(indices.size())}), indices);
    body.output(0, body.exchange(body.gather(body.exchange(body.input(0), 0, axis), chosen), 0, axis));
  }
};

struct OneHot : tn::DeclaresNumbers<OneHot> {
  static void describe(tn::LayerDescription& d) {
    d.type("one_hot", "output_c = 1 where the input is c, else 0, for each class c. No derivative.");
    d.input("input", "[samples, ...]: integers in [0, classes)", TN_PORT_INTEGER);
    d.output("output", "[samples, ..., classes]");
    d.attribute(tn::int_attribute("classes").required().at_least(1).doc("number of classes"));
  }
  static void plan(tn::Planner& planner) {
    const tn::Spec input = planner.input(0);
    if (input.rank() == 0) throw planner.bad_input(0, "must have a dimension for the samples");
    if (input.rank() == TN_MAX_RANK) throw planner.bad_input(0, "has too many dimensions for one more");
    planner.index_limit(0, planner.attributes().integer("classes"));
    tn::Spec output = input.as(TN_COMPUTE);
    output.push_back(planner.attributes().integer("classes"));
    planner.output(0, output);
  }
  static void numbers(tn::NumberDeclarer& declarer) { declarer.output(0, tn::Numbers::zero_or_one()); }
  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Tensor input = body.input(0);
    const int64_t classes = attributes.integer("classes");
    tn::Program compare;
    const tn::Int number = compare.per_row<tn::Int>();
    const tn::Float zero = compare.per_column();  // gives the grid its columns
    compare.output(select(number == compare.column(), tn::Float(1.0), zero));
    const tn::Tensor zeros = body.constant(tn::Spec({classes}), std::vector<double>(static_cast<size_t>(classes), 0.0));
    body.output(0, body.pointwise(compare, {input, zeros}, input.spec().rank()).front());
  }
};

}  // namespace

void add_indexing(tn::Plugin& plugin) {
  plugin.layer<Gather>();
  plugin.layer<IndexSelect>();
  plugin.layer<OneHot>();
}

}  // namespace tenon::order
