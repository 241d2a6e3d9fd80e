// Layers that add to each row of a sequence a vector of its position, for layers that do not see the order of rows.
// SPDX-License-Identifier: Apache-2.0
#include "positions.h"

#include <tenon/elementary.h>

#include <optional>
#include <string>
#include <vector>

namespace tenon::attention {

namespace {

using tn::Float;
using tn::Int;

enum Port : uint32_t { kInput = 0, kPosition = 1 };

void describe_ports(tn::LayerDescription& d) {
  d.input("input", "[samples, positions, D], or sequences of [rows, D]; with position [rows, D]");
  d.input("position", "[rows]: the position of each row, from 0; when absent the rows of each sequence are counted",
          TN_PORT_OPTIONAL | TN_PORT_INTEGER);
  d.output("output", "the shape of the input");
}

// Whether each row of the input, [rows, features], has a position of its own.
bool has_rows(const tn::Planner& planner) { return planner.has_input(kPosition) || planner.input(kInput).is_ragged(); }

// Throws unless the input is [samples, positions, features] or has rows.
tn::Spec checked(const tn::Planner& planner) {
  const tn::Spec input = planner.input(kInput);
  const bool rows = has_rows(planner);
  if (input.rank() != (rows ? 2 : 3))
    throw planner.bad_input(kInput,
                            planner.has_input(kPosition)
                                ? "must be rows [rows, features], as there is a position for each"
                                : "must be [samples, positions, features] or sequences of rows [rows, features]");
  planner.elements(kInput, 1);
  if (planner.has_input(kPosition)) planner.require_per_row(kPosition, input.leading(1));
  return input;
}

// The positions of the rows; nothing if the input is [samples, positions, features].
std::optional<tn::Tensor> positions_of(tn::Builder& body) {
  const tn::Spec shape = body.input(kInput).spec();
  if (const std::optional<tn::Tensor> given = body.optional_input(kPosition))
    return given->view(tn::Spec({shape[0]}, given->spec().dtype()));
  if (shape.is_ragged()) return body.segment(TN_SEGMENT_POSITION, shape[0]);
  return std::nullopt;
}

// The layer itself, of one row of each sequence.
void step_of(tn::Stepper& stepper, const char* type, const std::vector<tn::Setting>& settings) {
  stepper.output(0, stepper.layer(type, {stepper.input(kInput), stepper.position()}, settings));
}

struct PositionalEncoding {
  static void describe(tn::LayerDescription& d) {
    d.type("positional_encoding",
           "Adds sines and cosines of the position, from 0: to feature 2i sin(position / base^(2i / D)), to feature 2i "
           "+ 1 the cosine of the same (Vaswani et al., \"Attention is all you need\", 2017, section 3.5).");
    describe_ports(d);
    d.attribute(tn::float_attribute("base", 10000).at_least(1).doc("the longest wave has 2 pi times this length"));
  }
  static void plan(tn::Planner& planner) { planner.output(0, checked(planner).as(TN_COMPUTE)); }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Tensor input = body.input(0);
    const tn::Spec shape = input.spec();
    const int64_t features = shape.back().offset;
    std::vector<double> frequencies;  // of each feature
    for (int64_t d = 0; d < features; ++d) {
      const int64_t even = d - d % 2;
      frequencies.push_back(
          tn_math_pow(attributes.number("base"), -static_cast<double>(even) / static_cast<double>(features)));
    }
    tn::Program add;
    const Float x = add.full();
    if (const std::optional<tn::Tensor> positions = positions_of(body)) {
      const Int position = add.per_row<Int>();
      const Float angle = to_float(position) * add.per_column();
      add.output(x + select(mod(add.column(), 2) == 0, sin(angle), cos(angle)));
      const tn::Tensor waves = body.constant(tn::Spec({features}), frequencies);
      body.output(0, body.pointwise(add, {input, *positions, waves}).front());
      return;
    }
    std::vector<double> encoding;
    for (int64_t position = 0; position < shape[1].offset; ++position)
      for (int64_t d = 0; d < features; ++d) {
        const double angle = static_cast<double>(position) * frequencies[static_cast<size_t>(d)];
        encoding.push_back(d % 2 == 0 ? tn_math_sin(angle) : tn_math_cos(angle));
      }
    add.output(x + add.per_column());
    body.output(0, body.pointwise(add, {input, body.constant(tn::Spec({shape[1], features}), encoding)}).front());
  }

  static void step(tn::Stepper& stepper) {
    step_of(stepper, "positional_encoding", {{"base", tn::float_value(stepper.attributes().number("base"))}});
  }
};

struct PositionEmbedding {
  static void describe(tn::LayerDescription& d) {
    d.type("position_embedding",
           "Adds a trained vector for each position, from 0. A sequence of more than length rows ends the step with an "
           "error. The vectors start normal with deviation 0.02 (Devlin et al., \"BERT\", 2019).");
    describe_ports(d);
    d.attribute(tn::int_attribute("length").at_least(1).doc(
        "the most positions; of a dense input its positions when absent, required of sequences"));
    d.parameter("weight");
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec input = checked(planner);
    const bool given = planner.attributes().has("length"), rows = has_rows(planner);
    if (!given && rows) throw tn::Failure(TN_INVALID, "length", "is required for sequences, which have no longest one");
    const int64_t length = given ? planner.attributes().integer("length") : input[1].offset;
    if (planner.has_input(kPosition)) planner.index_limit(kPosition, length);
    if (!rows && input[1].offset > length)
      throw planner.bad_input(0, "has more positions than the length of " + std::to_string(length));
    planner.parameter("weight", tn::Spec({length, input.back()}), tn::normal_initializer(0, 0.02));
    planner.output(0, input.as(TN_COMPUTE));
  }

  static void lower(const tn::Attributes&, tn::Builder& body) {
    const tn::Tensor input = body.input(0), weight = body.parameter(0);
    const tn::Spec shape = input.spec();
    tn::Program add;
    const Float x = add.full();
    if (const std::optional<tn::Tensor> positions = positions_of(body)) {
      add.output(x + add.full());
      const tn::Tensor rows = body.gather(weight, *positions);
      return body.output(0, body.pointwise(add, {input, rows}).front());
    }
    add.output(x + add.per_column());
    const int64_t positions = shape[1].offset;
    const bool all = weight.spec()[0].same(positions);
    body.output(0, body.pointwise(add, {input, all ? weight : body.slice(weight, 0, 0, positions)}).front());
  }

  static void step(tn::Stepper& stepper) {
    step_of(stepper, "position_embedding", {{"length", tn::int_value(stepper.attributes().integer("length"))}});
  }
};

}  // namespace

void add_positions(tn::Plugin& plugin) {
  plugin.layer<PositionalEncoding>();
  plugin.layer<PositionEmbedding>();
}

}  // namespace tenon::attention
