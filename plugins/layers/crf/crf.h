// Shared code of the layers of linear-chain conditional random fields. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/plugin.hpp>

namespace tenon::crf {

// The rows of the parameter "transitions" [tags + 2, tags], in the order of Paddle: the weights of the first tag of a
// sequence, those of the last one, and for each tag those of the tags after it.
inline constexpr int64_t kStart = 0, kEnd = 1, kFrom = 2;

// Plans the parameter, and checks that input 0 is [rows, tags], sequences. Returns its spec.
tn::Spec plan_scores(tn::Planner& planner);

// The parameter "transitions", which must be the layer's only one.
class Transitions {
 public:
  explicit Transitions(tn::Builder& body) : body_(body), all_(body.parameter(0)), tags_(all_.spec()[1].offset) {}

  int64_t tags() const { return tags_; }
  const tn::Tensor& all() const { return all_; }
  tn::Tensor row(int64_t i) const { return body_.slice(all_, 0, i, 1).view(tn::Spec({tags_})); }
  // [tags, tags]: row j has the weights of the tags before tag j.
  tn::Tensor before() const { return body_.exchange(body_.slice(all_, 0, kFrom, tags_), 0, 1); }

 private:
  tn::Builder& body_;
  tn::Tensor all_;
  int64_t tags_;
};

// The kinds of sums over paths: the logarithm of the sum of the exponentials of their scores, or the largest score.
enum class Over { kAllPaths, kBestPath };

struct PathScores {
  tn::Tensor at_rows;  // [rows, tags]: of the paths that end at a row with a tag, without the weight of the last tag
  tn::Tensor whole;    // [sequences, tags]: the same of the last rows; of an empty sequence 0
};

// scores [rows, tags]. A step takes O(tags^2) per sequence, and in training keeps as many numbers.
PathScores paths(tn::Builder& body, const tn::Tensor& scores, const Transitions& transitions, Over over);

// log(sum_per_row(exp(x))) without overflow; the derivative is the softmax.
inline tn::Float log_sum_exp(const tn::Float& x) {
  const tn::Float most = stop(max_per_row(x));
  return most + log(sum_per_row(exp(x - most)));
}

void add_decoding(tn::Plugin& plugin);

}  // namespace tenon::crf
