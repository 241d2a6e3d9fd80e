// The memory of states that are carried from minibatch to minibatch. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/machine/compiled_model.h"
#include "host/machine/shards/shard.h"

namespace tenon::host {

using namespace core;

// Each carried state has two places: what this forward begins with, and what it leaves for the next one.
class CarriedMemory {
 public:
  // Borrows the model, which may be replaced by a larger one, and `access`.
  CarriedMemory(const CompiledModel& model, HostAccess& access, int64_t max_samples)
      : model_(model), access_(access), max_samples_(max_samples) {}

  // Before a forward: makes the next states of the last one the present ones. Samples that it did not have begin with
  // zeros.
  void advance(int64_t samples);
  // After a forward: its next states are there.
  void set_samples(int64_t samples) { samples_ = samples; }
  // Copies all to a model that is to replace the present one.
  void copy_to(CompiledModel& larger) const;
  void reset();
  [[nodiscard]] CarriedStates states() const;
  // Throws TN_BAD_DATA if the states are of another model; changes nothing then.
  void set(const CarriedStates& states);

 private:
  const CompiledModel& model_;
  HostAccess& access_;
  int64_t max_samples_;
  int64_t samples_ = 0;  // of the forward that wrote the next states; 0: there are none
};

}  // namespace tenon::host
