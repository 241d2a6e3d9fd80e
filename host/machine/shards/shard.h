// A shard of the samples of a minibatch, as the sum over all shards reaches it. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/array_view.h"
#include "core/topology.h"
#include "host/plugins/device.h"

namespace tenon::host {

using namespace core;

// Identifies a state of a machine's memory: pointers into it and calls prepared for it are valid while memory_id()
// returns the same object. Compared by address, which cannot be reused while a holder keeps the object.
struct MemoryId {};

// The states that a forward left for the next one: one value per carried state, empty if its layer does not set it or
// no forward has run.
struct CarriedStates {
  int64_t samples = 0;  // of that forward; 0: all states are zero
  std::vector<std::vector<std::byte>> values;
};

// Where the memory of a shard has what the shards add up or merge: in the order of the model, which is that of all
// shards.
struct ShardTerms {
  struct Rows {
    const int64_t* ids;
    const void* values;
    int64_t capacity;
  };
  std::vector<const void*> dense;    // gradients, by number of their run
  std::vector<Rows> row_sparse;      // gradients
  std::vector<const void*> buffers;  // their next values; null: a buffer that keeps its value
};

// Computes one shard of a minibatch, on a device of this process or elsewhere. Shards have the same model, so that the
// lists that they return correspond.
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

  // What its backward left. The pointers of terms() are valid while memory_id() returns the same object.
  [[nodiscard]] virtual const std::shared_ptr<const MemoryId>& memory_id() const = 0;
  [[nodiscard]] virtual ShardTerms terms() const = 0;
  // The rows of the row-sparse gradient of that number.
  [[nodiscard]] virtual int64_t rows(size_t gradient) const = 0;
  // Whether calls on a device read the terms in place. Otherwise read() copies them to memory of the host.
  [[nodiscard]] virtual bool is_in_reach_of(const Device& device) const = 0;
  virtual void read(void* to, const void* from, uint64_t bytes) const = 0;

  // Enqueues work that adds the gradients of another shard to those of this one, and merges the next values of its
  // buffers with them. Both have run backward. share: the samples of `from` among those of both.
  virtual void add(Shard& from, double share) = 0;
  virtual void wait() = 0;
};

}  // namespace tenon::host
