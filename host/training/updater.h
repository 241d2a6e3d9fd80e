// Updaters at work: a recorded program run over the parameters of a set. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/attribute.h"
#include "core/program.h"
#include "host/machine/machine.h"
#include "host/plugins/registry.h"
#include "host/training/update_calls.h"
#include "host/training/updater_options.h"

namespace tenon {

// One updater with its attributes. The slots and the step count belong to the pair of updater and ParameterSet.
class Updater {
 public:
  // Records the program. Errors name the updater and the attribute.
  Updater(const UpdaterType& type, const Values& attributes);
  ~Updater();
  Updater(const Updater&) = delete;
  Updater& operator=(const Updater&) = delete;

  // Changes those of the machine's parameters that `used` contains by its gradients; Machine::commit then ends the
  // step. A machine without gradients (an empty minibatch) is left as it is. On failure no step is counted.
  void update(Machine& machine, const UsedNames& used);

  [[nodiscard]] const std::string& type() const { return type_.description.type; }
  [[nodiscard]] double learning_rate() const { return learning_rate_; }
  void set_learning_rate(double rate);
  // What the last update of the set used, or what the first one will.
  [[nodiscard]] double scheduled_rate(const std::shared_ptr<ParameterSet>& set) const;
  // Bytes of slots for a set: kept once per set, from its first update on.
  [[nodiscard]] uint64_t slot_bytes(const ParameterSet& set) const;
  // What the last update of the set wrote.
  [[nodiscard]] UpdateCalls::Written written(const std::shared_ptr<ParameterSet>& set) const;
  // Bytes of workspace held at present for machines on a set.
  [[nodiscard]] uint64_t workspace_bytes(const std::shared_ptr<ParameterSet>& set) const;

 private:
  struct State;
  friend struct UpdateRecording;

  void check_program() const;
  void check_grain() const;
  State& state_for(const std::shared_ptr<ParameterSet>& set);
  UpdateCalls& calls_for(State& state, Machine& machine, const UsedNames& used, ErrorSink& sink);
  [[nodiscard]] const State* known(const std::shared_ptr<ParameterSet>& set) const;

  const UpdaterType& type_;
  std::vector<Value> attributes_;
  UpdaterOptions options_;
  double learning_rate_ = 0;
  std::vector<SlotDeclaration> slots_;
  Program program_;
  std::vector<int32_t> scalars_;
  int32_t grain_ = TN_GRAIN_ELEMENT;
  bool recorded_ = false;
  std::vector<std::unique_ptr<State>> states_;  // one per set
};

}  // namespace tenon
