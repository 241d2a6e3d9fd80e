/* The base of kernels with a fusion pattern that break one rule: y = x * w and z = y * v for each column, as two layers
 * "bad.scale" with recorded bodies, of which one kernel computes both. A source defines NAME and the macros of its
 * fault. SPDX-License-Identifier: Apache-2.0 */
#include <tenon/plugin.h>

#ifndef VALUE /* of z */
#define VALUE(z) (z)
#endif
#ifndef WRITES_INNER /* whether y is written if it has a reader */
#define WRITES_INNER 1
#endif
#ifndef INNER_GRADIENT /* of y, where it has a reader outside of the chain */
#define INNER_GRADIENT(dy) (dy)
#endif

enum { X, W, V, Y_AGAIN, Z_AGAIN, DY, DZ }; /* inputs; Y_AGAIN and on: of backward */

static double fused_get(const tn_tensor* tensor, int64_t i) {
  if (tensor == NULL) return 0;
  return tensor->dl.dtype.bits == 64 ? ((const double*)tn_data(tensor))[i] : (double)((const float*)tn_data(tensor))[i];
}
static void fused_put(const tn_tensor* tensor, int64_t i, double value) {
  if (tensor == NULL) return;
  if (tensor->dl.dtype.bits == 64)
    ((double*)tn_data(tensor))[i] = value;
  else
    ((float*)tn_data(tensor))[i] = (float)value;
}

static tn_status fused_forward(void* binding, const tn_execution* execution, const tn_call* call) {
  const tn_tensor *x = call->inputs[X], *w = call->inputs[W], *v = call->inputs[V];
  const int64_t width = w->dl.shape[0];
  (void)binding, (void)execution;
  for (int64_t i = 0; i < tn_elements(x); ++i) {
    const double y = fused_get(x, i) * fused_get(w, i % width);
    if (WRITES_INNER) fused_put(call->outputs[0], i, y);
    fused_put(call->outputs[1], i, VALUE(y * fused_get(v, i % width)));
  }
  return TN_OK;
}

static double start_of(const tn_call* call, uint32_t output, int64_t c) {
  return call->requests[output] == TN_REQUEST_ADD ? fused_get(call->outputs[output], c) : 0;
}

static tn_status fused_backward(void* binding, const tn_execution* execution, const tn_call* call) {
  const tn_tensor *x = call->inputs[X], *w = call->inputs[W], *v = call->inputs[V];
  const int64_t width = w->dl.shape[0], rows = tn_elements(x) / width;
  (void)binding, (void)execution;
  for (int64_t c = 0; c < width; ++c) {
    double dw = start_of(call, 1, c), dv = start_of(call, 2, c);
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t i = r * width + c;
      const double dz = fused_get(call->inputs[DZ], i);
      const double dy = INNER_GRADIENT(fused_get(call->inputs[DY], i)) + dz * fused_get(v, c);
      fused_put(call->outputs[0], i, dy * fused_get(w, c));
      dw += dy * fused_get(x, i);
      dv += dz * fused_get(x, i) * fused_get(w, c);
    }
    fused_put(call->outputs[1], c, dw);
    fused_put(call->outputs[2], c, dv);
  }
  return TN_OK;
}

static tn_status fused_supports(const tn_kernel_site* site, int32_t* score) {
  (void)score;
  return site->inputs_count == 1 && site->inputs[X]->dtype == site->compute ? TN_OK : TN_UNSUPPORTED;
}
static tn_status fused_query(const tn_kernel_site* site, tn_kernel_needs* needs) {
  (void)site;
  needs->reads_in[X] = needs->reads_in[W] = needs->reads_in[V] = 1;
  return TN_OK;
}
static tn_status fused_prepare(const tn_kernel_site* site, int32_t direction, tn_prepared* prepared) {
  (void)site;
  prepared->run = direction == TN_FORWARD ? fused_forward : fused_backward;
  return TN_OK;
}

static const char* const fused_types[] = {"bad.scale", "bad.scale"};
static const tn_fusion_pattern fused_pattern = {sizeof fused_pattern, 2, fused_types};
static const tn_dtype fused_dtypes[] = {TN_F32, TN_F64};
static const tn_kernel fused_kernel = {.size = sizeof(tn_kernel),
                                       .score = 10,
                                       .type = "bad.scale",
                                       .device = "cpu",
                                       .name = "bad_fused",
                                       .dtypes_count = 2,
                                       .dtypes = fused_dtypes,
                                       .supports = fused_supports,
                                       .query = fused_query,
                                       .prepare = fused_prepare,
                                       .fusion = &fused_pattern};
static const tn_kernel* const fused_kernels[] = {&fused_kernel};

#define BODY
#define KERNELS fused_kernels
#include "layer.h"
