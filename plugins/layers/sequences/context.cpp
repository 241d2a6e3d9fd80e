// A window around each row. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "sequences.h"

namespace tenon::sequences {

namespace {

using tn::Float;
using tn::Int;

// The window of row r: the rows r + first to r + first + length - 1 of its sequence.
struct Window {
  int64_t first, length;
  explicit Window(const tn::Attributes& attributes)
      : first(attributes.has("start") ? attributes.integer("start") : -(attributes.integer("length") - 1) / 2),
        length(attributes.integer("length")) {}
  // Rows by which the window reaches beyond the beginning and the end of a sequence.
  [[nodiscard]] int64_t before() const { return std::max<int64_t>(0, -first); }
  [[nodiscard]] int64_t after() const { return std::max<int64_t>(0, first + length - 1); }
};

struct ContextProjection {
  static constexpr int64_t kMostRows = 1024;

  static void describe(tn::LayerDescription& d) {
    d.type("context_projection",
           "The rows around each row of a sequence, concatenated: output row r is (x[r + start], ..., "
           "x[r + start + length - 1]), so that a fully connected layer behind it is a convolution over time (Waibel "
           "et al., \"Phoneme recognition using time-delay neural networks\", 1989). What lies outside of the sequence "
           "is 0, or with trainable_padding a row of weight: its first rows stand before a sequence, the one next to "
           "it last, and the others behind it, the one next to it first. They start at 0.");
    d.input("input", "[rows, ...]: sequences; all dimensions after the first are flattened to D");
    d.output("output", "[rows, length D]");
    d.attribute(tn::int_attribute("length").required().at_least(1).at_most(kMostRows).doc("rows in the window"));
    d.attribute(
        tn::int_attribute("start")
            .at_least(-kMostRows)
            .at_most(kMostRows)
            .doc("where the window begins, from the row; absent, -(length - 1) / 2, so that the row is in its middle"));
    d.attribute(tn::bool_attribute("trainable_padding", false).doc("whether what lies outside is trained, else 0"));
    d.parameter("weight");
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec input = ragged_input(planner, 0);
    const Window window(planner.attributes());
    const int64_t depth = planner.elements(0, 1);
    if (depth > INT64_MAX / window.length) throw planner.bad_input(0, "makes a row longer than 2^63 - 1");
    if (pads(planner.attributes(), window))
      planner.parameter("weight", tn::Spec({window.before() + window.after(), depth}), tn::constant_initializer(0));
    planner.output(0, tn::Spec({input[0], depth * window.length}));
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const Window window(attributes);
    const tn::Tensor given = body.input(0);
    const tn::Dim rows = given.spec()[0];
    int64_t depth = 1;
    for (int32_t i = 1; i < given.spec().rank(); ++i) depth *= given.spec()[i].offset;
    const tn::Tensor input = given.view(tn::Spec({rows, depth}));
    std::vector<tn::Tensor> columns;
    for (int64_t by = window.first; by < window.first + window.length; ++by) {
      const tn::Tensor shifted = by == 0 ? input : body.segment(TN_SEGMENT_SHIFT, input, rows, by);
      columns.push_back(by != 0 && pads(attributes, window) ? padded(body, shifted, window, by) : shifted);
    }
    body.output(0, columns.size() == 1 ? columns.front() : body.concat(columns, 1));
  }

 private:
  static bool pads(const tn::Attributes& attributes, const Window& window) {
    return attributes.flag("trainable_padding") && window.before() + window.after() > 0;
  }

  // shifted [rows, D], weight [before + after, D] -> [rows, D]: row r is shifted[r] if row r + by is in the sequence,
  // else a row of the weight.
  static tn::Tensor padded(tn::Builder& body, const tn::Tensor& shifted, const Window& window, int64_t by) {
    const tn::Dim rows = shifted.spec()[0];
    const tn::Tensor position = body.segment(TN_SEGMENT_POSITION, rows);
    const tn::Tensor length = body.segment(TN_SEGMENT_BROADCAST, body.segment(TN_SEGMENT_LENGTH, rows), rows);
    tn::Program place;  // the row of the weight, 0 if none is needed, and whether one is
    const Int target = place.per_row<Int>() + by;
    const Int end = place.per_row<Int>();
    const tn::Logical before = target < 0, behind = target >= end;
    place.output(select(before, target + window.before(), select(behind, target - end + window.before(), 0)));
    place.output(to_float(before || behind));
    const std::vector<tn::Tensor> made = body.pointwise(place, {position, length}, kRows);
    tn::Program choose;
    const Float inside = choose.full(), outside = choose.full();
    choose.output(select(choose.per_row() > 0, outside, inside));
    return body.pointwise(choose, {shifted, body.gather(body.parameter(0), made[0]), made[1]}, kRows).front();
  }
};

}  // namespace

void add_context(tn::Plugin& plugin) { plugin.layer<ContextProjection>(); }

}  // namespace tenon::sequences
