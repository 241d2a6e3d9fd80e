/* Tenon: options of trainings. Include <tenon/tenon.h>. SPDX-License-Identifier: Apache-2.0 */
#ifndef TENON_TENON_TRAINING_H
#define TENON_TENON_TRAINING_H

#include <tenon/tenon_base.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tn_feeding;

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

/* ---- tests within a training, early stopping ------------------------------------------------------------------- */

/* A test that a training makes of its parameters: the handler receives TN_TEST with cost and metrics. The machine of
 * the test is kept while the training runs. */
typedef struct tn_test_options {
  uint32_t size;
  uint32_t outputs_count;
  const tn_layer* outputs;          /* costs and metrics; null: the outputs of the training */
  tn_reader reader;                 /* of minibatches; another one than the training's. Must seek to start a pass. */
  const struct tn_feeding* feeding; /* as in tn_train_options */
  uint32_t feeding_count;
  uint32_t reserved;
  int64_t every_passes;  /* a test after each pass whose number is a multiple; 0: not by passes */
  int64_t every_batches; /* a test after so many minibatches since the last one; 0: not by minibatches. Both 0: after
                            each pass */
  int64_t batches;       /* at most so many minibatches in a test; 0: a whole pass */
} tn_test_options;

/* Ends a training that has not improved for a while. A measurement is a test of tn_train_options.test, or without
 * that a pass of the training itself. */
typedef struct tn_early_stop_options {
  uint32_t size;
  uint32_t best_is_highest; /* 0: the lowest value is the best */
  const char* metric;       /* "cost" or a metric */
  int64_t patience;         /* the training ends after so many measurements in a row without improvement; at least 1 */
  double min_delta; /* at least 0: a value improves if it is better than the best by more than this. One that is not
                       finite never does. */
} tn_early_stop_options;

/* ---- averages of the parameters -------------------------------------------------------------------------------- */

/* Parameter averages over the updates of a training, which often generalise better than the last values
 * (Polyak and Juditsky, "Acceleration of stochastic approximation by averaging", 1992). w_t are the parameters after
 * update t = 1, 2, ... since `begin` updates, a_t the averages:
 *   exponential (window 0)  a_t = d_t a_{t-1} + (1 - d_t) w_t  with d_t = min(decay, (t - 1) / t)
 *   window n                a_t = the mean of the last n to 2n - 1 updates: those of the present block of n updates
 *                           and of the whole block before it; of all updates in the first block
 * The bias correction by d_t makes the first 1 / (1 - decay) averages plain means: the first values w_0 have no
 * weight, and the weights always sum to 1. With decay 1 all of them are. Buffers, such as moving statistics, are copied
 * as they are. Each update reads and writes all parameters once more, of sparse tables too. */
typedef struct tn_average_options {
  uint32_t size;
  uint32_t reserved;
  /* The set that receives the averages after every update: made by tn_parameters_create from the same outputs, and
   * another one than that of the training. It can be tested, used and saved like any other, also by a handler.
   * tn_train_options.test tests it instead of the training's own. A resume replaces its values. */
  tn_parameters parameters;
  double decay;   /* in (0, 1]; 0: 1 */
  int64_t window; /* 0: exponential. Needs memory for two more copies of the parameters. */
  int64_t begin;  /* the updates of the training before the first that counts; until then the averages are w */
} tn_average_options;

#ifdef __cplusplus
}
#endif
#endif
