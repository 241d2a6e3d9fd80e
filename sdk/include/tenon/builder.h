/* Tenon SDK: recording a layer's body as primitives. SPDX-License-Identifier: MIT */
#ifndef TENON_BUILDER_H
#define TENON_BUILDER_H

#include <tenon/program.h>
#include <tenon/services.h>
#include <tenon/window.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A value in the recording. Negative: the call failed and reported the reason; later calls with a negative value fail
 * without a report, so a body needs no checks: it returns `builder->status(self)`. */
typedef int32_t tn_ref;

enum { TN_TRANSPOSE_A = 1, TN_TRANSPOSE_B = 2 };

/* Primitives along the last dimension of a value [R..., n], for each row on its own; since 0.3. */
enum {
  TN_SORT_DESCENDING = 1, /* argsort: from the largest */
  TN_SUM_EXCLUSIVE = 1,   /* prefix_sum: without the element itself */
  TN_SUM_REVERSE = 2      /* prefix_sum: of the elements from this one on */
};

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

enum { TN_SCAN_REVERSE = 1 /* scan_begin: from the last row of each sequence to its first; since 0.3 */ };

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
#if TN_TARGET_MINOR >= 3
  /* Since 0.3. The positions, from 0, of the `count` elements that come first when each row of the float value
   * [R..., n] is sorted from the smallest (TN_SORT_DESCENDING: the largest): int64 [R..., count]. Equal elements are in
   * the order of their positions, NaN comes last either way. n is constant if count, in [0, n], is not -1; -1: all n.
   * No derivative: that of the sorted values is that of the gather that reads them. */
  tn_ref (*argsort)(void* self, tn_ref value, uint32_t flags, int64_t count);
  /* Since 0.3. out[r, i] = sum over j <= i of value[r, j], of floats [R..., n]; flags: TN_SUM_EXCLUSIVE: j < i;
   * TN_SUM_REVERSE: j >= i, with both j > i. Added in the order of j, reversed: from the last element on. */
  tn_ref (*prefix_sum)(void* self, tn_ref value, uint32_t flags);
  /* Since 0.3. TN_CONV_* of window.h: `a` and `b` are the two tensors that the operation reads, in the order stated
   * there, floats of one type. `groups` is at least 1 and divides channels and filters, which are constant. */
  tn_ref (*conv)(void* self, int32_t op, const tn_window* window, int64_t groups, tn_ref a, tn_ref b);
  /* Since 0.3. TN_POOL_* of window.h. `positions`: of SCATTER and TAKE; else ignored. Writes outputs[0], and of MAX the
   * positions, which have no derivative, to outputs[1]. Every window of a maximum holds an element of the images. */
  tn_status (*pool)(void* self, int32_t op, const tn_window* window, tn_ref value, tn_ref positions, tn_ref* outputs);
  /* Since 0.3. The value [N, from..., C] resized: [N, to..., C]; with TN_RESIZE_TRANSPOSED the reverse. */
  tn_ref (*resize)(void* self, const tn_resize* resize, tn_ref value);
  /* Since 0.3. Begins a scan over the sequences of the ragged dimension `rows`: what is recorded until scan_end is its
   * body. Writes the first dimension of the values of the body to `steps`: [steps, W...] has, for each step of each
   * sequence, what the body makes in it. Such values take part in primitives like others, but no element of a step may
   * depend on another step, except through memories. Scans do not lie in each other. flags: TN_SCAN_REVERSE. */
  tn_status (*scan_begin)(void* self, const tn_dim* rows, uint32_t flags, tn_dim* steps);
  /* Since 0.3. At each step its row of a value [rows, W...], or the value of its sequence, of one [sequences, W...]:
   * [steps, W...]. */
  tn_ref (*scan_input)(void* self, tn_ref value);
  /* Since 0.3. A memory of values [W...], of the dimensions and the element type of `spec`: [steps, W...], at each step
   * what scan_next left in the step before it, in the first step `initial` [sequences, W...]; -1: zeros. */
  tn_ref (*scan_memory)(void* self, const tn_spec* spec, tn_ref initial);
  /* Since 0.3. Sets what a memory of the scan leaves to the next step, [steps, W...]. Without it a memory keeps its
   * value. */
  tn_status (*scan_next)(void* self, tn_ref memory, tn_ref next);
  tn_status (*scan_end)(void* self); /* Since 0.3. */
  /* Since 0.3. After scan_end: what the last step of each sequence left in a memory, of an empty one the initial value:
   * [sequences, W...]. */
  tn_ref (*scan_last)(void* self, tn_ref memory);
  /* Since 0.3. A value [steps, W...] in the order of the rows: [rows, W...]. */
  tn_ref (*scan_output)(void* self, tn_ref value);
#endif
} tn_builder;

#ifdef __cplusplus
}
#endif
#endif
