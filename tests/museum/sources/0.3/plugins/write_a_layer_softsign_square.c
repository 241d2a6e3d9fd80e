#include <math.h>
#include <tenon/fusion.h>

/* forward: inputs x; outputs y = softsign(x), z = y * y. */
static tn_status forward(void* binding, const tn_execution* execution, const tn_call* call) {
  const float* x = (const float*)tn_data(call->inputs[0]);
  float* y = (float*)tn_data(call->outputs[0]);
  float* z = (float*)tn_data(call->outputs[1]);
  const int64_t count = tn_elements(call->inputs[0]);
  (void)binding, (void)execution;
  for (int64_t i = 0; i < count; ++i) {
    const float value = x[i] / (1 + fabsf(x[i]));
    if (y != NULL) y[i] = value;
    if (z != NULL) z[i] = value * value;
  }
  return TN_OK;
}

/* backward: inputs x and z (not requested: null), y, and the gradients of y and z, of which one may be null: zero. */
static tn_status backward(void* binding, const tn_execution* execution, const tn_call* call) {
  const float* y = (const float*)tn_data(call->inputs[1]);
  const float* dy = (const float*)tn_data(call->inputs[3]);
  const float* dz = (const float*)tn_data(call->inputs[4]);
  float* dx = (float*)tn_data(call->outputs[0]);
  const int64_t count = tn_elements(call->outputs[0]);
  (void)binding, (void)execution;
  for (int64_t i = 0; i < count; ++i) {
    const float slope = 1 - fabsf(y[i]);
    const float gradient = (dy == NULL ? 0 : dy[i]) + (dz == NULL ? 0 : 2 * y[i] * dz[i]);
    dx[i] = slope * slope * gradient + (call->requests[0] == TN_REQUEST_ADD ? dx[i] : 0);
  }
  return TN_OK;
}

static tn_status supports(const tn_kernel_site* site, int32_t* score) {
  (void)score;
  if (tn_fusion(site) == NULL) return TN_UNSUPPORTED;
  return site->inputs[0]->storage == TN_DENSE && site->inputs[0]->dtype == TN_F32 ? TN_OK : TN_UNSUPPORTED;
}
static tn_status query(const tn_kernel_site* site, tn_kernel_needs* needs) {
  (void)site;
  needs->reads_out[0] = 1; /* y */
  return TN_OK;
}
static tn_status prepare(const tn_kernel_site* site, int32_t direction, tn_prepared* prepared) {
  (void)site;
  prepared->run = direction == TN_BACKWARD ? backward : forward;
  return TN_OK;
}

static const char* const chain[] = {"example.softsign", "square"};
static const tn_fusion_pattern fusion = {.size = sizeof(tn_fusion_pattern), .types_count = 2, .types = chain};
static const tn_dtype dtypes[] = {TN_F32};
const tn_kernel softsign_square_kernel = {.size = sizeof(tn_kernel),
                                          .score = 20,
                                          .type = "square",
                                          .device = "cpu",
                                          .name = "softsign_square",
                                          .dtypes_count = 1,
                                          .dtypes = dtypes,
                                          .supports = supports,
                                          .query = query,
                                          .prepare = prepare,
                                          .fusion = &fusion};
