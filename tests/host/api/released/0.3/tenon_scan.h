/* Tenon: scans, layers that run at each step of sequences (docs/recurrence.md). SPDX-License-Identifier: Apache-2.0
 *
 * Layers inside of a scan are made with tn_layer_create, as all others. A layer is inside if it reads a value of the
 * scan: an input, a memory, or a layer inside. It sees one value for each sequence. Layers from outside are read at
 * every step, simply by using them: one value for each sequence, or a sequence for each (one level, any length), which
 * is then seen whole, as sequences are elsewhere. A scan over sequences that a step of another scan sees is inside of
 * that one, and ends before it. Calls on one scan may come from any thread; they wait for each other.
 */
#ifndef TENON_TENON_SCAN_H
#define TENON_TENON_SCAN_H

#include <tenon/tenon.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_scan {
  uint32_t index, generation;
} tn_scan; /* a scan that is being built */

typedef struct tn_scan_options {
  uint32_t size;
  uint32_t reverse; /* 1: from the last row of each sequence to the first; else 0 */
  tn_layer over;    /* sequences (TN_RAGGED) whose steps it goes through: their rows, of two levels the sub-sequences */
  const char* name; /* of the layer that tn_scan_end makes; null: generated */
} tn_scan_options;
/* Begins a scan. TN_INVALID, naming the layer, if `over` has no sequences. */
TENON_API tn_status tn_scan_begin(tn_host* host, const tn_scan_options* options, tn_scan* scan, tn_error* error);

/* A layer inside: at each step the row of `sequences`; if these have two levels, the sub-sequence, as a layer of
 * sequences. They must have the lengths of `over`, which is such as data layers with the same `sequence` have, else
 * TN_INVALID naming both layers. name: null: generated. */
TENON_API tn_status tn_scan_input(tn_host* host, tn_scan scan, tn_layer sequences, const char* name, tn_layer* layer,
                                  tn_error* error);

typedef struct tn_scan_memory_options {
  uint32_t size;
  int32_t rank;
  const int64_t* shape; /* of the value for one sequence, each at least 1; ignored with an initial layer */
  tn_layer initial;     /* the value at the first step: a layer outside with one for each sequence; {0, 0}: none */
  double initial_value; /* the value of all elements at the first step, without an initial layer */
  const char* name;     /* null: generated */
  uint32_t carry;       /* 1: the value at the first step of sample i is what the last step of sample i left in the
                           forward before, zeros after tn_machine_reset_carried and for samples that it did not have; no
                           gradient flows through it. The scan must go through a sequence for each sample, and the memory
                           have no initial value. Else 0 */
  uint32_t reserved;    /* 0 */
} tn_scan_memory_options;
/* A layer inside: at each step what the step before left, in the compute type. */
TENON_API tn_status tn_scan_memory(tn_host* host, tn_scan scan, const tn_scan_memory_options* options, tn_layer* layer,
                                   tn_error* error);

/* States what each step leaves in a memory: a layer inside, or one from outside with a value for each sequence. It must
 * be stated once for each memory. TN_INVALID, naming memory and layer, if their shapes differ. */
TENON_API tn_status tn_scan_next(tn_host* host, tn_scan scan, tn_layer memory, tn_layer value, tn_error* error);

/* Ends the scan and releases its handle. Makes a layer outside, whose outputs (tn_layer_output) are the results, as
 * sequences like `over` (rows of sub-sequences of an input as sequences of two levels), then for each memory, in the
 * order of their making, its value after the last step: one for each sequence, of an empty sequence the initial one. No
 * layer can be made inside any more. TN_INVALID, naming the memory, if nothing was stated to be left in it. Whether
 * each layer between a memory and what is left in it can run step by step, is checked when a machine is made:
 * TN_UNSUPPORTED names the one that cannot. */
TENON_API tn_status tn_scan_end(tn_host* host, tn_scan scan, const tn_layer* results, uint32_t results_count,
                                tn_layer* layer, tn_error* error);

/* Makes the handle of a scan that was not ended stale. */
TENON_API tn_status tn_scan_release(tn_host* host, tn_scan scan, tn_error* error);

#ifdef __cplusplus
}
#endif
#endif
