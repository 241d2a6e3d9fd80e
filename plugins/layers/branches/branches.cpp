// Layers that choose the rows of branches: which rows a branch has, and which rows of sequences.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <string>
#include <tenon/kernel.hpp>
#include <tenon/plugin.hpp>

#include "integers.h"
#include "ragged.h"

namespace tenon::branches {

namespace {

// The numbers that a layer reads to choose rows, one for each row.
class Choices {
 public:
  explicit Choices(const tn_tensor& tensor)
      : data_(tn_data(&tensor)),
        integers_(tensor),
        floats_(tensor.dl.dtype.code == kDLFloat ? tensor.dl.dtype.bits : 0) {}

  // Whether a predicate holds. NaN does not.
  [[nodiscard]] bool holds(int64_t row) const {
    if (floats_ == 32) return reinterpret_cast<const float*>(data_)[row] > 0;
    if (floats_ == 64) return reinterpret_cast<const double*>(data_)[row] > 0;
    return integers_[row] > 0;
  }
  [[nodiscard]] int64_t integer(int64_t row) const { return integers_[row]; }

 private:
  const uint8_t* data_;
  kernels::Integers integers_;
  uint8_t floats_;
};

struct ChooseRows {
  static void describe(tn::LayerDescription& d) {
    d.type("choose_rows",
           "The numbers of the rows of each branch of a cond, in ascending order: first of those in which a predicate "
           "holds, which is above 0, then of the others; NaN does not. With cases: for "
           "each integer from 0 on of the rows that have it.");
    d.input("choice", "[samples] or [samples, 1], or rows in place of samples: the predicate or the integers",
            TN_PORT_ANY);
    d.output("rows", "int64 [chosen rows], for each branch", TN_PORT_VARIADIC);
    d.attribute(tn::int_attribute("cases")
                    .at_least(1)
                    .at_most(kMostCases)
                    .doc("branches, for the integers 0 to cases - 1; absent: two, of a predicate"));
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec choice = planner.input(0);
    if (choice.rank() < 1 || choice.rank() > 2 || choice[0].symbol == TN_SYMBOL_NONE || planner.elements(0, 1) != 1)
      throw planner.bad_input(0, "must have one number for each sample or row").expected(tn::Spec({choice[0]}));
    const bool cases = planner.attributes().has("cases");
    if (cases && choice.is_float()) throw planner.bad_input(0, "must be integers if cases are given");
    const int64_t count = cases ? planner.attributes().integer("cases") : 2;
    if (cases) planner.index_limit(0, count);
    for (int64_t i = 0; i < count; ++i)
      planner.output(static_cast<uint32_t>(i), tn::Spec({planner.data_rows(0, choice[0])}, TN_I64));
  }

 private:
  static constexpr int64_t kMostCases = 1024;
};

class ChooseRowsKernel {
 public:
  static void describe(tn::KernelDescription& d) {
    d.kernel("choose_rows", "cpu", "choose_rows", 10);
    d.portable();
    d.compute(TN_F32);
    d.compute(TN_F64);
  }

  ChooseRowsKernel(const tn::KernelSite& site, int32_t direction)
      : rows_(site.input(0)[0]),
        ragged_(site.input(0).is_ragged()),
        cases_(site.attributes().has("cases")),
        branches_(site->outputs_count) {
    if (direction == TN_BACKWARD) throw tn::Failure(TN_UNSUPPORTED, "choice", "has no gradient");
    sequences_ = ragged_ ? site.input(0).outer(0) : rows_;
  }

  // choice -> the numbers of the rows of each branch; for each its offsets and its number of rows.
  void run(const tn::Call& call) const {
    const Choices choices(*call.input(0));
    const int64_t sequences = call.size(sequences_);
    const int64_t* const ends = ragged_ ? kernels::innermost(*call.input(0)) : nullptr;
    for (uint32_t branch = 0; branch < branches_; ++branch) {
      auto* const to = call.out<int64_t>(branch);
      auto* const offsets = call.out<int64_t>(branches_ + 2 * branch);
      int64_t count = offsets[0] = 0;
      for (int64_t sequence = 0; sequence < sequences; ++sequence) {
        const int64_t end = ends == nullptr ? sequence + 1 : ends[sequence + 1];
        for (int64_t row = ends == nullptr ? sequence : ends[sequence]; row < end; ++row)
          if (branch_of(choices, row) == static_cast<int64_t>(branch)) to[count++] = row;
        offsets[sequence + 1] = count;
      }
      call.out<int64_t>(branches_ + 2 * branch + 1)[0] = count;
    }
  }

 private:
  [[nodiscard]] int64_t branch_of(const Choices& choices, int64_t row) const {
    if (!cases_) return choices.holds(row) ? 0 : 1;
    const int64_t number = choices.integer(row);
    if (number < 0 || number >= int64_t{branches_})
      throw tn::Failure(TN_BAD_DATA, "choice",
                        "row " + std::to_string(row) + " has " + std::to_string(number) + "; expected 0 to " +
                            std::to_string(branches_ - 1));
    return number;
  }

  tn::Dim rows_, sequences_;
  bool ragged_, cases_;
  uint32_t branches_;
};

enum { kChosen = 0, kSequences = 1 };

struct ChooseSequences {
  static void describe(tn::LayerDescription& d) {
    d.type(
        "choose_sequences",
        "The numbers of the rows of chosen sequences, sequence by sequence: inside of a branch of a cond those of the "
        "sequences of its rows. A sequence that is chosen again has no rows there.");
    d.input("chosen", "int64 or int32 [chosen]: the numbers of the sequences", TN_PORT_INTEGER);
    d.input("sequences", "[rows, ...]: sequences; their values are not read", TN_PORT_ANY);
    d.output("rows", "int64 [chosen rows]: as many sequences as numbers");
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec chosen = planner.input(kChosen), sequences = planner.input(kSequences);
    if (chosen.rank() != 1 || chosen.is_ragged() || (chosen.dtype() != TN_I64 && chosen.dtype() != TN_I32))
      throw planner.bad_input(kChosen, "must have one int64 or int32 number for each sequence, inside of a branch");
    if (!sequences.is_ragged() || sequences.levels() != 1)
      throw planner.bad_input(kSequences, "must be sequences (ragged) of one level, [rows, ...]");
    planner.output(0, tn::Spec({planner.data_rows(kChosen, sequences[0])}, TN_I64));
  }
};

class ChooseSequencesKernel {
 public:
  static void describe(tn::KernelDescription& d) {
    d.kernel("choose_sequences", "cpu", "choose_sequences", 10);
    d.portable();
    d.compute(TN_F32);
    d.compute(TN_F64);
  }

  ChooseSequencesKernel(const tn::KernelSite& site, int32_t direction)
      : chosen_(site.input(kChosen)[0]), sequences_(site.input(kSequences).outer(0)) {
    if (direction == TN_BACKWARD) throw tn::Failure(TN_UNSUPPORTED, "chosen", "has no gradient");
  }

  uint64_t workspace_bytes() const { return static_cast<uint64_t>(sequences_.bound); }

  // chosen, sequences -> the numbers of their rows, offsets, number of rows. Marks the sequences that it has had.
  // Throws TN_BAD_DATA for a number that is not that of a sequence.
  void run(const tn::Call& call) const {
    const kernels::Integers chosen(*call.input(kChosen));
    const int64_t* const ends = kernels::innermost(*call.input(kSequences));
    const int64_t sequences = call.size(sequences_), count = call.size(chosen_);
    auto* const had = static_cast<uint8_t*>(call->workspace);
    std::fill_n(had, sequences, uint8_t{0});
    auto* const to = call.out<int64_t>(0);
    auto* const offsets = call.out<int64_t>(1);
    int64_t at = offsets[0] = 0;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t sequence = chosen[i];
      if (sequence < 0 || sequence >= sequences)
        throw tn::Failure(
            TN_BAD_DATA, "chosen",
            "has " + std::to_string(sequence) + "; there are " + std::to_string(sequences) + " sequences");
      for (int64_t row = ends[sequence]; had[sequence] == 0 && row < ends[sequence + 1]; ++row) to[at++] = row;
      had[sequence] = 1;
      offsets[i + 1] = at;
    }
    call.out<int64_t>(2)[0] = at;
  }

 private:
  tn::Dim chosen_, sequences_;
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.branches", "0.1.0", "Layers that choose the rows of branches", "Apache-2.0");
  plugin.layer<ChooseRows>();
  plugin.layer<ChooseSequences>();
  plugin.kernel(tn::kernel<ChooseRowsKernel>());
  plugin.kernel(tn::kernel<ChooseSequencesKernel>());
}

}  // namespace

}  // namespace tenon::branches

const tn_plugin* tenon_plugin() { return tn::entry<tenon::branches::describe>(); }
