// The parameters and gradients of a machine as updaters see them. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/topology.h"
#include "host/machine/compiled_model.h"

namespace tenon::host {

using namespace core;

// Names of parameters and buffers: those of a model or of a list, or all except some.
class UsedNames {
 public:
  UsedNames() = default;  // all
  explicit UsedNames(const Topology& model);
  explicit UsedNames(std::set<std::string> names) : all_(false), names_(std::move(names)) {}
  // Returns these names except `names`.
  [[nodiscard]] UsedNames without(const std::set<std::string>& names) const;
  [[nodiscard]] bool contains(const std::string& name) const { return all_ != names_.contains(name); }
  bool operator==(const UsedNames&) const = default;

 private:
  bool all_ = true;
  std::set<std::string> names_;  // if all_: the exceptions
};

// A run of parameters that are adjacent in the set, have adjacent gradients, and have equal multipliers.
struct GradientRun {
  const void* gradients = nullptr;
  tn_dtype gradient_dtype = TN_F32;
  size_t slab = 0;        // of the set
  uint64_t offset = 0;    // elements into the slab
  uint64_t elements = 0;  // padding between entries included
  Multipliers multipliers;
  std::vector<size_t> entries;  // numbers in the set
};

// Returns the runs of the parameters in `used` that have dense gradients. The memory of the model must be allocated.
[[nodiscard]] std::vector<GradientRun> gradient_runs(const CompiledModel& model, const ParameterSet& set,
                                                     const UsedNames& used);

}  // namespace tenon::host
