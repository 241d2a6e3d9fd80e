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

#include <tenon/tenon_machine.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_generator {
  uint32_t index, generation;
} tn_generator;

typedef struct tn_generator_options {
  uint32_t size;
  uint32_t from_logits; /* 1: the scores are numbers whose softmax are probabilities; 0: they are probabilities */
  tn_layer scores;      /* sequences with a row for each id: the scores of all ids, of which one comes next */
  const char* ids;      /* a data layer of sequences of one level, an integer in each row. Its ids are generated */
  int64_t max_samples;  /* that are generated at once; 0: 32 */
  const char* device;   /* null: "cpu" */
  tn_dtype compute;     /* as in tn_machine_options */
  uint32_t reserved;    /* 0 */
} tn_generator_options;

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

/* Beam search keeps the beam_size most probable beginnings of results: at each step it takes the beam_size best of all
 * continuations of those that go on (of equal ones that of the better beginning, then the lowest id). Those that end
 * with end_id, or have max_length ids, are results. It ends when no beginning can become better than the results that
 * are asked for. With beam_size 1 its result is that of TN_GENERATE_GREEDY. */
typedef struct tn_generate_options {
  uint32_t size;
  uint32_t method; /* TN_GENERATE_* */
  /* Of the data layers that the scores depend on. Under the name of the ids: prompts, integers as TN_RAGGED of one
   * level, which may be empty if there is a begin_id; not fed: all are empty. */
  const tn_feed* feeds;
  uint32_t feeds_count;
  uint32_t flags;     /* TN_FORWARD_* */
  int64_t begin_id;   /* fed before each prompt, in no result; -1: none */
  int64_t end_id;     /* ends a result, and is its last id; -1: none, which beam search refuses */
  int64_t max_length; /* of prompt and result together, without begin_id; at least 1, and more than any prompt has */
  int64_t results;    /* of each sample, 1 (also 0) to beam_size; greedy: 1; sampling: draws of each sample */
  int64_t beam_size;  /* beam search alone; 0: 1 */
  /* Results are ranked by the sum of the logarithms of the probabilities of their ids, divided by
   * ((5 + number of ids) / 6) ^ length_penalty, as in Wu et al. 2016 (arXiv:1609.08144, equation 14); at least 0. The
   * number of ids includes end_id, and not the prompt. */
  double length_penalty;
  /* Sampling. Probabilities are raised to 1 / temperature (0: 1), then all but the top_k most probable ids are left out
   * (0: none), then all but the fewest most probable ids that together have at least top_p of what is left (0: 1). */
  double temperature;
  int64_t top_k;
  double top_p;
  /* A draw depends on seed, stream, number of the result and number of the id alone. streams: one number for each
   * sample; null: 0, 1, 2 and so on. */
  uint64_t seed;
  const int64_t* streams;
  uint32_t streams_count; /* the number of samples */
  uint32_t reserved;      /* 0 */
  /* Called with each id as it is chosen, greedily or by draws, in no fixed order of samples and results; null: not. May
   * not use the generator. Non-zero ends all results after this step, as they are then. TN_INVALID with beam search. */
  int32_t (*sink)(void* user, int64_t sample, int64_t result, int64_t id);
  void* user;
  /* Called before each step, on the calling thread; null: not. May not use the generator. Non-zero ends the call with
   * TN_CANCELLED, also beam search. */
  int32_t (*poll)(void* user);
} tn_generate_options;

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
