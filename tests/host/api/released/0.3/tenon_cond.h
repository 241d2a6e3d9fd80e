/* Tenon: branches, layers that run for chosen rows alone (docs/branches.md). SPDX-License-Identifier: Apache-2.0
 *
 * Layers inside of a branch are made with tn_layer_create, as all others. A layer is inside if it reads an input of the
 * branch, or a layer inside. It sees the rows that the branch has chosen, one value for each: of samples, or of rows of
 * sequences. Layers from outside with one value for each of all rows are read at the chosen ones, simply by using them.
 * Calls on one cond may come from any thread; they wait for each other. */
#ifndef TENON_TENON_COND_H
#define TENON_TENON_COND_H

#include <tenon/tenon.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_cond {
  uint32_t index, generation;
} tn_cond; /* branches that are being built */

typedef struct tn_cond_options {
  uint32_t size;
  uint32_t rows_count; /* how many branches, at least 1 */
  /* [rows_count] of each branch the numbers of its rows, from 0, integers of 64 or 32 bits whose number a minibatch
   * determines (TN_RAGGED): the outputs of a layer "choose_rows", or of a layer of your own. */
  const tn_layer* rows;
  tn_layer over;    /* a layer with one value for each of the rows that are chosen from, such as the predicate */
  const char* name; /* of the layer that tn_cond_end makes; null: generated */
} tn_cond_options;
/* Begins branches. TN_INVALID, naming the layers, if `rows` are not numbers of rows of `over`. */
TENON_API tn_status tn_cond_begin(tn_host* host, const tn_cond_options* options, tn_cond* cond, tn_error* error);

/* A layer inside of branch number `branch`, from 0: the rows that it has chosen of a value with one value for each row
 * of `over`. Of sequences, one for each of these rows, it is those of the chosen rows, and sequence_rows the numbers of
 * their rows: a layer "choose_sequences" inside of the branch, or one of your own. Sequences of equal lengths have the
 * sequence_rows of the first ones. Of other values sequence_rows is the null handle, {0, 0}. name: null: generated.
 * TN_INVALID names a value of another shape. */
TENON_API tn_status tn_cond_input(tn_host* host, tn_cond cond, uint32_t branch, tn_layer value, tn_layer sequence_rows,
                                  const char* name, tn_layer* layer, tn_error* error);

/* Ends the branches and releases their handle. results: all of branch 0, then all of branch 1 and so on, of each branch
 * equally many floats of equal shapes: layers inside, or from outside with a value for each of all rows. Makes a layer
 * outside, whose outputs (tn_layer_output) are the results: in each row that of the branch that has chosen it, of
 * several branches their sum, of none zeros. No layer can be made inside any more. TN_INVALID, naming both layers, if
 * results of two branches differ in shape. */
TENON_API tn_status tn_cond_end(tn_host* host, tn_cond cond, const tn_layer* results, uint32_t results_count,
                                tn_layer* layer, tn_error* error);

/* Makes the handle of a cond that was not ended stale. */
TENON_API tn_status tn_cond_release(tn_host* host, tn_cond cond, tn_error* error);

#ifdef __cplusplus
}
#endif
#endif
