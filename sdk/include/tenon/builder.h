/* Tenon SDK: recording a layer's body as primitives. SPDX-License-Identifier: MIT */
#ifndef TENON_BUILDER_H
#define TENON_BUILDER_H

#include <tenon/program.h>
#include <tenon/services.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A value in the recording. Negative: the call failed and reported why; every later call that is given a
 * negative value fails quietly, so a body may be written without checks and return `builder->status(self)`. */
typedef int32_t tn_ref;

enum { TN_TRANSPOSE_A = 1, TN_TRANSPOSE_B = 2 };

/* Primitives over segments: the R rows of a ragged dimension, which lie in S segments end to end, some of them empty.
 * W is what a row holds. */
enum {
  TN_SEGMENT_SUM = 1,      /* [R, W...] to [S, W...]: the sum over each segment; 0 where it is empty */
  TN_SEGMENT_MAX = 2,      /* likewise the largest; 0 where it is empty; the derivative is shared between equals */
  TN_SEGMENT_SPREAD = 3,   /* [S, W...] to [R, W...]: every row gets what its segment has */
  TN_SEGMENT_SHIFT = 4,    /* [R, W...] to the same: row r gets row r + by of its own segment, 0 where there is none */
  TN_SEGMENT_POSITION = 5, /* no value; int64 [R]: the number of a row within its segment, from 0 */
  TN_SEGMENT_LENGTH = 6,   /* no value; int64 [S]: rows of each segment */
  TN_SEGMENT_START = 7,    /* no value; int64 [S]: the first row of each segment */
  TN_SEGMENT_RANK = 8 /* float [R] to int64 [R]: the place of a row when its segment is sorted, largest first, equals
                         in their order, from 0; no derivative */
};

/* One application of a pointwise program. */
typedef struct tn_pointwise {
  uint32_t size;
  /* The grid's rows are the first `leading` dimensions of the FULL operands multiplied together, its columns the
   * rest. FULL operands have the whole shape, PER_ROW operands its leading part (optionally followed by ones),
   * PER_COLUMN operands the rest, SCALAR operands one element. Outputs get shapes by the same rule. When no
   * operand is FULL, the shape is that of PER_ROW operands followed by that of PER_COLUMN operands. */
  int32_t leading;
  const tn_program* program;
  const tn_ref* inputs; /* [program->inputs_count] */
  /* Null: the host derives the gradient. Else the author's own: a program whose inputs are the inputs of
   * `program`, then its outputs, then the gradients of its outputs; and whose outputs are the gradients of the
   * inputs in order (a constant 0 for integer inputs). What it does not read is not saved. */
  const tn_program* gradient;
} tn_pointwise;

/* The recorder. [setup], valid until the lower call that was given it returns. Nothing runs: each call notes a
 * primitive. Shapes are checked at once. Derivatives come from the host's rules. */
typedef struct tn_builder {
  uint32_t size;
  uint32_t
      training; /* 1: the machine trains; 0: it only answers, and what is there for training falls away (dropout) */
  void* self;
  const tn_errors* errors;
  /* TN_OK, or the code of the first failure. */
  tn_status (*status)(void* self);
  /* The value at an input port; -1 without failure for an absent optional one. For a variadic port `index` counts
   * within it, else 0. */
  tn_ref (*input)(void* self, uint32_t port, uint32_t index);
  /* The parameter or buffer that plan declared as number `index`. */
  tn_ref (*parameter)(void* self, uint32_t index);
  tn_ref (*buffer)(void* self, uint32_t index);
  /* Shape and type of a value, borrowed until lower returns; null for a negative ref. */
  const tn_spec* (*spec)(void* self, tn_ref value);
  /* alpha * op(a) op(b) with a [M, K] and b [K, N] after the transpositions (TN_TRANSPOSE_*): [M, N]. Both may
   * have equal leading batch dimensions. */
  tn_ref (*gemm)(void* self, tn_ref a, tn_ref b, uint32_t flags, double alpha);
  /* Applies a program; writes program->outputs_count values to outputs. */
  tn_status (*pointwise)(void* self, const tn_pointwise* call, tn_ref* outputs);
  /* out[i, ...] = table[ids[i], ...]: table [V, D...], ids integer [n...]: [n..., D...]. */
  tn_ref (*gather)(void* self, tn_ref table, tn_ref ids);
  /* out[v, ...] = sum of rows[i, ...] where ids[i] == v, in the order of i; out has `height` rows. */
  tn_ref (*scatter_add)(void* self, tn_ref rows, tn_ref ids, const tn_dim* height);
  /* The same elements in another shape. The number of elements must be equal for every size of the symbols. */
  tn_ref (*view)(void* self, tn_ref value, const tn_dim* dims, int32_t rank);
  /* Declares what an output port is. Every output port must be given once. */
  tn_status (*output)(void* self, uint32_t port, tn_ref value);
  /* The value a buffer takes when the host commits the step. */
  tn_status (*buffer_next)(void* self, uint32_t index, tn_ref value);
  /* Metrics: adds a SCALAR float value to number `index` of the host-owned fp64 state. */
  tn_status (*state)(void* self, uint32_t index, tn_ref value);
  /* The values behind one another along `axis`; of equal shape elsewhere, of one element type, constant along `axis`.
   */
  tn_ref (*concat)(void* self, const tn_ref* values, uint32_t count, int32_t axis);
  /* Elements [start, start + length) along `axis`, which is constant. */
  tn_ref (*slice)(void* self, tn_ref value, int32_t axis, int64_t start, int64_t length);
  /* `before` zeros before and `after` behind the elements along `axis`, which is constant. */
  tn_ref (*pad)(void* self, tn_ref value, int32_t axis, int64_t before, int64_t after);
  /* Dimension i of the result is dimension axes[i] of the value; axes is a permutation of as many as it has. */
  tn_ref (*transpose)(void* self, tn_ref value, const int32_t* axes, int32_t rank);
  /* A primitive over the segments of the ragged dimension `rows`; op: TN_SEGMENT_*; `value` is -1 where it takes none,
   * `by` is for SHIFT alone. */
  tn_ref (*segment)(void* self, int32_t op, tn_ref value, const tn_dim* rows, int64_t by);
  /* A TN_CSR input is seen as the ids of its entries, int64 [entries], ragged. This is their values, float [entries],
   * or -1 without failure where all are 1. */
  tn_ref (*weights)(void* self, tn_ref sparse);
  /* The dimension of rows that plan was given for the sequences of `a` and then those of `b` (tn_planner.joined). */
  tn_status (*joined)(void* self, tn_ref a, tn_ref b, tn_dim* rows);
} tn_builder;

#ifdef __cplusplus
}
#endif
#endif
