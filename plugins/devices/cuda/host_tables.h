// What the device offers the host beside primitives (tenon/device_host.h). SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/device_host.h>

namespace tenon::cuda {

// Pinned memory, which the GPU copies from and to while the host goes on.
extern const tn_host_memory_table host_memory_table;
// CUDA graphs, captured from a stream.
extern const tn_capture_table capture_table;

}  // namespace tenon::cuda
