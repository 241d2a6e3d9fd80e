/* Tenon SDK: native kernels. SPDX-License-Identifier: MIT
 *
 * A native kernel computes a layer type on one kind of device. A layer may consist of kernels alone, the simplest
 * thing an author can write: it then runs where its kernels run, and neighbours are not fused with it. */
#ifndef TENON_KERNEL_H
#define TENON_KERNEL_H

#include <tenon/layer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a kernel is asked about: one layer as planned, bounds filled in. Borrowed until the call returns. */
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
  const struct tn_claim_site* claim; /* the layers behind a claim (tenon/claim.h), of which `attributes` are the last
                                        one's; null: one layer */
} tn_kernel_site;

/* What a kernel needs kept between forward and backward. The masks have one bit per input, output. */
typedef struct tn_kernel_needs {
  uint32_t size;
  uint32_t traits;          /* TN_TRAIT_* */
  uint64_t backward_inputs; /* layer inputs, then parameters, that backward reads; at most 64 */
  uint64_t backward_outputs;
} tn_kernel_needs;

/* Which tensors a call has, in this order.
 *   forward:  inputs = layer inputs, parameters;                 outputs = layer outputs
 *   backward: inputs = layer inputs, parameters, layer outputs, gradients of the outputs
 *             outputs = gradients of the layer inputs, gradients of the parameters, with requests
 * In backward an input that query did not ask for is null. A metric has no outputs: in their place are its states, one
 * float64 each, which a call overwrites with what the minibatch adds; it has no backward. */
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
  /* [setup] TN_OK, or TN_UNSUPPORTED without a report. *score comes with the table's score and may be changed for this
   * site: a kernel that is fast for large sizes alone says so here. */
  tn_status (*supports)(const tn_kernel_site* site, int32_t* score);
  /* [setup] Fills `needs`, which comes with size set and the rest zero. */
  tn_status (*query)(const tn_kernel_site* site, tn_kernel_needs* needs);
  /* [setup] Makes a binding for `direction`. `prepared` comes with size set and the rest zero. Several bindings
   * live at once. TN_UNSUPPORTED for TN_BACKWARD: the layer has no gradient. */
  tn_status (*prepare)(const tn_services* services, const tn_errors* errors, void* device, const tn_kernel_site* site,
                       int32_t direction, tn_prepared* prepared);
  const struct tn_claim* claim; /* null, or the chain of layers that it stands for (tenon/claim.h) */
} tn_kernel;

#ifdef __cplusplus
}
#endif
#endif
