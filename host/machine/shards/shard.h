// A shard of the samples of a minibatch, and what it computed. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/not_copied.h"
#include "core/array_view.h"
#include "core/topology.h"

namespace tenon::host {

using namespace core;

// The states that a forward left for the next one: one value per carried state, empty if its layer does not set it or
// no forward has run.
struct CarriedStates {
  int64_t samples = 0;  // of that forward; 0: all states are zero
  std::vector<std::vector<std::byte>> values;
};

// One shard of a minibatch, which a device of this process computes, or another process. Shards have the same model, so
// that the lists that they return correspond.
class Shard : base::NotCopied {
 public:
  virtual ~Shard() = default;

  // Of the last forward. Costs are means over the samples of the whole minibatch, so that those of the shards add up.
  [[nodiscard]] virtual int64_t samples() const = 0;  // -1: no forward, or it failed
  [[nodiscard]] virtual double cost() const = 0;      // sum of costs()
  [[nodiscard]] virtual std::vector<double> costs() const = 0;
  [[nodiscard]] virtual std::vector<double> metric_state(const LayerRef& metric) const = 0;
  [[nodiscard]] virtual ArrayView output(const LayerOutput& output) const = 0;
  // feed: number of a data layer that has a gradient, after a backward.
  [[nodiscard]] virtual ArrayView data_gradient(size_t feed) const = 0;

  [[nodiscard]] virtual CarriedStates carried() const = 0;
  // Throws TN_BAD_DATA if the states are of another model; changes nothing then.
  virtual void set_carried(const CarriedStates& carried) = 0;
  virtual void reset_carried() = 0;
};

}  // namespace tenon::host
