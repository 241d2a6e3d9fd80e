// Pooling: one value for each sequence. SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <string>

#include "sequences.h"

namespace tenon::sequences {

namespace {

using tn::Float;
using tn::Int;

enum class Kind { kSum, kMean, kSqrtN, kMax, kFirst, kLast };

Kind kind_of(const tn::Attributes& attributes) {
  const std::string name = attributes.text("kind");
  return name == "sum"      ? Kind::kSum
         : name == "mean"   ? Kind::kMean
         : name == "sqrt_n" ? Kind::kSqrtN
         : name == "max"    ? Kind::kMax
         : name == "first"  ? Kind::kFirst
                            : Kind::kLast;
}

struct SequencePool {
  static void describe(tn::LayerDescription& d) {
    d.type(
        "sequence_pool",
        "One value made of all rows of a sequence, element by element: their sum; mean; sqrt_n, the sum divided by "
        "the root of their number; max, the largest (its derivative is shared between equals); first; or last. Of "
        "an empty sequence it is 0. Of sequences of sequences each inner one becomes a row, or with level \"sample\" "
        "all rows of a sample become one value.");
    d.input("input", "[rows, ...]: sequences");
    d.output("output", "[samples, ...]; of sequences of sequences [inner sequences, ...] where level is \"sequence\"");
    d.attribute(tn::string_attribute("kind")
                    .required()
                    .one_of({"sum", "mean", "sqrt_n", "max", "first", "last"})
                    .doc("what is made of the rows"));
    d.attribute(tn::string_attribute("level", "sequence")
                    .one_of({"sequence", "sample"})
                    .doc("whose rows are put together: those of the innermost sequences, or of whole samples"));
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec input = ragged_input(planner, 0);
    planner.output(0, with_first(input.outer(of_samples(planner.attributes(), input) ? 1 : 0), input));
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Tensor input = body.input(0);
    const tn::Dim rows = input.spec()[0];
    const bool whole = of_samples(attributes, input.spec());
    const Kind kind = kind_of(attributes);
    switch (kind) {
      case Kind::kSum:
      case Kind::kMean:
      case Kind::kSqrtN: {
        tn::Tensor sum = body.segment(TN_SEGMENT_SUM, input, rows);
        if (whole) sum = body.segment(TN_SEGMENT_SUM, sum, input.spec().outer(0));
        return body.output(0, kind == Kind::kSum ? sum : shared(body, kind, sum, counts(body, input, whole)));
      }
      case Kind::kMax: {
        const tn::Tensor most = body.segment(TN_SEGMENT_MAX, input, rows);
        return body.output(0, whole ? largest(body, input, most) : most);
      }
      case Kind::kFirst:
      case Kind::kLast: {
        const tn::Tensor picked = body.segment(TN_SEGMENT_SUM, end_row(body, kind, input), rows);
        return body.output(0, whole ? end_sequence(body, kind, input, picked) : picked);
      }
    }
  }

 private:
  static bool of_samples(const tn::Attributes& attributes, const tn::Spec& input) {
    return input.levels() == 2 && attributes.text("level") == std::string("sample");
  }

  // The number of rows of each sequence, or of each sample (whole): float [sequences] or [samples].
  static tn::Tensor counts(tn::Builder& body, const tn::Tensor& input, bool whole) {
    tn::Program program;
    program.output(to_float(program.per_row<Int>()));
    const tn::Tensor lengths =
        body.pointwise(program, {body.segment(TN_SEGMENT_LENGTH, input.spec()[0])}, kRows).front();
    return whole ? body.segment(TN_SEGMENT_SUM, lengths, input.spec().outer(0)) : lengths;
  }

  // sum [n, ...], counts [n] -> [n, ...]: sum / count, or sum / sqrt(count); an empty sequence counts as one row.
  static tn::Tensor shared(tn::Builder& body, Kind kind, const tn::Tensor& sum, const tn::Tensor& counts) {
    tn::Program program;
    const Float x = program.full();
    const Float count = max(program.per_row(), 1);
    program.output(x / (kind == Kind::kMean ? count : sqrt(count)));
    return body.pointwise(program, {sum, counts}, kRows).front();
  }

  // most [inner sequences, ...], the maximum of each inner sequence -> [samples, ...], that of each sample. Empty inner
  // sequences, whose maximum is given as 0, are left out; a sample without rows has 0.
  static tn::Tensor largest(tn::Builder& body, const tn::Tensor& input, const tn::Tensor& most) {
    tn::Program masked;
    const Float x = masked.full();
    masked.output(select(masked.per_row<Int>() > 0, x, -std::numeric_limits<double>::infinity()));
    const tn::Tensor rows = body.segment(TN_SEGMENT_LENGTH, input.spec()[0]);
    const tn::Tensor of_all =
        body.segment(TN_SEGMENT_MAX, body.pointwise(masked, {most, rows}, kRows).front(), input.spec().outer(0));
    tn::Program present;
    const Float y = present.full();
    present.output(select(present.per_row() > 0, y, 0.0));
    return body.pointwise(present, {of_all, counts(body, input, true)}, kRows).front();
  }

  // input [rows, ...] -> [rows, ...]: the first (last) row of each sequence, 0 in the other rows.
  static tn::Tensor end_row(tn::Builder& body, Kind kind, const tn::Tensor& input) {
    const tn::Dim rows = input.spec()[0];
    tn::Program program;
    const Float x = program.full();
    const Int position = program.per_row<Int>();
    std::vector<tn::Tensor> operands{input, body.segment(TN_SEGMENT_POSITION, rows)};
    if (kind == Kind::kFirst) {
      program.output(select(position == 0, x, 0.0));
    } else {
      program.output(select(position == program.per_row<Int>() - 1, x, 0.0));
      operands.push_back(body.segment(TN_SEGMENT_BROADCAST, body.segment(TN_SEGMENT_LENGTH, rows), rows));
    }
    return body.pointwise(program, operands, kRows).front();
  }

  // picked [inner sequences, ...], one row of each -> [samples, ...]: that of the first (last) inner sequence of a
  // sample that has rows. `key` ranks the inner sequences of a sample by position, empty ones last.
  static tn::Tensor end_sequence(tn::Builder& body, Kind kind, const tn::Tensor& input, const tn::Tensor& picked) {
    const tn::Dim inner = input.spec().outer(0);
    tn::Program keys;
    const Float position = to_float(keys.per_row<Int>());
    keys.output(select(keys.per_row<Int>() > 0, kind == Kind::kFirst ? -position : position,
                       -std::numeric_limits<double>::infinity()));
    const tn::Tensor key =
        body.pointwise(keys,
                       {body.segment(TN_SEGMENT_POSITION, inner), body.segment(TN_SEGMENT_LENGTH, input.spec()[0])},
                       kRows)
            .front();
    tn::Program program;
    const Float x = program.full();
    program.output(select(program.per_row<Int>() == 0, x, 0.0));
    const tn::Tensor chosen =
        body.pointwise(program, {picked, body.segment(TN_SEGMENT_RANK, key, inner)}, kRows).front();
    return body.segment(TN_SEGMENT_SUM, chosen, inner);
  }
};

}  // namespace

void add_pool(tn::Plugin& plugin) { plugin.layer<SequencePool>(); }

}  // namespace tenon::sequences
