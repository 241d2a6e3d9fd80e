// What an updater updates: parameters of a set, and their gradients of a step. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "core/parameter_set.h"
#include "host/machine/gradient_runs.h"
#include "host/machine/shards/shard_values.h"
#include "host/machine/sparse_gradient.h"
#include "host/plugins/device.h"
#include "host/plugins/host_access.h"

namespace tenon::host {

using namespace core;

// Gradients lie on the device that computes the update.
class UpdateTarget : base::NotCopied {
 public:
  virtual ~UpdateTarget() = default;

  // Whether there are gradients since the last update.
  [[nodiscard]] virtual bool exist() const = 0;
  // Return the gradients of the parameters in `used`. Pointers are valid while memory_id() returns the same object.
  [[nodiscard]] virtual std::vector<GradientRun> runs(const UsedNames& used) const = 0;
  [[nodiscard]] virtual std::vector<const SparseGradient*> row_sparse(const UsedNames& used) const = 0;
  [[nodiscard]] virtual const std::shared_ptr<const MemoryId>& memory_id() const = 0;
  // Whether there are gradients of a table in `used` of which this process may own no rows: such a step counts, too.
  [[nodiscard]] virtual bool has_tables(const UsedNames& /*used*/) const { return false; }
  // The set of the parameters.
  [[nodiscard]] virtual const std::shared_ptr<ParameterSet>& set() const = 0;
  [[nodiscard]] virtual const std::shared_ptr<Device>& device() const = 0;
  [[nodiscard]] virtual HostAccess& access() const = 0;
  [[nodiscard]] virtual const tn_parallel* parallel() const = 0;
  // Whether updates skip steps with gradients that are not finite, and that one has.
  [[nodiscard]] virtual bool skips_steps() const = 0;
  virtual void skip() = 0;
};

}  // namespace tenon::host
