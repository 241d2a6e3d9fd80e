// Labels from the classes of rows, by the best path. Their number depends on values, so this is a native kernel.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ctc.h"

namespace tenon::ctc {

namespace {

struct CtcDecoding {
  static void describe(tn::LayerDescription& d) {
    d.type(
        "ctc_decoding",
        "The labels of each sequence by the best path, for a model that is trained with the cost ctc: the largest "
        "class of each row, of equal ones the first; then equal neighbours are made one, and blanks are left out. No "
        "derivative.");
    d.input("input", "[rows, classes]: sequences, probabilities or any numbers in their order");
    d.output("output", "[labels], integers: as many sequences, each with as many rows as labels");
    d.attribute(blank_attribute());
  }
  static void plan(tn::Planner& planner) {
    const tn::Spec input = planner.input_of_rank(0, 2, "sequences (ragged), [rows, classes]");
    if (!input.is_ragged()) throw planner.bad_input(0, "must be sequences (ragged), [rows, classes]");
    require_blank(planner, planner.elements(0, 1));
    planner.output(0, tn::Spec({planner.data_rows(0, input[0])}, TN_I64));
  }
};

class BestPath {
 public:
  static void describe(tn::KernelDescription& d) {
    d.kernel("ctc_decoding", "cpu", "ctc_best_path", 10);
    d.portable();
    d.compute(TN_F32);
    d.compute(TN_F64);
  }
  static bool supports(const tn::KernelSite& site, int32_t&) { return site.input(0).dtype() == site->compute; }

  BestPath(const tn::KernelSite& site, int32_t direction)
      : wide_(site->compute == TN_F64),
        classes_(site.input(0)[1].offset),
        blank_(site.attributes().integer("blank")),
        sequences_(site.input(0).outer(0)),
        most_rows_(bound_of(site.input(0)[0], "input")) {
    if (direction == TN_BACKWARD) throw tn::Failure(TN_UNSUPPORTED, "output", "has no derivative");
  }
  uint64_t workspace_bytes() const { return product(sizeof(int64_t), most_rows_); }

  // input -> labels, offsets, count
  void run(const tn::Call& call) const { wide_ ? run<double>(call) : run<float>(call); }

 private:
  static constexpr int64_t kRowsPerTask = 64;

  template <typename T>
  struct Run {
    const T* input;
    int64_t rows, classes;
    int64_t* best;  // [rows]
  };

  template <typename T>
  void run(const tn::Call& call) const {
    const int64_t* const from = innermost(*call.input(0));
    const int64_t sequences = call.size(sequences_);
    Run<T> run = {call.in<T>(0), from[sequences], classes_, static_cast<int64_t*>(call->workspace)};
    const tn_parallel& parallel = *call.execution().parallel;
    parallel.for_each(parallel.self, (run.rows + kRowsPerTask - 1) / kRowsPerTask, &find_best<T>, &run);
    auto *const labels = call.out<int64_t>(0), *const offsets = call.out<int64_t>(1);
    int64_t count = 0;
    offsets[0] = 0;
    for (int64_t sequence = 0; sequence < sequences; ++sequence) {
      for (int64_t row = from[sequence]; row < from[sequence + 1]; ++row) {
        const bool repeats = row > from[sequence] && run.best[row] == run.best[row - 1];
        if (run.best[row] != blank_ && !repeats) labels[count++] = run.best[row];
      }
      offsets[sequence + 1] = count;
    }
    call.out<int64_t>(2)[0] = count;
  }

  // Task `index`: the largest class of each of kRowsPerTask rows.
  template <typename T>
  static void find_best(void* argument, int64_t index, int32_t) {
    const Run<T>& run = *static_cast<const Run<T>*>(argument);
    for (int64_t row = index * kRowsPerTask; row < std::min(run.rows, (index + 1) * kRowsPerTask); ++row) {
      const T* const from = run.input + row * run.classes;
      int64_t best = 0;
      for (int64_t k = 1; k < run.classes; ++k)
        if (from[k] > from[best] || std::isnan(from[best])) best = k;
      run.best[row] = best;
    }
  }

  bool wide_;
  int64_t classes_, blank_;
  tn::Dim sequences_;
  uint64_t most_rows_;
};

}  // namespace

void add_decoding(tn::Plugin& plugin) {
  plugin.layer<CtcDecoding>();
  plugin.kernel(tn::kernel<BestPath>());
}

}  // namespace tenon::ctc
