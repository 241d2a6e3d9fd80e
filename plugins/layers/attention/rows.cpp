// Attention among the rows of sequences, and of one row over the rows before it. Scores are as many as a sequence has
// pairs of rows, which no dimension of a recorded body can say, so these are native kernels.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <tenon/kernel.hpp>

#include "attend.h"
#include "bounds.h"
#include "positions.h"
#include "ragged.h"

namespace tenon::attention {

namespace {

using kernels::bound_of;
using kernels::innermost;
using kernels::product;

enum Port : uint32_t { kQuery = 0, kKey = 1, kValue = 2, kPastKey = 3, kPastValue = 4, kPast = 5 };

void describe_heads(tn::LayerDescription& d) {
  d.attribute(tn::int_attribute("heads", 1).at_least(1).doc("parts of the features that attend on their own"));
  d.attribute(tn::float_attribute("scale").doc("1 / sqrt(D / heads) when absent"));
}

// Throws unless the heads divide the features [rows, features] of an input.
void check_heads(const tn::Planner& planner, uint32_t port) {
  const int64_t heads = planner.attributes().integer("heads"), features = planner.elements(port, 1);
  if (features % heads != 0)
    throw planner.bad_input(port, "has features that cannot be divided among " + std::to_string(heads) + " heads");
}

// Checks that key and value have a row for each of the query, and declares the output.
void plan_rows(tn::Planner& planner, const char* form) {
  const tn::Spec query = planner.input(kQuery);
  for (const uint32_t port : {kKey, kValue})
    if (planner.input_of_rank(port, 2, form).is_ragged() != query.is_ragged() || !planner.input(port)[0].same(query[0]))
      throw planner.bad_input(port, "must have a row for each row of the query").expected(query);
  if (!planner.input(kKey)[1].same(query[1]))
    throw planner.bad_input(kKey, "must have as many features as the query").expected(query);
  for (const uint32_t port : {kQuery, kKey, kValue}) check_heads(planner, port);
  planner.output(0, tn::Spec({query[0], planner.input(kValue)[1]}));
}

struct SequenceAttention {
  static void describe(tn::LayerDescription& d) {
    d.type("sequence_attention",
           "Each row of a sequence gets the sum of the values of the sequence, weighted by softmax(scale query key^T), "
           "with causal of the rows up to its own (Vaswani et al., \"Attention is all you need\", 2017, equation 1). "
           "Sequences of different lengths need no padding.");
    d.input("query", "[rows, D]: sequences");
    d.input("key", "[rows, D] of the same sequences");
    d.input("value", "[rows, V] of the same sequences");
    d.output("output", "[rows, V]");
    describe_heads(d);
    d.attribute(tn::bool_attribute("causal", false).doc("whether a row sees no rows after it"));
  }
  static void plan(tn::Planner& planner) {
    constexpr const char* kForm = "sequences (ragged), [rows, features]";
    if (!planner.input_of_rank(kQuery, 2, kForm).is_ragged()) throw planner.bad_input(kQuery, "must be sequences");
    plan_rows(planner, kForm);
  }
  static void step(tn::Stepper& stepper) {
    const tn::Attributes attributes = stepper.attributes();
    std::vector<tn::Setting> settings = {{"heads", tn::int_value(attributes.integer("heads"))}};
    if (attributes.has("scale")) settings.push_back({"scale", tn::float_value(attributes.number("scale"))});
    stepper.output(0, attend_step(stepper, attributes.flag("causal"), stepper.input(kQuery), stepper.input(kKey),
                                  stepper.input(kValue), settings));
  }
};

struct AttentionStep {
  static void describe(tn::LayerDescription& d) {
    d.type(
        "attention_step",
        "One step of the layer sequence_attention with causal: each query gets the sum of the values of earlier rows "
        "and of its own, weighted by softmax(scale query key^T). Earlier rows are those of past_key and past_value "
        "whose numbers stand in past. No derivative.");
    d.input("query", "[samples, D]");
    d.input("key", "[samples, D]: of the row of the query");
    d.input("value", "[samples, V]: of the row of the query");
    d.input("past_key", "[N, D]: rows that several samples may see; their offsets have no meaning");
    d.input("past_value", "[N, V]: of the same rows");
    d.input("past", "[numbers], int64 or int32 sequences: for each sample the rows that it sees, from 0",
            TN_PORT_INTEGER);
    d.output("output", "[samples, V]");
    describe_heads(d);
  }
  static void plan(tn::Planner& planner) {
    if (planner.input_of_rank(kQuery, 2, "[samples, D]").is_ragged())
      throw planner.bad_input(kQuery, "must be [samples, D], one row of each sequence");
    plan_rows(planner, "[samples, features]");
    for (const uint32_t port : {kPastKey, kPastValue}) {
      const tn::Spec rows = planner.input_of_rank(port, 2, "rows [N, features]");
      if (!rows.is_ragged() || !rows[0].same(planner.input(kPastKey)[0]))
        throw planner.bad_input(port, "must be rows, as many as those of past_key");
      if (!rows[1].same(planner.input(port == kPastKey ? kKey : kValue)[1]))
        throw planner.bad_input(port, "must have the features of the row of the query");
    }
    const tn::Spec past = planner.input_of_rank(kPast, 1, "sequences of numbers, [numbers]");
    const bool integer = past.dtype() == TN_I64 || past.dtype() == TN_I32;
    if (!past.is_ragged() || !integer || !past.outer(0).same(planner.input(kQuery)[0]))
      throw planner.bad_input(kPast, "must be int64 or int32 sequences, one for each sample");
  }
};

// What both kernels have in common: tasks of one head of one sequence, each with scratch for its scores.
class Heads {
 public:
  static void describe(tn::KernelDescription& d, const char* type, const char* name) {
    d.kernel(type, "cpu", name, 10);
    d.compute(TN_F32);
    d.compute(TN_F64);
  }
  static bool supports(const tn::KernelSite& site, int32_t&) { return site.input(kQuery).dtype() == site->compute; }

 protected:
  explicit Heads(const tn::KernelSite& site)
      : wide_(site->compute == TN_F64),
        heads_(site.attributes().integer("heads")),
        keys_(site.input(kKey)[1].offset),
        values_(site.input(kValue)[1].offset),
        scale_(site.attributes().has("scale") ? site.attributes().number("scale")
                                              : 1 / std::sqrt(static_cast<double>(keys_ / heads_))) {}

  // rows: the most scores of one head.
  [[nodiscard]] uint64_t scratch_bytes(uint64_t rows) const {
    return product(wide_ ? sizeof(double) : sizeof(float), product(rows, static_cast<uint64_t>(heads_)));
  }
  template <typename T>
  [[nodiscard]] Seen<T> sizes() const {
    Seen<T> seen;
    seen.depth = keys_ / heads_;
    seen.width = values_ / heads_;
    seen.scale = static_cast<T>(scale_);
    return seen;
  }

  bool wide_;
  int64_t heads_, keys_, values_;  // features of keys and values, of all heads
  double scale_;
};

class AttendInSequences : public Heads {
 public:
  static void describe(tn::KernelDescription& d) { Heads::describe(d, "sequence_attention", "attend_in_sequences"); }
  static void query(const tn::KernelSite& site, tn::KernelNeeds& needs) {
    for (const uint32_t port : {kQuery, kKey, kValue}) needs.read_input(port);
    needs.read_output(0);
    needs.save(tn::Spec({site.input(kQuery)[0], site.attributes().integer("heads")}));  // logarithms of sums
  }

  AttendInSequences(const tn::KernelSite& site, int32_t direction)
      : Heads(site),
        backward_(direction == TN_BACKWARD),
        causal_(site.attributes().flag("causal")),
        sequences_(site.input(kQuery).outer(0)),
        most_rows_(bound_of(site.input(kQuery)[0], "query")) {}
  uint64_t workspace_bytes() const { return scratch_bytes(most_rows_); }
  void run(const tn::Call& call) const { wide_ ? run<double>(call) : run<float>(call); }

 private:
  enum Backward : uint32_t { kOutput = 3, kLogSums = 4, kGiven = 5 };  // operands after the inputs

  template <typename T>
  struct Run {
    const AttendInSequences* of;
    const int64_t* ends;
    const T *query, *key, *value, *output, *log_sums, *given;  // the last three in backward
    T* scratch;
    T* to[3];  // the output and its logarithms of sums, which may be null; in backward gradients, null if not wanted
  };

  template <typename T>
  void run(const tn::Call& call) const {
    Run<T> run = {this,
                  innermost(*call.input(kQuery)),
                  call.in<T>(kQuery),
                  call.in<T>(kKey),
                  call.in<T>(kValue),
                  call.in<T>(kOutput),
                  call.in<T>(kLogSums),
                  call.in<T>(kGiven),
                  static_cast<T*>(call->workspace),
                  {call.out<T>(0), call.out<T>(1), call.out<T>(2)}};
    const int64_t tasks = call.size(sequences_) * heads_;
    const tn_parallel& parallel = *call.execution().parallel;
    parallel.for_each(parallel.self, tasks, backward_ ? &gradient<T> : &forward<T>, &run);
  }

  // The part of one task: rows [first, first + count) of one head.
  template <typename T>
  struct Part {
    int64_t first, count, head;
    Seen<T> seen;  // all rows
    T* scratch;
  };
  template <typename T>
  static Part<T> part_of(const Run<T>& run, int64_t task) {
    const AttendInSequences& of = *run.of;
    const int64_t sequence = task / of.heads_;
    Part<T> part = {run.ends[sequence], run.ends[sequence + 1] - run.ends[sequence], task % of.heads_, of.sizes<T>(),
                    nullptr};
    part.scratch = run.scratch + part.first * of.heads_ + part.head * part.count;
    part.seen.keys = {run.key + of.key_place(part.first, part.head), of.keys_, nullptr, part.count};
    part.seen.values = {run.value + of.value_place(part.first, part.head), of.values_, nullptr, part.count};
    return part;
  }
  // The first feature of a head at a row.
  int64_t key_place(int64_t row, int64_t head) const { return row * keys_ + head * (keys_ / heads_); }
  int64_t value_place(int64_t row, int64_t head) const { return row * values_ + head * (values_ / heads_); }
  // The same with the rows that row `i` of a part sees.
  template <typename T>
  Seen<T> seen_by(const Part<T>& part, int64_t i) const {
    Seen<T> seen = part.seen;
    if (causal_) seen.keys.count = seen.values.count = i + 1;
    return seen;
  }

  template <typename T>
  static void forward(void* argument, int64_t task, int32_t) {
    const Run<T>& run = *static_cast<const Run<T>*>(argument);
    const AttendInSequences& of = *run.of;
    const Part<T> part = part_of(run, task);
    for (int64_t i = 0; i < part.count; ++i) {
      const int64_t row = part.first + i;
      const T log_sum = attend(run.query + of.key_place(row, part.head), of.seen_by(part, i), part.scratch,
                               run.to[0] + of.value_place(row, part.head));
      if (run.to[1] != nullptr) run.to[1][row * of.heads_ + part.head] = log_sum;
    }
  }

  template <typename T>
  static void gradient(void* argument, int64_t task, int32_t) {
    const Run<T>& run = *static_cast<const Run<T>*>(argument);
    const AttendInSequences& of = *run.of;
    const Part<T> part = part_of(run, task);
    const auto begin = [&](uint32_t port, int64_t row) -> T* {
      if (run.to[port] == nullptr) return nullptr;
      return run.to[port] + (port == kValue ? of.value_place(row, part.head) : of.key_place(row, part.head));
    };
    for (const uint32_t port : {kQuery, kKey, kValue})
      for (int64_t i = 0; run.to[port] != nullptr && i < part.count; ++i)
        std::fill_n(begin(port, part.first + i), port == kValue ? part.seen.width : part.seen.depth, T(0));
    for (int64_t i = 0; i < part.count; ++i) {
      const int64_t row = part.first + i, value = of.value_place(row, part.head);
      const AttendGradient<T> each = {run.query + of.key_place(row, part.head),
                                      run.output + value,
                                      run.given + value,
                                      run.log_sums[row * of.heads_ + part.head],
                                      begin(kQuery, row),
                                      begin(kKey, part.first),
                                      begin(kValue, part.first)};
      attend_gradient(each, of.seen_by(part, i), part.scratch);
    }
  }

  bool backward_, causal_;
  tn::Dim sequences_;
  uint64_t most_rows_;
};

class AttendPast : public Heads {
 public:
  static void describe(tn::KernelDescription& d) { Heads::describe(d, "attention_step", "attend_past"); }

  AttendPast(const tn::KernelSite& site, int32_t direction)
      : Heads(site),
        samples_(site.input(kQuery)[0]),
        rows_(site.input(kPastKey)[0]),
        narrow_(site.input(kPast).dtype() == TN_I32),
        most_numbers_(bound_of(site.input(kPast)[0], "past")),
        most_scores_(most_numbers_ + bound_of(samples_, "query")) {
    if (direction == TN_BACKWARD) throw tn::Failure(TN_UNSUPPORTED, "output", "has no derivative");
  }
  uint64_t workspace_bytes() const { return widened_bytes() + scratch_bytes(most_scores_); }
  void run(const tn::Call& call) const { wide_ ? run<double>(call) : run<float>(call); }

 private:
  // The workspace holds int64 copies of int32 numbers, then the scores.
  [[nodiscard]] uint64_t widened_bytes() const { return narrow_ ? product(sizeof(int64_t), most_numbers_) : 0; }

  [[nodiscard]] const int64_t* numbers(const tn::Call& call, int64_t count) const {
    if (!narrow_) return call.in<int64_t>(kPast);
    const auto* const from = call.in<int32_t>(kPast);
    auto* const to = static_cast<int64_t*>(call->workspace);
    std::copy(from, from + count, to);
    return to;
  }

  template <typename T>
  struct Run {
    const AttendPast* of;
    const int64_t *ends, *past;
    const T *query, *key, *value, *past_key, *past_value;
    T *scratch, *to;
  };

  template <typename T>
  void run(const tn::Call& call) const {
    const int64_t samples = call.size(samples_);
    const int64_t* const ends = innermost(*call.input(kPast));
    Run<T> run = {this,
                  ends,
                  numbers(call, ends[samples]),
                  call.in<T>(kQuery),
                  call.in<T>(kKey),
                  call.in<T>(kValue),
                  call.in<T>(kPastKey),
                  call.in<T>(kPastValue),
                  reinterpret_cast<T*>(static_cast<std::byte*>(call->workspace) + widened_bytes()),
                  call.out<T>(0)};
    check_past(run.past, run.ends[samples], call.size(rows_), call.execution());
    const tn_parallel& parallel = *call.execution().parallel;
    parallel.for_each(parallel.self, samples * heads_, &forward<T>, &run);
  }

  static void check_past(const int64_t* past, int64_t count, int64_t rows, const tn_execution& execution) {
    for (int64_t i = 0; i < count; ++i) {
      if (past[i] >= 0 && past[i] < rows) continue;
      char message[96];
      std::snprintf(message, sizeof message, "number %lld is %lld; there are %lld rows", static_cast<long long>(i),
                    static_cast<long long>(past[i]), static_cast<long long>(rows));
      throw tn::Reported(tn_fail(execution.errors, TN_BAD_DATA, "past", message));
    }
  }

  template <typename T>
  static void forward(void* argument, int64_t task, int32_t) {
    const Run<T>& run = *static_cast<const Run<T>*>(argument);
    const AttendPast& of = *run.of;
    const int64_t sample = task / of.heads_, head = task % of.heads_;
    const int64_t first = run.ends[sample], count = run.ends[sample + 1] - first;
    Seen<T> seen = of.sizes<T>();
    const int64_t key = head * seen.depth, value = head * seen.width;
    seen.past_keys = {run.past_key + key, of.keys_, run.past + first, count};
    seen.past_values = {run.past_value + value, of.values_, run.past + first, count};
    seen.keys = {run.key + sample * of.keys_ + key, of.keys_, nullptr, 1};
    seen.values = {run.value + sample * of.values_ + value, of.values_, nullptr, 1};
    T* const scratch = run.scratch + (first + sample) * of.heads_ + head * (count + 1);
    attend(run.query + sample * of.keys_ + key, seen, scratch, run.to + sample * of.values_ + value);
  }

  tn::Dim samples_, rows_;
  bool narrow_;
  uint64_t most_numbers_, most_scores_;
};

}  // namespace

tn_ref attend_step(tn::Stepper& stepper, bool causal, tn_ref query, tn_ref key, tn_ref value,
                   const std::vector<tn::Setting>& settings) {
  if (!causal) throw tn::Failure(TN_INVALID, "causal", "is false, so a row sees rows after it, which are not known");
  return stepper.layer("attention_step",
                       {query, key, value, stepper.history(key), stepper.history(value), stepper.past()}, settings);
}

void add_rows(tn::Plugin& plugin) {
  plugin.layer<SequenceAttention>();
  plugin.layer<AttentionStep>();
  plugin.kernel(tn::kernel<AttendInSequences>());
  plugin.kernel(tn::kernel<AttendPast>());
}

}  // namespace tenon::attention
