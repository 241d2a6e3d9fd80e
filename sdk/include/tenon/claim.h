/* Tenon SDK: claims, "tenon.claim/1": one kernel for several layers. SPDX-License-Identifier: MIT
 *
 * A claim is a fusion pattern: a chain of layer types, such as softmax and cross_entropy, that one kernel computes. It
 * matches layers of which each has an output of the layer before it among its inputs. The host treats a matched chain
 * as one layer with
 *
 *   inputs      the inputs of the chain's layers from outside of the chain, layer by layer in port order
 *   outputs     every output of every layer, layer by layer
 *   parameters  the parameters of every layer, layer by layer
 *
 * and calls the kernel for it as for any layer (tenon/kernel.h has the order of the tensors), with two additions: an
 * output without a reader, backward included, is null and has the request TN_REQUEST_NONE; every other output must be
 * written, also inside the chain. In backward the gradient of an output that no cost depends on is null: it is zero.
 *
 * The host uses a claim if `supports` returns TN_OK with a score above 0 and above the score of every kernel that the
 * layers of the chain would use without it. A claim never matches a layer with buffers or a state; it matches a layer
 * with dropout on its output (drop_rate) only at the end of a chain. */
#ifndef TENON_CLAIM_H
#define TENON_CLAIM_H

#include <tenon/kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A kernel's claim. Immutable; lives as long as the plugin is mapped. Goes into the manifest. */
typedef struct tn_claim {
  uint32_t size;
  uint32_t types_count;     /* 2 to 8 */
  const char* const* types; /* layer types in the order of the chain; the last is the type of the kernel */
} tn_claim;

/* The source of an input of a claimed layer. Frozen. */
typedef struct tn_claim_source {
  int32_t layer;  /* number in the chain of the producing layer; -1: outside of the chain */
  uint32_t index; /* number of that layer's output, or of the site's input */
} tn_claim_source;

/* The layers of a chain, for the tn_kernel_site that describes it as one layer. Borrowed like the site. */
typedef struct tn_claim_site {
  uint32_t size;
  uint32_t layers_count;
  const tn_kernel_site* const* layers;   /* each layer as without the claim, attributes included */
  const tn_claim_source* const* sources; /* [layers_count][inputs_count of the layer] */
} tn_claim_site;

/* The chain of a site, or null for one layer and from a host older than claims. */
static inline const tn_claim_site* tn_claimed(const tn_kernel_site* site) {
  return site->size >= offsetof(tn_kernel_site, claim) + sizeof site->claim ? site->claim : NULL;
}

#ifdef __cplusplus
}
#endif
#endif
