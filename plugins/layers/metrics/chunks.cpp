// Chunks of sequences of tags, such as names in a text. SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "metrics.h"

namespace tenon::metrics {

namespace {

using tn::Attributes;
using tn::Float;
using tn::Int;
using tn::Logical;
using tn::Tensor;

// The numbers of the tags of a chunk; kNone where a scheme lacks one.
struct Scheme {
  static constexpr int64_t kNone = -1;
  int64_t tags, begin, inside, end, single;

  static Scheme of(const Attributes& attributes) {
    const std::string name = attributes.text("scheme");
    if (name == "IOB") return {2, 0, 1, kNone, kNone};
    if (name == "IOE") return {2, kNone, 0, 1, kNone};
    if (name == "IOBES") return {4, 0, 1, 2, 3};
    return {1, kNone, 0, kNone, kNone};  // plain
  }
};

// What a tag of a row says, given that of the row before it.
struct Row {
  Int type;        // of the chunk
  Logical begins;  // a chunk
  Logical goes_on;
};

Row row_of(const Scheme& scheme, int64_t types, const Int& id, const Int& before, const Logical& is_first) {
  const auto type_of = [&](const Int& of) { return floor_div(of, scheme.tags); };
  const auto is_any = [&](const Int& of, std::initializer_list<int64_t> tags) {
    Logical any = of < of;  // false
    for (const int64_t tag : tags)
      if (tag != Scheme::kNone) any = any || mod(of, scheme.tags) == tag;
    return any;
  };
  const auto is_inside = [&](const Int& of) { return of >= 0 && of < types * scheme.tags; };
  const Int type = type_of(id);
  const Logical joins = !is_first && is_inside(before) && type_of(before) == type &&
                        !is_any(id, {scheme.begin, scheme.single}) && !is_any(before, {scheme.end, scheme.single});
  return {type, is_inside(id) && !joins, is_inside(id) && joins};
}

struct ChunkF1 {
  enum { kInput = 0, kLabel = 1 };
  enum { kRight = 0, kNamed = 1, kReal = 2, kStates = 3 };

  static void describe(tn::LayerDescription& d) {
    d.type(
        "chunk_f1",
        "Of the chunks that the input names, the share that is right: precision; of those of the labels, the share "
        "that was named: recall; and F1 = 2 precision recall / (precision + recall) (Tjong Kim Sang and De Meulder, "
        "\"Introduction to the CoNLL-2003 shared task\", 2003). Chunks are counted over a whole pass; one is right if "
        "its first row, its last row and its type are. A tag is the number type * n + k, where the n tags of a type "
        "are B, I of IOB; I, E of IOE; B, I, E, S (first, inner, last, single row) of IOBES; one of plain. Other "
        "numbers, such as types * n, are outside of chunks. Tags against the scheme make chunks as well: a chunk goes "
        "on as long as the type is the same, no B or S comes and no E or S was before.");
    d.role(TN_ROLE_METRIC);
    d.input("input", "[rows]: sequences of tags, such as the output of crf_decoding or argmax", TN_PORT_INTEGER);
    d.input("label", "[rows]: the right tag of each row", TN_PORT_INTEGER);
    d.attribute(tn::int_attribute("types").required().at_least(1).at_most(1 << 20).doc("number of types of chunks"));
    d.attribute(
        tn::string_attribute("scheme", "IOB").one_of({"IOB", "IOE", "IOBES", "plain"}).doc("the tags of a type"));
    d.attribute(tn::ints_attribute("ignored_types").at_least(0).doc("types whose chunks are not counted"));
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec input = planner.input(kInput);
    if (!input.is_ragged() || input.without_trailing_ones().rank() != 1)
      throw planner.bad_input(kInput, "must be sequences (ragged), [rows]");
    planner.require_per_row(kLabel, input.leading(1));
    const int64_t types = planner.attributes().integer("types");
    if (planner.attributes().has("ignored_types"))
      for (const int64_t type : planner.attributes().integers("ignored_types"))
        if (type >= types)
          throw tn::Failure(TN_INVALID, "ignored_types",
                            "expected types below " + std::to_string(types) + ", got " + std::to_string(type));
    planner.state(kStates);
  }

  static void lower(const Attributes& attributes, tn::Builder& body) {
    const tn::Dim rows = body.input(kInput).spec()[0];
    const Tensor found = body.input(kInput).view(tn::Spec({rows})), label = body.input(kLabel).view(tn::Spec({rows}));
    const Tensor position = body.segment(TN_SEGMENT_POSITION, rows);
    tn::Program back;
    const Int at = back.per_row<Int>();
    back.output(select(at > 0, back.row() - 1, back.row()));
    const Tensor before = body.pointwise(back, {position}).front();
    const std::vector<Tensor> made = body.pointwise(
        compare(attributes), {found, body.gather(found, before), label, body.gather(label, before), position});
    body.state(kNamed, made[4]);
    body.state(kReal, made[5]);

    // 1 at a row up to which both have had the same rows of one chunk.
    const Tensor agreed = agreement(body, made[0], made[1]);
    tn::Program right;
    const auto [equal, named, real] = right.inputs(TN_FULL, TN_FULL, TN_FULL);
    right.output(sum_all(equal * (1 - named) * (1 - real)), TN_F64);
    body.state(kRight, body.pointwise(right, {agreed, body.segment(TN_SEGMENT_SHIFT, made[2], rows, 1),
                                              body.segment(TN_SEGMENT_SHIFT, made[3], rows, 1)})
                           .front());
  }

  static void finalize(const Attributes&, const double* state, tn::Results& results) {
    add_quality(quality(state[kRight], state[kNamed], state[kReal]), results);
  }

 private:
  // Of each row: whether both begin a chunk of one type that counts; whether both go on; whether the input does;
  // whether the label does. Of all rows: how many chunks that count the input and the label begin.
  static tn::Program compare(const Attributes& attributes) {
    const Scheme scheme = Scheme::of(attributes);
    const int64_t types = attributes.integer("types");
    tn::Program program;
    const Int found = program.full<Int>(), found_before = program.full<Int>();
    const Int label = program.full<Int>(), label_before = program.full<Int>();
    const Logical is_first = program.full<Int>() == 0;
    const Row named = row_of(scheme, types, found, found_before, is_first);
    const Row real = row_of(scheme, types, label, label_before, is_first);
    const auto counts = [&](const Row& row) {
      Logical counted = row.begins;
      if (attributes.has("ignored_types"))
        for (const int64_t type : attributes.integers("ignored_types")) counted = counted && row.type != type;
      return counted;
    };
    program.output(to_float(counts(named) && real.begins && named.type == real.type));
    program.output(to_float(named.goes_on && real.goes_on));
    program.output(to_float(named.goes_on));
    program.output(to_float(real.goes_on));
    program.output(count(counts(named)), TN_F64);
    program.output(count(counts(real)), TN_F64);
    return program;
  }

  // begins, go_on [rows], 1 or 0 -> [rows]: 1 from a row that begins on, as long as rows go on.
  static Tensor agreement(tn::Builder& body, const Tensor& begins, const Tensor& go_on) {
    body.scan_begin(begins.spec()[0]);
    const Tensor memory = body.scan_memory(tn::Spec({}));
    tn::Program step;
    const Float begin = step.full(), on = step.full();
    step.output(begin + on * step.full());
    const Tensor next = body.pointwise(step, {body.scan_input(begins), body.scan_input(go_on), memory}).front();
    body.scan_next(memory, next);
    body.scan_end();
    return body.scan_output(next);
  }
};

}  // namespace

void add_chunks(tn::Plugin& plugin) { plugin.layer<ChunkF1>(); }

}  // namespace tenon::metrics
