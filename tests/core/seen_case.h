// A scan whose steps also see other sequences and sub-sequences, as a graph. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "tests/core/scan_case.h"

namespace tenon_tests {

constexpr int32_t kOther = 40;  // rows of sequences outside, one for each of the scan
constexpr int32_t kParts = 41;  // rows of sub-sequences, one for each row of the scan
constexpr int32_t kSeen = 42;   // the first symbol for what steps see

class SeenCase : public ScanCase {
 public:
  // others: lengths, one for each sequence; parts: one for each row.
  SeenCase(const std::vector<int64_t>& lengths, bool reverse, const std::vector<int64_t>& others,
           const std::vector<int64_t>& parts)
      : ScanCase(lengths, reverse) {
    int64_t seen = 0;
    for (size_t s = 0; s < lengths.size(); ++s) seen += lengths[s] * others[s];
    add(kOther, samples(), others);
    add(kParts, rows(), parts);
    sizes[kSeen] = seen;
    sizes[kSeen + 1] = sizes[kParts];
  }
  ValueId other(int64_t width) { return input({tn_dim_symbol(kOther), fixed(width)}); }
  ValueId part(int64_t width) { return input({tn_dim_symbol(kParts), fixed(width)}); }
  ValueId see(ValueId value) {
    return write.to_step_rows(value, order, kSeen + static_cast<int32_t>(graph.step_rows.size()));
  }
  // Begins a loop, number `loops - 1`, over the sub-sequences with the rows `parts` that steps see. Returns its order.
  int32_t inner(const Dim& parts, bool reverse, bool nested) {
    const int32_t free = kSeen + static_cast<int32_t>(graph.step_rows.size() + 2 * (graph.orders.size() - 1));
    const int32_t made = write.step_order(parts, reverse, nested, free);
    graph.loops.push_back({made, false});
    sizes[parts.symbol] = sizes[free] = sizes[kParts];
    sizes[free + 1] = sizes[kParts] + static_cast<int64_t>(given[graph.rows.at(kParts).offsets].size()) - 1;
    return made;
  }
  // softmax over the rows that a step sees of a score for each row, as weights of a sum of `values`.
  ValueId attend(ValueId scores, ValueId values) {
    const Dim seen = graph.spec(scores).shape[0];
    const auto spread = [&](ValueId each) { return write.segment(TN_SEGMENT_BROADCAST, each, seen, 0); };
    const ValueId e =
        apply(TN_OP_EXP, apply(TN_OP_SUB, scores, spread(write.segment(TN_SEGMENT_MAX, scores, seen, 0))));
    const ValueId shares = apply(TN_OP_DIV, e, spread(write.segment(TN_SEGMENT_SUM, e, seen, 0)));
    return write.segment(TN_SEGMENT_SUM, apply(TN_OP_MUL, values, shares, TN_PER_ROW), seen, 0);
  }

 private:
  void add(int32_t symbol, Dim outer, const std::vector<int64_t>& lengths) {
    const Dim sequences = outer;
    outer.offset = 1;
    Numbers ends{0};
    for (const int64_t length : lengths) ends.push_back(ends.back() + static_cast<double>(length));
    sizes[symbol] = static_cast<int64_t>(ends.back());
    const ValueId value = graph.add_external({TN_I64, {outer}, TN_DENSE, 0, {}}, "ends");
    graph.rows[symbol] = {sequences, value, kNoValue};
    given[value] = std::move(ends);
  }
};

}  // namespace tenon_tests
