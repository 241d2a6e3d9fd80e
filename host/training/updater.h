// Updaters: recorded programs that run over the parameters of a set. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/attribute.h"
#include "core/program.h"
#include "host/machine/step_gradients.h"
#include "host/plugins/registry.h"
#include "host/training/update_calls.h"
#include "host/training/updater_options.h"

namespace tenon::host {

using namespace core;

// One updater with its attributes. It keeps states and a step count for each ParameterSet.
class Updater {
 public:
  // Records the program. Errors name the updater and the attribute.
  Updater(const UpdaterType& type, const Values& attributes);
  ~Updater();
  Updater(const Updater&) = delete;
  Updater& operator=(const Updater&) = delete;

  // Updates the machine's parameters that `used` contains; call StepGradients::commit afterwards to end the step. Does
  // nothing if there are no gradients (an empty minibatch). On failure no step is counted. Of a machine that skips
  // steps with gradients that are not finite, nothing changes by such a step, which is counted by skipped() alone.
  void update(StepGradients& gradients, const UsedNames& used);

  [[nodiscard]] const std::string& type() const { return type_.description.type; }
  [[nodiscard]] double learning_rate() const { return learning_rate_; }
  void set_learning_rate(double rate);
  // Returns the learning rate of the set's last update or, before any, of the first one.
  [[nodiscard]] double scheduled_rate(const std::shared_ptr<ParameterSet>& set) const;
  // Returns the bytes of the states for a set, which are allocated at its first update.
  [[nodiscard]] uint64_t state_bytes(const ParameterSet& set) const;
  // Returns type, plugin, attributes and options as JSON: what must be equal for the same updates.
  [[nodiscard]] nlohmann::json describe() const;

  // For checkpoints. One state of one parameter: a number per element, or per row of its first dimension.
  struct StateValues {
    std::string state, parameter;
    std::vector<int64_t> shape;
    float* values;
    uint64_t count;
    Home* home = nullptr;  // of `values`, if machines of devices change them
    Home::Part part = {};

    void bring_home() const {
      if (home != nullptr) home->bring_home(part);
    }
    // After the values have been written.
    void changed() const {
      if (home != nullptr) home->changed(part);
    }
  };
  // Returns the states of all parameters of a set, brought home; allocates them if no update has. Valid until the next
  // update.
  [[nodiscard]] std::vector<StateValues> states(const std::shared_ptr<ParameterSet>& set);
  // Returns the same list without values: names and shapes.
  [[nodiscard]] std::vector<StateValues> state_shapes(const ParameterSet& set) const { return views(nullptr, set); }
  [[nodiscard]] uint64_t steps(const std::shared_ptr<ParameterSet>& set) const;
  [[nodiscard]] uint64_t skipped(const std::shared_ptr<ParameterSet>& set) const;
  // Sets the number of updates of a set so far. Programs read it as a signed integer: TN_INVALID from 2^63 on.
  void set_steps(const std::shared_ptr<ParameterSet>& set, uint64_t steps);
  // States to replace those of a set. `read` fills them, one call per state; if it throws, nothing has changed.
  struct SetState;
  [[nodiscard]] std::shared_ptr<SetState> read_states(const std::shared_ptr<ParameterSet>& set,
                                                      const std::function<void(const StateValues&)>& read) const;
  void adopt(const std::shared_ptr<SetState>& states, uint64_t steps, double learning_rate);

  // Returns the rows and bytes that the last update of the set wrote.
  [[nodiscard]] UpdateCalls::Written written(const std::shared_ptr<ParameterSet>& set) const;
  // Returns the bytes of workspace held at present for machines on a set.
  [[nodiscard]] uint64_t workspace_bytes(const std::shared_ptr<ParameterSet>& set) const;

 private:
  friend struct UpdateRecording;

  int32_t declare(const tn_state* given);
  void set_program(const tn_update* update);
  void check_program() const;
  void check_grain() const;
  SetState& state_for(const std::shared_ptr<ParameterSet>& set);
  void add_slabs(SetState& state, const ParameterSet& set) const;
  [[nodiscard]] std::vector<StateValues> views(SetState* state, const ParameterSet& set) const;
  UpdateCalls& calls_for(SetState& state, StepGradients& gradients, const UsedNames& used, ErrorSink& sink);
  [[nodiscard]] const SetState* known(const std::shared_ptr<ParameterSet>& set) const;

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
  std::vector<std::shared_ptr<SetState>> sets_;  // one per set
};

}  // namespace tenon::host
