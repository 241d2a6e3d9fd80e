/* A plugin of interface 0.2, compiled with the headers of that version, that relies on its promise: every operand is
 * aligned to 64 bytes. It offers matrix products for the device "cpu", and the layer old.twice, which only its native
 * kernel computes. Both end the step at an operand that is not aligned. SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/released/aligned.h"

#include <stdlib.h>
#include <string.h>

#if TN_ABI_MINOR != 2
#error "this file must be compiled with the headers of 0.2"
#endif

static int64_t products, doubled;

int64_t aligned_products(void) { return products; }
int64_t aligned_doubled(void) { return doubled; }

static int is_aligned(const tn_tensor* tensor) {
  return tensor == NULL || (tensor->alignment >= 64 && (uintptr_t)tn_data(tensor) % 64 == 0);
}
static tn_status check(const tn_execution* execution, const tn_call* call) {
  int all = (uintptr_t)call->workspace % 64 == 0;
  for (uint32_t i = 0; i < call->inputs_count; ++i) all = all && is_aligned(call->inputs[i]);
  for (uint32_t i = 0; i < call->outputs_count; ++i) all = all && is_aligned(call->outputs[i]);
  return all ? TN_OK : tn_fail(execution->errors, TN_PLUGIN_FAULT, NULL, "an operand is not aligned to 64 bytes");
}

/* ---- products */

static tn_status multiply(void* binding, const tn_execution* execution, const tn_call* call) {
  const tn_gemm* gemm = binding;
  const int64_t* symbols = execution->symbols;
  const int64_t batch = tn_dim_value(&gemm->batch, symbols), m = tn_dim_value(&gemm->m, symbols),
                n = tn_dim_value(&gemm->n, symbols), k = tn_dim_value(&gemm->k, symbols);
  const tn_status status = check(execution, call);
  if (status != TN_OK || call->requests[0] == TN_REQUEST_NONE) return status;
  const float *a = (const float*)tn_data(call->inputs[0]), *b = (const float*)tn_data(call->inputs[1]);
  float* c = (float*)tn_data(call->outputs[0]);
  for (int64_t each = 0; each < batch; ++each, a += m * k, b += k * n, c += m * n)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t l = 0; l < k; ++l)
          sum += (double)a[(gemm->flags & TN_TRANSPOSE_A) != 0 ? l * m + i : i * k + l] *
                 b[(gemm->flags & TN_TRANSPOSE_B) != 0 ? j * k + l : l * n + j];
        c[i * n + j] = (float)(gemm->alpha * sum + (call->requests[0] == TN_REQUEST_ADD ? c[i * n + j] : 0));
      }
  ++products;
  return TN_OK;
}
static tn_status prepare_product(void* device, const tn_services* services, const tn_errors* errors,
                                 const tn_gemm* gemm, tn_prepared* prepared) {
  tn_gemm* binding;
  (void)device;
  (void)services;
  if (gemm->dtype != TN_F32) return tn_fail(errors, TN_UNSUPPORTED, "dtype", "only float32");
  binding = malloc(sizeof *binding);
  if (binding == NULL) return tn_fail(errors, TN_OUT_OF_MEMORY, NULL, "no memory for a binding");
  *binding = *gemm;
  prepared->binding = binding;
  prepared->workspace_bytes = 40; /* so that what lies behind it must be aligned anew */
  prepared->run = multiply;
  prepared->destroy = free;
  return TN_OK;
}
static const tn_gemm_table gemm_table = {sizeof(tn_gemm_table), 0, prepare_product};
static const tn_provider provider = {sizeof(tn_provider), 5, "cpu", TN_GEMM, "old_products", &gemm_table, NULL};
static const tn_provider* const providers[] = {&provider};

/* ---- the layer old.twice */

static const tn_port in_port = {.size = sizeof(tn_port), .name = "in", .doc = "any shape"};
static const tn_port out_port = {.size = sizeof(tn_port), .name = "out", .doc = "the shape of in"};
static const tn_port* const inputs[] = {&in_port};
static const tn_port* const outputs[] = {&out_port};
static const tn_layer_description description = {.size = sizeof(tn_layer_description),
                                                 .role = TN_ROLE_LAYER,
                                                 .type = "old.twice",
                                                 .doc = "out = 2 in",
                                                 .inputs_count = 1,
                                                 .outputs_count = 1,
                                                 .inputs = inputs,
                                                 .outputs = outputs,
                                                 .state_version = 1};
static tn_status plan(const tn_planner* planner) { return planner->output(planner->self, 0, planner->inputs[0]); }
static const tn_layer_type layer = {.size = sizeof(tn_layer_type), .description = &description, .plan = plan};
static const tn_layer_type* const layers[] = {&layer};

static tn_status twice(const tn_execution* execution, const tn_call* call, uint32_t input) {
  const tn_status status = check(execution, call);
  const int64_t elements = tn_elements(call->inputs[input]);
  if (status != TN_OK || call->requests[0] == TN_REQUEST_NONE) return status;
  for (int64_t i = 0; i < elements; ++i)
    ((float*)tn_data(call->outputs[0]))[i] = 2 * ((const float*)tn_data(call->inputs[input]))[i];
  ++doubled;
  return TN_OK;
}
static tn_status forward(void* binding, const tn_execution* execution, const tn_call* call) {
  (void)binding;
  return twice(execution, call, 0);
}
/* in: in, out, the gradient of out */
static tn_status backward(void* binding, const tn_execution* execution, const tn_call* call) {
  (void)binding;
  return twice(execution, call, 2);
}
static tn_status supports(const tn_kernel_site* site, int32_t* score) {
  (void)score;
  return site->compute == TN_F32 ? TN_OK : TN_UNSUPPORTED;
}
static tn_status query(const tn_kernel_site* site, tn_kernel_needs* needs) {
  (void)site;
  (void)needs;
  return TN_OK;
}
static tn_status prepare_twice(const tn_kernel_site* site, int32_t direction, tn_prepared* prepared) {
  (void)site;
  prepared->run = direction == TN_FORWARD ? forward : backward;
  return TN_OK;
}
static const tn_dtype dtypes[] = {TN_F32};
static const tn_kernel kernel = {.size = sizeof(tn_kernel),
                                 .score = 1,
                                 .type = "old.twice",
                                 .device = "cpu",
                                 .name = "old_twice",
                                 .dtypes_count = 1,
                                 .dtypes = dtypes,
                                 .supports = supports,
                                 .query = query,
                                 .prepare = prepare_twice};
static const tn_kernel* const kernels[] = {&kernel};

static const tn_plugin plugin = {.size = sizeof(tn_plugin),
                                 .abi = {TN_ABI_MAJOR, TN_ABI_MINOR, TN_ABI_MINOR, 0},
                                 .id = "org.example.aligned",
                                 .version = "1.0.0",
                                 .doc = "relies on the alignment that 0.2 promised",
                                 .license = "Apache-2.0",
                                 .isa = "",
                                 .layers_count = 1,
                                 .kernels_count = 1,
                                 .layers = layers,
                                 .kernels = kernels,
                                 .providers_count = 1,
                                 .providers = providers};
const tn_plugin* aligned_plugin(void) { return &plugin; }
