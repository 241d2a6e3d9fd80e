/* Tenon: training loops of the application: the state of updaters, updates of a part of the parameters, and metrics
 * over many minibatches. SPDX-License-Identifier: Apache-2.0
 *
 * Rules of <tenon/tenon.h> hold: calls may come from any thread; a call that fails changes nothing. A null pointer for
 * a result and a stale handle are TN_MISUSE. */
#ifndef TENON_TENON_UPDATER_H
#define TENON_TENON_UPDATER_H

#include <tenon/tenon.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the state of an updater ------------------------------------------------------------------------------------- */

/* An updater keeps, for each ParameterSet that it updates, named states (moments and the like) and the number of
 * updates so far, its steps. A state has one float32 for each element of a parameter, in the parameter's shape, or one
 * for each of its rows, in the shape [rows]. Buffers have no states. States begin with the value that the updater's
 * type declares. */

/* JSON array of {state, parameter, shape, dtype: "float32"}, in the order of the parameters; [] for an updater without
 * states. Allocates no state. */
TENON_API tn_status tn_updater_states(tn_host* host, tn_updater updater, tn_parameters parameters, tn_write write,
                                      void* user, tn_error* error);
/* A view of a state, which is allocated if no update has done so; borrowed until the updater or the set is used for an
 * update or a training, changed, loaded or released. TN_NOT_FOUND names an unknown state or parameter; TN_MISUSE if the
 * set was only declared. */
TENON_API tn_status tn_updater_get_state(tn_host* host, tn_updater updater, tn_parameters parameters, const char* state,
                                         const char* parameter, tn_array* values, tn_error* error);
/* Copies values in, which may have strides; TN_INVALID if type or shape differ. Other errors as above. */
TENON_API tn_status tn_updater_set_state(tn_host* host, tn_updater updater, tn_parameters parameters, const char* state,
                                         const char* parameter, const tn_array* values, tn_error* error);
/* The number of updates of the set by this updater so far: the step that its formula and its schedule read. */
TENON_API tn_status tn_updater_steps(tn_host* host, tn_updater updater, tn_parameters parameters, uint64_t* steps,
                                     tn_error* error);
/* The number of steps that this updater has skipped since it was made or loaded, because gradients were not finite; of
 * machines that compute in TN_BF16 or TN_TF32. */
TENON_API tn_status tn_updater_skipped(tn_host* host, tn_updater updater, tn_parameters parameters, uint64_t* skipped,
                                       tn_error* error);
/* TN_INVALID from 2^63 on. */
TENON_API tn_status tn_updater_set_steps(tn_host* host, tn_updater updater, tn_parameters parameters, uint64_t steps,
                                         tn_error* error);
/* The number of updates of the set by all updaters and trainings so far, on which random numbers inside models depend.
 * A model file does not hold it; the file of an updater does. */
TENON_API tn_status tn_parameters_updates(tn_host* host, tn_parameters parameters, uint64_t* updates, tn_error* error);
TENON_API tn_status tn_parameters_set_updates(tn_host* host, tn_parameters parameters, uint64_t updates,
                                              tn_error* error);

/* Writes a checkpoint of the updater (docs/checkpoints.md): its states, steps and learning rate for the set, and the
 * updates of the set. With outputs the file also holds their topology and parameters, and tn_model_load reads it, so
 * that one file has all of a hand-written loop; outputs_count 0: without them. Complete and on disk under its name, or
 * not there. */
TENON_API tn_status tn_updater_save(tn_host* host, tn_updater updater, tn_parameters parameters,
                                    const tn_layer* outputs, uint32_t outputs_count, const char* path, tn_error* error);
/* Replaces states, steps and learning rate of the updater for the set, and the updates of the set, by those of a file
 * that tn_updater_save or a training without groups wrote; leaves the values of the parameters. TN_INVALID lists all
 * differences if the file is of another updater type, version or attribute, or its states have other names or shapes;
 * TN_BAD_DATA if it is damaged or no checkpoint. */
TENON_API tn_status tn_updater_load(tn_host* host, tn_updater updater, tn_parameters parameters, const char* path,
                                    tn_error* error);

/* ---- several updaters in one step -------------------------------------------------------------------------------- */

/* Updates the parameters of the machine that are `names` or lie below them ("D": "D", "D.weight"), and no others: a
 * part of a step. The gradients of the other parameters stay for further parts, and for the call that ends the step:
 * tn_updater_update and tn_updater_update_model update those that no part has updated, tn_machine_commit none. Options
 * such as clip_norm see the gradients of the part alone. Does nothing without a backward since the last step.
 * TN_INVALID names those of `names` that no parameter with a gradient has, and a count of 0; TN_MISUSE if the machine
 * was made without `training`, and names a parameter that another part of this step has updated. Until the step ends,
 * tn_machine_backward returns TN_MISUSE. */
TENON_API tn_status tn_updater_update_parameters(tn_host* host, tn_updater updater, tn_machine machine,
                                                 const char* const* names, uint32_t names_count, tn_error* error);
/* Ends a step without further updates: buffers get their next values, gradients are dropped, and an update of the set
 * is counted. Does nothing without a backward since the last step. TN_MISUSE if the machine was made without
 * `training`. */
TENON_API tn_status tn_machine_commit(tn_host* host, tn_machine machine, tn_error* error);
/* Ends a step whose updates the application computed: writes the values of parameters and buffers of the set, then does
 * what tn_machine_commit does, as one unit: other threads read the set as it was before the step, or after it.
 * values[i] is for names[i], as in tn_parameters_set. Everything is checked before anything is written. Writes and does
 * nothing without a backward since the last step. Errors are those of both calls, and TN_INVALID for a second value. */
TENON_API tn_status tn_machine_commit_values(tn_host* host, tn_machine machine, const char* const* names,
                                             const tn_array* values, uint32_t count, tn_error* error);

/* ---- updaters of the application -------------------------------------------------------------------------------- */

/* An updater that the application implements: wherever an updater of a plugin can be, in trainings, for groups, in
 * steps of the application, with averages, checkpoints and tn_updater_save; not in tn_machine_steps. Since 0.4. */

/* The update of one step. */
typedef struct tn_rule_step {
  uint32_t size;
  uint32_t names_count;
  /* The parameters to update, in the order of the set: those with gradients, of a group its own. */
  const char* const* names;
  /* The machine that has the gradients, for tn_machine_gradient, tn_machine_output, tn_machine_set_gradient and the
   * like; not for a forward or backward. In a training the handle is stale when `update` has returned. */
  tn_machine machine;
  uint64_t step; /* the number of this update by this updater, from 1 */
} tn_rule_step;

/* One state of one parameter, such as a moment. */
typedef struct tn_rule_state {
  const char* state; /* without "/" */
  const char* parameter;
  tn_array values; /* dense, of any type and shape; a number has rank 0 */
} tn_rule_state;
typedef void (*tn_rule_states_sink)(void* user, const tn_rule_state* state);

/* Functions return TN_OK, or another status but TN_END after they have filled *error: message and subject; the call
 * around them then fails so. They are called one at a time, on the thread of the call that updates, saves, resumes, or
 * asks for states and rates; `release` on the thread that ends the last use, such as that of tn_host_destroy. */
typedef struct tn_rule_options {
  uint32_t size;
  uint32_t reserved;
  /* The name of the rule, in messages and checkpoints: a training resumes with an equal one alone. */
  const char* type;
  /* A JSON object of what else must be equal then, such as coefficients; null: nothing. */
  const char* attributes;
  void* user;
  /* Computes the values after the step, and hands them over by tn_machine_commit_values on step->machine, in any number
   * of calls; a parameter that it leaves out keeps its value. The host copies them, and writes all when it has
   * returned, as one unit for those who read the set; nothing if it fails. It may call this host: read the set and the
   * machine, and let updaters of plugins compute parts by tn_updater_update_parameters or all by tn_updater_update,
   * which neither end the step nor keep the unit. Not called for a step without gradients, nor for one that a machine
   * of TN_BF16 or TN_TF32 skips. */
  tn_status (*update)(void* user, const tn_rule_step* step, tn_error* error);
  /* The learning rate, for events and checkpoints; null: 0. */
  double (*learning_rate)(void* user);
  /* For handlers and resumes; null: it has none, so that they fail, a resume unless the rate is equal. */
  tn_status (*set_learning_rate)(void* user, double learning_rate, tn_error* error);
  /* Calls sink(to, state) for each state, which the sink copies; null: the rule has none. An updater of the application
   * belongs to the first set that it updates. This and set_states must not call the host. */
  tn_status (*states)(void* user, tn_rule_states_sink sink, void* to, tn_error* error);
  /* Replaces all states by copies of these, which `states` has given once; null: a checkpoint with states cannot be
   * resumed. */
  tn_status (*set_states)(void* user, const tn_rule_state* states, uint32_t count, tn_error* error);
  /* Called when the updater is destroyed; or null. Not called if tn_updater_create_from fails. */
  void (*release)(void* user);
} tn_rule_options;
/* tn_updater_states and tn_updater_get_state show the states; tn_updater_set_state is TN_UNSUPPORTED. */
TENON_API tn_status tn_updater_create_from(tn_host* host, const tn_rule_options* options, tn_updater* updater,
                                           tn_error* error);

/* ---- metrics over many minibatches ------------------------------------------------------------------------------- */

typedef struct tn_metrics {
  uint32_t index, generation;
} tn_metrics; /* cost and metrics of one machine, summed over minibatches */

typedef struct tn_metrics_values {
  uint32_t size;
  uint32_t metrics_count;
  double cost;     /* mean over samples; 0 without samples or without a cost */
  int64_t samples; /* of all minibatches */
  const tn_metric* metrics;
  const tn_metric* costs; /* with two or more costs, each of them, as in tn_machine_costs; else none */
  uint32_t costs_count;
  uint32_t reserved;
} tn_metrics_values;
/* Receives values that are borrowed during the call. It must not call the host. */
typedef void (*tn_metrics_sink)(void* user, const tn_metrics_values* values);

/* For the metrics of this machine, without a minibatch yet. Stays readable if the machine is released. */
TENON_API tn_status tn_metrics_create(tn_host* host, tn_machine machine, tn_metrics* metrics, tn_error* error);
/* Adds the last minibatch of the machine; call it once after each forward. TN_INVALID for another machine than that of
 * tn_metrics_create; TN_MISUSE before its first forward, or after one that failed. */
TENON_API tn_status tn_metrics_append(tn_host* host, tn_metrics metrics, tn_machine machine, tn_error* error);
/* Calls `sink` once with cost, samples and metrics over the minibatches so far. */
TENON_API tn_status tn_metrics_read(tn_host* host, tn_metrics metrics, tn_metrics_sink sink, void* user,
                                    tn_error* error);
/* Since 0.4. The same of one machine's last forward, and of a test as tn_test makes it: for callers whose work moves
 * between threads, since what tn_machine_metrics, tn_machine_costs and tn_test lend belongs to a thread. Errors as of
 * those. */
TENON_API tn_status tn_machine_measure(tn_host* host, tn_machine machine, tn_metrics_sink sink, void* user,
                                       tn_error* error);
TENON_API tn_status tn_test_measure(tn_host* host, const tn_train_options* options, tn_metrics_sink sink, void* user,
                                    tn_error* error);
/* Adds the minibatches of other metrics, of the same machine or another one, whose metrics have the same types and
 * attributes in the same order: as if they had been appended here. TN_INVALID if they differ, or are these metrics
 * themselves; then nothing has changed. `from` stays as it is. */
TENON_API tn_status tn_metrics_merge(tn_host* host, tn_metrics metrics, tn_metrics from, tn_error* error);
/* Forgets the minibatches so far. */
TENON_API tn_status tn_metrics_flush(tn_host* host, tn_metrics metrics, tn_error* error);
TENON_API tn_status tn_metrics_release(tn_host* host, tn_metrics metrics, tn_error* error);

#ifdef __cplusplus
}
#endif
#endif
