/* Tenon SDK: devices: what they offer the host beside primitives. SPDX-License-Identifier: MIT
 *
 * The rules of tenon/device.h hold. All since 0.3. */
#ifndef TENON_DEVICE_HOST_H
#define TENON_DEVICE_HOST_H

#include <tenon/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "tenon.host_memory/1": memory of the host that `copy` reads and writes without a detour, such as pages that stay in
 * place. The host then stages all copies of a device with host_memory 0 in such memory, so that they may run while the
 * host goes on. Optional: without the table it stages them in memory of its own. */
#define TN_HOST_MEMORY "tenon.host_memory/1"
typedef struct tn_host_memory_table {
  uint32_t size;
  uint32_t reserved;
  /* [setup] 64-byte aligned memory that the host reads and writes, or null with a report. */
  void* (*allocate)(void* device, const tn_errors* errors, uint64_t bytes);
  /* [setup] `bytes` as allocated. No copy uses the memory any more. */
  void (*release)(void* device, void* memory, uint64_t bytes);
} tn_host_memory_table;

/* "tenon.capture/1": work that is recorded once and enqueued again with one call. Optional. The host records the calls
 * of a machine's forward or backward if each has TN_TRAIT_CAPTURABLE or TN_TRAIT_HOST_SIZES, and enqueues the recording
 * in later steps with the same operands, requests and stream, and the same sizes if a call has TN_TRAIT_HOST_SIZES. The
 * numbers behind symbols and random, and all values, are those of the moment at which the work runs. If a function of
 * the table or a recorded call fails, nothing is in the stream, and the host enqueues the calls instead. */
#define TN_CAPTURE "tenon.capture/1"
typedef struct tn_capture_table {
  uint32_t size;
  uint32_t reserved;
  /* [run] From now on work for the stream is recorded, and does not run. The host neither copies nor waits until end.
   */
  tn_status (*begin)(void* device, const tn_errors* errors, void* stream);
  /* [run] Ends the recording, and the stream works as before, also on failure. *graph receives it on TN_OK; graph null:
   * it is dropped, because a call failed. */
  tn_status (*end)(void* device, const tn_errors* errors, void* stream, void** graph);
  /* [run] Enqueues the recorded work. */
  tn_status (*launch)(void* device, const tn_errors* errors, void* graph, void* stream);
  /* [setup] The work of no launch is in a stream any more. */
  void (*destroy)(void* device, void* graph);
} tn_capture_table;

#ifdef __cplusplus
}
#endif
#endif
