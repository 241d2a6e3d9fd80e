// Part of each sequence. SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "integers.h"
#include "ragged.h"
#include "ranges.h"
#include "sequences.h"

namespace tenon::sequences {

namespace {

using tn::Int;

enum { kInput = 0, kStart = 1, kLength = 2 };

struct SequenceSlice {
  static void describe(tn::LayerDescription& d) {
    d.type("sequence_slice",
           "Consecutive rows of each innermost sequence: with count its first ones, with from_end its last ones, all "
           "of a shorter sequence; or those from a start of its own on, as many as a length of its own, without the "
           "rows that lie outside of the sequence. A start below 0 counts from the end, of -1 the last row.");
    d.input("input", "[rows, ...]: sequences", TN_PORT_ANY);
    d.input("start", "[samples], integers: the first row of each sequence, from 0; without it 0",
            TN_PORT_OPTIONAL | TN_PORT_INTEGER);
    d.input("length", "[samples], integers: how many rows; without it all from the start on",
            TN_PORT_OPTIONAL | TN_PORT_INTEGER);
    d.output("output", "[chosen rows, ...]: as many sequences");
    d.attribute(tn::int_attribute("count").at_least(0).doc("rows of each sequence; without \"start\" and \"length\""));
    d.attribute(tn::bool_attribute("from_end", false).doc("with count: the last rows"));
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec input = ragged_input(planner, kInput);
    planner.elements(kInput, 1);
    const bool fixed = planner.attributes().has("count");
    const bool given = planner.has_input(kStart) || planner.has_input(kLength);
    if (fixed == given)
      throw tn::Failure(TN_INVALID, "count",
                        given ? "cannot be given with \"start\" or \"length\""
                              : "is needed without the inputs \"start\" and \"length\"");
    if (given && planner.attributes().flag("from_end"))
      throw tn::Failure(TN_INVALID, "from_end", "needs count; a start below 0 counts from the end");
    for (const uint32_t i : {kStart, kLength})
      if (planner.has_input(i)) planner.require_per_row(i, tn::Spec({input.outer(0)}));
    planner.output(0, with_first(fixed ? planner.first_rows(kInput, planner.attributes().integer("count"))
                                       : planner.data_rows(kInput, input[0]),
                                 input));
  }

  // Of starts and lengths the rows are counted by a native kernel.
  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    if (!attributes.has("count"))
      throw tn::Failure(TN_UNSUPPORTED, "start", "is for devices that have a native kernel of sequence_slice");
    const tn::Tensor input = body.input(kInput);
    const tn::Dim own = input.spec()[0], rows = body.rows(0);
    tn::Program first;  // row of each sequence
    const Int begin = first.per_row<Int>(), all = first.per_row<Int>(), kept = first.per_row<Int>();
    first.output(attributes.flag("from_end") ? begin + (all - kept) : begin);
    const tn::Tensor begins = body.pointwise(first,
                                             {body.segment(TN_SEGMENT_START, own), body.segment(TN_SEGMENT_LENGTH, own),
                                              body.segment(TN_SEGMENT_LENGTH, rows)},
                                             kRows)
                                  .front();
    tn::Program place;
    const Int from = place.per_row<Int>();
    place.output(from + place.per_row<Int>());
    const tn::Tensor places =
        body.pointwise(place,
                       {body.segment(TN_SEGMENT_BROADCAST, begins, rows), body.segment(TN_SEGMENT_POSITION, rows)},
                       kRows)
            .front();
    body.output(0, body.gather(input, places));
  }
};

// The ranges of starts and lengths.
class Slices {
 public:
  static void describe(tn::KernelDescription& d) {
    d.kernel("sequence_slice", "cpu", "sequence_slices", 10);
    d.portable();
  }
  static bool supports(const tn::KernelSite& site) { return site.has_input(kStart) || site.has_input(kLength); }

  explicit Slices(const tn::KernelSite& site)
      : sequences_(site.input(kInput).outer(0)), starts_(site.has_input(kStart)), lengths_(site.has_input(kLength)) {}
  int64_t sequences(const tn::Call& call) const { return call.size(sequences_); }
  int64_t rows(const tn::Call& call) const { return offsets(call)[sequences(call)]; }

  Range at(const tn::Call& call, int64_t sequence) const {
    const int64_t first = offsets(call)[sequence], count = offsets(call)[sequence + 1] - first;
    int64_t start = given(call, kStart, sequence).value_or(0);
    int64_t length = std::max<int64_t>(given(call, kLength, sequence).value_or(INT64_MAX), 0);
    if (start < 0) start += count;
    if (start < 0) length += start, start = 0;  // without the rows before the first
    const int64_t begin = std::min(start, count);
    return {first + begin, first + begin + std::clamp<int64_t>(length, 0, count - begin)};
  }

 private:
  static const int64_t* offsets(const tn::Call& call) { return kernels::innermost(*call.input(kInput)); }
  [[nodiscard]] std::optional<int64_t> given(const tn::Call& call, uint32_t input, int64_t sequence) const {
    if (!(input == kStart ? starts_ : lengths_)) return std::nullopt;
    return kernels::Integers(*call.input(input))[sequence];
  }

  tn::Dim sequences_;
  bool starts_, lengths_;
};

}  // namespace

void add_slice(tn::Plugin& plugin) {
  plugin.layer<SequenceSlice>();
  plugin.kernel(tn::kernel<RangesKernel<Slices>>());
}

}  // namespace tenon::sequences
