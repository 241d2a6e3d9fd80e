// Layers that move elements and compute nothing: reshape, transpose, concat, split, slice.
// SPDX-License-Identifier: Apache-2.0
#include "axes.h"

namespace tenon::shapes {

namespace {

struct Reshape {
  static void describe(tn::LayerDescription& d) {
    d.type("reshape", "The same elements in another shape: output = input read as [samples, shape...], row-major.");
    d.input("input", "[samples, ...]", TN_PORT_ANY);
    d.output("output", "[samples, shape...]", TN_PORT_ANY);
    d.attribute(tn::ints_attribute("shape").required().at_least(-1).doc(
        "dimensions of one sample; one of them may be -1 and is then what is left"));
  }

  static tn::Spec shape_of(const tn::Spec& input, int64_t elements, const std::vector<int64_t>& wanted) {
    int64_t known = 1;
    int64_t open = 0;
    for (const int64_t size : wanted) {
      if (size < 0) ++open;
      if (size > 0 && known > INT64_MAX / size) throw tn::Failure(TN_INVALID, "shape", "has too many elements");
      if (size >= 0) known *= size;
    }
    const bool fits = open == 0 ? known == elements : open == 1 && known > 0 && elements % known == 0;
    tn::Spec result({input[0]}, input.dtype());
    for (const int64_t size : wanted) result.push_back(size < 0 && fits ? elements / known : size);
    if (!fits)
      throw tn::Failure(TN_INVALID, "shape",
                        "does not hold the " + std::to_string(elements) +
                            " elements of a sample, or leaves more than "
                            "one dimension open")
          .actual(input);
    return result;
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec input = planner.input(0);
    if (input.rank() == 0) throw planner.bad_input(0, "must have a dimension for the samples");
    planner.output(0, shape_of(input, planner.elements(0, 1), planner.attributes().integers("shape")));
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Tensor input = body.input(0);
    const tn::Spec spec = input.spec();
    int64_t elements = 1;
    for (int32_t i = 1; i < spec.rank(); ++i) elements *= spec[i].offset;
    body.output(0, input.view(shape_of(spec, elements, attributes.integers("shape"))));
  }
};

struct Transpose {
  static void describe(tn::LayerDescription& d) {
    d.type("transpose", "Dimensions in another order: dimension i of the output is dimension axes[i] of the input.");
    d.input("input", "[samples, ...]", TN_PORT_ANY);
    d.output("output", "the input's dimensions in the order of axes", TN_PORT_ANY);
    d.attribute(tn::ints_attribute("axes").required().at_least(0).doc(
        "a permutation of the input's dimensions that begins with 0, the samples"));
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec input = planner.input(0);
    const std::vector<int64_t> axes = planner.attributes().integers("axes");
    std::vector<bool> seen(static_cast<size_t>(input.rank()), false);
    bool right = axes.size() == seen.size() && !axes.empty() && axes[0] == 0;
    for (const int64_t axis : axes) {
      right = right && axis < input.rank() && !seen[static_cast<size_t>(axis)];
      if (right) seen[static_cast<size_t>(axis)] = true;
    }
    if (!right)
      throw tn::Failure(TN_INVALID, "axes", "must be a permutation of the input's dimensions that begins with 0")
          .actual(input);
    tn::Spec output({}, input.dtype());
    for (const int64_t axis : axes) output.push_back(input[static_cast<int32_t>(axis)]);
    planner.output(0, output);
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    std::vector<int32_t> axes;
    for (const int64_t axis : attributes.integers("axes")) axes.push_back(static_cast<int32_t>(axis));
    body.output(0, body.transpose(body.input(0), axes));
  }
};

struct Concat {
  static void describe(tn::LayerDescription& d) {
    d.type("concat", "Concatenates the inputs along an axis; they are equal in all other dimensions.");
    d.input("inputs", "[samples, ...]", TN_PORT_VARIADIC);
    d.output("output", "like the inputs; along the axis, as long as all of them together");
    d.attribute(tn::int_attribute("axis", -1).doc("dimension; negative ones count from the end, 0 is the samples"));
  }

  static void plan(tn::Planner& planner) {
    const int32_t axis = planner.axis_of(0, planner.attributes().integer("axis"));
    int64_t length = 0;
    for (uint32_t i = 0; i < planner.inputs_count(); ++i) {
      if (planner.axis_of(i, planner.attributes().integer("axis")) != axis)
        throw planner.bad_input(i, "has another number of dimensions than the first").expected(planner.input(0));
      const int64_t own = length_of(planner, i, axis);
      const tn::Spec fitting = planner.input(0).with(axis, own);
      if (!planner.input(i).same_shape(fitting))
        throw planner
            .bad_input(i, "number " + std::to_string(i) + " differs from number 0 beside axis " + std::to_string(axis))
            .expected(fitting);
      if (length > INT64_MAX - own) throw planner.bad_input(i, "makes the output longer than 2^63 - 1");
      length += own;
    }
    planner.output(0, planner.input(0).with(axis, length));
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    std::vector<tn::Tensor> values{body.input(0)};
    for (uint32_t i = 1;; ++i) {
      const std::optional<tn::Tensor> next = body.optional_input(0, i);
      if (!next) break;
      values.push_back(*next);
    }
    body.output(0, body.concat(values, values[0].spec().axis(attributes.integer("axis"))));
  }
};

struct Slice {
  static void describe(tn::LayerDescription& d) {
    d.type("slice", "Elements start to start + length of the input along an axis.");
    d.input("input", "[samples, ...]", TN_PORT_ANY);
    d.output("output", "like the input; along the axis, length", TN_PORT_ANY);
    d.attribute(tn::int_attribute("axis", -1).doc("dimension; negative ones count from the end, 0 is the samples"));
    d.attribute(tn::int_attribute("start", 0).at_least(0).doc("the first element"));
    d.attribute(tn::int_attribute("length").required().at_least(1).doc("how many elements"));
  }

  static void plan(tn::Planner& planner) {
    const int32_t axis = planner.axis_of(0, planner.attributes().integer("axis"));
    const int64_t size = length_of(planner, 0, axis);
    const int64_t start = planner.attributes().integer("start");
    const int64_t length = planner.attributes().integer("length");
    if (start > size || length > size - start)
      throw planner.bad_input(0, "has " + std::to_string(size) + " elements along axis " + std::to_string(axis) +
                                     "; the slice begins at " + std::to_string(start) + " and takes " +
                                     std::to_string(length));
    planner.output(0, planner.input(0).with(axis, length));
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Tensor input = body.input(0);
    body.output(0, body.slice(input, input.spec().axis(attributes.integer("axis")), attributes.integer("start"),
                              attributes.integer("length")));
  }
};

struct Split {
  static void describe(tn::LayerDescription& d) {
    d.type("split",
           "The input cut along an axis; output number i is part i, of length sizes[i] or, with parts, one of "
           "so many parts of equal length.");
    d.input("input", "[samples, ...]", TN_PORT_ANY);
    d.output("parts", "like the input; along the axis, its part", TN_PORT_ANY | TN_PORT_VARIADIC);
    d.attribute(tn::int_attribute("axis", -1).doc("dimension; negative ones count from the end, 0 is the samples"));
    d.attribute(tn::int_attribute("parts").at_least(1).at_most(kMostParts).doc("the number of parts of equal length"));
    d.attribute(
        tn::ints_attribute("sizes").at_least(1).doc("the lengths of the parts; their sum is the axis's length"));
  }

  static void plan(tn::Planner& planner) {
    const tn::Attributes attributes = planner.attributes();
    const int32_t axis = planner.axis_of(0, attributes.integer("axis"));
    const int64_t size = length_of(planner, 0, axis);
    if (attributes.has("parts") == attributes.has("sizes"))
      throw tn::Failure(TN_INVALID, "parts", "needs exactly one of \"parts\" and \"sizes\"");
    const auto refuse = [&](const std::string& what) {
      return planner.bad_input(0, "has " + std::to_string(size) + " elements along axis " + std::to_string(axis) +
                                      ", which are not " + what);
    };
    if (attributes.has("parts") && size % attributes.integer("parts") != 0)
      throw refuse(std::to_string(attributes.integer("parts")) + " equal parts");
    const std::vector<int64_t> lengths = lengths_of(attributes, size);
    if (lengths.empty() || static_cast<int64_t>(lengths.size()) > kMostParts)
      throw tn::Failure(
          TN_INVALID, "sizes",
          "has " + std::to_string(lengths.size()) + " parts; expected 1 to " + std::to_string(kMostParts));
    int64_t left = size;
    for (const int64_t length : lengths) left = length > left ? -1 : left - length;
    if (left != 0) throw refuse("the sum of \"sizes\"");
    for (uint32_t i = 0; i < lengths.size(); ++i) planner.output(i, planner.input(0).with(axis, lengths[i]));
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Tensor input = body.input(0);
    const int32_t axis = input.spec().axis(attributes.integer("axis"));
    const std::vector<int64_t> lengths = lengths_of(attributes, input.spec()[axis].offset);
    int64_t start = 0;
    for (uint32_t i = 0; i < lengths.size(); ++i) {
      body.output(i, body.slice(input, axis, start, lengths[i]));
      start += lengths[i];
    }
  }

 private:
  static constexpr int64_t kMostParts = 65536;

  static std::vector<int64_t> lengths_of(const tn::Attributes& attributes, int64_t size) {
    if (attributes.has("sizes")) return attributes.integers("sizes");
    const int64_t parts = attributes.integer("parts");
    return std::vector<int64_t>(static_cast<size_t>(parts), size / parts);
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.shapes", "0.1.0", "Layers that move elements", "Apache-2.0");
  plugin.layer<Reshape>();
  plugin.layer<Transpose>();
  plugin.layer<Concat>();
  plugin.layer<Slice>();
  plugin.layer<Split>();
  add_dimensions(plugin);
  add_positions(plugin);
}

}  // namespace

}  // namespace tenon::shapes

const tn_plugin* tenon_plugin() { return tn::entry<tenon::shapes::describe>(); }
