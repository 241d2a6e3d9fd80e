/* Tenon SDK, a draft: the numbers that a layer takes, such as probabilities or a mask of 0 and 1.
 * SPDX-License-Identifier: MIT
 *
 * A formula that is right for some numbers alone gives plausible results for others: a cross-entropy of scores, a mask
 * that is meant to be added. A type states which it is for, and the host looks for others in each forward, whether they
 * were fed or computed. What output numbers are known needs no check. */
#ifndef TENON_DRAFT_NUMBERS_H
#define TENON_DRAFT_NUMBERS_H

#include <tenon/attribute.h>
#include <tenon/services.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of the declarations of this header (docs/interface-1.0.md, drafts). */
#define TN_NUMBERS_DRAFT 0x90f04c32u

enum {
  TN_NUMBERS_EXEMPT = 1,   /* and the number `exempt`, such as a label that does not count */
  TN_NUMBERS_NOT_ZERO = 2, /* but not 0, such as labels -1 and 1 */
  TN_NUMBERS_WEIGHTED = 4, /* any number where the input number `weight` is 0 */
  TN_NUMBERS_LABELLED = 8  /* any number where the input number `label` is `ignored` */
};

/* The numbers that an input takes, or that an output holds: low, low + step, ... up to high; with step 0 all from low
 * to high. Either end may be infinite. */
typedef struct tn_numbers {
  uint32_t size;
  uint32_t flags; /* TN_NUMBERS_* */
  double low, high;
  double step; /* at least 0; above 0: low is finite, and the numbers are exact */
  double exempt;
  /* Of an input, with the flag of each: inputs whose elements exempt elements of this one. Their dimensions, without
   * ones at the end, are the first ones of this input, and those that are not all of them have one number. An absent
   * input exempts none. */
  uint32_t weight, label;
  double ignored;
  const char* advice; /* ends the message about another number, after "; "; null: none */
} tn_numbers;

/* The argument of declare. [setup], valid until declare returns. */
typedef struct tn_number_declarer {
  uint32_t size;
  uint32_t inputs_count;
  void* self;
  const tn_errors* errors;
  const tn_attributes* attributes;
  const tn_spec* const* inputs; /* [inputs_count] in port order; null: absent optional input */
  /* Declares the numbers that a connected input takes, or that an output holds; copies them. The host checks the inputs
   * in each forward, with some slack where step is 0; where it is not 0 it refuses trained parameters. NaN passes. */
  tn_status (*input)(void* self, uint32_t input, const tn_numbers* numbers);
  tn_status (*output)(void* self, uint32_t output, const tn_numbers* numbers);
  void* user; /* of the layer type's table */
} tn_number_declarer;

/* "tenon.numbers/1": an extension of a layer type. Immutable; lives as long as the plugin is mapped. Hosts before 0.4
 * do not ask for it. */
#define TN_LAYER_NUMBERS "tenon.numbers/1"
typedef struct tn_layer_numbers {
  uint32_t size;
  uint32_t draft; /* TN_NUMBERS_DRAFT */
  /* [setup] Pure. After plan has succeeded; of types that are not expanded. */
  tn_status (*declare)(const tn_number_declarer* declarer);
} tn_layer_numbers;

#ifdef __cplusplus
}
#endif
#endif
