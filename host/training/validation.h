// Tests within a training, and the best values of what is measured. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "host/training/checkpoint_record.h"
#include "host/training/training_loop.h"

namespace tenon::host {

using namespace core;

// Returns "cost", or the cost or metric of that name; empty if there is none.
[[nodiscard]] std::optional<double> value_of(const std::string& name, const TestResult& measured);
// Returns the value for comparisons: NaN if there is none, or if nothing was measured because there were no samples.
[[nodiscard]] double compared(const std::string& name, const TestResult& measured);
// Throws TN_INVALID if there is none. where, option: the option that names the value: "early_stop", "metric".
void require_value(const std::string& name, const TestResult& measured, const char* where, const char* option);
// Returns a text that is equal for equal measurements: "test accuracy max". of_test: of tests, else of passes.
[[nodiscard]] std::string watched(const std::string& name, bool highest, bool of_test);

// The best of the values that it is given.
class Best {
 public:
  explicit Best(bool highest, double min_delta = 0) : highest_(highest), min_delta_(min_delta) {}
  // Returns whether a value is better than the best so far by more than min_delta, and keeps it then. A value that is
  // not finite never is.
  bool take(double value);
  [[nodiscard]] const std::optional<double>& value() const { return value_; }
  void set(std::optional<double> value) { value_ = value; }

 private:
  bool highest_;
  double min_delta_;
  std::optional<double> value_;
};

struct EarlyStopOptions {
  std::string metric;  // "cost", one of several costs, or a metric
  bool best_is_highest = false;
  int64_t patience = 1;  // measurements in a row without improvement
  double min_delta = 0;
};

// Decides when a training has not improved for long enough.
class EarlyStop {
 public:
  // of_test: it is given tests, else passes. TN_INVALID names a bad option.
  EarlyStop(const EarlyStopOptions& options, bool of_test);
  void check(const TestResult& measured) const { require_value(options_.metric, measured, "early_stop", "metric"); }
  void take(const TestResult& measured);
  [[nodiscard]] bool is_over() const { return misses_ >= options_.patience; }

  [[nodiscard]] EarlyStopState state() const { return {watched_, best_.value(), misses_}; }
  // Takes over the state of a training that watched the same value; begins anew after another one.
  void set(const EarlyStopState& state);

 private:
  EarlyStopOptions options_;
  std::string watched_;
  Best best_;
  int64_t misses_ = 0;
};

struct TestSchedule {
  int64_t every_passes = 0, every_batches = 0;  // 0: not by these; both 0: after each pass
};

// Measures the parameters of a training now and then.
class Tests {
 public:
  // inputs: borrowed. Errors are TN_INVALID and name the option.
  Tests(const LoopInputs& inputs, TestSchedule schedule);
  // Returns cost and metrics of no samples: the names of what is measured.
  [[nodiscard]] TestResult nothing() const { return ResultSums(inputs_.machine, inputs_.registry).measured(); }

  void count_batch();
  // Returns after how many minibatches a test is due by them; INT64_MAX if none is.
  [[nodiscard]] int64_t batches_left() const {
    return schedule_.every_batches == 0 ? INT64_MAX : std::max<int64_t>(1, schedule_.every_batches - state_.batches);
  }
  void count_pass(int64_t passes_done);
  [[nodiscard]] bool is_due() const { return state_.due; }
  // Returns the result; empty if it is cancelled, and then it is still due.
  [[nodiscard]] std::optional<TestResult> run();

  [[nodiscard]] const TestState& state() const { return state_; }
  void set(const TestState& state) { state_ = state; }

 private:
  const LoopInputs& inputs_;
  TestSchedule schedule_;
  TestState state_;
};

}  // namespace tenon::host
