// Initial values from a model file. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "host/cli/job/job.h"

namespace tenon::cli {

// How the parameters of a model file fit those of a job.
struct InitialFit {
  struct Pair {
    std::string from, to;  // the names in the file and in the job
  };
  std::vector<Pair> taken;
  std::vector<std::string> skipped;  // of the job
  std::vector<std::string> extra;    // of the file
  std::vector<std::string> faults;   // a line for each parameter of the job that is missing or has another shape
};

// Compares two lists in the form of tn_parameters_describe. Throws Failure if a name of `init` is unknown.
[[nodiscard]] InitialFit fit(const JobInit& init, const nlohmann::json& file, const nlohmann::json& job);

// Copies the values of `from` into `to`, and returns the fit. Throws Failure listing the faults, before any change.
InitialFit initialise(const JobInit& init, const Parameters& from, const Parameters& to);

// Returns a line about a fit: "4 parameters from base.safetensors; skipped: score.bias".
[[nodiscard]] std::string report_of(const JobInit& init, const InitialFit& fit);

}  // namespace tenon::cli
