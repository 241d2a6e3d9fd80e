// An open device. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/services.h>

#include "pointwise/shared_cache.h"

namespace tenon::cpu {

struct Device {
  const tn_memory* memory;  // the host's service; valid until the device is closed
  ProgramCaches caches;
};

// The device that the host passes to a function of a table. Null where another device computes with the tables.
inline Device* as_device(void* device) { return static_cast<Device*>(device); }
inline ProgramCaches* caches_of(void* device) { return device == nullptr ? nullptr : &as_device(device)->caches; }

}  // namespace tenon::cpu
