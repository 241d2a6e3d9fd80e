// The figures of `tenon bench`, as JSON and as a table. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "host/cli/bench/measure.h"

namespace tenon::cli {

// Returns the bytes that a step goes through: parameters, their states, and the memory of the machine, of at least 1
// MiB and at most 256 MiB. plan: as StepTimes has it.
[[nodiscard]] int64_t working_set(const nlohmann::json& plan);

// The steps with another number of threads.
struct OtherThreads {
  int threads = 0;  // none were measured
  std::vector<double> steps;
};

class BenchReport {
 public:
  // plain: of a host that times no calls; timed: of one that does. Throws Failure (kSystem) if the job was faster than
  // the limits allow.
  BenchReport(int threads, StepTimes plain, const StepTimes& timed, const Limits& limits, OtherThreads other = {});

  // Returns what docs/benchmarks.md describes.
  [[nodiscard]] nlohmann::json object() const;
  void print(std::ostream& to, const std::string& job, size_t width) const;

 private:
  [[nodiscard]] double timed_step() const;
  [[nodiscard]] double samples_per_second() const;
  [[nodiscard]] std::string of_machine() const;
  [[nodiscard]] std::string beside_other() const;
  [[nodiscard]] int best_threads() const;

  int threads_;
  StepTimes plain_;
  Limits limits_;
  OtherThreads other_;
  std::vector<Part> parts_;
  double limit_ = 0, step_;
};

}  // namespace tenon::cli
