/* Tenon: machines in loops of the application's own. SPDX-License-Identifier: Apache-2.0
 *
 * Rules of feeds, here and wherever arrays or slots feed data layers: an array may have a narrower type than the data
 * layer if no value can be lost. Integers widen to integers of more bits (unsigned ones also to signed ones), to
 * float32 up to 16 bits and to float64 up to 32 bits; float32 widens to float64. `scale` and `offset` of a data layer
 * belong to its own type: they apply if the data layer is declared with integers, whatever is fed. */
#ifndef TENON_TENON_MACHINE_H
#define TENON_TENON_MACHINE_H

#include <tenon/tenon.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Flags of tn_forward_options and tn_infer_options. TN_FORWARD_IGNORE_UNUSED: feeds for data layers that the machine
 * does not have are ignored, such as labels where only predictions are computed; without it they are TN_NOT_FOUND. */
enum { TN_FORWARD_IGNORE_UNUSED = 1 };

typedef struct tn_forward_options {
  uint32_t size;
  uint32_t flags; /* TN_FORWARD_* */
} tn_forward_options;
/* tn_machine_forward with options, which may be null. */
TENON_API tn_status tn_machine_forward_with(tn_host* host, tn_machine machine, const tn_feed* feeds,
                                            uint32_t feeds_count, const tn_forward_options* options, tn_error* error);

/* tn_machine_backward from gradients of outputs of the machine, instead of the costs; for a machine with
 * TN_MACHINE_GIVEN_GRADIENTS, else TN_MISUSE (as is tn_machine_backward for such a machine). gradients[i] is the
 * gradient of a number of the caller's with respect to layers[i]: dense, with the shape of tn_machine_output (of
 * sequences: their rows, as TN_RAGGED or dense) and its type, or one that widens to it. For a cost that is the shape of
 * its values, one for each sample. The arrays are copied. Outputs without a gradient count as having 0. Wrong arrays
 * are refused before anything is changed. */
TENON_API tn_status tn_machine_backward_from(tn_host* host, tn_machine machine, const tn_layer* layers,
                                             const tn_array* gradients, uint32_t count, tn_error* error);

/* The gradient of a data layer by the last backward alone, in the compute type, with the shape of its feed; ragged like
 * the feed. For a machine with TN_MACHINE_DATA_GRADIENTS and a data layer of dense or ragged floats. TN_MISUSE without
 * a backward since the last forward, TN_NOT_FOUND if nothing where backward begins depends on the data layer. Borrowed
 * until the next call on this machine. */
TENON_API tn_status tn_machine_data_gradient(tn_host* host, tn_machine machine, const char* data_layer,
                                             tn_array* values, tn_error* error);

/* Replaces the gradient of a parameter since the last update by `values`, which are copied: its shape, and the compute
 * type or one that widens to it. Later backwards add to it, tn_updater_update uses it. Without a backward since the
 * last update the gradients of all other parameters of the machine become 0. TN_INVALID for a parameter whose gradient
 * is row-sparse, TN_NOT_FOUND for one without a gradient in this machine, such as an immutable one. */
TENON_API tn_status tn_machine_set_gradient(tn_host* host, tn_machine machine, const char* parameter,
                                            const tn_array* values, tn_error* error);

/* ---- several steps in one call ---------------------------------------------------------------------------------- */

typedef struct tn_steps_options {
  uint32_t size;
  uint32_t flags; /* TN_FORWARD_* */
  tn_updater updater;
  const tn_feed* feeds; /* of any number of samples, the same in all: the minibatches, one after the other */
  uint32_t feeds_count;
  uint32_t reserved; /* 0 */
  int64_t samples;   /* of a step, at least 1; the last step has those that are left */
} tn_steps_options;

/* Trains on each minibatch in turn as tn_machine_forward, tn_machine_backward and tn_updater_update do, with the same
 * results to the bit; for models so small that these calls take much of a step. costs[i] receives the cost of step i,
 * as tn_machine_cost does; there is room for `room` of them, else TN_NEED_CAPACITY. *done receives the number of steps
 * whose update is in the parameters. All feeds are checked before anything is changed, and a call that is refused
 * leaves *done as it is: set it to 0 before. If a step fails, the message begins with its number, *done says how many
 * were done before it, whose costs are written, and the step itself leaves what the function leaves that failed.
 * Between two steps other threads may read the parameters. */
TENON_API tn_status tn_machine_steps(tn_host* host, tn_machine machine, const tn_steps_options* options, double* costs,
                                     int64_t room, int64_t* done, tn_error* error);

/* ---- outputs of arrays in one call ----------------------------------------------------------------------------- */

typedef struct tn_infer_options {
  uint32_t size;
  uint32_t outputs_count;
  const tn_layer* outputs; /* dense ones with one entry for each sample */
  tn_parameters parameters;
  const tn_feed* feeds; /* of any number of samples, the same in all */
  uint32_t feeds_count;
  uint32_t flags;      /* TN_FORWARD_* */
  int64_t max_samples; /* that are computed at once; 0: 256 */
  const char* device;  /* null: "cpu" */
  tn_dtype compute;    /* as in tn_machine_options */
  uint32_t reserved;   /* 0 */
} tn_infer_options;

/* Computes the outputs for all samples of the feeds, max_samples at a time, and copies output i to results[i], an array
 * of the caller whose type and shape, [samples, shape of one sample...], must be those of the output; row-major. A
 * results[i].data of null: only fills its type and shape, and nothing is computed for any output if all are null. Feeds
 * and results are checked before anything is computed; if a kernel fails, the results are partly written. Makes a
 * machine for this call: keep one (tn_machine_create) for many calls of few samples. */
TENON_API tn_status tn_infer_arrays(tn_host* host, const tn_infer_options* options, tn_array* results, tn_error* error);
/* The same with a function that receives the outputs of each part, which begins with sample number `first`: one array
 * per output, borrowed during the call. It ends the computation early by returning non-zero. */
TENON_API tn_status tn_infer_parts(tn_host* host, const tn_infer_options* options,
                                   int32_t (*sink)(void* user, int64_t first, const tn_array* outputs,
                                                   uint32_t outputs_count),
                                   void* user, tn_error* error);

#ifdef __cplusplus
}
#endif
#endif
