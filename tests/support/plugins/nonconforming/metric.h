/* The base of metrics that break one rule: "bad.mean", the mean of a float input, by a native kernel.
 * SPDX-License-Identifier: Apache-2.0 */
#include <tenon/plugin.h>

TN_RESERVE_NOTE(4096);

#ifndef SUM /* what the two states get for a sum and a count */
#define SUM(sum, count) (sum)
#define COUNT(count) (count)
#endif

static tn_status run(void* binding, const tn_execution* execution, const tn_call* call) {
  const tn_tensor* const x = call->inputs[0];
  const int64_t count = tn_elements(x);
  double sum = 0;
  (void)binding, (void)execution;
  for (int64_t i = 0; i < count; ++i)
    sum += x->dl.dtype.bits == 64 ? ((const double*)tn_data(x))[i] : (double)((const float*)tn_data(x))[i];
  *(double*)tn_data(call->outputs[0]) = SUM(sum, (double)count);
  *(double*)tn_data(call->outputs[1]) = COUNT((double)count);
  return TN_OK;
}

static tn_status plan(const tn_planner* planner) { return planner->state(planner->self, 2); }
static tn_status finalize(const tn_finalizer* finalizer) {
  finalizer->result(finalizer->self, "mean", finalizer->state[1] > 0 ? finalizer->state[0] / finalizer->state[1] : 0);
  return TN_OK;
}
static tn_status supports(const tn_kernel_site* site, int32_t* score) {
  (void)site, (void)score;
  return TN_OK;
}
static tn_status query(const tn_kernel_site* site, tn_kernel_needs* needs) {
  (void)site, (void)needs;
  return TN_OK;
}
static tn_status prepare(const tn_kernel_site* site, int32_t direction, tn_prepared* prepared) {
  (void)site, (void)direction;
  prepared->run = run;
  return TN_OK;
}

static const tn_dtype dtypes[] = {TN_F32, TN_F64};
static const tn_kernel kernel = {.size = sizeof(tn_kernel),
                                 .score = 10,
                                 .type = "bad.mean",
                                 .device = "cpu",
                                 .name = "bad_mean",
                                 .dtypes_count = 2,
                                 .dtypes = dtypes,
                                 .supports = supports,
                                 .query = query,
                                 .prepare = prepare};
static const tn_port port = {.size = sizeof(tn_port), .name = "x", .doc = "any shape"};
static const tn_port* const ports[] = {&port};
static const tn_layer_description description = {.size = sizeof(tn_layer_description),
                                                 .role = TN_ROLE_METRIC,
                                                 .type = "bad.mean",
                                                 .doc = "the mean of x",
                                                 .inputs_count = 1,
                                                 .inputs = ports,
                                                 .state_version = 1};
static const tn_layer_type layer = {
    .size = sizeof(tn_layer_type), .description = &description, .plan = plan, .finalize = finalize};
static const tn_layer_type* const layers[] = {&layer};
static const tn_kernel* const kernels[] = {&kernel};
static const tn_plugin plugin = {.size = sizeof(tn_plugin),
                                 .abi = {TN_ABI_MAJOR, TN_ABI_MINOR, TN_ABI_MINOR, 0},
                                 .id = "bad." NAME,
                                 .version = "1.0.0",
                                 .doc = "A metric that may break a rule",
                                 .license = "Apache-2.0",
                                 .isa = "",
                                 .layers_count = 1,
                                 .kernels_count = 1,
                                 .layers = layers,
                                 .kernels = kernels};

const tn_plugin* tenon_plugin(void) { return &plugin; }
