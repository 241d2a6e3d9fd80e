// What the recorder of trainings needs to know of a job and of the public API. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <tenon/tenon.hpp>
#include <vector>

#include "host/cli/job/job.h"
#include "record/recorder.h"

namespace tenon::cli {

// What a training of a job is made of. Borrowed as long as it trains.
struct JobTraining {
  const Job& job;
  const Host& host;
  const Parameters& parameters;
  const std::vector<std::string>& sets;  // the arguments of --set
  int64_t processes = 1, trainers = 1;   // of its team
  bool is_whole = true;                  // whether this process has all rows of the parameters
};

// Refuses by Failure.
[[nodiscard]] record::Surroundings record_surroundings();
[[nodiscard]] record::RecordedTraining recorded(const JobTraining& training);
[[nodiscard]] record::RecordedEvent recorded(const Event& event);
[[nodiscard]] std::optional<record::RecordedTest> recorded(const std::optional<TestResult>& tested);

}  // namespace tenon::cli
