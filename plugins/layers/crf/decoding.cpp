// The best tags of a conditional random field. SPDX-License-Identifier: Apache-2.0
#include "crf.h"

namespace tenon::crf {

namespace {

using tn::Float;
using tn::Int;
using tn::Tensor;

struct CrfDecoding {
  static void describe(tn::LayerDescription& d) {
    d.type(
        "crf_decoding",
        "The most probable tags of each sequence in the model of the cost crf, whose parameter transitions it shares "
        "by the same parameter_name: those of the largest score s(y) = a[y_1] + b[y_n] + sum_t x_t[y_t] + sum_{t > 1} "
        "w[y_{t-1}, y_t] (Viterbi, \"Error bounds for convolutional codes and an asymptotically optimum decoding "
        "algorithm\", 1967). Of equal ones it takes the smaller last tag, then the smaller tag before it. No "
        "derivative. The layer not_equal of the output and the right tags marks errors.");
    d.input("input", "[rows, tags]: sequences, any numbers");
    d.output("output", "[rows], integers: the tag of each row, from 0");
    d.parameter("transitions");
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec input = plan_scores(planner);
    planner.output(0, input.leading(1).as(TN_I64));
  }

  // Goes from the last row of each sequence to its first. The tag of a row is the best one of those whose paths go on
  // with the tag of the next row; behind the last row that is tag number `tags`, which stands for the end.
  static void lower(const tn::Attributes&, tn::Builder& body) {
    const Tensor scores = body.input(0);
    const tn::Dim rows = scores.spec()[0];
    const Transitions transitions(body);
    const int64_t tags = transitions.tags();
    const Tensor path = paths(body, scores, transitions, Over::kBestPath).at_rows;
    const Tensor before =
        body.concat({transitions.before(), transitions.row(kEnd).view(tn::Spec({int64_t{1}, tags}))}, 0);
    tn::Program last;
    const Int length = last.per_row<Int>();
    last.output(select(length >= 0, Int(tags), length));
    const Tensor end = body.pointwise(last, {body.segment(TN_SEGMENT_LENGTH, rows)}).front();

    const tn::Dim steps = body.scan_begin(rows, TN_SCAN_REVERSE);
    const Tensor to_row = body.scan_input(path);
    const Tensor next = body.scan_memory(tn::Spec({}, TN_I64), end);
    tn::Program add;
    const Float x = add.full();
    add.output(x + add.full());
    const Tensor joined = body.pointwise(add, {to_row, body.gather(before, next)}).front();
    const Tensor tag = body.argsort(joined, TN_SORT_DESCENDING, 1).view(tn::Spec({steps}));
    body.scan_next(next, tag);
    body.scan_end();
    body.output(0, body.scan_output(tag));
  }
};

}  // namespace

void add_decoding(tn::Plugin& plugin) { plugin.layer<CrfDecoding>(); }

}  // namespace tenon::crf
