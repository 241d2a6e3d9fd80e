// Copies values between two ParameterSets by name. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/parameter_set.h"

namespace tenon::host {

using namespace core;

// Names include everything below them: "hidden" includes "hidden.weight".
struct CopyOptions {
  std::vector<std::pair<std::string, std::string>> renames;  // a name of the source, the name in the target
  std::vector<std::string> skip;                             // names of the target that keep their values
  bool partial = false;  // whether parameters that are missing or have another shape keep their values
};

// Gives the entries of `to` the values of those of `from`, as tn_parameters_copy documents, and returns its report.
// They are two sets. Checks everything before it changes a value.
nlohmann::json copy_parameters(ParameterSet& to, const ParameterSet& from, const CopyOptions& options);

}  // namespace tenon::host
