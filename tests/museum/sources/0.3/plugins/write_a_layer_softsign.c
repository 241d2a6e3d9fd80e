#include <math.h>
#include <tenon/kernel.h>

enum { kBlock = 4096 }; /* elements of one task */

typedef struct work {
  const float *from, *gradient; /* gradient: null in forward */
  float* to;
  int64_t count;
  int add; /* adds to the values of `to` instead of replacing them */
} work;

static void compute(void* argument, int64_t index, int32_t worker) {
  const work* w = (const work*)argument;
  const int64_t begin = index * kBlock, end = begin + kBlock < w->count ? begin + kBlock : w->count;
  (void)worker;
  for (int64_t i = begin; i < end; ++i) {
    const float x = w->from[i], slope = 1 - fabsf(x);
    const float value = w->gradient == NULL ? x / (1 + fabsf(x)) : w->gradient[i] * slope * slope;
    w->to[i] = w->add ? w->to[i] + value : value;
  }
}

/* Runs on the host's threads. The blocks follow from the size alone, so the result does not depend on the threads. */
static tn_status run(const tn_execution* execution, const tn_tensor* from, const tn_tensor* gradient, tn_tensor* to,
                     uint8_t request) {
  work w = {(const float*)tn_data(from), (const float*)tn_data(gradient), NULL, tn_elements(from), 0};
  if (request == TN_REQUEST_NONE) return TN_OK;
  w.to = (float*)tn_data(to);
  w.add = request == TN_REQUEST_ADD;
  execution->parallel->for_each(execution->parallel->self, (w.count + kBlock - 1) / kBlock, compute, &w);
  return TN_OK;
}

/* forward: inputs in; outputs out. backward: inputs in (not requested: null), out, gradient of out; outputs gradient of
 * in. */
static tn_status forward(void* binding, const tn_execution* execution, const tn_call* call) {
  (void)binding;
  return run(execution, call->inputs[0], NULL, call->outputs[0], call->requests[0]);
}
static tn_status backward(void* binding, const tn_execution* execution, const tn_call* call) {
  (void)binding;
  return run(execution, call->inputs[1], call->inputs[2], call->outputs[0], call->requests[0]);
}

static tn_status supports(const tn_kernel_site* site, int32_t* score) {
  (void)score;
  return site->inputs[0]->storage == TN_DENSE && site->inputs[0]->dtype == TN_F32 ? TN_OK : TN_UNSUPPORTED;
}
static tn_status query(const tn_kernel_site* site, tn_kernel_needs* needs) {
  (void)site;
  needs->reads_out[0] = 1; /* backward reads out */
  return TN_OK;
}
static tn_status prepare(const tn_kernel_site* site, int32_t direction, tn_prepared* prepared) {
  (void)site;
  prepared->run = direction == TN_BACKWARD ? backward : forward;
  return TN_OK;
}

static const tn_dtype dtypes[] = {TN_F32};
const tn_kernel softsign_kernel = {.size = sizeof(tn_kernel),
                                   .score = 10,
                                   .type = "example.softsign",
                                   .device = "cpu",
                                   .name = "softsign_loop",
                                   .dtypes_count = 1,
                                   .dtypes = dtypes,
                                   .supports = supports,
                                   .query = query,
                                   .prepare = prepare};
