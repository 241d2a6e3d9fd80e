/* Tenon: the structs of the options of machines. Include <tenon/tenon.h>. Written by
 * host/api/spec/generate_options.py. SPDX-License-Identifier: Apache-2.0 */
#ifndef TENON_TENON_MACHINE_OPTIONS_H
#define TENON_TENON_MACHINE_OPTIONS_H

#include <tenon/tenon_base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The options of tn_machine_create. */
typedef struct tn_machine_options {
  uint32_t size;
  /* TN_F32 (also 0), TN_F64, TN_BF16 or TN_TF32, as tenon.h states. TN_F64 computes on a copy converted from the set at
   * each forward. */
  tn_dtype compute;
  /* Bound of the minibatch; must be at least 1. */
  int64_t max_samples;
  /* 1: enables backward. */
  uint32_t training;
  /* 1: keeps every layer's output readable; 0: only outputs, costs and metrics. */
  uint32_t keep_all;
  /* Null: "cpu"; a kind, or a kind and a number: "cuda:1". */
  const char* device;
  /* Seed of random numbers inside the model, such as dropout masks. Numbers depend on this seed and on the number of
   * updates of the parameters so far, over all machines and trainings, so each step of all trainings of one
   * tn_parameters draws others. With `training` 0 every forward draws those of update number 0. */
  uint64_t seed;
  /* Parameters without gradient and buffers that keep their values: a name includes everything below it ("D": "D",
   * "D.weight"). Work that only they need is not computed. */
  const char* const* immutable_parameters;
  uint32_t immutable_parameters_count;
  uint32_t reserved; /* 0 */
  /* Upper bound of the rows of one ragged data layer (entries of a TN_CSR one) in a minibatch; 0: the machine starts
   * with a few rows per sample and plans again with twice as many when a minibatch has more. */
  int64_t max_rows;
  /* TN_MACHINE_*. */
  uint32_t flags;
  uint32_t reserved2; /* 0 */
  /* Devices of one kind, such as {"cuda:0", "cuda:1"}, in place of `device` (none: `device`): each computes a shard of
   * every minibatch, forward and backward, with the same parameters. A minibatch is cut by the numbers of its samples
   * and of the list's entries alone, gradients and costs are added up in the order of the list, and the sums are
   * updated once: lists of one length give the same bits on all devices whose primitives do. A device that is in the
   * list twice computes two shards. Layers that join the samples of a minibatch, such as batch_norm, join those of
   * their shard. An error lists the devices if one is absent, or if a minibatch has fewer samples at most than the list
   * entries. Given gradients, and costs over rows whose number a layer finds, are refused with TN_UNSUPPORTED. */
  const char* const* devices;
  uint32_t devices_count;
  uint32_t devices_reserved; /* 0 */
  /* The shards of a minibatch; 0: one for each device. Results depend on their number, and not on the devices among
   * which they are divided, in their order. An error if there are more devices than shards. Since 0.4. */
  uint32_t shards;
  uint32_t shards_reserved; /* 0 */
} tn_machine_options;

/* The options of tn_predictor_create (tenon_predictor.h). */
typedef struct tn_predictor_options {
  uint32_t size;
  /* As in tn_machine_options. */
  tn_dtype compute;
  /* Bound of the minibatch; 0: 1. */
  int64_t max_samples;
  /* Upper bound of the rows of one ragged data layer in a minibatch; 0: grows as needed, which plans again, under the
   * lock that building layers takes. */
  int64_t max_rows;
  /* Predictions at the same time, at most 1,024; further threads wait. 0: the host's threads. */
  uint32_t machines;
  /* 0: a prediction computes on the calling thread alone, the choice for many threads with small minibatches. 1: also
   * on the host's compute threads when they are idle. The bits are the same. */
  uint32_t parallel;
  /* Null: "cpu". */
  const char* device;
  /* Of random numbers inside the model, as in tn_machine_options. */
  uint64_t seed;
} tn_predictor_options;

#ifdef __cplusplus
}
#endif
#endif
