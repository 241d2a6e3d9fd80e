// What all calls of a machine share while they run. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "host/plugins/host_access.h"

namespace tenon::host {

// Borrowed. The sizes of the run, which the calls of loops see changed, are there twice: as the host writes them, and
// as calls read them. It is the same memory if the host addresses the device's.
struct SealedMemory {
  void* workspace = nullptr;  // of the device
  int64_t* symbols = nullptr;
  int64_t* device_symbols = nullptr;
  HostAccess* access = nullptr;

  // Copies the first `count` sizes to where calls read them.
  void put_symbols(size_t count) const {
    if (!access->is_direct()) access->write(device_symbols, symbols, count * sizeof(int64_t));
  }
  // Copies the size that a call has written to where the host reads it.
  void take_symbol(int32_t symbol) const {
    if (!access->is_direct()) access->read(symbols + symbol, device_symbols + symbol, sizeof(int64_t));
  }
};

}  // namespace tenon::host
