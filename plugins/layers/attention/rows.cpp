// Attention among the rows of sequences, and of one row over the rows before it. Scores are as many as a sequence has
// pairs of rows, which no dimension of a recorded body can say, so these are native kernels.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <tenon/kernel.hpp>

#include "attend.h"
#include "bounds.h"
#include "heads.h"
#include "positions.h"
#include "ragged.h"

namespace tenon::attention {

namespace {

using kernels::bound_of;
using kernels::innermost;
using kernels::product;

enum Past : uint32_t { kPastKey = 3, kPastValue = 4, kPast = 5 };

void describe_heads(tn::LayerDescription& d) {
  d.attribute(tn::int_attribute("heads", 1).at_least(1).doc("parts of the features that attend on their own"));
  d.attribute(tn::float_attribute("scale").doc("1 / sqrt(D / heads) when absent"));
}

// Throws unless the heads divide the features [rows, features] of an input.
void check_row_heads(const tn::Planner& planner, uint32_t port) {
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
  for (const uint32_t port : {kQuery, kKey, kValue}) check_row_heads(planner, port);
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

class AttendInSequences : public WholeHeads {
 public:
  static void describe(tn::KernelDescription& d) { Heads::describe(d, "sequence_attention", "attend_in_sequences"); }
  static void query(const tn::KernelSite& site, tn::KernelNeeds& needs) {
    WholeHeads::query(site, needs, tn::Spec({site.input(kQuery)[0], site.attributes().integer("heads")}));
  }

  AttendInSequences(const tn::KernelSite& site, int32_t direction)
      : WholeHeads(site, direction), sequences_(site.input(kQuery).outer(0)) {}
  void run(const tn::Call& call) const {
    WholeHeads::run(call, {call.size(sequences_), innermost(*call.input(kQuery)), 0, 0, nullptr, 0});
  }

 private:
  tn::Dim sequences_;
};

class AttendPast : public Heads {
 public:
  static void describe(tn::KernelDescription& d) { Heads::describe(d, "attention_step", "attend_past"); }

  AttendPast(const tn::KernelSite& site, int32_t direction)
      : Heads(site),
        samples_(site.input(kQuery)[0]),
        rows_(site.input(kPastKey)[0]),
        narrow_(site.input(kPast).dtype() == TN_I32),
        most_numbers_(bound_of(site.input(kPast)[0], "past")) {
    if (direction == TN_BACKWARD) throw tn::Failure(TN_UNSUPPORTED, "output", "has no derivative");
  }
  // int64 copies of int32 numbers
  uint64_t workspace_bytes() const { return narrow_ ? product(sizeof(int64_t), most_numbers_) : 0; }
  void run(const tn::Call& call) const { wide_ ? run<double>(call) : run<float>(call); }

 private:
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
    T* to;
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
    const int64_t depth = of.key_features_ / of.heads_, width = of.value_features_ / of.heads_;
    const int64_t key = head * depth, value = head * width;
    Query<T> query;
    query.query = run.query + sample * of.key_features_ + key;
    query.key = {run.past_key + key, of.key_features_};
    query.value = {run.past_value + value, of.value_features_};
    query.numbers = run.past + first;
    query.count = count;
    query.last_key = run.key + sample * of.key_features_ + key;
    query.last_value = run.value + sample * of.value_features_ + value;
    query.depth = depth;
    query.width = width;
    query.scale = static_cast<T>(of.scale_);
    attend<T>().one(query, run.to + sample * of.value_features_ + value);
  }

  tn::Dim samples_, rows_;
  bool narrow_;
  uint64_t most_numbers_;
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
