// From the slots of a reader to the data layers of a machine. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/array_view.h"
#include "core/parameter_set.h"
#include "host/machine/machine.h"
#include "host/readers/sample_block.h"

namespace tenon::host {

using namespace core;

// Connects the slots of a reader to the data layers of a machine.
class Feeder {
 public:
  // slot_map: slot -> data layer, for slots whose data layer has another name. TN_INVALID names a data layer that no
  // slot feeds, or a slot that does not exist.
  Feeder(const Machine& machine, const std::vector<Slot>& slots, const std::map<std::string, std::string>& slot_map);
  // The slots of the minibatch in the order of the machine's feeds; borrowed until the next call.
  const std::vector<ArrayView>& arrays(const SampleBlock& minibatch);
  // Throws TN_INVALID if the names of a slot contradict those that `set` was trained with.
  void check_names(const ParameterSet& set) const;
  // Stores the names of the slots in `set`, for data layers that have none there.
  void keep_names(ParameterSet& set) const;

 private:
  struct Link {
    size_t slot;
    std::string data_layer;
    Slot source;
  };
  std::vector<Link> links_;  // by number of the feed
  std::vector<ArrayView> arrays_;
};

}  // namespace tenon::host
