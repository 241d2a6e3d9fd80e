// Layers whose elements along an axis are elements of the input at fixed positions; they expand to index_select.
// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <string>

#include "axes.h"

namespace tenon::shapes {

namespace {

// Element i of `length` along an axis of the output is element source(i) of the input.
struct Along {
  int32_t axis;
  int64_t length;
  std::function<int64_t(int64_t)> source;
};

// A position is a number of 64 bits in the model's memory.
constexpr int64_t kMostPositions = int64_t{1} << 24;

// A layer made of the axes that along(attributes, spec) returns, after check(planner).
template <typename Formula>
struct ByPositions {
  static void describe(tn::LayerDescription& d) {
    d.type(Formula::kType, Formula::kDoc);
    d.input("input", "[samples, ...]");
    d.output("output", Formula::kOutput);
    Formula::declare(d);
  }

  static void plan(tn::Planner& planner) {
    planner.elements(0, 1);
    Formula::check(planner);
    tn::Spec output = planner.input(0);
    for (const Along& along : Formula::along(planner.attributes(), output)) {
      if (along.length > kMostPositions)
        throw planner.bad_input(0,
                                "would have " + std::to_string(along.length) + " elements along axis " +
                                    std::to_string(along.axis) + "; at most " + std::to_string(kMostPositions) +
                                    " are offered",
                                TN_UNSUPPORTED);
      output = output.with(along.axis, along.length);
    }
    planner.output(0, output);
  }

  static bool expand(tn::Expander& expander) {
    if (!Formula::by_positions(expander.attributes())) return false;
    tn_ref value = expander.input(0);
    for (const Along& along : Formula::along(expander.attributes(), expander.spec(0))) {
      std::vector<int64_t> positions;
      for (int64_t i = 0; i < along.length; ++i) positions.push_back(along.source(i));
      value = expander.layer("index_select", {value},
                             {{"axis", tn::int_value(along.axis)}, {"indices", tn::ints_value(positions)}});
    }
    expander.output(0, value);
    return true;
  }
};

// Layers that always are an expansion, and layers of one axis.
struct Always {
  static bool by_positions(const tn::Attributes&) { return true; }
};
struct OfOneAxis : Always {
  static void declare_axis(tn::LayerDescription& d) {
    d.attribute(tn::int_attribute("axis", -1).doc("dimension; negative ones count from the end, 0 is the samples"));
  }
  static void check_axis(const tn::Planner& planner) { planner.axis_of(0, planner.attributes().integer("axis")); }
};

struct Flip : Always {
  static constexpr const char* kType = "flip";
  static constexpr const char* kDoc = "The elements along axes in reverse order.";
  static constexpr const char* kOutput = "the shape of the input";
  static void declare(tn::LayerDescription& d) {
    d.attribute(tn::ints_attribute("axes").required().doc("dimensions; negative ones count from the end"));
  }
  static void check(const tn::Planner& planner) { checked_axes(planner); }
  static std::vector<Along> along(const tn::Attributes& attributes, const tn::Spec& input) {
    std::vector<Along> result;
    for (const int32_t axis : axes_in(attributes, input)) {
      const int64_t length = input[axis].offset;
      result.push_back({axis, length, [=](int64_t i) { return length - 1 - i; }});
    }
    return result;
  }
};

struct Roll : OfOneAxis {
  static constexpr const char* kType = "roll";
  static constexpr const char* kDoc =
      "The elements along an axis moved by shift places; those that leave at the end come back at the start.";
  static constexpr const char* kOutput = "the shape of the input";
  static void declare(tn::LayerDescription& d) {
    declare_axis(d);
    d.attribute(tn::int_attribute("shift").required().doc("places; negative ones towards the start"));
  }
  static void check(const tn::Planner& planner) { check_axis(planner); }
  static std::vector<Along> along(const tn::Attributes& attributes, const tn::Spec& input) {
    const int32_t axis = input.axis(attributes.integer("axis"));
    const int64_t length = input[axis].offset, shift = attributes.integer("shift") % length;
    return {{axis, length, [=](int64_t i) { return (i - shift + length) % length; }}};
  }
};

struct Tile : Always {
  static constexpr const char* kType = "tile";
  static constexpr const char* kDoc = "Copies of the input one after another: [1, 2] twice is [1, 2, 1, 2].";
  static constexpr const char* kOutput = "the shape of the input, each dimension times its number of copies";
  static void declare(tn::LayerDescription& d) {
    d.attribute(tn::ints_attribute("copies").required().at_least(1).doc(
        "for the last dimension, or for the last ones in their order"));
  }
  static void check(const tn::Planner& planner) {
    const size_t count = planner.attributes().integers("copies").size();
    const int32_t rank = planner.input(0).rank();
    if (count == 0 || count >= static_cast<size_t>(rank))
      throw tn::Failure(TN_INVALID, "copies",
                        "has " + std::to_string(count) + " numbers; expected 1 to " + std::to_string(rank - 1))
          .actual(planner.input(0));
    for (const int64_t copies : planner.attributes().integers("copies"))
      if (copies > kMostPositions)
        throw tn::Failure(TN_UNSUPPORTED, "copies", "are more than " + std::to_string(kMostPositions));
  }
  static std::vector<Along> along(const tn::Attributes& attributes, const tn::Spec& input) {
    const std::vector<int64_t> copies = attributes.integers("copies");
    std::vector<Along> result;
    for (size_t i = 0; i < copies.size(); ++i) {
      const int32_t axis = input.rank() - static_cast<int32_t>(copies.size() - i);
      const int64_t length = input[axis].offset;
      if (copies[i] > 1) result.push_back({axis, multiplied(length, copies[i]), [=](int64_t k) { return k % length; }});
    }
    return result;
  }
  // At most one more than kMostPositions, which `times` does not exceed.
  static int64_t multiplied(int64_t length, int64_t times) {
    return length > kMostPositions ? kMostPositions + 1 : length * times;
  }
};

struct Repeat : OfOneAxis {
  static constexpr const char* kType = "repeat";
  static constexpr const char* kDoc = "Each element along an axis several times: [1, 2] twice is [1, 1, 2, 2].";
  static constexpr const char* kOutput = "the shape of the input; along the axis, times as long";
  static void declare(tn::LayerDescription& d) {
    declare_axis(d);
    d.attribute(tn::int_attribute("times")
                    .required()
                    .at_least(1)
                    .at_most(static_cast<double>(kMostPositions))
                    .doc("how often each element"));
  }
  static void check(const tn::Planner& planner) { check_axis(planner); }
  static std::vector<Along> along(const tn::Attributes& attributes, const tn::Spec& input) {
    const int32_t axis = input.axis(attributes.integer("axis"));
    const int64_t times = attributes.integer("times");
    return {{axis, Tile::multiplied(input[axis].offset, times), [=](int64_t i) { return i / times; }}};
  }
};

struct Pad {
  static constexpr const char* kType = "pad";
  static constexpr const char* kDoc =
      "Adds elements before and after those along axes. mode constant: value; edge: the first and the last element; "
      "reflect: the elements next to the end in reverse order, without the end itself, [1, 2, 3] with 2 before is "
      "[3, 2, 1, 2, 3]; symmetric: with it, [2, 1, 1, 2, 3]; wrap: those of the other end, [2, 3, 1, 2, 3].";
  static constexpr const char* kOutput = "the shape of the input; along each axis, before and after longer";
  static void declare(tn::LayerDescription& d) {
    d.attribute(
        tn::ints_attribute("axes").doc("dimensions; negative ones count from the end; absent: all of a sample"));
    d.attribute(tn::ints_attribute("before").required().at_least(0).doc("how many elements, for each axis"));
    d.attribute(tn::ints_attribute("after").required().at_least(0).doc("how many elements, for each axis"));
    d.attribute(tn::string_attribute("mode", "constant")
                    .one_of({"constant", "edge", "reflect", "symmetric", "wrap"})
                    .doc("what is added"));
    d.attribute(tn::float_attribute("value", 0).doc("of the mode constant"));
  }

  static bool by_positions(const tn::Attributes& attributes) {
    return std::string(attributes.text("mode")) != "constant";
  }

  static void check(const tn::Planner& planner) {
    const tn::Attributes attributes = planner.attributes();
    const tn::Spec input = planner.input(0);
    const std::vector<int32_t> axes = checked_axes(planner);
    for (const char* side : {"before", "after"}) {
      const std::vector<int64_t> added = attributes.integers(side);
      if (added.size() != axes.size())
        throw tn::Failure(
            TN_INVALID, side,
            "has " + std::to_string(added.size()) + " numbers for " + std::to_string(axes.size()) + " axes")
            .actual(input);
      for (size_t i = 0; i < axes.size(); ++i) {
        const int64_t length = input[axes[i]].offset, most = most_added(attributes.text("mode"), length);
        if (added[i] > most || length > kMostPositions)
          throw planner.bad_input(0, "has " + std::to_string(length) + " elements along axis " +
                                         std::to_string(axes[i]) + ", to which " + std::to_string(added[i]) +
                                         " cannot be added " + side + "; at most " + std::to_string(most));
      }
    }
  }
  static int64_t most_added(const std::string& mode, int64_t length) {
    return mode == "reflect" ? length - 1 : mode == "symmetric" || mode == "wrap" ? length : kMostPositions;
  }

  static std::vector<Along> along(const tn::Attributes& attributes, const tn::Spec& input) {
    const std::vector<int32_t> axes = axes_in(attributes, input);
    const std::vector<int64_t> before = attributes.integers("before"), after = attributes.integers("after");
    std::vector<Along> result;
    for (size_t i = 0; i < axes.size(); ++i) {
      if (before[i] == 0 && after[i] == 0) continue;
      const int64_t length = input[axes[i]].offset, first = before[i];
      result.push_back(
          {axes[i], first + length + after[i],
           [=, mode = std::string(attributes.text("mode"))](int64_t k) { return inside(mode, k - first, length); }});
    }
    return result;
  }
  // The position in [0, length) of what stands at `at`, which is less than 0 before and at least `length` after it.
  static int64_t inside(const std::string& mode, int64_t at, int64_t length) {
    if (at >= 0 && at < length) return at;
    if (mode == "edge") return at < 0 ? 0 : length - 1;
    if (mode == "wrap") return at < 0 ? at + length : at - length;
    const int64_t end = mode == "symmetric" ? 1 : 0;
    return at < 0 ? -at - end : 2 * (length - 1) - at + end;
  }
};

// In the mode constant it is a layer of its own.
struct PadLayer : ByPositions<Pad> {
  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const double value = attributes.number("value");
    const std::vector<int64_t> before = attributes.integers("before"), after = attributes.integers("after");
    tn::Tensor result = body.input(0);
    const std::vector<int32_t> axes = axes_in(attributes, result.spec());
    for (size_t i = 0; i < axes.size(); ++i) {
      if (before[i] == 0 && after[i] == 0) continue;
      const int64_t length = result.spec()[axes[i]].offset;
      result = body.pad(result, axes[i], before[i], after[i]);
      if (value == 0) continue;
      // Rows are what is before the axis: the added columns are the first and the last ones.
      int64_t inner = 1;
      for (int32_t k = axes[i] + 1; k < result.spec().rank(); ++k) inner *= result.spec()[k].offset;
      tn::Program program;
      const tn::Float x = program.full();
      const tn::Int column = program.column();
      program.output(select(column < before[i] * inner || column >= (before[i] + length) * inner, value, x));
      result = body.pointwise(program, {result}, axes[i]).front();
    }
    body.output(0, result);
  }
};

}  // namespace

void add_positions(tn::Plugin& plugin) {
  plugin.layer<ByPositions<Flip>>();
  plugin.layer<ByPositions<Roll>>();
  plugin.layer<ByPositions<Tile>>();
  plugin.layer<ByPositions<Repeat>>();
  plugin.layer<PadLayer>();
}

}  // namespace tenon::shapes
