/* Tenon: the structs of the options of trainings. Include <tenon/tenon.h>. Written by
 * host/api/spec/generate_options.py. SPDX-License-Identifier: Apache-2.0 */
#ifndef TENON_TENON_TRAINING_OPTIONS_H
#define TENON_TENON_TRAINING_OPTIONS_H

#include <tenon/tenon_base.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tn_cancel;
struct tn_event;
typedef void (*tn_event_handler)(void* user, struct tn_event* event);

/* Feeds the data layer from a slot of another name. */
typedef struct tn_feeding {
  const char* slot;
  const char* data_layer;
} tn_feeding;

/* A test that a training makes of its parameters: the handler receives TN_TEST with cost and metrics. The machine of
 * the test is kept while the training runs. */
typedef struct tn_test_options {
  uint32_t size;
  uint32_t outputs_count;
  /* Costs and metrics; null: the outputs of the training. */
  const tn_layer* outputs;
  /* Of minibatches; another one than the training's; must seek to start a pass. */
  tn_reader reader;
  /* As in tn_train_options. */
  const tn_feeding* feeding;
  uint32_t feeding_count;
  uint32_t reserved; /* 0 */
  /* A test after each pass whose number is a multiple; 0: not by passes. */
  int64_t every_passes;
  /* A test after so many minibatches since the last one; 0: not by minibatches. Both 0: after each pass. */
  int64_t every_batches;
  /* At most so many minibatches in a test; 0: a whole pass. */
  int64_t batches;
} tn_test_options;

/* Ends a training that has not improved for a while. A measurement is a test of tn_train_options.test, or without that
 * a pass of the training itself. */
typedef struct tn_early_stop_options {
  uint32_t size;
  /* 0: the lowest value is the best. */
  uint32_t best_is_highest;
  /* "cost", one of several costs (tn_machine_costs), or a metric. */
  const char* metric;
  /* The training ends after so many measurements in a row without improvement; at least 1. */
  int64_t patience;
  /* At least 0: a value improves if it is better than the best by more than this. One that is not finite never does. */
  double min_delta;
} tn_early_stop_options;

/* Checkpoints of a training (docs/checkpoints.md). One is written every so many minibatches, seconds or passes, and
 * whenever the training ends: after the last pass, because a handler stopped it, or because the reader failed. It is
 * complete and on disk under its name, or not there. None is written while the cost of the pass is not finite. If one
 * cannot be written, the training fails, and those before it are unchanged. A training has its folder alone: while
 * another one uses it, of whatever process, tn_train returns TN_IO and names the process. */
typedef struct tn_checkpoint_options {
  uint32_t size;
  /* The newest checkpoints that stay; 0: 3. */
  uint32_t keep;
  /* Created if only it is missing. */
  const char* folder;
  /* 0: not by minibatches. */
  int64_t every_batches;
  /* 0: not by passes. */
  int64_t every_passes;
  /* 0: not by seconds. */
  double every_seconds;
  /* "cost", one of several costs by its name in tn_machine_costs, or a metric: after each pass whose value is the best
   * so far, best.safetensors is written; null: off. With tn_train_options.test: of each test instead, and with averages
   * the averaged model as best-average.safetensors. */
  const char* best;
  /* 0: the lowest value is the best. */
  uint32_t best_is_highest;
  /* TN_START_*: anew, or a resume. A resume continues with the parameters, updater states, random numbers and samples
   * that the training would have had without the interruption, and gives the same bits. The checkpoint replaces the
   * values of `parameters` and the states and learning rate of `updater`, and moves `reader`. TN_INVALID lists all
   * differences if it is of another training: layers, updater, reader, seed, versions of plugins; kernels or device.
   * TN_NOT_FOUND without a checkpoint, TN_BAD_DATA if it is damaged; then nothing has changed. */
  uint32_t start;
  /* The checkpoint to resume from; null: the newest in the folder. */
  const char* from;
  /* Outputs that the checkpoints store in addition to those that are trained, so that they are models with these. All
   * parameters of the set must belong to some output. */
  const tn_layer* outputs;
  uint32_t outputs_count;
  uint32_t reserved; /* 0 */
  /* What may differ from the checkpoint of a resume (docs/checkpoints.md); null: nothing. "updater.K" with K of
   * learning_rate, schedule, clip_norm, clip_value, l1, l2 and weight_decay, "groups.K" for the updaters of groups,
   * "reader.batch", "pass_batches", and "passes", which always may. The training goes on with the present values and
   * the checkpoint's states; tn_event.changes has what differs. A value that the checkpoint has, too, changes nothing,
   * so that the same call resumes any number of times. Since 0.4. */
  const char* const* resume_with;
  uint32_t resume_with_count;
  uint32_t resume_with_reserved; /* 0 */
} tn_checkpoint_options;

/* Parameter averages over the updates of a training, which often generalise better than the last values (Polyak and
 * Juditsky, "Acceleration of stochastic approximation by averaging", 1992). w_t are the parameters after update t = 1,
 * 2, ... since `begin` updates, a_t the averages:
 *   exponential (window 0)  a_t = d_t a_{t-1} + (1 - d_t) w_t  with d_t = min(decay, (t - 1) / t)
 *   window n                a_t = the mean of the last n to 2n - 1 updates: those of the present block of n updates
 *                           and of the whole block before it; of all updates in the first block
 * The bias correction by d_t makes the first 1 / (1 - decay) averages plain means: the first values w_0 have no weight,
 * and the weights always sum to 1. With decay 1 all of them are. Buffers, such as moving statistics, are copied as they
 * are. Each update reads and writes all parameters once more, of sparse tables too. */
typedef struct tn_average_options {
  uint32_t size;
  uint32_t reserved; /* 0 */
  /* The set that receives the averages after every update: made by tn_parameters_create from the same outputs, and
   * another one than that of the training. It can be tested, used and saved like any other, also by a handler.
   * tn_train_options.test tests it instead of the training's own. A resume replaces its values. */
  tn_parameters parameters;
  /* In (0, 1]; 0: 1. */
  double decay;
  /* 0: exponential. Needs memory for two more copies of the parameters. */
  int64_t window;
  /* The updates of the training before the first that counts; until then the averages are w. */
  int64_t begin;
} tn_average_options;

/* Since 0.4. Keeps the values of the parameters at the best measurement of a training: a test of tn_train_options.test,
 * or without that a pass of the training itself. Of equal measurements the first is the best; one that is not finite,
 * or of parameters that are not, never is. The values are copied to sets that the application makes from the same
 * outputs, and that can be tested, used and saved like any other, also by a handler. They keep their values until the
 * first measurement. Checkpoints hold the copies, and a resume replaces the values of the sets by them; it begins anew
 * if the checkpoint has none, or those of another metric. */
typedef struct tn_best_options {
  uint32_t size;
  /* 0: the lowest value is the best. */
  uint32_t best_is_highest;
  /* Receives the values of tn_train_options.parameters at the best measurement. */
  tn_parameters parameters;
  /* Receives those of tn_average_options.parameters; {0, 0} or empty: they are not kept. */
  tn_parameters averages;
  /* "cost", one of several costs (tn_machine_costs), or a metric; null: "cost". */
  const char* metric;
} tn_best_options;

/* An updater for a group of parameters. */
typedef struct tn_updater_group {
  tn_updater updater;
  /* At least one; a name includes everything below it ("D": "D", "D.weight"). */
  const char* const* parameters;
  uint32_t parameters_count;
  uint32_t reserved; /* 0 */
} tn_updater_group;

/* The options of tn_train, tn_test and tn_infer. */
typedef struct tn_train_options {
  uint32_t size;
  uint32_t outputs_count;
  /* Costs, metrics, and any other layers to compute. */
  const tn_layer* outputs;
  tn_parameters parameters;
  /* Train only. */
  tn_updater updater;
  /* Of minibatches. */
  tn_reader reader;
  /* Slots and the data layers that they feed, where the names differ. */
  const tn_feeding* feeding;
  uint32_t feeding_count;
  uint32_t immutable_parameters_count;
  /* Train only. Passes over the data, those before a resume included. */
  int64_t passes;
  /* Of random numbers inside the model, as in tn_machine_options. */
  uint64_t seed;
  /* Receives the events; null: nothing does. */
  tn_event_handler handler;
  void* user;
  /* Null: "cpu"; as in tn_machine_options. */
  const char* device;
  /* Train only. Parameters that keep their values, as in tn_machine_options; a name includes everything below it. */
  const char* const* immutable_parameters;
  /* Train only. Null: no checkpoints. */
  const tn_checkpoint_options* checkpoint;
  /* Minibatches of a pass; 0: a pass of the training is one of the reader. n: a pass ends after n minibatches, and the
   * next one continues where the reader is, through any number of its passes; for readers whose passes are endless or
   * very long. A test or inference ends after n minibatches, or with the reader's pass if that is shorter. */
  int64_t pass_batches;
  /* Ends the call from another thread; null: nothing does. */
  struct tn_cancel* cancel;
  /* Train only. Null: no tests while it trains. */
  const tn_test_options* test;
  /* Train only. Null: it does not end early. */
  const tn_early_stop_options* early_stop;
  /* Train only. Null: no averages of the parameters. */
  const tn_average_options* average;
  /* Train only. Updaters for groups of parameters. `updater` updates those that are in no group; learning_rate and
   * scheduled_rate of events are its own. Checkpoints hold the states of all. TN_INVALID names a parameter of two
   * groups, a name that no trained parameter has, or the group whose updater is given twice. */
  const tn_updater_group* groups;
  uint32_t groups_count;
  uint32_t groups_reserved; /* 0 */
  /* In place of `device`, as in tn_machine_options; tests of a training, too, run on all of them. */
  const char* const* devices;
  uint32_t devices_count;
  /* As in tn_machine_options. */
  tn_dtype compute;
  /* Train only. Null: the values of the best measurement are not kept. Since 0.4. */
  const tn_best_options* best;
  /* As in tn_machine_options; of tests, too. Since 0.4. */
  uint32_t shards;
  uint32_t shards_reserved; /* 0 */
  /* Train only. The processes that train together, each with this call and equal arguments; null: this process trains
   * alone. Since 0.4. */
  tn_team team;
  /* Train only. With a team: steps between comparisons of the parameters and buffers of its processes; 0: before the
   * first step alone. TN_INTERNAL names the first one that differs. Since 0.4. */
  int64_t verify_every;
  /* Train only. 0: the exact mode. n, with a team that has servers: the bounded mode (docs/scale-out.md). Trainers
   * compute minibatches at the same time, each begins when all but the n before it are done, and servers apply
   * gradients as they arrive; results depend on time. No bound if it is the number of minibatches of a pass or more.
   * Since 0.4. */
  int64_t staleness;
  /* Train only. A folder, in which a record of the training is written as docs/rerun.md says, with digests of the
   * samples and the parameters; null: none. TN_IO if the folder cannot be written or has a record; a training that
   * resumes continues it. TN_UNSUPPORTED with a team. Since 0.4. */
  const char* run;
  /* Train only. Updates between two digests of `run`; 0: chosen so that about a thousand are kept. Since 0.4. */
  int64_t run_every;
  /* Train only. The folder of such a record, with which the training is compared while it runs; null: none. TN_INVALID
   * names the first difference: a member of what it is made of, a version, the samples of an update, the parameters
   * after it. TN_OK: the same model. Not with `run`. Since 0.4. */
  const char* rerun;
} tn_train_options;

#ifdef __cplusplus
}
#endif
#endif
