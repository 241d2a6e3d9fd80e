/* Tenon SDK: native kernels. SPDX-License-Identifier: MIT
 *
 * A native kernel computes a layer type on one kind of device. A layer type may have kernels and no recorded body, the
 * simplest plugin to write: it runs only on the devices of its kernels, and is not fused with its neighbours. */
#ifndef TENON_KERNEL_H
#define TENON_KERNEL_H

#include <tenon/layer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One layer as planned, bounds filled in: the argument of a kernel's functions. Borrowed until the call returns. */
typedef struct tn_kernel_site {
  uint32_t size;
  tn_dtype compute; /* the machine's compute type */
  const tn_attributes* attributes;
  uint32_t inputs_count;
  uint32_t outputs_count;
  uint32_t parameters_count;
  uint32_t reserved;
  const tn_spec* const* inputs;
  const tn_spec* const* outputs;
  const tn_spec* const* parameters;
  const struct tn_fusion_site* fusion; /* the fused layers (tenon/fusion.h), `attributes` being those of the last;
                                        null: one layer */
} tn_kernel_site;

/* The values that backward reads, which the host keeps from forward on. The masks have one bit per input, output. */
typedef struct tn_kernel_needs {
  uint32_t size;
  uint32_t traits;          /* TN_TRAIT_* */
  uint64_t backward_inputs; /* of layer inputs, then parameters; at most 64 */
  uint64_t backward_outputs;
} tn_kernel_needs;

/* The tensors of a call, in this order.
 *   forward:  inputs = layer inputs, parameters;                 outputs = layer outputs
 *   backward: inputs = layer inputs, parameters, layer outputs, gradients of the outputs
 *             outputs = gradients of the layer inputs, gradients of the parameters, with requests
 * In backward an input that query did not request is null. A metric has states in place of outputs, one float64 each;
 * a call overwrites them with the minibatch's contribution. A metric has no backward. */
enum { TN_FORWARD = 0, TN_BACKWARD = 1 };

typedef struct tn_kernel {
  uint32_t size;
  int32_t score;      /* higher wins among kernels that support a site; the recorded body has score 0 */
  const char* type;   /* the layer type */
  const char* device; /* the device kind, "cpu" */
  const char* name;   /* shown by `plan` */
  uint32_t dtypes_count;
  uint32_t reserved;
  const tn_dtype* dtypes; /* compute types offered */
  /* [setup] TN_OK, or TN_UNSUPPORTED without a report. *score holds the table's score on entry; a kernel may change it
   * for this site, for example to lose for small sizes. */
  tn_status (*supports)(const tn_kernel_site* site, int32_t* score);
  /* [setup] Fills `needs`; on entry its size is set and the rest is zero. */
  tn_status (*query)(const tn_kernel_site* site, tn_kernel_needs* needs);
  /* [setup] Makes a binding for `direction`; on entry prepared->size is set and the rest is zero. Several bindings
   * may exist at once. TN_UNSUPPORTED for TN_BACKWARD: the layer has no gradient. */
  tn_status (*prepare)(const tn_services* services, const tn_errors* errors, void* device, const tn_kernel_site* site,
                       int32_t direction, tn_prepared* prepared);
  const struct tn_fusion_pattern* fusion; /* null, or the chain of layers that it computes (tenon/fusion.h) */
} tn_kernel;

#ifdef __cplusplus
}
#endif
#endif
