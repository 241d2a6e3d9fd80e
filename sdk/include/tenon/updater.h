/* Tenon SDK: updaters. SPDX-License-Identifier: MIT
 *
 * An updater is a pointwise program. The host owns parameters, gradients, the updater's states and the step
 * counter, and runs the program over ranges of all parameters at once. */
#ifndef TENON_UPDATER_H
#define TENON_UPDATER_H

#include <tenon/attribute.h>
#include <tenon/program.h>
#include <tenon/services.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Device scalars that the host offers to the program. All are floats. */
enum {
  TN_SCALAR_LEARNING_RATE = 0,    /* after the schedule */
  TN_SCALAR_STEP = 1,             /* number of this update, from 1; the same for all parameters */
  TN_SCALAR_RATE_MULTIPLIER = 2,  /* of this parameter, default 1: the program multiplies its learning rate by it */
  TN_SCALAR_DECAY_MULTIPLIER = 3, /* of this parameter, default 1: the program multiplies its weight decay by it */
  TN_SCALAR_ROW_ELEMENTS = 4      /* elements in a row of this parameter's first dimension; not with TN_GRAIN_ELEMENT */
};

/* The smallest part of a parameter that can be updated independently, for example in another shard. A program that
 * reduces along a row needs TN_GRAIN_ROW. Other reductions need TN_GRAIN_TENSOR: the host then runs the program once
 * for each parameter. */
enum { TN_GRAIN_ELEMENT = 0, TN_GRAIN_ROW = 1, TN_GRAIN_TENSOR = 2 };

/* Records the program. [setup], valid until record returns. */
typedef struct tn_update_recorder {
  uint32_t size;
  uint32_t reserved;
  void* self;
  const tn_errors* errors;
  const tn_attributes* attributes;
  /* Declares the next state: one float per parameter element, kept by the host, saved in checkpoints, with the
   * given first value. Returns its index. */
  int32_t (*state)(void* self, const char* name, double initial);
  /* Sets the program; copies it. Required once.
   *   inputs:  0 parameter (FULL), 1 gradient (FULL), then the states in order (FULL), then `scalars` (SCALAR)
   *   outputs: 0 new parameter, then the new states in order */
  tn_status (*program)(void* self, const tn_program* program, const int32_t* scalars, uint32_t scalars_count,
                       int32_t grain);
  /* Declares the next state, with one float per row of the parameter: PER_ROW in the program, whose grid then has the
   * parameter's rows and the elements of a row as columns. Needs the grain TN_GRAIN_ROW. */
  int32_t (*row_state)(void* self, const char* name, double initial);
} tn_update_recorder;

typedef struct tn_updater_description {
  uint32_t size;
  uint32_t attributes_count;
  const char* type;
  const char* doc; /* the formula and its source */
  const tn_attribute* const* attributes;
  uint32_t state_version; /* changes with the meaning of a state */
  uint32_t reserved;
} tn_updater_description;

typedef struct tn_updater_type {
  uint32_t size;
  uint32_t reserved;
  const tn_updater_description* description;
  /* [setup] Declares states, then the program. Pure. */
  tn_status (*record)(const tn_update_recorder* recorder);
  /* [any] Returns an optional table by id, or null. The function may be null. */
  const void* (*extension)(const char* id);
} tn_updater_type;

#ifdef __cplusplus
}
#endif
#endif
