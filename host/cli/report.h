// Reports of training and testing, as lines of text or as JSON events. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "host/cli/console.h"

namespace tenon::cli {

// "  cost 0.5312  kl 0.0213  rebuilt 0.5099  accuracy 0.8134", to follow a label. cost: null if there is no cost.
// costs: each of several.
[[nodiscard]] std::string shown(const double* cost, const std::vector<Metric>& costs,
                                const std::vector<Metric>& metrics);

class Report {
 public:
  // samples: in a pass, -1 if unknown.
  Report(Console& console, int64_t passes, int64_t samples);

  // Reports one event of the training.
  void tell(const Event& told);
  // passes_done: 0 for a model from a file. has_cost: whether a cost was measured, or metrics alone.
  void test(const TestResult& result, int64_t passes_done, const std::string& label, bool has_cost = true);
  // best: whose values were saved; empty: the last ones. watched: how it was chosen, such as "test accuracy".
  void saved(const std::string& path, const std::optional<BestMeasurement>& best, const std::string& watched);

  [[nodiscard]] int64_t passes_done() const { return passes_done_; }
  // The cost of the last pass that ended.
  [[nodiscard]] double cost() const { return cost_; }
  // Whether a minibatch was trained.
  [[nodiscard]] bool updated() const { return pass_ > 0 || batches_done_ > 0; }
  // The last checkpoint that was written; empty if there is none.
  [[nodiscard]] const std::string& checkpoint() const { return checkpoint_; }
  // The progress so far: "pass 3, batch 120".
  [[nodiscard]] std::string position() const;

 private:
  void begin_training(const Event& told);
  void end_iteration(const Event& told);
  void end_pass(const Event& told);
  // Warns once of each metric that is no finite number, unless the cost is none either.
  void check(const std::vector<Metric>& metrics, const std::string& where);
  void event(const char* name, const Event& told, bool with_result);
  [[nodiscard]] std::string pass_label(int64_t pass) const;

  Console& console_;
  int64_t passes_;
  int64_t samples_;   // of a pass
  int64_t pass_ = 0;  // the present one, or the last, from 0
  int64_t passes_done_ = 0;
  int64_t batches_done_ = 0;  // of the present pass
  int64_t pass_samples_ = 0;
  double pass_cost_ = 0;  // sum over samples
  double cost_ = 0;
  bool warned_ = false;              // of the cost
  std::set<std::string> warned_of_;  // metrics
  std::string checkpoint_;
};

}  // namespace tenon::cli
