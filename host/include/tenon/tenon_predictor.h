/* Tenon: predictions by any number of threads. SPDX-License-Identifier: Apache-2.0
 *
 * A predictor is an immutable snapshot of the parameters that its outputs need, with machines of its own. Any number of
 * threads predict at the same time; trainings and changes of the set go on beside it. Its memory is bounded: `machines`
 * machines and one copy of the parameters, both twice from the first refresh on. tn_predict takes no lock but, for a
 * moment, that of the table of handles. */
#ifndef TENON_TENON_PREDICTOR_H
#define TENON_TENON_PREDICTOR_H

#include <tenon/tenon_base.h>
#include <tenon/tenon_machine_options.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_predictor {
  uint32_t index, generation;
} tn_predictor;

/* options may be null. During a training of `parameters` on another thread the copy is made between two steps. */
TENON_API tn_status tn_predictor_create(tn_host* host, tn_parameters parameters, const struct tn_layer* outputs,
                                        uint32_t outputs_count, const tn_predictor_options* options,
                                        tn_predictor* predictor, tn_error* error);

struct tn_feed;
/* Computes the outputs for a minibatch and calls `sink` once with one array for each, in the order of
 * tn_predictor_create. The arrays are borrowed during the call of `sink`, which may call the host: also predict again,
 * which is TN_MISUSE if no machine is free, but not refresh the predictor. Feeds are as in tn_machine_forward. A state
 * that layers carry from minibatch to minibatch is zero. Any thread. */
TENON_API tn_status tn_predict(tn_host* host, tn_predictor predictor, const struct tn_feed* feeds, uint32_t feeds_count,
                               void (*sink)(void* user, const tn_array* outputs, uint32_t outputs_count), void* user,
                               tn_error* error);
/* The same, by the name that functions of an object have. Since 0.4; tn_predict is deprecated. */
TENON_API tn_status tn_predictor_predict(tn_host* host, tn_predictor predictor, const struct tn_feed* feeds,
                                         uint32_t feeds_count,
                                         void (*sink)(void* user, const tn_array* outputs, uint32_t outputs_count),
                                         void* user, tn_error* error);
/* Takes the present values of `parameters`: that set, or another one with parameters of these names and shapes. During
 * a training of it on another thread, between two steps. Predictions that begin later use them; those that run end with
 * the values before. They do not wait for it. Nothing is copied if no call has written the set and no writing lease of
 * it has ended since the last refresh. */
TENON_API tn_status tn_predictor_refresh(tn_host* host, tn_predictor predictor, tn_parameters parameters,
                                         tn_error* error);
/* Makes the handle stale; predictions that run end first. */
TENON_API tn_status tn_predictor_release(tn_host* host, tn_predictor predictor, tn_error* error);

TENON_DEPRECATED(tn_predict, "use tn_predictor_predict")

#ifdef __cplusplus
}
#endif
#endif
