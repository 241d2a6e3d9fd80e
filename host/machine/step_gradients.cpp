// SPDX-License-Identifier: Apache-2.0
#include "host/machine/step_gradients.h"

#include "base/nearest.h"
#include "base/text.h"
#include "core/error.h"

namespace tenon::host {

std::vector<GradientRun> StepGradients::runs(const UsedNames& used) const {
  if (rows_alone_) return {};
  return gradient_runs(machine_.model(), *set(), used);
}

std::vector<const SparseGradient*> StepGradients::row_sparse(const UsedNames& used) const {
  std::vector<const SparseGradient*> result;
  for (const auto& gradient : machine_.model().sparse_gradients) {
    const ParameterEntry& entry = set()->entries()[gradient->entry()];
    if (!entry.table && used.contains(entry.name)) result.push_back(gradient.get());
  }
  return result;
}

bool StepGradients::is_row_sparse(const std::string& parameter) const {
  const ParameterUse& use = parameter_with_gradient(machine_.model().lowered, parameter);
  return machine_.model().sparse_gradient(use.gradient) != nullptr;
}

std::set<std::string> StepGradients::trained() const {
  std::set<std::string> names;
  for (const ParameterUse& use : machine_.model().lowered.parameters)
    if (use.gradient != kNoValue) names.insert(use.name);
  return names;
}

std::set<std::string> StepGradients::trained(const std::vector<std::string>& names) const {
  std::set<std::string> result;
  const std::set<std::string> all = trained();
  const std::vector<std::string> known(all.begin(), all.end());
  std::string missing, first;
  for (const std::string& name : names) {
    bool found = false;
    for (const std::string& parameter : known) {
      if (!is_below(parameter, name)) continue;
      result.insert(parameter);
      found = true;
    }
    if (found) continue;
    if (missing.empty()) first = name;
    base::append(missing, text("\"", name, "\""));
  }
  if (!missing.empty())
    fail_parameter(TN_INVALID, first, "the machine trains no parameter ", missing, base::suggestion(first, known));
  return result;
}

void StepGradients::commit(const UsedNames& used) {
  if (!exist()) return;
  if (state_ == State::kAccumulated) machine_.commit_buffers(used);
  state_ = State::kUsed;
  updated_.clear();
  set()->count_update();
}

const ParameterUse& StepGradients::readable(const std::string& parameter) const {
  const ParameterUse& use = parameter_with_gradient(machine_.model().lowered, parameter);
  if (state_ == State::kNone)
    fail_parameter(TN_MISUSE, parameter, "parameter \"", parameter, "\": no backward since the last update");
  set()->require_values(set()->find(parameter));
  return use;
}

ArrayView StepGradients::gradient(const std::string& parameter) {
  const ParameterUse& use = readable(parameter);
  const SparseGradient* const sparse = machine_.model().sparse_gradient(use.gradient);
  return sparse == nullptr ? machine_.view(use.gradient) : sparse->dense_copy(dense_copy_);
}

SparseGradientView StepGradients::sparse_gradient(const std::string& parameter) const {
  const SparseGradient* const gradient = machine_.model().sparse_gradient(readable(parameter).gradient);
  if (gradient == nullptr)
    fail_parameter(TN_INVALID, parameter, "parameter \"", parameter, "\" has a dense gradient, not one of rows");
  return gradient->view();
}

}  // namespace tenon::host
