// The rows of tables that this process owns, as updaters see them. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "host/machine/device_machine.h"
#include "host/machine/shards/row_terms.h"
#include "host/machine/step_gradients.h"
#include "host/machine/update_target.h"

namespace tenon::host {

using namespace core;

// Updated with the other parameters of a step, on the device of its machine.
class OwnedRows final : public UpdateTarget {
 public:
  // Borrows both. step: that of the parameters of which all processes have all values.
  OwnedRows(const StepGradients& step, DeviceMachine& machine);

  // Takes the gradients of a step. sums: of rows that this process owns, by their numbers in the table.
  void take(const MachineTable& table, const RowTerms& sums);

  [[nodiscard]] bool exist() const override { return step_.exist(); }
  [[nodiscard]] std::vector<GradientRun> runs(const UsedNames& /*used*/) const override { return {}; }
  [[nodiscard]] std::vector<const SparseGradient*> row_sparse(const UsedNames& used) const override;
  [[nodiscard]] bool has_tables(const UsedNames& used) const override;
  [[nodiscard]] const std::shared_ptr<const MemoryId>& memory_id() const override { return memory_id_; }
  [[nodiscard]] const std::shared_ptr<ParameterSet>& set() const override { return machine_.set()->owned(); }
  [[nodiscard]] const std::shared_ptr<Device>& device() const override { return machine_.device(); }
  [[nodiscard]] HostAccess& access() const override { return machine_.access(); }
  [[nodiscard]] const tn_parallel* parallel() const override { return machine_.parallel(); }
  // A machine with tables computes in float32, so that no step is skipped.
  [[nodiscard]] bool skips_steps() const override { return false; }
  void skip() override {}

 private:
  const StepGradients& step_;
  DeviceMachine& machine_;
  std::map<size_t, std::unique_ptr<SparseGradient>> gradients_;  // by number of the entry; not of those without rows
  std::set<size_t> trained_;                                     // entries of which gradients were taken
  std::shared_ptr<const MemoryId> memory_id_;
};

}  // namespace tenon::host
