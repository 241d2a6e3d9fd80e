/* A plugin in pure C with only a fusion pattern: softmax and the cross_entropy of its output, in one kernel of the
 * device "cpu". The kernel also writes the probabilities if they are requested. SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <tenon/plugin.h>

enum { SOFTMAX = 0, COST = 1 };                   /* layers of the chain */
enum { X = 0, LABEL = 1 };                        /* inputs, and outputs of backward */
enum { P = 0, C = 1 };                            /* outputs */
enum { P_AGAIN = 2, P_GRADIENT = 4, C_GRADIENT }; /* inputs of backward: x, label, p, cost, gradients of p and cost */
enum { ROWS = 16 };                               /* of one task */

static double at(const tn_tensor* tensor, int64_t i) {
  switch (tensor->dl.dtype.bits) {
    case 8:
      return ((const uint8_t*)tensor->dl.data)[i];
    case 32:
      return tensor->dl.dtype.code == kDLFloat ? (double)((const float*)tensor->dl.data)[i]
                                               : (double)((const int32_t*)tensor->dl.data)[i];
    default:
      return ((const double*)tensor->dl.data)[i];
  }
}

static void put(const tn_tensor* tensor, int64_t i, double value, int add) {
  if (tensor->dl.dtype.bits == 64)
    ((double*)tensor->dl.data)[i] = value + (add ? ((double*)tensor->dl.data)[i] : 0);
  else
    ((float*)tensor->dl.data)[i] = (float)(value + (add ? ((float*)tensor->dl.data)[i] : 0));
}

/* One past the last row of a task. */
static int64_t end_of(const tn_tensor* rows, int64_t index) {
  return (index + 1) * ROWS < rows->dl.shape[0] ? (index + 1) * ROWS : rows->dl.shape[0];
}

static void forward_rows(void* argument, int64_t index, int32_t worker) {
  const tn_call* call = (const tn_call*)argument;
  const tn_tensor* x = call->inputs[X];
  const int64_t classes = x->dl.shape[1];
  (void)worker;
  for (int64_t row = index * ROWS; row < end_of(x, index); ++row) {
    const int64_t first = row * classes;
    double largest = at(x, first), sum = 0;
    for (int64_t k = 1; k < classes; ++k) largest = fmax(largest, at(x, first + k));
    for (int64_t k = 0; k < classes; ++k) sum += exp(at(x, first + k) - largest);
    if (call->requests[P] != TN_REQUEST_NONE)
      for (int64_t k = 0; k < classes; ++k) put(call->outputs[P], first + k, exp(at(x, first + k) - largest) / sum, 0);
    if (call->requests[C] != TN_REQUEST_NONE)
      put(call->outputs[C], row, log(sum) + largest - at(x, first + (int64_t)at(call->inputs[LABEL], row)), 0);
  }
}

static void backward_rows(void* argument, int64_t index, int32_t worker) {
  const tn_call* call = (const tn_call*)argument;
  const tn_tensor *p = call->inputs[P_AGAIN], *dp = call->inputs[P_GRADIENT], *dc = call->inputs[C_GRADIENT];
  const int64_t classes = p->dl.shape[1];
  (void)worker;
  for (int64_t row = index * ROWS; row < end_of(p, index); ++row) {
    const int64_t label = (int64_t)at(call->inputs[LABEL], row);
    const double cost = dc == NULL ? 0 : at(dc, row);
    double along = 0;
    for (int64_t k = 0; dp != NULL && k < classes; ++k) along += at(dp, row * classes + k) * at(p, row * classes + k);
    for (int64_t k = 0; k < classes; ++k) {
      const int64_t i = row * classes + k;
      const double through_p = dp == NULL ? 0 : at(p, i) * (at(dp, i) - along);
      put(call->outputs[X], i, through_p + cost * (at(p, i) - (k == label)), call->requests[X] == TN_REQUEST_ADD);
    }
  }
}

static tn_status forward(void* binding, const tn_execution* execution, const tn_call* call) {
  const tn_parallel* parallel = execution->parallel;
  (void)binding;
  parallel->for_each(parallel->self, (call->inputs[X]->dl.shape[0] + ROWS - 1) / ROWS, forward_rows, (void*)call);
  return TN_OK;
}

static tn_status backward(void* binding, const tn_execution* execution, const tn_call* call) {
  const tn_parallel* parallel = execution->parallel;
  (void)binding;
  if (call->requests[X] == TN_REQUEST_NONE) return TN_OK;
  parallel->for_each(parallel->self, (call->inputs[P_AGAIN]->dl.shape[0] + ROWS - 1) / ROWS, backward_rows,
                     (void*)call);
  return TN_OK;
}

/* Supports probabilities over one dimension that the cost reads as its prediction, and class numbers as labels. */
static tn_status supports(const tn_kernel_site* site, int32_t* score) {
  const tn_fusion_site* fusion = tn_fusion(site);
  const tn_spec *x = site->inputs[X], *label = site->inputs[LABEL];
  (void)score;
  if (fusion == NULL || fusion->sources[COST][0].layer != SOFTMAX || site->inputs_count != 2) return TN_UNSUPPORTED;
  if (tn_int(fusion->layers[COST]->attributes, "from_logits", 0)) return TN_UNSUPPORTED;
  if (x->storage != TN_DENSE || x->rank != 2 || x->dtype != site->compute) return TN_UNSUPPORTED;
  return label->dtype == TN_U8 || label->dtype == TN_I32 ? TN_OK : TN_UNSUPPORTED;
}

static tn_status query(const tn_kernel_site* site, tn_kernel_needs* needs) {
  (void)site;
  needs->reads_in[LABEL] = 1;
  needs->reads_out[P] = 1;
  return TN_OK;
}

static tn_status prepare(const tn_kernel_site* site, int32_t direction, tn_prepared* prepared) {
  (void)site;
  prepared->run = direction == TN_BACKWARD ? backward : forward;
  return TN_OK;
}

static const char* const chain[] = {"softmax", "cross_entropy"};
static const tn_fusion_pattern fusion = {.size = sizeof(tn_fusion_pattern), .types_count = 2, .types = chain};
static const tn_dtype dtypes[] = {TN_F32, TN_F64};
static const char* const attributes[] = {"size"};
static const tn_kernel kernel = {
    .size = sizeof(tn_kernel),
    .score = 10,
    .type = "cross_entropy",
    .device = "cpu",
    .name = "softmax_cross_entropy",
    .dtypes_count = 2,
    .dtypes = dtypes,
    .supports = supports,
    .query = query,
    .prepare = prepare,
    .fusion = &fusion,
    .attributes = attributes,
    .attributes_count = 1,
    .state_version = 1,
};

static const tn_kernel* const kernels[] = {&kernel};
static const tn_plugin plugin = {
    .size = sizeof(tn_plugin),
    .abi = {TN_ABI_MAJOR, TN_ABI_MINOR, TN_ABI_MINOR, 0},
    .id = "tenon.test.fusion",
    .version = "1.0.0",
    .doc = "Softmax and its cross-entropy as one kernel",
    .license = "Apache-2.0",
    .isa = "",
    .kernels_count = 1,
    .kernels = kernels,
};

const tn_plugin* tenon_plugin(void) { return &plugin; }
