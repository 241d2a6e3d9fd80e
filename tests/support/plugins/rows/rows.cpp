// Layers that choose, overwrite and cut by values: how where, scatter and dynamic slice are written with programs,
// gather and scatter_add (docs/decisions.md). SPDX-License-Identifier: Apache-2.0
#include <tenon/plugin.hpp>

namespace {

using tn::Float, tn::Int;

// where: output = a where the condition is not 0, else b.
struct Where {
  static void describe(tn::LayerDescription& d) {
    d.type("test_where", "a where the condition is not 0, else b");
    d.input("condition", "[samples, n], integers", TN_PORT_INTEGER);
    d.input("a", "[samples, n]");
    d.input("b", "[samples, n]");
    d.output("output", "[samples, n]");
  }
  static void plan(tn::Planner& planner) { planner.output(0, planner.input_of_rank(1, 2, "[samples, n]")); }
  static void lower(const tn::Attributes&, tn::Builder& body) {
    tn::Program program;
    const Int condition = program.full<Int>();
    const Float a = program.full(), b = program.full();
    program.output(select(condition != 0, a, b));
    body.output(0, body.pointwise(program, {body.input(0), body.input(1), body.input(2)}).front());
  }
};

// scatter: each sample's table with one row replaced. The rows that are written are marked by a scatter_add of ones, so
// that both the new values and the old ones keep their bits. The ids must differ from each other.
struct Overwrite {
  static void describe(tn::LayerDescription& d) {
    d.type("test_overwrite", "a table of each sample, in which the row at its position is replaced");
    d.input("table", "[samples, height, width]");
    d.input("position", "[samples], integers below height", TN_PORT_INTEGER);
    d.input("row", "[samples, width]");
    d.output("output", "[samples, height, width]");
  }
  static void plan(tn::Planner& planner) {
    const tn::Spec table = planner.input_of_rank(0, 3, "[samples, height, width]");
    planner.index_limit(1, table[1].offset);
    planner.output(0, table);
  }
  static void lower(const tn::Attributes&, tn::Builder& body) {
    const tn::Tensor table = body.input(0), position = body.input(1);
    const tn::Spec shape = table.spec();
    const tn::Dim rows = shape[0].times(shape[1].offset);  // of all tables together
    tn::Program place;
    const Int id = place.row() * shape[1].offset + place.per_row<Int>();
    place.output(id);
    place.output(to_float(id == id));
    const std::vector<tn::Tensor> placed = body.pointwise(place, {position});
    const tn::Tensor written = body.scatter_add(placed[1], placed[0], rows);
    const tn::Tensor values = body.scatter_add(body.input(2), placed[0], rows);
    tn::Program choose;
    const Float old = choose.full(), fresh = choose.full();
    choose.output(select(choose.per_row() > 0, fresh, old));
    const tn::Tensor flat = table.view(tn::Spec({rows, shape[2]}));
    body.output(0, body.pointwise(choose, {flat, values, written}).front().view(shape));
  }
};

// dynamic slice: of each sample `length` rows from a row on that is a value, by a gather of ids that a program
// computes. Like a slice that begins at most height - length.
struct Window {
  static void describe(tn::LayerDescription& d) {
    d.type("test_window", "rows start to start + length - 1 of each sample");
    d.input("input", "[samples, height, width]");
    d.input("start", "[samples], integers", TN_PORT_INTEGER);
    d.output("output", "[samples, length, width]");
    d.attribute(tn::int_attribute("length").required().at_least(1).doc("how many rows"));
  }
  static void plan(tn::Planner& planner) {
    const tn::Spec input = planner.input_of_rank(0, 3, "[samples, height, width]");
    planner.output(0, tn::Spec({input[0], planner.attributes().integer("length"), input[2]}));
  }
  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Tensor input = body.input(0), start = body.input(1);
    const tn::Spec shape = input.spec();
    const int64_t height = shape[1].offset, length = attributes.integer("length");
    const tn::Dim rows = shape[0].times(height);
    tn::Program place;
    place.full<Int>();  // only its shape [samples, length] matters
    const Int first = min(max(place.per_row<Int>(), 0), height - length);
    place.output(place.row() * height + first + place.column());
    const tn::Tensor grid = body.pad(start.view(tn::Spec({shape[0], 1})), 1, 0, length - 1);
    const tn::Tensor ids = body.pointwise(place, {grid, start}).front();
    body.output(0, body.gather(input.view(tn::Spec({rows, shape[2]})), ids));
  }
};

tn::Program halved_sum() {
  tn::Program program;
  const Float state = program.full(), row = program.full();
  program.output(0.5 * state + row);
  return program;
}

// A recurrence whose memory begins with zeros, not with an input, also where it runs step by step.
struct Fading {
  static void describe(tn::LayerDescription& d) {
    d.type("test_fading", "of each row the sum of it and half of what the row before has");
    d.input("input", "sequences of [rows, width]");
    d.output("output", "the shape of the input");
  }
  static void plan(tn::Planner& planner) { planner.output(0, planner.input(0).as(TN_COMPUTE)); }
  static void lower(const tn::Attributes&, tn::Builder& body) {
    const tn::Tensor rows = body.input(0);
    body.scan_begin(rows.spec()[0]);
    const tn::Tensor row = body.scan_input(rows), state = body.scan_memory(tn::Spec({rows.spec()[1]}));
    const tn::Tensor next = body.pointwise(halved_sum(), {state, row}).front();
    body.scan_next(state, next);
    body.scan_end();
    body.output(0, body.scan_output(next));
  }
  static void step(tn::Stepper& stepper) {
    const tn_ref state = stepper.memory(stepper.spec(0));
    const tn_ref next = stepper.layer("test_fading_step", {state, stepper.input(0)});
    stepper.next(state, next);
    stepper.output(0, next);
  }
};

struct FadingStep {
  static void describe(tn::LayerDescription& d) {
    d.type("test_fading_step", "one step of test_fading");
    d.input("state", "[samples, width]");
    d.input("row", "[samples, width]");
    d.output("output", "[samples, width]");
  }
  static void plan(tn::Planner& planner) { planner.output(0, planner.input(1).as(TN_COMPUTE)); }
  static void lower(const tn::Attributes&, tn::Builder& body) {
    body.output(0, body.pointwise(halved_sum(), {body.input(0), body.input(1)}).front());
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.test.rows", "0.1.0", "Layers that choose, overwrite and cut by values, and one with a memory",
               "Apache-2.0");
  plugin.layer<Where>();
  plugin.layer<Overwrite>();
  plugin.layer<Window>();
  plugin.layer<Fading>();
  plugin.layer<FadingStep>();
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
