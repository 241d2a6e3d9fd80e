// Updaters of plugins: recorded programs that run over the parameters of a set. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/attribute.h"
#include "core/program.h"
#include "host/plugins/registry.h"
#include "host/training/update_calls.h"
#include "host/training/updater.h"
#include "host/training/updater_options.h"

namespace tenon::host {

using namespace core;

// One updater of a plugin with its attributes.
class ProgramUpdater final : public Updater {
 public:
  // Records the program. Errors name the updater and the attribute.
  ProgramUpdater(const UpdaterType& type, const Values& attributes);

  void check_tables(const std::vector<std::string>& tables) const override;
  void update(StepGradients& gradients, const UsedNames& used) override;

  [[nodiscard]] const std::string& type() const override { return type_.description.type; }
  [[nodiscard]] double learning_rate() const override { return learning_rate_; }
  void set_learning_rate(double rate) override;
  [[nodiscard]] double scheduled_rate(const std::shared_ptr<ParameterSet>& set) const override;
  [[nodiscard]] uint64_t state_bytes(const ParameterSet& set) const override;
  [[nodiscard]] nlohmann::json describe() const override;

  [[nodiscard]] std::vector<StateValues> states(const std::shared_ptr<ParameterSet>& set) override;
  [[nodiscard]] std::vector<StateValues> state_shapes(const std::shared_ptr<ParameterSet>& set) override {
    return views(nullptr, *set);
  }
  [[nodiscard]] uint64_t steps(const std::shared_ptr<ParameterSet>& set) const override;
  [[nodiscard]] uint64_t skipped(const std::shared_ptr<ParameterSet>& set) const override;
  void set_steps(const std::shared_ptr<ParameterSet>& set, uint64_t steps) override;
  [[nodiscard]] std::shared_ptr<SetState> read_states(const std::shared_ptr<ParameterSet>& set,
                                                      StateSource& source) const override;
  void adopt(const std::shared_ptr<SetState>& states, uint64_t steps, double learning_rate) override;

  [[nodiscard]] UpdateCalls::Written written(const std::shared_ptr<ParameterSet>& set) const override;
  [[nodiscard]] uint64_t workspace_bytes(const std::shared_ptr<ParameterSet>& set) const override;

 private:
  friend struct UpdateRecording;
  struct ProgramState;

  int32_t declare(const tn_state* given);
  void set_program(const tn_update* update);
  void check_program() const;
  void check_grain() const;
  ProgramState& state_for(const std::shared_ptr<ParameterSet>& set);
  void add_slabs(ProgramState& state, const ParameterSet& set) const;
  [[nodiscard]] std::vector<StateValues> views(ProgramState* state, const ParameterSet& set) const;
  UpdateCalls& calls_for(ProgramState& state, UpdateTarget& target, const UsedNames& used, ErrorSink& sink);
  void update_target(UpdateTarget& target, const UsedNames& used);
  [[nodiscard]] const ProgramState* known(const std::shared_ptr<ParameterSet>& set) const;

  const UpdaterType& type_;
  std::vector<Value> attributes_;
  Values given_;  // as in the constructor, options included
  UpdaterOptions options_;
  double learning_rate_ = 0;
  std::vector<StateDeclaration> declared_;
  Program program_;
  std::vector<int32_t> scalars_;
  int32_t grain_ = TN_GRAIN_ELEMENT;
  bool recorded_ = false;
  std::vector<std::shared_ptr<ProgramState>> sets_;  // one per set
};

}  // namespace tenon::host
