// The cost of label sequences whose alignment with the rows is unknown. Its states are as many as a sequence has
// labels, which no dimension of a recorded body can say, so this is a native kernel.
// SPDX-License-Identifier: Apache-2.0
#include "ctc.h"

#include <tenon/elementary.h>

#include <algorithm>
#include <cstdio>
#include <string>

namespace tenon::ctc {

namespace {

enum { kInput = 0, kLabel = 1, kWeight = 2, kCostGradient = 3 };  // kCostGradient: in backward; number 2 is the cost

struct Ctc {
  static void describe(tn::LayerDescription& d) {
    d.type(
        "ctc",
        "Connectionist temporal classification (Graves et al., \"Connectionist temporal classification: labelling "
        "unsegmented sequence data with recurrent neural networks\", 2006): -log of the probability that the classes "
        "of the rows, drawn one by one from softmax(input), are the labels of the sequence once equal neighbours are "
        "made one and blanks are left out. Logarithms of probabilities may be given as well, since their softmax are "
        "the probabilities. A sequence whose labels do not fit into its rows, which must be as many as the labels and "
        "one more between equal neighbours, costs infinity and has no gradient.");
    d.role(TN_ROLE_COST);
    d.input("input", "[rows, classes]: sequences, any numbers");
    d.input(
        "label",
        "[labels]: as many sequences, of other lengths: classes from 0, without the blank, in the order of the rows",
        TN_PORT_INTEGER);
    d.input("weight", "[samples]: the weight of each; a sample of weight 0 does not count, whatever it is",
            TN_PORT_OPTIONAL);
    d.output("output", "[samples]: the cost of each sequence");
    d.attribute(blank_attribute());
    d.attribute(tn::bool_attribute("zero_infinity", false).doc("a sequence whose labels do not fit costs 0"));
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec input = planner.input_of_rank(kInput, 2, "sequences (ragged), [rows, classes]");
    if (!input.is_ragged()) throw planner.bad_input(kInput, "must be sequences (ragged), [rows, classes]");
    plan_sequences(planner, kLabel, 1, "[labels]");
    require_same_sequences(planner, kInput, kLabel);
    const int64_t classes = planner.elements(kInput, 1);
    require_blank(planner, classes);
    planner.index_limit(kLabel, classes);
    const tn::Spec output({input.outer(0)});
    if (planner.has_input(kWeight)) planner.require_per_row(kWeight, output);
    planner.output(0, output);
  }

  static bool expand(tn::Expander& expander) {
    if (!expander.has_input(kWeight)) return false;
    const tn::Attributes attributes = expander.attributes();
    const tn_ref costs = expander.layer("ctc", {expander.input(kInput), expander.input(kLabel)},
                                        {{"blank", tn::int_value(attributes.integer("blank"))},
                                         {"zero_infinity", tn::bool_value(attributes.flag("zero_infinity"))}});
    expander.output(0, expander.layer("sum_cost", {costs, expander.input(kWeight)}));
    return true;
  }
};

constexpr double kNever = -std::numeric_limits<double>::infinity();

// exp(x) of x <= 0, or 0 where 1 + exp(x) is 1.
double small_exp(double x) { return x <= -40 ? 0 : tn_math_exp(x); }
// log(exp(a) + exp(b)), and of three.
double log_sum(double a, double b) {
  if (a < b) std::swap(a, b);
  return a == kNever ? b : a + tn_math_log(1 + small_exp(b - a));
}
double log_sum(double a, double b, double c) {
  if (a < b) std::swap(a, b);
  if (a < c) std::swap(a, c);
  return a == kNever ? b + c : a + tn_math_log(1 + small_exp(b - a) + small_exp(c - a));
}

// The states of one sequence: blank, label 1, blank, label 2, ..., blank. A row is in one of them; the next row is in
// the same, the next one, or, if that is a blank between different labels, the one after it.
template <typename T>
struct States {
  const T* input;      // [rows, classes]
  const double* norm;  // [rows] logarithm of the sum of exponentials
  int64_t rows, classes;
  const int64_t* symbols;  // [count] the class of each state
  int64_t count;           // 2 labels + 1

  // Whether the state before the last one may be left out on the way to a state.
  [[nodiscard]] bool is_skipped_to(int64_t state) const {
    return state % 2 == 1 && state > 1 && symbols[state] != symbols[state - 2];
  }
  // Logarithm of the probability of the class of a state at a row.
  [[nodiscard]] double at(int64_t row, int64_t state) const {
    return static_cast<double>(input[row * classes + symbols[state]]) - norm[row];
  }

  // now[s]: logarithm of the probability of the rows up to row 0, or up to `row`, that end in state s.
  void begin(double* now) const {
    std::fill(now, now + count, kNever);
    for (int64_t state = 0; state < std::min<int64_t>(count, 2); ++state) now[state] = at(0, state);
  }
  void advance(int64_t row, const double* before, double* now) const {
    now[0] = at(row, 0) + before[0];
    for (int64_t state = 1; state < count; ++state)
      now[state] = at(row, state) + (is_skipped_to(state) ? log_sum(before[state], before[state - 1], before[state - 2])
                                                          : log_sum(before[state], before[state - 1]));
  }
  // now[s]: the same of the rows after the last row, or after `row`, if that is in state s. Overwrites `after`.
  void end(double* now) const {
    std::fill(now, now + count, kNever);
    for (int64_t state = std::max<int64_t>(count - 2, 0); state < count; ++state) now[state] = 0;
  }
  void retreat(int64_t row, double* after, double* now) const {
    for (int64_t state = 0; state < count; ++state) after[state] += at(row + 1, state);
    now[count - 1] = after[count - 1];
    for (int64_t state = 0; state + 1 < count; ++state)
      now[state] = state + 2 < count && is_skipped_to(state + 2)
                       ? log_sum(after[state], after[state + 1], after[state + 2])
                       : log_sum(after[state], after[state + 1]);
  }
  // Logarithm of the probability of the labels; `last`: of the last row.
  [[nodiscard]] double total(const double* last) const {
    return log_sum(last[count - 1], count > 1 ? last[count - 2] : kNever);
  }
};

template <typename T>
double norm_of(const T* row, int64_t classes) {
  const auto most = static_cast<double>(*std::max_element(row, row + classes));
  double sum = 0;
  for (int64_t k = 0; k < classes; ++k) sum += tn_math_exp(static_cast<double>(row[k]) - most);
  return most + tn_math_log(sum);
}

// The states of a sequence take `levels` times their number of the workspace, and their symbols one more. Forward has
// two levels. Backward needs the probabilities of all rows, from the last: of n rows it keeps those of every sqrt(n)-th
// and computes the ones between them again, block by block.
class Alignments {
 public:
  static void describe(tn::KernelDescription& d) {
    d.kernel("ctc", "cpu", "ctc_alignments", 10);
    d.portable();
    d.compute(TN_F32);
    d.compute(TN_F64);
  }
  static bool supports(const tn::KernelSite& site, int32_t&) { return site.input(kInput).dtype() == site->compute; }
  static void query(const tn::KernelSite&, tn::KernelNeeds& needs) {
    needs.read_input(kInput);
    needs.read_input(kLabel);
  }

  Alignments(const tn::KernelSite& site, int32_t direction)
      : backward_(direction == TN_BACKWARD),
        wide_(site->compute == TN_F64),
        zero_infinity_(site.attributes().flag("zero_infinity")),
        classes_(site.input(kInput)[1].offset),
        blank_(site.attributes().integer("blank")),
        sequences_(site.input(kInput).outer(0)),
        most_rows_(bound_of(site.input(kInput)[0], "input")),
        most_states_(product(2, bound_of(site.input(kLabel)[0], "label")) + bound_of(sequences_, "input")) {
    uint64_t root = 1;
    while (root * root < most_rows_) ++root;
    levels_ = static_cast<int64_t>(backward_ ? 2 * root + 2 : 2);
  }
  uint64_t workspace_bytes() const {
    return product(sizeof(double), product(most_states_, static_cast<uint64_t>(levels_) + 1) + most_rows_);
  }
  void run(const tn::Call& call) const { wide_ ? run<double>(call) : run<float>(call); }

 private:
  template <typename T>
  struct Run {
    const Alignments* of;
    const T* input;
    const int64_t *rows, *ends;  // the offsets of the input and of the labels
    Integers labels;
    double *norm, *levels;
    int64_t* symbols;
    const T* given;  // gradients of the costs; null in forward
    T* to;           // costs; in backward the gradients of the input
  };

  template <typename T>
  void run(const tn::Call& call) const {
    if (call.output(0) == nullptr) return;
    auto* const workspace = static_cast<double*>(call->workspace);
    Run<T> run = {this,
                  call.in<T>(kInput),
                  innermost(*call.input(kInput)),
                  innermost(*call.input(kLabel)),
                  Integers(*call.input(kLabel)),
                  workspace,
                  workspace + most_rows_,
                  reinterpret_cast<int64_t*>(workspace + most_rows_ + most_states_ * static_cast<uint64_t>(levels_)),
                  backward_ ? call.in<T>(kCostGradient) : nullptr,
                  call.out<T>(0)};
    const int64_t sequences = call.size(sequences_);
    check_labels(run, sequences, call.execution());
    const tn_parallel& parallel = *call.execution().parallel;
    parallel.for_each(parallel.self, sequences, backward_ ? &gradient<T> : &cost<T>, &run);
  }

  template <typename T>
  void check_labels(const Run<T>& run, int64_t sequences, const tn_execution& execution) const {
    for (int64_t i = run.ends[0]; i < run.ends[sequences]; ++i) {
      const int64_t label = run.labels[i];
      if (label >= 0 && label < classes_ && label != blank_) continue;
      char message[160];
      std::snprintf(message, sizeof message, "row %lld: expected a class from 0 to %lld but %lld, the blank; got %lld",
                    static_cast<long long>(i), static_cast<long long>(classes_ - 1), static_cast<long long>(blank_),
                    static_cast<long long>(label));
      throw tn::Reported(tn_fail(execution.errors, TN_BAD_DATA, "label", message));
    }
  }

  // The place of the first state of a sequence among the states of all.
  template <typename T>
  static int64_t place_of(const Run<T>& run, int64_t sequence) {
    return 2 * run.ends[sequence] + sequence;
  }
  // Fills the sequence's part of norm and symbols.
  template <typename T>
  States<T> states_of(const Run<T>& run, int64_t sequence) const {
    const int64_t first = run.rows[sequence], rows = run.rows[sequence + 1] - first;
    for (int64_t row = 0; row < rows; ++row)
      run.norm[first + row] = norm_of(run.input + (first + row) * classes_, classes_);
    const int64_t begin = run.ends[sequence], labels = run.ends[sequence + 1] - begin;
    int64_t* const symbols = run.symbols + place_of(run, sequence);
    std::fill(symbols, symbols + 2 * labels + 1, blank_);
    for (int64_t i = 0; i < labels; ++i) symbols[2 * i + 1] = run.labels[begin + i];
    return {run.input + first * classes_, run.norm + first, rows, classes_, symbols, 2 * labels + 1};
  }
  template <typename T>
  double* levels_of(const Run<T>& run, int64_t sequence) const {
    return run.levels + levels_ * place_of(run, sequence);
  }

  // Task `sequence`: to[sequence] = the cost.
  template <typename T>
  static void cost(void* argument, int64_t sequence, int32_t) {
    const Run<T>& run = *static_cast<const Run<T>*>(argument);
    const States<T> states = run.of->states_of(run, sequence);
    double total = states.count == 1 ? 0 : kNever;
    if (states.rows > 0) {
      double* now = run.of->levels_of(run, sequence);
      double* before = now + states.count;
      states.begin(now);
      for (int64_t row = 1; row < states.rows; ++row) {
        std::swap(now, before);
        states.advance(row, before, now);
      }
      total = states.total(now);
    }
    run.to[sequence] = static_cast<T>(total == kNever && run.of->zero_infinity_ ? 0 : -total);
  }

  // Task `sequence`: the rows of `to` = given * (softmax of the row - the share of each class in the alignments).
  template <typename T>
  static void gradient(void* argument, int64_t sequence, int32_t) {
    const Run<T>& run = *static_cast<const Run<T>*>(argument);
    const States<T> states = run.of->states_of(run, sequence);
    T* const to = run.to + run.rows[sequence] * states.classes;
    std::fill(to, to + states.rows * states.classes, T(0));
    const auto given = static_cast<double>(run.given[sequence]);
    if (given == 0 || states.rows == 0) return;
    int64_t block = 1;
    while (block * block < states.rows) ++block;
    double* const kept = run.of->levels_of(run, sequence);
    double* const inside = kept + block * states.count;
    const double total = sweep(states, block, kept, inside);
    if (total == kNever) return;
    double* now = inside + block * states.count;
    double* after = now + states.count;
    for (int64_t begin = (states.rows - 1) / block * block; begin >= 0; begin -= block) {
      const int64_t end = std::min(states.rows, begin + block);
      std::copy(kept + begin / block * states.count, kept + (begin / block + 1) * states.count, inside);
      for (int64_t row = begin + 1; row < end; ++row) {
        double* const level = inside + (row - begin) * states.count;
        states.advance(row, level - states.count, level);
      }
      for (int64_t row = end; row-- > begin;) {
        std::swap(now, after);
        row + 1 == states.rows ? states.end(now) : states.retreat(row, after, now);
        gradient_of_row(states, row, given, total, inside + (row - begin) * states.count, now, to);
      }
    }
  }

  // Keeps the probabilities of every `block`-th row; returns the logarithm of the probability of the labels. scratch:
  // two levels.
  template <typename T>
  static double sweep(const States<T>& states, int64_t block, double* kept, double* scratch) {
    double* now = scratch;
    double* before = scratch + states.count;
    states.begin(now);
    for (int64_t row = 0; row < states.rows; ++row) {
      if (row > 0) {
        std::swap(now, before);
        states.advance(row, before, now);
      }
      if (row % block == 0) std::copy(now, now + states.count, kept + row / block * states.count);
    }
    return states.total(now);
  }

  template <typename T>
  static void gradient_of_row(const States<T>& states, int64_t row, double given, double total, const double* up_to,
                              const double* behind, T* to) {
    T* const into = to + row * states.classes;
    const T* const from = states.input + row * states.classes;
    for (int64_t k = 0; k < states.classes; ++k)
      into[k] = static_cast<T>(given * tn_math_exp(static_cast<double>(from[k]) - states.norm[row]));
    double blanks = 0;
    for (int64_t state = 0; state < states.count; ++state) {
      const double share = tn_math_exp(up_to[state] + behind[state] - total);
      if (state % 2 == 0)
        blanks += share;
      else
        into[states.symbols[state]] -= static_cast<T>(given * share);
    }
    into[states.symbols[0]] -= static_cast<T>(given * blanks);
  }

  bool backward_, wide_, zero_infinity_;
  int64_t classes_, blank_;
  tn::Dim sequences_;
  uint64_t most_rows_, most_states_;
  int64_t levels_ = 0;
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.ctc", "0.1.0", "Label sequences that are not aligned with the rows", "Apache-2.0");
  plugin.layer<Ctc>();
  plugin.kernel(tn::kernel<Alignments>());
  add_decoding(plugin);
  add_edit_distance(plugin);
}

}  // namespace

}  // namespace tenon::ctc

const tn_plugin* tenon_plugin() { return tn::entry<tenon::ctc::describe>(); }
