/* Tenon: cancelling and resuming trainings. Include <tenon/tenon.h>. SPDX-License-Identifier: Apache-2.0 */
#ifndef TENON_TENON_TRAINING_H
#define TENON_TENON_TRAINING_H

#include <tenon/tenon_base.h>
#include <tenon/tenon_training_options.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- cancelling from another thread ---------------------------------------------------------------------------- */

/* A token by which any thread ends a running tn_train, tn_test or tn_infer whose options name it. It belongs to no
 * host; any number of calls may share one. tn_train ends after the present minibatch as if a handler had stopped it:
 * writes a checkpoint if it writes any, calls the handler with END_TRAINING (TN_REASON_CANCEL) and returns TN_OK. A
 * test within a training is dropped; the training that resumes repeats it. tn_test and tn_infer end after the present
 * minibatch with TN_CANCELLED, since their results would lack samples. A call that waits for its reader ends when the
 * reader has returned. A token whose request was made before the call ends the call before its first minibatch. */
typedef struct tn_cancel tn_cancel;

/* The application owns *cancel until tn_cancel_release. */
TENON_API tn_status tn_cancel_create(tn_cancel** cancel, tn_error* error);
/* Never waits and takes no lock. Any thread; a signal handler may call it. Null is ignored. The token must not be
 * released before it returns. */
TENON_API void tn_cancel_request(tn_cancel* cancel);
/* Takes the request back, so that the token can be used again. Any thread. Null is ignored. */
TENON_API void tn_cancel_reset(tn_cancel* cancel);
/* 1 after a request that was not taken back, else 0; 0 for null. Any thread; a signal handler may call it. */
TENON_API int32_t tn_cancel_is_requested(const tn_cancel* cancel);
/* Frees the token. Calls that use it keep what they need of it. Null is ignored. */
TENON_API void tn_cancel_release(tn_cancel* cancel);

/* ---- checkpoints ----------------------------------------------------------------------------------------------- */

enum {
  TN_START_FRESH = 0, /* TN_INVALID if the folder has checkpoints */
  TN_START_RESUME = 1,
  TN_START_RESUME_INEXACTLY = 2, /* also with other kernels or another device, which may round otherwise */
  /* The same two, but a training without a checkpoint begins anew: one value for the first start and all others.
   * `from`, if set, must exist. BEGIN_TRAINING has a `checkpoint` if the training resumed. */
  TN_START_RESUME_OR_FRESH = 3,
  TN_START_RESUME_INEXACTLY_OR_FRESH = 4
};

#ifdef __cplusplus
}
#endif
#endif
