// How far sequences of ids are from the right ones. A search over pairs of places, so this is a native kernel.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ctc.h"

namespace tenon::ctc {

namespace {

enum { kInput = 0, kLabel = 1 };
// States: the sums of distances, or of their quotients with the lengths of the labels; of distances; of labels; of
// sequences that are not equal; of sequences.
enum { kSum = 0, kEdits = 1, kLabels = 2, kWrong = 3, kSequences = 4, kStates = 5 };

struct EditDistance {
  static void describe(tn::LayerDescription& d) {
    d.type("edit_distance",
           "Edit distance of sequences of ids and the right ones: the fewest insertions, deletions and substitutions "
           "of one id that make one of the other (Levenshtein, \"Binary codes capable of correcting deletions, "
           "insertions, and reversals\", 1966). edit_distance is the mean over all sequences, with normalized of the "
           "distance divided by the number of labels, of at least 1; error_rate is the sum of all distances divided by "
           "the number of all labels, such as the rate of wrong words; wrong_sequences is the share of sequences with "
           "any error. Without sequences or labels they are 0.");
    d.role(TN_ROLE_METRIC);
    d.input("input", "[ids]: sequences, such as the output of ctc_decoding", TN_PORT_INTEGER);
    d.input("label", "[labels]: as many sequences, of any lengths: the right ids", TN_PORT_INTEGER);
    d.attribute(
        tn::bool_attribute("normalized", false).doc("edit_distance is relative to the number of labels of a sequence"));
  }
  static void plan(tn::Planner& planner) {
    plan_sequences(planner, kInput, 1, "[ids]");
    plan_sequences(planner, kLabel, 1, "[labels]");
    require_same_sequences(planner, kInput, kLabel);
    planner.state(kStates);
  }
  static void finalize(const tn::Attributes&, const double* state, tn::Results& results) {
    const auto share = [&](int part, int whole) { return state[whole] > 0 ? state[part] / state[whole] : 0; };
    results.add("edit_distance", share(kSum, kSequences));
    results.add("error_rate", share(kEdits, kLabels));
    results.add("wrong_sequences", share(kWrong, kSequences));
  }
};

class Distances {
 public:
  static void describe(tn::KernelDescription& d) {
    d.kernel("edit_distance", "cpu", "edit_distances", 10);
    d.portable();
    d.compute(TN_F32);
    d.compute(TN_F64);
  }
  Distances(const tn::KernelSite& site, int32_t direction)
      : normalized_(site.attributes().flag("normalized")),
        sequences_(site.input(kLabel).outer(0)),
        most_sequences_(bound_of(sequences_, "label")),
        most_labels_(bound_of(site.input(kLabel)[0], "label")) {
    if (direction == TN_BACKWARD) throw tn::Failure(TN_UNSUPPORTED, "", "a metric has no derivative");
  }
  uint64_t workspace_bytes() const { return product(sizeof(int64_t), most_labels_ + 2 * most_sequences_); }

  void run(const tn::Call& call) const {
    auto* const workspace = static_cast<int64_t*>(call->workspace);
    Run run = {Integers(*call.input(kInput)),
               Integers(*call.input(kLabel)),
               innermost(*call.input(kInput)),
               innermost(*call.input(kLabel)),
               workspace,
               workspace + most_sequences_};
    const int64_t sequences = call.size(sequences_);
    const tn_parallel& parallel = *call.execution().parallel;
    parallel.for_each(parallel.self, sequences, &measure, &run);
    double sums[kStates] = {};
    for (int64_t sequence = 0; sequence < sequences; ++sequence) {
      const auto edits = static_cast<double>(run.distances[sequence]);
      const auto labels = static_cast<double>(run.ends[sequence + 1] - run.ends[sequence]);
      sums[kSum] += normalized_ ? edits / std::max(labels, 1.0) : edits;
      sums[kEdits] += edits;
      sums[kLabels] += labels;
      sums[kWrong] += edits > 0 ? 1 : 0;
      sums[kSequences] += 1;
    }
    for (uint32_t state = 0; state < kStates; ++state) call.out<double>(state)[0] = sums[state];
  }

 private:
  struct Run {
    Integers ids, labels;
    const int64_t *begins, *ends;  // offsets of the ids and of the labels
    int64_t* distances;            // [sequences]
    int64_t* lines;                // one more place than labels for each sequence
  };

  // Task `sequence`: its distance. line[j] is that of the ids so far and the first j labels.
  static void measure(void* argument, int64_t sequence, int32_t) {
    const Run& run = *static_cast<const Run*>(argument);
    const int64_t first = run.ends[sequence], labels = run.ends[sequence + 1] - first;
    int64_t* const line = run.lines + first + sequence;
    for (int64_t j = 0; j <= labels; ++j) line[j] = j;
    for (int64_t row = run.begins[sequence]; row < run.begins[sequence + 1]; ++row) {
      const int64_t id = run.ids[row];
      int64_t diagonal = line[0]++;  // of the ids before this one and the first j labels
      for (int64_t j = 0; j < labels; ++j) {
        const int64_t replaced = diagonal + (id == run.labels[first + j] ? 0 : 1);
        diagonal = line[j + 1];
        line[j + 1] = std::min({replaced, diagonal + 1, line[j] + 1});
      }
    }
    run.distances[sequence] = line[labels];
  }

  bool normalized_;
  tn::Dim sequences_;
  uint64_t most_sequences_, most_labels_;
};

}  // namespace

void add_edit_distance(tn::Plugin& plugin) {
  plugin.layer<EditDistance>();
  plugin.kernel(tn::kernel<Distances>());
}

}  // namespace tenon::ctc
