/* An exhibit in C: a provider of products for "cpu" with a shared object, in plain loops.
 * SPDX-License-Identifier: Apache-2.0 */
#include <tenon/plugin.h>

/* What the provider's calls share on a device. */
typedef struct products {
  const tn_memory* memory;
  int64_t calls;
} products;
typedef struct product {
  products* of;
  tn_gemm gemm;
} product;

static tn_status open_shared(const tn_services* services, const tn_errors* errors, const tn_device* device, void* user,
                             void** to) {
  const tn_memory* memory = (const tn_memory*)services->extension(services->self, TN_MEMORY);
  products* object;
  (void)user;
  if (memory == NULL || strcmp(device->kind, "cpu") != 0 || device->index != 0)
    return tn_fail(errors, TN_UNSUPPORTED, NULL, "is for the first cpu");
  object = (products*)memory->allocate(memory->self, sizeof *object);
  if (object == NULL) return tn_fail(errors, TN_OUT_OF_MEMORY, NULL, "no memory for a shared object");
  object->memory = memory;
  object->calls = 0;
  *to = object;
  return TN_OK;
}
static void close_shared(void* self) {
  products* object = (products*)self;
  object->memory->release(object->memory->self, object, sizeof *object);
}

static float* floats(const tn_tensor* tensor) { return (float*)(void*)tn_data(tensor); }
static tn_status run(void* self, const tn_execution* execution, const tn_call* call) {
  const tn_gemm* of = &((product*)self)->gemm;
  const int64_t batch = tn_dim_value(&of->batch, execution->symbols), m = tn_dim_value(&of->m, execution->symbols);
  const int64_t n = tn_dim_value(&of->n, execution->symbols), k = tn_dim_value(&of->k, execution->symbols);
  const float *a = floats(call->inputs[0]), *b = floats(call->inputs[1]);
  float* c = floats(call->outputs[0]);
  if (call->requests[0] == TN_REQUEST_NONE) return TN_OK;
  for (int64_t row = 0; row < batch * m; ++row)
    for (int64_t j = 0; j < n; ++j) {
      const int64_t g = row / m, i = row % m;
      double sum = 0;
      for (int64_t l = 0; l < k; ++l)
        sum += (double)a[g * m * k + ((of->flags & TN_TRANSPOSE_A) != 0 ? l * m + i : i * k + l)] *
               b[g * k * n + ((of->flags & TN_TRANSPOSE_B) != 0 ? j * k + l : l * n + j)];
      sum *= of->alpha;
      if (call->requests[0] == TN_REQUEST_ADD) sum += c[row * n + j];
      c[row * n + j] = (float)sum;
    }
  return TN_OK;
}
static void destroy(void* self) {
  products* of = ((product*)self)->of;
  --of->calls;
  of->memory->release(of->memory->self, self, sizeof(product));
}
static tn_status prepare(void* device, const tn_services* services, const tn_errors* errors, const tn_gemm* gemm,
                         tn_prepared* prepared) {
  products* of = (products*)device;
  product* bound;
  (void)services;
  if (gemm->dtype != TN_F32) return tn_fail(errors, TN_UNSUPPORTED, NULL, "is for float32");
  bound = (product*)of->memory->allocate(of->memory->self, sizeof *bound);
  if (bound == NULL) return tn_fail(errors, TN_OUT_OF_MEMORY, NULL, "no memory for a product");
  bound->of = of;
  memcpy(&bound->gemm, gemm, gemm->size < sizeof(tn_gemm) ? gemm->size : sizeof(tn_gemm));
  ++of->calls;
  prepared->binding = bound;
  prepared->run = run;
  prepared->destroy = destroy;
  return TN_OK;
}

static const tn_gemm_table table = {.size = sizeof(tn_gemm_table), .prepare = prepare};
static const tn_shared shared = {.size = sizeof(tn_shared), .open = open_shared, .close = close_shared};
static const tn_provider provider = {.size = sizeof(tn_provider),
                                     .score = 5,
                                     .device = "cpu",
                                     .id = TN_GEMM,
                                     .name = "museum_gemm",
                                     .table = &table,
                                     .shared = &shared};
static const tn_provider* const providers[] = {&provider};
static const tn_plugin plugin = {.size = sizeof(tn_plugin),
                                 .abi = {TN_ABI_MAJOR, TN_ABI_MINOR, 2, 0},
                                 .id = "museum.provider",
                                 .version = "1.0.0",
                                 .doc = "An exhibit: a provider of products",
                                 .license = "Apache-2.0",
                                 .isa = "",
                                 .providers_count = 1,
                                 .providers = providers};

const tn_plugin* tenon_plugin(void) { return &plugin; }
