// The shards of a minibatch: each has a part of its samples. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/shard_range.h"
#include "core/system.h"
#include "host/machine/shards/shard.h"

namespace tenon::host {

using namespace core;

// The values of a minibatch from those of its shards: sums, and parts that are joined or cut. A single shard has the
// whole minibatch.
class Shards {
 public:
  // Borrows the shards. max_samples: of a minibatch. allocator: for joined copies.
  Shards(std::vector<Shard*> shards, int64_t max_samples, std::shared_ptr<Allocator> allocator);

  [[nodiscard]] size_t count() const { return shards_.size(); }
  [[nodiscard]] int64_t samples() const;
  [[nodiscard]] double cost() const;
  [[nodiscard]] std::vector<double> costs() const;
  [[nodiscard]] std::vector<double> metric_state(const LayerRef& metric) const;
  // Of several shards with samples: joined copies in the order of the samples, borrowed until the next call for the
  // same name or drop_copies(). name: of the data layer.
  [[nodiscard]] ArrayView output(const LayerOutput& output) const;
  [[nodiscard]] ArrayView data_gradient(size_t feed, const std::string& name) const;
  void drop_copies() { joined_.clear(); }

  void reset_carried();
  [[nodiscard]] CarriedStates carried() const;
  // Cuts the states of a minibatch for the shards of one with as many samples.
  void set_carried(const CarriedStates& carried);
  // Gives each shard the states of its samples in a minibatch of `samples`, if they are not those that it has.
  void cut_carried(int64_t samples);

 private:
  struct Joined {
    Buffer values;
    std::vector<int64_t> offsets[2];
  };
  template <typename Name, typename Part>
  [[nodiscard]] ArrayView joined(const Name& name, const Part& part) const;
  [[nodiscard]] bool is_cut_alike(int64_t samples, int64_t before) const;

  std::vector<Shard*> shards_;
  int64_t max_samples_;
  std::shared_ptr<Allocator> allocator_;
  mutable std::map<std::string, Joined> joined_;  // by name of the output or data layer
  int64_t carried_samples_ = 0;                   // of the minibatch that left the carried states; 0: none
};

}  // namespace tenon::host
