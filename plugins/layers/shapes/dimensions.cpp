// Layers that remove dimensions of length 1, add them, or join and part values along a new one.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "axes.h"

namespace tenon::shapes {

std::vector<int32_t> axes_in(const tn::Attributes& attributes, const tn::Spec& spec) {
  std::vector<int32_t> axes;
  if (attributes.has("axes")) {
    for (const int64_t axis : attributes.integers("axes")) axes.push_back(spec.axis(axis));
  } else {
    for (int32_t i = 1; i < spec.rank(); ++i) axes.push_back(i);
  }
  return axes;
}

std::vector<int32_t> checked_axes(const tn::Planner& planner) {
  const tn::Attributes attributes = planner.attributes();
  const tn::Spec input = planner.input(0);
  if (input.rank() == 0) throw planner.bad_input(0, "must have a dimension for the samples");
  if (attributes.has("axes")) {
    if (attributes.integers("axes").empty()) throw tn::Failure(TN_INVALID, "axes", "is empty").actual(input);
    for (const int64_t axis : attributes.integers("axes")) planner.axis_of(0, axis);
  }
  std::vector<int32_t> axes = axes_in(attributes, input);
  std::vector<int32_t> sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    throw tn::Failure(TN_INVALID, "axes", "names a dimension twice").actual(input);
  return axes;
}

namespace {

tn::Spec without(const tn::Spec& spec, const std::vector<int32_t>& axes) {
  tn::Spec result({}, spec.dtype());
  for (int32_t i = 0; i < spec.rank(); ++i)
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) result.push_back(spec[i]);
  return result;
}

// A new dimension of length 1 at place `axis` of the result.
tn::Spec with_one(const tn::Spec& spec, int32_t axis) {
  tn::Spec result({}, spec.dtype());
  for (int32_t i = 0; i <= spec.rank(); ++i) result.push_back(i == axis ? tn::Dim(1) : spec[i < axis ? i : i - 1]);
  return result;
}

tn::Attribute new_axis() {
  return tn::int_attribute("axis", 1).doc(
      "place of the new dimension in the output; negative ones count from the end, 0 is the samples");
}

// The place of a new dimension, of a value with `rank` dimensions.
int32_t new_axis_in(const tn::Attributes& attributes, int32_t rank) {
  const int64_t axis = attributes.integer("axis");
  return static_cast<int32_t>(axis < 0 ? axis + rank + 1 : axis);
}
int32_t checked_new_axis(const tn::Planner& planner) {
  const int64_t given = planner.attributes().integer("axis");
  const int32_t rank = planner.input(0).rank();
  if (rank == 0) throw planner.bad_input(0, "must have a dimension for the samples");
  if (rank == TN_MAX_RANK) throw planner.bad_input(0, "has too many dimensions for one more", TN_UNSUPPORTED);
  if (given == 0 || given > rank || given < -rank)
    throw planner.bad_input(0, "takes no new dimension at axis " + std::to_string(given));
  return new_axis_in(planner.attributes(), rank);
}

struct Squeeze {
  static void describe(tn::LayerDescription& d) {
    d.type("squeeze", "The same elements without dimensions of length 1: those of axes, or all of a sample.");
    d.input("input", "[samples, ...]", TN_PORT_ANY);
    d.output("output", "the shape of the input without the dimensions", TN_PORT_ANY);
    d.attribute(tn::ints_attribute("axes").doc(
        "dimensions of length 1; negative ones count from the end; absent: all of a sample that have it"));
  }

  static std::vector<int32_t> axes(const tn::Attributes& attributes, const tn::Spec& input) {
    std::vector<int32_t> ones;
    for (const int32_t axis : axes_in(attributes, input))
      if (input[axis].same(1)) ones.push_back(axis);
    return ones;
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec input = planner.input(0);
    const std::vector<int32_t> named = checked_axes(planner);
    for (const int32_t axis : named)
      if (planner.attributes().has("axes") && !input[axis].same(1))
        throw planner.bad_input(0, "has another length than 1 along axis " + std::to_string(axis));
    planner.output(0, without(input, axes(planner.attributes(), input)));
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Tensor input = body.input(0);
    body.output(0, input.view(without(input.spec(), axes(attributes, input.spec()))));
  }
};

struct Unsqueeze {
  static void describe(tn::LayerDescription& d) {
    d.type("unsqueeze", "The same elements with a further dimension, of length 1.");
    d.input("input", "[samples, ...]", TN_PORT_ANY);
    d.output("output", "the shape of the input with the dimension", TN_PORT_ANY);
    d.attribute(new_axis());
  }

  static void plan(tn::Planner& planner) {
    const int32_t axis = checked_new_axis(planner);
    planner.output(0, with_one(planner.input(0), axis));
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Tensor input = body.input(0);
    body.output(0, input.view(with_one(input.spec(), new_axis_in(attributes, input.spec().rank()))));
  }
};

struct Stack {
  static void describe(tn::LayerDescription& d) {
    d.type("stack", "Joins inputs of one shape along a new dimension: output_i is input i.");
    d.input("inputs", "[samples, ...], equal shapes", TN_PORT_VARIADIC);
    d.output("output", "the shape of an input with one dimension more, as long as the number of inputs");
    d.attribute(new_axis());
  }

  static void plan(tn::Planner& planner) {
    const int32_t axis = checked_new_axis(planner);
    for (uint32_t i = 1; i < planner.inputs_count(); ++i)
      if (!planner.input(i).same_shape(planner.input(0)))
        throw planner.bad_input(i, "number " + std::to_string(i) + " must have the shape of number 0")
            .expected(planner.input(0));
    planner.output(0, with_one(planner.input(0), axis).with(axis, planner.inputs_count()));
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Spec input = body.input(0).spec();
    const int32_t axis = new_axis_in(attributes, input.rank());
    std::vector<tn::Tensor> values;
    for (uint32_t i = 0; const std::optional<tn::Tensor> next = body.optional_input(0, i); ++i)
      values.push_back(next->view(with_one(input, axis)));
    body.output(0, body.concat(values, axis));
  }
};

struct Unstack {
  static void describe(tn::LayerDescription& d) {
    d.type("unstack", "The elements along an axis one by one: output number i is element i.");
    d.input("input", "[samples, ...]", TN_PORT_ANY);
    d.output("parts", "the shape of the input without the axis", TN_PORT_ANY | TN_PORT_VARIADIC);
    d.attribute(tn::int_attribute("axis", 1).doc("dimension; negative ones count from the end, 0 is the samples"));
  }

  static void plan(tn::Planner& planner) {
    const int32_t axis = planner.axis_of(0, planner.attributes().integer("axis"));
    const int64_t length = length_of(planner, 0, axis);
    if (length < 1 || length > kMostParts)
      throw planner.bad_input(0, "has " + std::to_string(length) + " elements along axis " + std::to_string(axis) +
                                     "; expected 1 to " + std::to_string(kMostParts));
    const tn::Spec part = without(planner.input(0), {axis});
    for (uint32_t i = 0; i < length; ++i) planner.output(i, part);
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Tensor input = body.input(0);
    const int32_t axis = input.spec().axis(attributes.integer("axis"));
    const tn::Spec part = without(input.spec(), {axis});
    for (uint32_t i = 0; i < input.spec()[axis].offset; ++i) body.output(i, body.slice(input, axis, i, 1).view(part));
  }

 private:
  static constexpr int64_t kMostParts = 65536;
};

}  // namespace

void add_dimensions(tn::Plugin& plugin) {
  plugin.layer<Squeeze>();
  plugin.layer<Unsqueeze>();
  plugin.layer<Stack>();
  plugin.layer<Unstack>();
}

}  // namespace tenon::shapes
