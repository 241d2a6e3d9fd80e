/* Tenon SDK: the step of a layer that reads earlier rows of its sequence. SPDX-License-Identifier: MIT
 *
 * Generation (tenon/tenon_generate.h of applications) runs a model one row of each sequence at a time. A layer that
 * computes each row by itself needs nothing for that. One that reads earlier rows, such as a recurrent layer, offers
 * the table "tenon.step/1", which tn_layer_type.extension returns: its function replaces the layer by layers of one
 * step, and by what goes from step to step. */
#ifndef TENON_STEP_H
#define TENON_STEP_H

#include <tenon/layer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a step finds of the one before, [samples, W...]. */
typedef struct tn_step_memory {
  uint32_t size;
  /* The input of the layer that has the value of the first step, one for each sequence; also if it is not connected:
   * then the memory begins with zeros. -1: always zeros. */
  int32_t input;
  const tn_spec* spec; /* dense, TN_COMPUTE; all dimensions but the first are constant */
} tn_step_memory;

/* The argument of step. Inputs of the layer with a row for each row of the sequences are [samples, W...] in a step: one
 * row of each sequence. Others are absent; those with one value for each sequence can begin a memory. Layers are added,
 * and outputs set, by `expander`, as in expand; parameters are found by their names, so a layer of the step names those
 * of the whole layer. Outputs with a row for each row of the sequences must be set, others must not. [setup], valid
 * until step returns. */
typedef struct tn_stepper {
  uint32_t size;
  uint32_t reserved;
  void* self;
  const tn_expander* expander;
  /* int64 [samples]: the number of the row in its sequence, from 0. A negative number on failure, likewise below. */
  tn_ref (*position)(void* self);
  tn_ref (*memory)(void* self, const tn_step_memory* memory);
  /* Leaves `value` in a memory for the next step. Required once for every memory. */
  tn_status (*next)(void* self, tn_ref memory, tn_ref value);
  /* Keeps `value`, [samples, W...], of each step. Returns the values kept by the steps before this one, [N, W...]: all
   * sequences together, in the order of the steps, also those of sequences that have ended. The value is ragged, and
   * its offsets have no meaning. */
  tn_ref (*history)(void* self, tn_ref value);
  /* int64, ragged [rows so far]: for each sequence the numbers of its own earlier rows in every history, the first
   * row first. Sequences may have rows in common. */
  tn_ref (*past)(void* self);
} tn_stepper;

/* "tenon.step/1": an extension of a layer type. Immutable; lives as long as the plugin is mapped. */
#define TN_STEP "tenon.step/1"
typedef struct tn_step {
  uint32_t size;
  uint32_t reserved;
  /* [setup] Pure. On failure reports the reason, such as an attribute for which earlier rows are not enough. */
  tn_status (*step)(const tn_stepper* stepper);
} tn_step;

#ifdef __cplusplus
}
#endif
#endif
