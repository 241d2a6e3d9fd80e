/* Tenon: sequences of ids that a model generates (docs/generation.md). SPDX-License-Identifier: Apache-2.0
 *
 * A generator takes a model that was trained on whole sequences of ids, from the data layer of the ids to scores of the
 * id that comes next, and runs it one id after the other: it feeds the ids of a prompt, then those that it chooses from
 * the scores. Layers between ids and scores that compute each row by itself, and the insides of scans (tenon_scan.h),
 * are run for one row of each result; memories are carried from id to id, so no beginning is computed twice. What does
 * not depend on the ids is computed once for each sample: one value, or one sequence, of each sample. Parameters are
 * those of the set, by their names. */
#ifndef TENON_TENON_GENERATE_H
#define TENON_TENON_GENERATE_H

#include <tenon/tenon_generate_options.h>
#include <tenon/tenon_machine.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_generator {
  uint32_t index, generation;
} tn_generator;

/* Makes a generator, which keeps `parameters` and reads their present values at each call of tn_generate. TN_INVALID,
 * naming the layer: between ids and scores there is a layer that needs whole sequences, a reversed scan or the last
 * value of a memory; the model reads another data layer with a row for each id; or there are fewer scores
 * than ids, by the index limit of their data layer. Further scores are left out. TN_NOT_FOUND: the scores depend on no
 * data layer of that name, or a parameter is missing. */
TENON_API tn_status tn_generator_create(tn_host* host, tn_parameters parameters, const tn_generator_options* options,
                                        tn_generator* generator, tn_error* error);

enum {
  TN_GENERATE_GREEDY = 0, /* the most probable id, of equal ones the lowest */
  TN_GENERATE_SAMPLE = 1, /* draws an id */
  TN_GENERATE_BEAM = 2    /* beam search */
};

/* Results, borrowed until the next call on the generator. */
typedef struct tn_generated {
  uint32_t size;
  uint32_t reserved;
  tn_array ids;    /* TN_I64, TN_RAGGED of two levels: of each sample its results, the best first, of each its ids */
  tn_array scores; /* TN_F64, TN_RAGGED of one level: of each sample those of its results */
} tn_generated;

/* Generates results for all samples. A result depends neither on the other samples nor on the number of threads.
 * Everything is checked before anything is computed: TN_INVALID names the option; TN_BAD_DATA an id of a prompt beyond
 * the scores. TN_BAD_DATA also if scores are not finite, or not probabilities. result->size must be set. One call at a
 * time on a generator; another is TN_MISUSE. During a training of the parameters on another thread it runs between two
 * steps, which wait for it. */
TENON_API tn_status tn_generate(tn_host* host, tn_generator generator, const tn_generate_options* options,
                                tn_generated* result, tn_error* error);
/* Makes the handle stale. */
TENON_API tn_status tn_generator_release(tn_host* host, tn_generator generator, tn_error* error);

#ifdef __cplusplus
}
#endif
#endif
