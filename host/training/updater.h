// What updates the parameters of a set by their gradients. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/home.h"
#include "core/table_rows.h"
#include "host/machine/step_gradients.h"
#include "host/training/update_calls.h"

namespace tenon::host {

using namespace core;

// One updater. It keeps states and a step count for each ParameterSet. A plugin's is a ProgramUpdater, an application's
// a RuleUpdater (host/api/rule_updater.h).
class Updater : base::NotCopied {
 public:
  // One state of one parameter, for checkpoints.
  struct StateValues {
    std::string state, parameter;
    std::vector<int64_t> shape;
    void* values;    // in the order of a dense array
    uint64_t count;  // of elements
    tn_dtype dtype = TN_F32;
    Home* home = nullptr;  // of `values`, if machines of devices change them
    Home::Part part = {};
    // Of a table whose rows lie with several owners: `shape` and `values` are those of some of its rows.
    struct Owned {
      int64_t height;  // rows of the table
      TableBlocks blocks;
    };
    std::optional<Owned> owned = {};

    [[nodiscard]] uint64_t bytes() const { return count * tn_dtype_bytes(dtype); }
    void bring_home() const {
      if (home != nullptr) home->bring_home(part);
    }
    // After the values have been written.
    void changed() const {
      if (home != nullptr) home->changed(part);
    }
  };
  // Stored states, such as those of a checkpoint.
  class StateSource : base::NotCopied {
   public:
    virtual ~StateSource() = default;
    // Returns all of them without values.
    [[nodiscard]] virtual std::vector<StateValues> states() const = 0;
    // Fills state.values. Throws TN_BAD_DATA if the stored state is missing or of another type or shape.
    virtual void read(const StateValues& state) = 0;
  };
  // States to replace those of a set.
  struct SetState : base::NotCopied {
    virtual ~SetState() = default;
  };

  virtual ~Updater() = default;

  // Throws TN_UNSUPPORTED naming one of `tables`, whose rows lie with the processes of a team, that it cannot update.
  virtual void check_tables(const std::vector<std::string>& tables) const = 0;
  // Whether an update calls the application: prepare() then does so, before update() and outside of the gate of the
  // set, whose values the application may read.
  [[nodiscard]] virtual bool calls_application() const { return false; }
  virtual void prepare(StepGradients& /*gradients*/, const UsedNames& /*used*/) {}
  // Updates the parameters that `used` contains; call StepGradients::commit afterwards to end the step. Does nothing if
  // there are no gradients (an empty minibatch). On failure no step is counted. Of a machine that skips steps with
  // gradients that are not finite, nothing changes by such a step, which is counted by skipped() alone.
  virtual void update(StepGradients& gradients, const UsedNames& used) = 0;

  [[nodiscard]] virtual const std::string& type() const = 0;
  [[nodiscard]] virtual double learning_rate() const = 0;
  virtual void set_learning_rate(double rate) = 0;
  // Returns the learning rate of the set's last update or, before any, of the first one.
  [[nodiscard]] virtual double scheduled_rate(const std::shared_ptr<ParameterSet>& set) const = 0;
  // Returns the bytes of the states for a set, which are allocated at its first update.
  [[nodiscard]] virtual uint64_t state_bytes(const ParameterSet& set) const = 0;
  // Returns type, plugin, attributes and options as JSON: what must be equal for the same updates.
  [[nodiscard]] virtual nlohmann::json describe() const = 0;

  // Returns the states of all parameters of a set, brought home; allocates them if no update has. Valid until the next
  // update.
  [[nodiscard]] virtual std::vector<StateValues> states(const std::shared_ptr<ParameterSet>& set) = 0;
  // Returns the same list without values: names, types and shapes.
  [[nodiscard]] virtual std::vector<StateValues> state_shapes(const std::shared_ptr<ParameterSet>& set) = 0;
  [[nodiscard]] virtual uint64_t steps(const std::shared_ptr<ParameterSet>& set) const = 0;
  [[nodiscard]] virtual uint64_t skipped(const std::shared_ptr<ParameterSet>& set) const = 0;
  // Sets the number of updates of a set so far. Programs read it as a signed integer: TN_INVALID from 2^63 on.
  virtual void set_steps(const std::shared_ptr<ParameterSet>& set, uint64_t steps) = 0;
  // Reads states for a set; changes nothing.
  [[nodiscard]] virtual std::shared_ptr<SetState> read_states(const std::shared_ptr<ParameterSet>& set,
                                                              StateSource& source) const = 0;
  // Takes over what read_states of this updater has returned.
  virtual void adopt(const std::shared_ptr<SetState>& states, uint64_t steps, double learning_rate) = 0;

  // Returns the rows and bytes that the last update of the set wrote.
  [[nodiscard]] virtual UpdateCalls::Written written(const std::shared_ptr<ParameterSet>& /*set*/) const { return {}; }
  // Returns the bytes of workspace held at present for machines on a set.
  [[nodiscard]] virtual uint64_t workspace_bytes(const std::shared_ptr<ParameterSet>& /*set*/) const { return 0; }
};

// Throws TN_INVALID for a number of updates that programs cannot read.
void check_steps(uint64_t steps);
// Throws TN_INVALID for a rate that is not a number of at least 0.
void check_learning_rate(double rate);

}  // namespace tenon::host
