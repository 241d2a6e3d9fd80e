// The gradients of a step, as updaters see them. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/array_view.h"
#include "core/parameter_set.h"
#include "host/machine/device_machine.h"
#include "host/machine/shards/row_terms.h"
#include "host/machine/update_target.h"

namespace tenon::host {

using namespace core;

// The gradients since the last update, on the device that has the sums over all shards. A step begins with the first
// backward and ends with commit().
class StepGradients final : public UpdateTarget {
 public:
  // Borrows the machine that has the sums.
  explicit StepGradients(DeviceMachine& machine) : machine_(machine) {}

  // Whether backward has run since the last commit.
  [[nodiscard]] bool exist() const override { return state_ == State::kAccumulated || state_ == State::kSkipped; }
  // Those of tables whose rows lie with their owners are not among them.
  [[nodiscard]] std::vector<GradientRun> runs(const UsedNames& used) const override;
  [[nodiscard]] std::vector<const SparseGradient*> row_sparse(const UsedNames& used) const override;
  [[nodiscard]] const std::shared_ptr<const MemoryId>& memory_id() const override { return machine_.memory_id(); }
  [[nodiscard]] const std::shared_ptr<ParameterSet>& set() const override { return machine_.set(); }
  [[nodiscard]] const std::shared_ptr<Device>& device() const override { return machine_.device(); }
  [[nodiscard]] HostAccess& access() const override { return machine_.access(); }
  [[nodiscard]] const tn_parallel* parallel() const override { return machine_.parallel(); }
  // The rows of such tables that this process owns; null without them. An updater updates both. Borrowed.
  [[nodiscard]] UpdateTarget* owned() const { return owned_; }
  void set_owned(UpdateTarget* owned) { owned_ = owned; }
  // Returns the names of the parameters with gradients, of all tables, too.
  [[nodiscard]] std::set<std::string> trained() const;
  // Returns the names of those that are `names` or lie below them ("D": "D.weight"). Throws
  // TN_INVALID naming those that no such parameter has.
  [[nodiscard]] std::set<std::string> trained(const std::vector<std::string>& names) const;
  // The parameters that a part of this step has updated: a step updates each of them once.
  [[nodiscard]] const std::set<std::string>& updated() const { return updated_; }
  void add_updated(const std::set<std::string>& names) { updated_.insert(names.begin(), names.end()); }
  [[nodiscard]] bool skips_steps() const override { return machine_.options().precision != TN_PRECISION_FULL; }
  // Lets commit keep all buffers: an update has skipped the step.
  void skip() override { state_ = State::kSkipped; }
  // Ends the step: copies the next values of the buffers in `used` into the set, drops the gradients, and counts an
  // update of the set. Does nothing without gradients.
  void commit(const UsedNames& used);

  // Returns a gradient of this step or, until the next forward, the one that the last update used; of a row-sparse
  // gradient a dense copy, valid until the next call.
  [[nodiscard]] ArrayView gradient(const std::string& parameter);
  // Throws TN_INVALID if the gradient is dense.
  [[nodiscard]] SparseGradientView sparse_gradient(const std::string& parameter) const;
  // The part of a step whose updates the application computes: the parameters, and the values that it has given for
  // them, which are written when the step ends.
  struct Rule {
    std::set<std::string> names;
    std::map<std::string, std::vector<std::byte>> values;  // float32, in the order of a dense array
  };
  // The rule that runs at present; null: none. Meanwhile updates are of its parameters alone, and do not end the step.
  [[nodiscard]] Rule* rule() const { return rule_; }
  void set_rule(Rule* rule) { rule_ = rule; }

  [[nodiscard]] bool is_row_sparse(const std::string& parameter) const;
  // Says that updates are of the rows of tables alone that this process owns.
  void set_rows_alone() { rows_alone_ = true; }

  // As Machine::set_gradient.
  void set(const std::string& parameter, const ArrayView& values);
  // Replaces a row-sparse gradient of this step.
  void set_rows(const std::string& parameter, const RowTerms& rows);

  // For the machine: a backward has added its gradients; it drops them if it fails; a forward ends the reading of those
  // that an update used.
  void set_accumulated() { state_ = State::kAccumulated; }
  void drop() { state_ = State::kNone; }
  void forget_used() {
    if (state_ == State::kUsed) drop();
  }

 private:
  enum class State {
    kNone,
    kAccumulated,  // since the last commit
    kSkipped,      // the same, and an update has skipped the step
    kUsed,         // by the last update, and no forward has run since
  };
  [[nodiscard]] const ParameterUse& readable(const std::string& parameter) const;

  DeviceMachine& machine_;
  UpdateTarget* owned_ = nullptr;
  State state_ = State::kNone;
  std::set<std::string> updated_;
  Rule* rule_ = nullptr;
  bool rows_alone_ = false;
  Buffer dense_copy_;  // returned by gradient()
};

}  // namespace tenon::host
