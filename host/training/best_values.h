// The values of the best measurement of a training, kept in sets of their own. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/parameter_set.h"
#include "host/machine/set_gate.h"
#include "host/training/checkpoint_file.h"
#include "host/training/validation.h"

namespace tenon::host {

using namespace core;

struct BestOptions {
  std::string metric = "cost";  // or one of several costs, or a metric
  bool best_is_highest = false;
};

class BestValues : base::NotCopied {
 public:
  // A set, and another one that receives its values. The gates are borrowed.
  struct Copy {
    std::shared_ptr<ParameterSet> source;
    SetGate* source_gate;
    std::shared_ptr<ParameterSet> target;
    SetGate* target_gate;
  };
  // of_test: measurements are tests, else passes. copies: of the parameters, and of their averages if these are kept,
  // too. Throws TN_INVALID if two sets of a copy do not fit each other.
  BestValues(const BestOptions& options, bool of_test, std::vector<Copy> copies);
  void check(const TestResult& measured) const { require_value(options_.metric, measured, "best", "metric"); }

  // Copies the values if this measurement of them is the best so far, and they are finite.
  void take(const TestResult& measured, const TrainingPlace& place);
  [[nodiscard]] std::optional<BestPlace> best() const;

  // For checkpoints: measurement and what is watched, as a record in which nothing else means anything, and the values,
  // none before the first measurement.
  [[nodiscard]] CheckpointRecord record() const;
  [[nodiscard]] std::vector<Updater::StateValues> values() const;
  // Values to replace those of the sets.
  struct Restored {
    double value;
    TrainingPlace place;
    std::vector<ParameterSet::Values> values;  // one for each copy
  };
  // Reads them from a checkpoint; changes nothing. Empty if it has none of the same metric.
  [[nodiscard]] std::optional<Restored> read(CheckpointFile& file) const;
  // names: of the data layers.
  void adopt(Restored restored, const DataNames& names);

 private:
  [[nodiscard]] std::vector<Updater::StateValues> views(const std::vector<ParameterSet::Values>* apart) const;

  BestOptions options_;
  std::string watched_;
  std::vector<Copy> copies_;
  Best best_;
  TrainingPlace place_;
};

}  // namespace tenon::host
