/* Tenon: the structs of the options of inference on arrays. Include <tenon/tenon.h>. Written by
 * host/api/spec/generate_options.py. SPDX-License-Identifier: Apache-2.0 */
#ifndef TENON_TENON_INFER_OPTIONS_H
#define TENON_TENON_INFER_OPTIONS_H

#include <tenon/tenon_base.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tn_feed;

/* The options of tn_infer_arrays and tn_infer_parts. */
typedef struct tn_infer_options {
  uint32_t size;
  uint32_t outputs_count;
  /* Dense ones with one entry for each sample. */
  const tn_layer* outputs;
  tn_parameters parameters;
  /* Of any number of samples, the same in all. */
  const struct tn_feed* feeds;
  uint32_t feeds_count;
  /* TN_FORWARD_*. */
  uint32_t flags;
  /* That are computed at once; 0: 256. */
  int64_t max_samples;
  /* Null: "cpu". */
  const char* device;
  /* As in tn_machine_options. */
  tn_dtype compute;
  uint32_t reserved; /* 0 */
} tn_infer_options;

#ifdef __cplusplus
}
#endif
#endif
