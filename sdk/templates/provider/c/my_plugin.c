/* A provider of matrix products for the device "cpu", in plain loops. It takes small products of float32 and leaves all
 * others to whom the host asks next: another provider, then the device itself. SPDX-License-Identifier: MIT */
#define TN_TARGET_MINOR 2 /* runs on hosts from 0.2 on; what is newer does not compile */

#include <tenon/device.h>
#include <tenon/plugin.h>

TN_RESERVE_NOTE(4096); /* room for the manifest, if the plugin is built without CMake */

enum { MOST_FACTORS = 4096 }; /* of op(B): elements that stay in the cache */

/* A prepared product, allocated by the host's memory service. */
typedef struct binding {
  tn_gemm gemm;
  const tn_memory* memory;
} binding;

/* C = alpha op(A) op(B), [m, k] times [k, n]. Each element is summed in the order of k, whatever m and its place are:
 * so the answer for a sample does not depend on the samples beside it. */
static void multiply(const tn_gemm* gemm, int64_t m, const float* a, const float* b, float* c, int adds) {
  const int64_t n = gemm->n.offset, k = gemm->k.offset;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t l = 0; l < k; ++l)
        sum += a[(gemm->flags & TN_TRANSPOSE_A) != 0 ? l * m + i : i * k + l] *
               b[(gemm->flags & TN_TRANSPOSE_B) != 0 ? j * k + l : l * n + j];
      sum *= (float)gemm->alpha;
      c[i * n + j] = adds ? c[i * n + j] + sum : sum;
    }
}

static tn_status run(void* self, const tn_execution* execution, const tn_call* call) {
  const tn_gemm* gemm = &((const binding*)self)->gemm;
  const int64_t batch = tn_dim_value(&gemm->batch, execution->symbols), m = tn_dim_value(&gemm->m, execution->symbols);
  const int64_t n = gemm->n.offset, k = gemm->k.offset;
  const float *a = (const float*)tn_data(call->inputs[0]), *b = (const float*)tn_data(call->inputs[1]);
  float* c = (float*)tn_data(call->outputs[0]);
  if (call->requests[0] == TN_REQUEST_NONE) return TN_OK;
  for (int64_t each = 0; each < batch; ++each)
    multiply(gemm, m, a + each * m * k, b + each * k * n, c + each * m * n, call->requests[0] == TN_REQUEST_ADD);
  return TN_OK;
}

static void destroy(void* self) {
  const tn_memory* memory = ((binding*)self)->memory;
  memory->release(memory->self, self, sizeof(binding));
}

static tn_status prepare(void* device, const tn_services* services, const tn_errors* errors, const tn_gemm* gemm,
                         tn_prepared* prepared) {
  const tn_memory* memory = (const tn_memory*)services->extension(services->self, TN_MEMORY);
  binding* product;
  (void)device; /* of the device "cpu" all memory can be addressed */
  if (gemm->dtype != TN_F32) return tn_fail(errors, TN_UNSUPPORTED, "dtype", "only float32");
  if (gemm->n.symbol != TN_SYMBOL_NONE || gemm->k.symbol != TN_SYMBOL_NONE ||
      (gemm->k.offset != 0 && gemm->n.offset > MOST_FACTORS / gemm->k.offset))
    return tn_fail(errors, TN_UNSUPPORTED, "n, k", "only products with a small, constant factor B");
  if (memory == NULL) return tn_fail(errors, TN_UNSUPPORTED, NULL, "needs the service " TN_MEMORY);
  product = (binding*)memory->allocate(memory->self, sizeof(binding));
  if (product == NULL) return tn_fail(errors, TN_OUT_OF_MEMORY, NULL, "no memory for a binding");
  product->gemm = *gemm;
  product->memory = memory;
  prepared->binding = product;
  prepared->run = run;
  prepared->destroy = destroy;
  return TN_OK;
}

static const tn_gemm_table table = {.size = sizeof(tn_gemm_table), .prepare = prepare};
static const tn_provider provider = {
    .size = sizeof(tn_provider),
    .score = 5, /* higher is asked first; the device itself has score 0 */
    .device = "cpu",
    .id = TN_GEMM,
    .name = "my_plugin",
    .table = &table,
};

static const tn_provider* const providers[] = {&provider};
static const tn_plugin plugin = {
    .size = sizeof(tn_plugin),
    .abi = {TN_ABI_MAJOR, TN_ABI_MINOR, TN_TARGET_MINOR, 0},
    .id = "example.my_plugin",
    .version = "0.1.0",
    .doc = "Small matrix products",
    .license = "MIT",
    .isa = "",
    .providers_count = 1,
    .providers = providers,
};

const tn_plugin* tenon_plugin(void) { return &plugin; }
