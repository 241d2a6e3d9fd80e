// Reads samples of one plugin's reader on several threads. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/reader.h>

#include <string>
#include <vector>

#include "host/plugins/registry.h"
#include "host/readers/slot.h"

namespace tenon::host {

using namespace core;

// An instance of a reader that offers TN_PARALLEL_READ. Borrows everything that it is made from.
struct ParallelReader {
  const ReaderType& type;
  const std::string& who;  // the reader, for messages
  const tn_parallel_read& table;
  void* instance = nullptr;
  const tn_parallel& threads;
  const volatile int32_t* cancel = nullptr;  // not 0: the reading fails with TN_CANCELLED soon
};

// Writes the samples at these indices to data[slot], memory for `count` samples of each dense slot, in parts that the
// threads of the host read. Throws the failure of the first part that failed; the memory is unspecified then.
void read_in_parallel(const ParallelReader& reader, const std::vector<Slot>& slots, const int64_t* indices,
                      int64_t count, void* const* data);

}  // namespace tenon::host
