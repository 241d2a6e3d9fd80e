/* Tenon: the structs of the options of generators. Include <tenon/tenon.h>. Written by
 * host/api/spec/generate_options.py. SPDX-License-Identifier: Apache-2.0 */
#ifndef TENON_TENON_GENERATE_OPTIONS_H
#define TENON_TENON_GENERATE_OPTIONS_H

#include <tenon/tenon_base.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tn_feed;

typedef struct tn_generator_options {
  uint32_t size;
  /* 1: the scores are numbers whose softmax are probabilities; 0: they are probabilities. */
  uint32_t from_logits;
  /* Sequences with a row for each id: the scores of all ids, of which one comes next. */
  tn_layer scores;
  /* A data layer of sequences of one level, an integer in each row. Its ids are generated. */
  const char* ids;
  /* That are generated at once; 0: 32. */
  int64_t max_samples;
  /* Null: "cpu". */
  const char* device;
  /* As in tn_machine_options. */
  tn_dtype compute;
  uint32_t reserved; /* 0 */
} tn_generator_options;

/* The options of tn_generate. Beam search keeps the beam_size most probable beginnings of results: at each step it
 * takes the beam_size best of all continuations of those that go on (of equal ones that of the better beginning, then
 * the lowest id). Those that end with end_id, or have max_length ids, are results. It ends when no beginning can become
 * better than the results that are asked for. With beam_size 1 its result is that of TN_GENERATE_GREEDY. */
typedef struct tn_generate_options {
  uint32_t size;
  /* TN_GENERATE_*. */
  uint32_t method;
  /* Of the data layers that the scores depend on. Under the name of the ids: prompts, integers as TN_RAGGED of one
   * level, which may be empty if there is a begin_id; not fed: all are empty. */
  const struct tn_feed* feeds;
  uint32_t feeds_count;
  /* TN_FORWARD_*. */
  uint32_t flags;
  /* Fed before each prompt, in no result; -1: none. */
  int64_t begin_id;
  /* Ends a result, and is its last id; -1: none, which beam search refuses. */
  int64_t end_id;
  /* Of prompt and result together, without begin_id; at least 1, and more than any prompt has. */
  int64_t max_length;
  /* Of each sample, 1 (also 0) to beam_size; greedy: 1; sampling: draws of each sample. */
  int64_t results;
  /* Beam search alone; 0: 1. */
  int64_t beam_size;
  /* Results are ranked by the sum of the logarithms of the probabilities of their ids, divided by ((5 + number of ids)
   * / 6) ^ length_penalty, as in Wu et al. 2016 (arXiv:1609.08144, equation 14); at least 0. The number of ids includes
   * end_id, and not the prompt. */
  double length_penalty;
  /* Sampling: probabilities are raised to 1 / temperature; 0: 1. Then those that top_k and top_p leave out become 0. */
  double temperature;
  /* Sampling: all but the so many most probable ids are left out; 0: none. */
  int64_t top_k;
  /* Sampling, after top_k: all but the fewest most probable ids that together have at least top_p of what is left are
   * left out; 0: 1. */
  double top_p;
  /* A draw depends on seed, stream, number of the result and number of the id alone. */
  uint64_t seed;
  /* Of draws, one number for each sample; null: 0, 1, 2 and so on. */
  const int64_t* streams;
  uint32_t streams_count;
  uint32_t reserved; /* 0 */
  /* Called with each id as it is chosen, greedily or by draws, in no fixed order of samples and results; null: not. May
   * not use the generator. Non-zero (in C++ false) ends all results after this step, as they are then. TN_INVALID with
   * beam search. */
  int32_t (*sink)(void* user, int64_t sample, int64_t result, int64_t id);
  void* user;
  /* Called before each step, on the calling thread; null: not. May not use the generator. Non-zero (in C++ false) ends
   * the call with TN_CANCELLED, also beam search. */
  int32_t (*poll)(void* user);
} tn_generate_options;

#ifdef __cplusplus
}
#endif
#endif
