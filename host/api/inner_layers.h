// Calls that make layers where values enter and leave scans and branches. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "host/api/api.h"

namespace tenon::host::api {

inline std::string name_or_none(const char* name) { return name == nullptr ? "" : name; }

// Calls `work` with an object of `table`, while no other call makes layers, and gives the layer that it returns.
template <typename Object, typename Handle, typename Work>
tn_status make_layer(tn_host* host, HandleTable<std::shared_ptr<Object>> Host::*table, Handle handle, tn_layer* layer,
                     tn_error* error, Work&& work) {
  return call(host, error, [&](Host& owner) {
    const std::shared_ptr<Object> open = (owner.*table).at(handle);
    required(layer, "layer");
    const SetupLock lock = owner.registry.setup();
    *layer = owner.layers.add<tn_layer>({work(owner, *open), 0});
  });
}

}  // namespace tenon::host::api
