/* Tenon SDK: recording a layer's body as primitives. SPDX-License-Identifier: MIT */
#ifndef TENON_BUILDER_H
#define TENON_BUILDER_H

#include <tenon/program.h>
#include <tenon/services.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A value in the recording. Negative: the call failed and reported the reason; later calls with a negative value fail
 * without a report, so a body needs no checks: it returns `builder->status(self)`. */
typedef int32_t tn_ref;

enum { TN_TRANSPOSE_A = 1, TN_TRANSPOSE_B = 2 };

/* Primitives over segments: a ragged dimension has R rows in S consecutive segments; segments may be empty. W... is the
 * shape of a row. */
enum {
  TN_SEGMENT_SUM = 1,       /* [R, W...] to [S, W...]: the sum over each segment; 0 for an empty one */
  TN_SEGMENT_MAX = 2,       /* the maximum over each segment, 0 for an empty one; equal maxima share the derivative */
  TN_SEGMENT_BROADCAST = 3, /* [S, W...] to [R, W...]: every row gets the value of its segment */
  TN_SEGMENT_SHIFT = 4,     /* [R, W...] to [R, W...]: row r gets row r + by of its segment, or 0 outside of it */
  TN_SEGMENT_POSITION = 5,  /* no value; int64 [R]: the number of a row within its segment, from 0 */
  TN_SEGMENT_LENGTH = 6,    /* no value; int64 [S]: rows of each segment */
  TN_SEGMENT_START = 7,     /* no value; int64 [S]: the first row of each segment */
  TN_SEGMENT_RANK = 8 /* float [R] to int64 [R]: the index of a row, from 0, in its segment sorted from the largest,
                         equal values in their order; no derivative */
};

/* One application of a pointwise program. */
typedef struct tn_pointwise {
  uint32_t size;
  /* The grid has as many rows as the product of the first `leading` dimensions of the FULL operands, and as many
   * columns as that of the others. FULL operands have the whole shape, PER_ROW operands its leading dimensions
   * (optionally followed by ones), PER_COLUMN operands the others, SCALAR operands one element; likewise outputs.
   * Without a FULL operand the shape is that of the PER_ROW operands followed by that of the PER_COLUMN operands. */
  int32_t leading;
  const tn_program* program;
  const tn_ref* inputs; /* [program->inputs_count] */
  /* Null: the host derives the gradient. Else the author's own: a program whose inputs are the inputs of
   * `program`, then its outputs, then the gradients of its outputs; and whose outputs are the gradients of the
   * inputs in order (a constant 0 for integer inputs). Values that it does not read are not saved. */
  const tn_program* gradient;
} tn_pointwise;

/* The recorder. [setup], valid until the lower call that received it returns. Nothing runs: each call records a
 * primitive and checks its shapes at once. Derivatives come from the host's rules. */
typedef struct tn_builder {
  uint32_t size;
  uint32_t
      training; /* 1: the machine trains; 0: it only answers, and what is there for training falls away (dropout) */
  void* self;
  const tn_errors* errors;
  /* TN_OK, or the code of the first failure. */
  tn_status (*status)(void* self);
  /* The value at an input port; -1 without failure for an absent optional input. `index`: number within a variadic
   * port, else 0. */
  tn_ref (*input)(void* self, uint32_t port, uint32_t index);
  /* Number `index` of the parameters (buffers) that plan declared. */
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
  /* Sets the value of an output port. Required once for every output port. */
  tn_status (*output)(void* self, uint32_t port, tn_ref value);
  /* Sets the value that a buffer takes when the host commits the step. */
  tn_status (*buffer_next)(void* self, uint32_t index, tn_ref value);
  /* Metrics: adds a SCALAR float value to number `index` of the host-owned fp64 state. */
  tn_status (*state)(void* self, uint32_t index, tn_ref value);
  /* Concatenates values along `axis`, whose sizes are constant; other dimensions and element types must be equal.
   */
  tn_ref (*concat)(void* self, const tn_ref* values, uint32_t count, int32_t axis);
  /* Elements [start, start + length) along `axis`, which is constant. */
  tn_ref (*slice)(void* self, tn_ref value, int32_t axis, int64_t start, int64_t length);
  /* Adds `before` zeros before and `after` zeros after the elements along `axis`, which is constant. */
  tn_ref (*pad)(void* self, tn_ref value, int32_t axis, int64_t before, int64_t after);
  /* Dimension i of the result is dimension axes[i] of the value; axes is a permutation of 0 to rank - 1. */
  tn_ref (*transpose)(void* self, tn_ref value, const int32_t* axes, int32_t rank);
  /* A primitive over the segments of the ragged dimension `rows`; op: TN_SEGMENT_*; `value`: -1 if the op takes none;
   * `by`: for SHIFT only. */
  tn_ref (*segment)(void* self, int32_t op, tn_ref value, const tn_dim* rows, int64_t by);
  /* The value of a TN_CSR input is the ids of its entries, int64 [entries], ragged. This returns their values, float
   * [entries], or -1 without failure if all values are 1. */
  tn_ref (*weights)(void* self, tn_ref sparse);
  /* Writes number `index` of the ragged dimensions that plan declared by tn_planner.rows. */
  tn_status (*rows)(void* self, uint32_t index, tn_dim* rows);
  /* Number `index` of the carried states that plan declared, as the minibatch before left it, or zeros. No derivative
   * flows through it. */
  tn_ref (*carried)(void* self, uint32_t index);
  /* Sets the value of the carried state for the next minibatch. */
  tn_status (*carried_next)(void* self, uint32_t index, tn_ref value);
  /* A constant tensor: `spec` has constant dimensions and an element type of at least 8 bits or TN_COMPUTE, for which
   * `data` holds floats of 64 bits. Copies the elements, in row-major order. */
  tn_ref (*constant)(void* self, const tn_spec* spec, const void* data);
  void* user; /* of the layer type's table */
} tn_builder;

#ifdef __cplusplus
}
#endif
#endif
