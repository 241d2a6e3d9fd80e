// The shards of a machine of several devices: each computes a part of the samples of a minibatch.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "host/machine/machine.h"
#include "host/machine/shard_sum.h"

namespace tenon::host {

using namespace core;

// Returns the options of the machine of shard `number`. Throws TN_INVALID listing the devices if a minibatch is smaller
// than the list.
[[nodiscard]] MachineOptions options_of_shard(const MachineOptions& options,
                                              const std::vector<std::shared_ptr<Device>>& devices, size_t number);

// A part of the samples of a minibatch.
struct ShardRange {
  int64_t first = 0, count = 0;
};
// Cuts `samples` into `shards` parts in their order, which differ by at most one sample; the larger ones come first.
// Those beyond the samples are empty. It depends on these two numbers alone.
[[nodiscard]] ShardRange shard_range(int64_t samples, size_t shards, size_t number);

// Drives the machines of all shards, the first of which is the machine of the application. The inverse sizes by which
// costs become means are those of the whole minibatch, so that costs and gradients of the shards add up to those of the
// minibatch. The functions are those of Machine. They throw what the first machine that fails throws, after all have
// ended.
class Shards {
 public:
  // others[i]: the machine of shard i + 1. Borrows `first`. Throws TN_UNSUPPORTED for what shards cannot compute.
  Shards(Machine& first, std::vector<std::unique_ptr<Machine>> others);

  // arrays: checked ones of the whole minibatch, whose sizes by symbol are `whole`.
  void forward(const std::vector<ArrayView>& arrays, const std::vector<int64_t>& whole, FeedMode mode);
  // Leaves the sums of the gradients, and the merged next values of buffers, in the first machine.
  void backward();
  void drop_outputs();
  void reset_carried();
  [[nodiscard]] Machine::Carried carried() const;
  void set_carried(const Machine::Carried& carried);

  [[nodiscard]] int64_t samples() const;
  [[nodiscard]] double cost() const;
  [[nodiscard]] std::vector<double> costs() const;
  [[nodiscard]] std::vector<double> metric_state(const LayerRef& metric) const;
  // Joined copies in the order of the samples, borrowed until the next forward or the next call for the same name.
  [[nodiscard]] ArrayView output(const LayerOutput& output);
  [[nodiscard]] ArrayView data_gradient(const std::string& data_layer);
  [[nodiscard]] std::vector<std::shared_ptr<Device>> devices() const;

 private:
  struct Joined {
    Buffer values;
    std::vector<int64_t> offsets[2];
  };
  void check() const;
  template <typename Start, typename Finish>
  void compute(const Start& start, const Finish& finish);
  void cut_carried(int64_t samples);
  void add_up();
  [[nodiscard]] ArrayView join(const std::string& name, const std::vector<ArrayView>& parts);

  std::vector<std::unique_ptr<Machine>> others_;
  std::vector<Machine*> machines_;                    // by shard
  std::map<size_t, std::unique_ptr<ShardSum>> sums_;  // by the shard that is added
  std::map<std::string, Joined> joined_;              // by name of the output or data layer
  int64_t carried_samples_ = 0;                       // of the minibatch that left the carried states; 0: none
};

}  // namespace tenon::host
