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

/* Device scalars that the host offers to the program. All are floats, STEP also an integer. */
enum {
  TN_SCALAR_LEARNING_RATE = 0,    /* after the schedule */
  TN_SCALAR_STEP = 1,             /* number of this update, from 1; the same for all parameters; int64 in an input of
                                     kind TN_INT, exact up to 2^31 - 1; a float rounds above 2^24 */
  TN_SCALAR_RATE_MULTIPLIER = 2,  /* of this parameter, default 1: the program multiplies its learning rate by it */
  TN_SCALAR_DECAY_MULTIPLIER = 3, /* of this parameter, default 1: the program multiplies its weight decay by it */
  TN_SCALAR_ROW_ELEMENTS = 4      /* elements in a row of this parameter's first dimension; not with TN_GRAIN_ELEMENT */
};

/* The smallest part of a parameter that can be updated independently, for example in another shard. A program that
 * reduces along a row needs TN_GRAIN_ROW. Other reductions need TN_GRAIN_TENSOR, or TN_GRAIN_MATRIX where rows and
 * columns count: the host then runs the program once for each parameter. */
enum {
  TN_GRAIN_ELEMENT = 0,
  TN_GRAIN_ROW = 1,
  TN_GRAIN_TENSOR = 2,
#if TN_TARGET_MINOR >= 3
  TN_GRAIN_MATRIX = 3 /* since 0.3 */
#endif
};

/* A state of the updater: numbers that the host keeps for each parameter and saves in checkpoints. */
typedef struct tn_state {
  uint32_t size;
  /* TN_FULL: one number for each element; TN_PER_ROW: one for each row, needs TN_GRAIN_ROW or TN_GRAIN_MATRIX;
   * TN_PER_COLUMN: one for each element of a row, needs TN_GRAIN_MATRIX */
  uint8_t extent;
  uint8_t reserved[3];
  tn_dtype dtype; /* TN_F32 */
  uint32_t reserved2;
  const char* name; /* lower case letters, digits, underscore */
  double initial;   /* the first value, finite in float32 */
} tn_state;

/* The argument of tn_update_recorder.program. */
typedef struct tn_update {
  uint32_t size;
  int32_t grain; /* TN_GRAIN_* */
  const tn_program* program;
  const int32_t* scalars; /* [scalars_count] TN_SCALAR_* of the program's last inputs */
  uint32_t scalars_count;
  uint32_t reserved;
} tn_update;

/* Records the program. [setup], valid until record returns. */
typedef struct tn_update_recorder {
  uint32_t size;
  uint32_t reserved;
  void* self;
  const tn_errors* errors;
  const tn_attributes* attributes;
  /* Declares the next state; copies the declaration. Returns its index, or a negative number on failure. */
  int32_t (*state)(void* self, const tn_state* state);
  /* Sets the program; copies it. Required once.
   *   inputs:  0 parameter (FULL), 1 gradient (FULL), then the states in order (their extents), then `scalars` (SCALAR)
   *   outputs: 0 new parameter, then the new states in order, all of kind TN_FLOAT and type TN_COMPUTE or TN_F32
   * The grid: TN_GRAIN_ELEMENT: one row, of which each column is an element of any parameter of the set;
   * TN_GRAIN_ROW: the rows of one parameter, with the elements of a row as columns; TN_GRAIN_TENSOR: one row, with all
   * elements of one parameter; TN_GRAIN_MATRIX: as TN_GRAIN_ROW. A row-sparse gradient: its rows, whatever the grain;
   * TN_GRAIN_TENSOR and TN_GRAIN_MATRIX are refused. */
  tn_status (*program)(void* self, const tn_update* update);
  void* user; /* of the updater type's table */
} tn_update_recorder;

typedef struct tn_updater_description {
  uint32_t size;
  uint32_t attributes_count;
  const char* type;
  const char* doc; /* the formula and its source */
  const tn_attribute* const* attributes;
  uint32_t state_version; /* rises with the meaning of a state; 1 at first, never 0 */
  uint32_t reserved;
} tn_updater_description;

typedef struct tn_updater_type {
  uint32_t size;
  uint32_t reserved;
  const tn_updater_description* description;
  /* [setup] Declares states, then the program. Pure. */
  tn_status (*record)(const tn_update_recorder* recorder);
  /* [any] Returns an optional table by id, or null. The function may be null. */
  const void* (*extension)(void* user, const char* id);
  void* user; /* given back as tn_update_recorder.user */
} tn_updater_type;

#ifdef __cplusplus
}
#endif
#endif
