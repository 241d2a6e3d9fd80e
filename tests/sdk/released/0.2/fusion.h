/* Tenon SDK: fusion patterns: one kernel for several layers. SPDX-License-Identifier: MIT
 *
 * A fusion pattern is a chain of layer types, such as softmax and cross_entropy, that one kernel computes. It matches
 * layers of which each has an output of the layer before it among its inputs. The host treats a matched chain as one
 * layer with
 *
 *   inputs      the inputs of the chain's layers from outside of the chain, layer by layer in port order
 *   outputs     every output of every layer, layer by layer
 *   parameters  the parameters of every layer, layer by layer
 *
 * and calls the kernel for it as for any layer (tenon/kernel.h has the order of the tensors), with two additions: an
 * output without a reader, backward included, is null and has the request TN_REQUEST_NONE; every other output must be
 * written, also inside the chain. In backward the gradient of an output that no cost depends on is null: it is zero.
 *
 * The host uses the kernel for a chain if `supports` returns TN_OK with a score above 0 and above the score of every
 * kernel that the layers of the chain would use without it. A pattern never matches a layer with buffers or a state; it
 * matches a layer with dropout on its output (drop_rate) only at the end of a chain. */
#ifndef TENON_FUSION_H
#define TENON_FUSION_H

#include <tenon/kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A kernel's fusion pattern. Immutable; lives as long as the plugin is mapped. Goes into the manifest. */
typedef struct tn_fusion_pattern {
  uint32_t size;
  uint32_t types_count;     /* 2 to 8 */
  const char* const* types; /* layer types in the order of the chain; the last is the type of the kernel */
} tn_fusion_pattern;

/* The source of an input of a fused layer. Frozen. */
typedef struct tn_fusion_source {
  int32_t layer;  /* number in the chain of the producing layer; -1: outside of the chain */
  uint32_t index; /* number of that layer's output, or of the site's input */
} tn_fusion_source;

/* The layers of a chain, for the tn_kernel_site that describes it as one layer. Borrowed like the site. */
typedef struct tn_fusion_site {
  uint32_t size;
  uint32_t layers_count;
  const tn_kernel_site* const* layers;    /* each layer as without the pattern, attributes included */
  const tn_fusion_source* const* sources; /* [layers_count][inputs_count of the layer] */
} tn_fusion_site;

/* The chain of a site, or null for one layer. */
static inline const tn_fusion_site* tn_fusion(const tn_kernel_site* site) { return site->fusion; }

#ifdef __cplusplus
}
#endif
#endif
