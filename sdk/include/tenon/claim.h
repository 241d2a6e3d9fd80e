/* Tenon SDK: claims, "tenon.claim/1": one kernel for several layers. SPDX-License-Identifier: MIT
 *
 * A kernel with a claim stands for a chain of layers, such as softmax and cross_entropy, wherever a topology has one:
 * some input of each layer is an output of the layer before it. To the host the chain is then one layer,
 *
 *   inputs      what the layers of the chain read from outside of it, layer by layer in port order
 *   outputs     every output of every layer, layer by layer
 *   parameters  those of every layer, layer by layer
 *
 * and the kernel is asked, prepared and run as one of that layer (tenon/kernel.h has the order of the tensors), with
 * two things to heed. An output that nobody reads, backward included, is null and its request TN_REQUEST_NONE; every
 * other one must be written, also where it lies inside the chain. In backward the gradient of an output is null where
 * nothing that leads to a cost reads it: it is zero.
 *
 * A claim is taken where `supports` answers TN_OK with a score above 0 and above that of every kernel that a layer of
 * the chain would run otherwise. Where it is not taken, the layers are as they were. A layer with buffers or a state is
 * never claimed, and one whose output is dropped in training (drop_rate) only at the end of a chain. */
#ifndef TENON_CLAIM_H
#define TENON_CLAIM_H

#include <tenon/kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a kernel claims. Immutable; lives as long as the plugin is mapped. Goes into the manifest. */
typedef struct tn_claim {
  uint32_t size;
  uint32_t types_count;     /* 2 to 8 */
  const char* const* types; /* layer types in the order of the chain; the last is the type of the kernel */
} tn_claim;

/* Where an input of a claimed layer comes from. Frozen. */
typedef struct tn_claim_source {
  int32_t layer;  /* number in the chain of the layer that makes it; -1: from outside */
  uint32_t index; /* which of that layer's outputs, or of the site's inputs */
} tn_claim_source;

/* The chain, beside a tn_kernel_site that describes it as one layer. Borrowed like that. */
typedef struct tn_claim_site {
  uint32_t size;
  uint32_t layers_count;
  const tn_kernel_site* const* layers;   /* each one as a kernel of its own would see it, attributes included */
  const tn_claim_source* const* sources; /* [layers_count][inputs_count of the layer] */
} tn_claim_site;

/* The chain of a site, or null where it is one layer: also what a host gives that does not know claims. */
static inline const tn_claim_site* tn_claimed(const tn_kernel_site* site) {
  return site->size >= offsetof(tn_kernel_site, claim) + sizeof site->claim ? site->claim : NULL;
}

#ifdef __cplusplus
}
#endif
#endif
