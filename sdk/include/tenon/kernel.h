/* Tenon SDK: native kernels of layer types. SPDX-License-Identifier: MIT
 *
 * Call order for one layer: supports, query, then prepare for forward and, if the machine trains and the gradient of an
 * input or parameter is wanted, for backward. A kernel that returns TN_UNSUPPORTED from one of them is passed over: the
 * host takes the kernel with the next lower score, or the layer's recorded body. So does every failure of supports but
 * TN_OUT_OF_MEMORY, and an input of storage TN_CSR: kernels of this version get none. The order may be gone through
 * several times for one layer, for example when the machine grows; equal sites get equal answers.
 *
 * The operands of a call are tensors in this order. Classes of which a layer has none take no place.
 *
 *   forward in:   layer inputs, parameters, buffers, carried states
 *   forward out:  layer outputs, next values of buffers, next values of carried states,
 *                 offsets int64 [sequences + 1] and count int64 [1] of each data-dependent dimension, saved tensors
 *   backward in:  layer inputs, parameters, buffers, carried states, layer outputs, saved tensors,
 *                 gradients of layer outputs, gradients of next carried states (always null in this version)
 *   backward out: gradients of layer inputs, of parameters, of carried states (always null in this version),
 *                 ids int64 [rows] of each parameter whose gradient has rows (tn_kernel_needs.rows)
 * An input is null if the optional input of the layer is absent, or, in backward, if query did not ask for it. The
 * gradient of an output is null if it is zero: no cost depends on that output; at least one is not null. An output is
 * null, with the request TN_REQUEST_NONE, if nobody reads it: saved tensors and next values of buffers without a
 * training, gradients that are not wanted. Layer outputs of a kernel without a fusion pattern, and next values of
 * carried states, are never null. TN_REQUEST_ADD is for gradients of parameters alone. Buffers have the compute type.
 *
 * Floats of a site, its specs and its calls, have the type `compute`, never TN_COMPUTE, and so have their gradients:
 * the host converts what has another float type. Only where plan stated another type for an output, parameter or buffer
 * it is that one, which the spec says. Products of factors in 16 bits are summed in float32, of float32 in float32, of
 * float64 in float64.
 *
 * A metric has its states in place of layer outputs, one float64 each; a call overwrites them with the minibatch's
 * contribution. A metric has no backward. */
#ifndef TENON_KERNEL_H
#define TENON_KERNEL_H

#include <tenon/layer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One layer as planned, bounds filled in: the argument of a kernel's functions. Borrowed until the call returns, except
 * `device`, `shared` and `services`, which outlive every binding. */
typedef struct tn_kernel_site {
  uint32_t size;
  tn_dtype compute; /* the machine's compute type */
  const tn_attributes* attributes;
  uint32_t inputs_count;
  uint32_t outputs_count;
  uint32_t parameters_count;
  uint32_t buffers_count;
  uint32_t carried_count;
  uint32_t training;            /* 1: the machine trains; 0: it only answers */
  const tn_spec* const* inputs; /* null entry: absent optional input */
  const tn_spec* const* outputs;
  const tn_spec* const* parameters;
  const tn_spec* const* buffers;
  const tn_spec* const* carried;
  /* [inputs_count + parameters_count] 1: backward may be asked for the gradient; 0: it never is. All 0, as for a
   * metric: no backward. */
  const uint8_t* gradients;
  const struct tn_fusion_site* fusion; /* the fused layers (tenon/fusion.h), `attributes` being those of the last;
                                        null: one layer */
  const tn_device* device;
  void* shared; /* the object of the kernel's tn_shared; null without one, and in supports */
  const tn_services* services;
  const tn_errors* errors; /* runs have their own: tn_execution.errors */
  void* user;              /* of the kernel's table */
  uint32_t state_version;  /* of the layer type */
  uint32_t reserved;
#if TN_TARGET_MINOR >= 4
  /* Since 0.4. TN_PRECISION_* (tenon/device.h): how exactly the kernel computes its products at least. */
  uint32_t precision;
  uint32_t reserved2;
#endif
} tn_kernel_site;

/* The requirements of a kernel at a site, filled in by query. The host owns the arrays, which begin with the values
 * stated. */
typedef struct tn_kernel_needs {
  uint32_t size;
  uint32_t draws;     /* draw numbers that the call uses (tn_call.draw), at first 0 */
  uint8_t* reads_in;  /* [inputs, parameters, buffers, carried] 1: backward reads it; at first 0 */
  uint8_t* reads_out; /* [outputs] 1: backward reads the layer output; at first 0 */
  /* [outputs] number of the layer input whose memory the output may share if nobody reads that input afterwards: their
   * sizes in bytes are equal, and the kernel reads element i before it writes element i. At first -1. */
  int32_t* in_place;
  /* [inputs] likewise the layer output whose gradient's memory the gradient of the input may share. At first -1. */
  int32_t* backward_in_place;
  void* self;
  /* [setup] Declares the next tensor that forward writes and backward reads; copies the spec. Its dimensions are
   * constants or those of the site. Bytes without a type are a TN_U8 tensor. Returns its number, from 0, or a negative
   * number on failure. The tensor is null in forward if nobody reads it. */
  int32_t (*saved)(void* self, const tn_spec* spec);
  /* [setup] Declares that the gradient of parameter number `parameter`, [height, width...], is written as `count` rows:
   * values [count, width...] in place of the gradient, and ids int64 [count], in [0, height), which may be equal. Plan
   * must have declared TN_PARAMETER_SPARSE_GRADIENT. TN_UNSUPPORTED if the user turned such gradients off: then the
   * kernel writes the whole gradient, or returns TN_UNSUPPORTED. */
  tn_status (*rows)(void* self, uint32_t parameter, const tn_dim* count);
} tn_kernel_needs;

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
  /* [setup] TN_OK, or TN_UNSUPPORTED with a report of the reason, which users see if no other kernel takes the layer.
   * *score holds the table's score on entry; a kernel may change it for this site, for example to lose for small sizes.
   */
  tn_status (*supports)(const tn_kernel_site* site, int32_t* score);
  /* [setup] Fills in `needs`. TN_UNSUPPORTED as above. */
  tn_status (*query)(const tn_kernel_site* site, tn_kernel_needs* needs);
  /* [setup] Makes a binding for `direction`; on entry prepared->size is set and the rest is zero. Several bindings
   * may exist at once. TN_UNSUPPORTED as above, also for a direction that these headers do not have. */
  tn_status (*prepare)(const tn_kernel_site* site, int32_t direction, tn_prepared* prepared);
  const struct tn_fusion_pattern* fusion; /* null, or the chain of layers that it computes (tenon/fusion.h) */
  const tn_shared* shared;                /* null, or the object of tn_kernel_site.shared */
  void* user;                             /* given back as tn_kernel_site.user */
  /* The layer types as this kernel knows them; ignored for types of the kernel's own plugin. The host passes the kernel
   * over if the type has another state_version, or an attribute that is not in the list and has not its default value,
   * or if the layer uses an input, output, parameter or buffer that the kernel does not know: a later version of the
   * type may compute something else. Of a fusion pattern: of all types of the chain. */
  const char* const* attributes; /* [attributes_count] names */
  uint32_t attributes_count;
  uint32_t state_version;
#if TN_TARGET_MINOR >= 4
  /* Since 0.4. How many input ports, output ports and parameters (buffers included) of the type's description the
   * kernel knows: the first so many; of a fusion pattern the sums over the types of the chain, which then know all of
   * theirs if no type has more. All 0, as in a kernel that was built before 0.4: not stated. The kernel then computes
   * only layers without a connected optional input, of types with one output, and knows the parameters of its
   * state_version. */
  uint32_t inputs_known;
  uint32_t outputs_known;
  uint32_t parameters_known;
  uint32_t reserved2;
#endif
} tn_kernel;

#ifdef __cplusplus
}
#endif
#endif
