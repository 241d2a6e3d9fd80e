// The times of a training's steps. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "host/cli/job/job.h"

namespace tenon::cli {

// The steps of one training, in seconds each.
struct StepTimes {              // NOLINT(bugprone-exception-escape): JSON moves without one
  std::vector<double> steps;    // forward, backward and update of a minibatch
  std::vector<double> reading;  // between two steps of a pass: the wait for the reader, and the sums of metrics
  int64_t samples = 0;          // of all steps
  int64_t batch = 0;            // the most in a minibatch
  nlohmann::json warm, plan;    // of the machine before the first step and after the last (docs/plan.md)
  double update_bytes = 0;      // that an update reads and writes
  double others = 0;            // which part of all processors other processes took meanwhile
};

// Returns seconds since any moment, which do not fall.
using SecondsClock = std::function<double()>;
[[nodiscard]] double monotonic_seconds();

// Trains a job on fresh parameters for a few steps that do not count, and then for about this many seconds. Nothing is
// saved. Throws as `tenon train` does. clock: read when a step begins and when it ends.
[[nodiscard]] StepTimes measure_steps(const Host& host, const Job& job, double seconds, const SecondsClock& clock);

// What took time in a step.
struct Part {
  std::string phase;   // "forward", "backward", "update"
  std::string layers;  // "hidden/fc + hidden/relu"
  std::string kernel;  // that runs the calls, as in the plan
  int64_t calls = 0;   // in a step
  // Of a step, on average.
  double seconds = 0, operations = 0, bytes = 0;
  double limit = 0;  // seconds that the machine needs: of the operations or of the bytes, whichever is longer
};

// What the machine can do, in operations and bytes per second.
struct Limits {
  double operations = 0, bandwidth = 0;
  double round_trip = 0;  // seconds of a line of a cache between two of the cores; 0: one core alone
};

// Returns the parts of a step, the longest first. timed: by a host that times calls. The time of the update is what the
// calls leave, copies of feeds included.
[[nodiscard]] std::vector<Part> parts_of(const StepTimes& timed, const Limits& limits);

// Returns the element at this share, 0 to 1, of the sorted numbers; 0 if there is none.
[[nodiscard]] double quantile(std::vector<double> numbers, double share);

}  // namespace tenon::cli
