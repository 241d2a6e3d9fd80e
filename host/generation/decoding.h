// How ids are chosen from scores: the most probable one, draws, beam search. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/array_view.h"

namespace tenon::host {

using namespace core;

enum class Method { kGreedy, kSample, kBeam };

struct DecodingOptions {
  Method method = Method::kGreedy;
  int64_t begin_id = -1;   // fed before each prompt; -1: none
  int64_t end_id = -1;     // ends a result; -1: none
  int64_t max_length = 0;  // of the ids of prompt and result
  int64_t beam_size = 1;   // kBeam
  int64_t results = 1;     // of each sample
  double length_penalty = 0;
  double temperature = 1;  // kSample, likewise below
  int64_t top_k = 0;       // 0: all ids
  double top_p = 1;
  uint64_t seed = 0;

  // The most rows of one sample in a step.
  [[nodiscard]] int64_t width() const { return method == Method::kBeam ? beam_size : results; }
};

// Throws TN_INVALID, naming the option. vocabulary: the number of ids.
void check(const DecodingOptions& options, int64_t vocabulary);

// By what the sum of the logarithms of `length` probabilities is divided: ((5 + length) / 6)^strength, as in Wu et al.,
// "Google's neural machine translation system", 2016, arXiv:1609.08144, equation 14.
[[nodiscard]] double length_divisor(double strength, int64_t length);

// Writes the logarithms of the probabilities of the ids below `vocabulary` by a row of scores, float32 or float64, none
// above 0. Returns false if a score is not a number, or no probability is above 0.
[[nodiscard]] bool log_probabilities(const ArrayView& scores, int64_t row, bool from_logits, int64_t vocabulary,
                                     std::vector<double>& to);

// A way to continue a row.
struct Candidate {
  int64_t id = 0;
  double log_p = 0;  // of the id alone
};

// One sample of a generation. In each step it has rows, the unfinished beginnings of results, that a machine computes
// scores for.
class Search {
 public:
  // Receives ids of a result as they are chosen; not with beam search.
  using Sink = std::function<void(int64_t result, int64_t id)>;
  // A row of the step.
  struct Row {
    int64_t id = 0;     // that is fed
    size_t parent = 0;  // the row of the step before that it continues
  };
  struct Result {
    std::vector<int64_t> ids;
    double score = 0;
  };

  // given: the ids that are fed first, at least one. most: ids to generate, at least 1. stream: of draws. Borrows the
  // options.
  Search(const DecodingOptions& options, std::vector<int64_t> given, int64_t most, uint64_t stream, Sink sink);

  // The rows of this step; none if the search is done.
  [[nodiscard]] const std::vector<Row>& rows() const { return rows_; }
  // Whether this step chooses ids; else the next one feeds an id that was given.
  [[nodiscard]] bool chooses() const { return given_fed_ == given_.size(); }
  // Ends a step that does not choose.
  void feed_given();
  // Returns what may continue row number `row`, by the logarithms of the probabilities of all ids. For rows of one
  // step at any time, from several threads.
  [[nodiscard]] std::vector<Candidate> candidates(size_t row, const std::vector<double>& log_p) const;
  // Ends a step that chooses. candidates: of each row.
  void choose(const std::vector<std::vector<Candidate>>& candidates);
  // Ends the search. The rows become results as they are.
  void stop();
  // The best first; of draws in the order of their numbers. Of a search that is done.
  [[nodiscard]] std::vector<Result> results() const;

 private:
  // An id of a result, after those before.
  struct Node {
    int64_t id = 0;
    size_t before = kNone;
  };
  static constexpr size_t kNone = static_cast<size_t>(-1);
  // A beginning of a result.
  struct Beginning {
    size_t last = kNone;  // node
    double log_p = 0;
    int64_t number = 0;  // of the result, of draws
  };
  struct Ended {
    Beginning beginning;
    double score = 0;
  };

  void choose_each(const std::vector<std::vector<Candidate>>& candidates);
  void choose_beam(const std::vector<std::vector<Candidate>>& candidates);
  void take(size_t row, const Candidate& candidate, std::vector<Beginning>& live);
  void end(const Beginning& beginning);
  void prune();
  [[nodiscard]] Candidate draw(const std::vector<Candidate>& from, int64_t number) const;

  const DecodingOptions& options_;
  const std::vector<int64_t> given_;
  const int64_t most_;
  const uint64_t stream_;
  const Sink sink_;
  size_t given_fed_ = 1;   // of those given, this step included
  int64_t length_ = 0;     // ids generated
  std::vector<Row> rows_;  // of live_, in its order
  std::vector<Beginning> live_;
  std::vector<Ended> ended_;  // with beam search the best first
  std::vector<Node> nodes_;
};

}  // namespace tenon::host
