// Which classes a model takes for which. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tenon/tenon.hpp>
#include <utility>
#include <vector>

#include "host/cli/console.h"
#include "host/cli/infer/classes.h"
#include "host/cli/numbers.h"

namespace tenon::cli {

// Counts samples, or rows of sequences, by label and predicted class: that with the largest score, the first of equal
// ones. Labels beyond the classes, such as an ignored -100, do not count.
class Confusion {
 public:
  explicit Confusion(const LabelledScores& pair);

  // scores, labels: the outputs of the same samples. Throws Failure(kUsage) if they have different numbers of rows.
  void add(const Array& scores, const Array& labels);
  // Prints a table, a row for each label, or the most frequent confusions if there are more than kMostColumns classes;
  // in JSON the event "confusion".
  void print(Console& console) const;
  static constexpr int64_t kMostColumns = 16, kMostPairs = 20, kMostInJson = 1000;

 private:
  using Pair = std::pair<int64_t, int64_t>;  // label, prediction
  // The class that is predicted for a row.
  [[nodiscard]] int64_t prediction(const Numbers& scores, int64_t row) const;
  [[nodiscard]] std::string name_of(int64_t number) const;
  [[nodiscard]] int64_t count(int64_t label, int64_t prediction) const;
  // The pairs of different classes, the most frequent first.
  [[nodiscard]] std::vector<std::pair<Pair, int64_t>> confusions() const;
  void print_matrix(Console& console) const;
  void print_pairs(Console& console) const;

  const std::string label_, scores_;
  const int64_t classes_;
  const ClassNames names_;
  std::map<Pair, int64_t> counts_;
  std::map<int64_t, int64_t> labels_, predictions_;  // their sums
};

}  // namespace tenon::cli
