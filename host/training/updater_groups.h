// The updaters of one training: one for each group of parameters, and one for all others.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "host/machine/step_gradients.h"
#include "host/training/checkpoint_record.h"
#include "host/training/updater.h"

namespace tenon::host {

using namespace core;

class UpdaterGroups {
 public:
  struct Group {
    std::shared_ptr<Updater> updater;
    std::vector<std::string> names;  // of parameters; a name includes everything below it
  };
  // rest: the updater of the parameters that are in no group. Throws TN_INVALID naming the group and a name that no
  // parameter trained by the machine has, a parameter that another group has, or an updater that is given twice,
  // TN_UNSUPPORTED naming a table that its updater cannot update.
  UpdaterGroups(const StepGradients& gradients, std::shared_ptr<Updater> rest, const std::vector<Group>& groups);

  // Whether an updater calls the application, by prepare(), before update() and outside of the gate of the set.
  [[nodiscard]] bool calls_application() const;
  void prepare(StepGradients& gradients) const;
  // Updates all parameters of the machine; call StepGradients::commit afterwards to end the step.
  void update(StepGradients& gradients) const;

  // Those of the updater `rest`.
  [[nodiscard]] double learning_rate() const { return rest().learning_rate(); }
  void set_learning_rate(double rate) const { rest().set_learning_rate(rate); }
  [[nodiscard]] double scheduled_rate(const std::shared_ptr<ParameterSet>& set) const {
    return rest().scheduled_rate(set);
  }
  // Returns the steps that an updater has skipped: the most of one.
  [[nodiscard]] uint64_t skipped(const std::shared_ptr<ParameterSet>& set) const;

  // Returns Updater::describe of `rest`, with the groups as a list "groups" of such descriptions and "parameters".
  [[nodiscard]] nlohmann::json describe() const;

  // For checkpoints: as those of Updater, of the rows of tables that this process owns, too, in the order of the set.
  // Each parameter has the states of its own updater only.
  [[nodiscard]] std::vector<Updater::StateValues> states(const std::shared_ptr<ParameterSet>& set) const;
  using States =
      std::vector<std::shared_ptr<Updater::SetState>>;  // of each part, of the set; then of its owned rows, null: none
  [[nodiscard]] States read_states(const std::shared_ptr<ParameterSet>& set, Updater::StateSource& source) const;
  // One for each updater: that of `rest`, then those of the groups in their order.
  [[nodiscard]] std::vector<UpdaterProgress> progress(const std::shared_ptr<ParameterSet>& set) const;
  // Sets the numbers of updates of a set so far, by updater in that order.
  void set_steps(const std::shared_ptr<ParameterSet>& set, const std::vector<uint64_t>& steps) const;
  void adopt(const States& states, const std::vector<UpdaterProgress>& progress) const;
  [[nodiscard]] size_t groups() const { return parts_.size() - 1; }

 private:
  struct Part {
    std::shared_ptr<Updater> updater;
    std::set<std::string> parameters;  // of a group
    UsedNames used;
    bool has_tables = false;  // whether it updates one whose rows lie with several processes
  };
  [[nodiscard]] Updater& rest() const { return *parts_[0].updater; }

  std::vector<Part> parts_;  // `rest` first
};

}  // namespace tenon::host
