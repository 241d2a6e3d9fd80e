// SPDX-License-Identifier: Apache-2.0
#include "host/training/updater_groups.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace tenon::host {

UpdaterGroups::UpdaterGroups(const StepGradients& gradients, std::shared_ptr<Updater> rest,
                             const std::vector<Group>& groups) {
  parts_.push_back({std::move(rest), {}, {}});
  std::set<std::string> grouped;
  for (const Group& group : groups) {
    const std::string who = text("updater group ", parts_.size());
    if (group.names.empty())
      fail(TN_INVALID, ComponentName{who}, SubjectName{"parameters"}, "the list of parameters is empty");
    if (std::any_of(parts_.begin(), parts_.end(), [&](const Part& part) { return part.updater == group.updater; }))
      fail(TN_INVALID, ComponentName{who}, SubjectName{"updater"},
           "its updater has other parameters already; make another one");
    std::set<std::string> parameters;
    try {
      parameters = gradients.trained(group.names);
    } catch (const Error& error) {
      throw error.with_component(who);
    }
    for (const std::string& parameter : parameters)
      if (!grouped.insert(parameter).second)
        fail(TN_INVALID, ComponentName{who}, SubjectName{parameter}, "parameter \"", parameter,
             "\" is in an earlier group, too");
    parts_.push_back({group.updater, parameters, UsedNames(parameters)});
  }
  parts_[0].used = UsedNames().without(grouped);
  for (Part& part : parts_) {
    std::vector<std::string> tables;
    for (const std::string& parameter : gradients.trained())
      if (part.used.contains(parameter) && gradients.set()->find(parameter).table) tables.push_back(parameter);
    part.updater->check_tables(tables);
    part.has_tables = !tables.empty();
  }
}

bool UpdaterGroups::calls_application() const {
  return std::any_of(parts_.begin(), parts_.end(), [](const Part& part) { return part.updater->calls_application(); });
}

void UpdaterGroups::prepare(StepGradients& gradients) const {
  for (const Part& part : parts_) part.updater->prepare(gradients, part.used);
}

void UpdaterGroups::update(StepGradients& gradients) const {
  for (const Part& part : parts_) part.updater->update(gradients, part.used);
}

uint64_t UpdaterGroups::skipped(const std::shared_ptr<ParameterSet>& set) const {
  uint64_t most = 0;
  for (const Part& part : parts_) most = std::max(most, part.updater->skipped(set));
  return most;
}

nlohmann::json UpdaterGroups::describe() const {
  nlohmann::json described = rest().describe();
  for (size_t i = 1; i < parts_.size(); ++i) {
    nlohmann::json group = parts_[i].updater->describe();
    group["parameters"] = parts_[i].parameters;
    described["groups"].push_back(std::move(group));
  }
  return described;
}

namespace {

// The rows of a table that a process owns.
Updater::StateValues::Owned owned_rows(const ParameterSet& set, const std::string& table) {
  return {set.find(table).shape[0], *set.tables().blocks};
}

}  // namespace

std::vector<Updater::StateValues> UpdaterGroups::states(const std::shared_ptr<ParameterSet>& set) const {
  std::vector<Updater::StateValues> result;
  for (const Part& part : parts_) {
    std::vector<Updater::StateValues> states = part.updater->states(set);
    if (part.has_tables) {
      for (Updater::StateValues& state : part.updater->states(set->owned())) {
        state.owned = owned_rows(*set, state.parameter);
        states.push_back(std::move(state));
      }
      std::stable_sort(states.begin(), states.end(),
                       [&](const auto& a, const auto& b) { return set->index(a.parameter) < set->index(b.parameter); });
    }
    for (Updater::StateValues& state : states)
      if (part.used.contains(state.parameter)) result.push_back(std::move(state));
  }
  return result;
}

namespace {

// The stored states of the rows of tables that a process owns.
class OwnedStates final : public Updater::StateSource {
 public:
  OwnedStates(Updater::StateSource& all, const ParameterSet& set) : all_(all), set_(set) {}
  [[nodiscard]] std::vector<Updater::StateValues> states() const override { return all_.states(); }
  void read(const Updater::StateValues& state) override {
    Updater::StateValues rows = state;
    rows.owned = owned_rows(set_, state.parameter);
    all_.read(rows);
  }

 private:
  Updater::StateSource& all_;
  const ParameterSet& set_;
};

// The stored states of some parameters; those of others keep the values that they have.
class PartOfStates final : public Updater::StateSource {
 public:
  PartOfStates(Updater::StateSource& whole, const UsedNames& used) : whole_(whole), used_(used) {}
  [[nodiscard]] std::vector<Updater::StateValues> states() const override {
    std::vector<Updater::StateValues> result = whole_.states();
    std::erase_if(result, [&](const Updater::StateValues& state) { return !used_.contains(state.parameter); });
    return result;
  }
  void read(const Updater::StateValues& state) override {
    if (used_.contains(state.parameter)) whole_.read(state);
  }

 private:
  Updater::StateSource& whole_;
  const UsedNames& used_;
};

}  // namespace

UpdaterGroups::States UpdaterGroups::read_states(const std::shared_ptr<ParameterSet>& set,
                                                 Updater::StateSource& source) const {
  States result;
  for (const Part& part : parts_) {
    PartOfStates states(source, part.used);
    result.push_back(part.updater->read_states(set, states));
  }
  if (set->owned() == nullptr) return result;
  OwnedStates rows(source, *set);
  for (const Part& part : parts_) {
    if (!part.has_tables) {
      result.emplace_back();
      continue;
    }
    PartOfStates states(rows, part.used);
    result.push_back(part.updater->read_states(set->owned(), states));
  }
  return result;
}

std::vector<UpdaterProgress> UpdaterGroups::progress(const std::shared_ptr<ParameterSet>& set) const {
  std::vector<UpdaterProgress> result;
  for (const Part& part : parts_) {
    const uint64_t rows = part.has_tables ? part.updater->steps(set->owned()) : 0;
    result.push_back({std::max(part.updater->steps(set), rows), part.updater->learning_rate()});
  }
  return result;
}

void UpdaterGroups::set_steps(const std::shared_ptr<ParameterSet>& set, const std::vector<uint64_t>& steps) const {
  for (size_t i = 0; i < parts_.size(); ++i) parts_[i].updater->set_steps(set, steps[i]);
}

void UpdaterGroups::adopt(const States& states, const std::vector<UpdaterProgress>& progress) const {
  for (size_t i = 0; i < states.size(); ++i) {
    const size_t part = i % parts_.size();
    if (states[i] != nullptr)
      parts_[part].updater->adopt(states[i], progress[part].steps, progress[part].learning_rate);
  }
}

}  // namespace tenon::host
