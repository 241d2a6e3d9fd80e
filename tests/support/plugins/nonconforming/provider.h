/* The base of providers that break one rule: matrix products for the device "cpu", as plain sums in float64.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <tenon/plugin.h>

TN_RESERVE_NOTE(4096);

#ifndef REQUIRED /* the oldest host */
#define REQUIRED TN_ABI_MINOR
#endif
#ifndef ELEMENT /* of the product; knows `execution`, the sizes m, n, k, and the row i */
#define ELEMENT(sum) (sum)
#endif
#ifndef PREPARE /* a statement before a product is prepared; knows `errors` */
#define PREPARE
#endif
#ifndef ID
#define ID TN_GEMM
#endif
#ifndef MEMBERS /* of the descriptor */
#define MEMBERS
#endif
#ifndef ENTRY /* a statement of tenon_plugin */
#define ENTRY
#endif

static double get(const tn_tensor* tensor, int64_t i) {
  return tensor->dl.dtype.bits == 64 ? ((const double*)tn_data(tensor))[i] : (double)((const float*)tn_data(tensor))[i];
}

static tn_status run(void* binding, const tn_execution* execution, const tn_call* call) {
  const tn_gemm* const gemm = binding;
  const int64_t batch = tn_dim_value(&gemm->batch, execution->symbols), m = tn_dim_value(&gemm->m, execution->symbols),
                n = tn_dim_value(&gemm->n, execution->symbols), k = tn_dim_value(&gemm->k, execution->symbols);
  const int across = (gemm->flags & TN_TRANSPOSE_A) != 0, down = (gemm->flags & TN_TRANSPOSE_B) != 0;
  const tn_tensor *a = call->inputs[0], *b = call->inputs[1], *c = call->outputs[0];
  for (int64_t at = 0; at < batch * m * n; ++at) {
    const int64_t which = at / (m * n), i = at / n % m, j = at % n;
    double sum = call->requests[0] == TN_REQUEST_ADD ? get(c, at) / gemm->alpha : 0;
    for (int64_t l = 0; l < k; ++l)
      sum += get(a, which * m * k + (across ? l * m + i : i * k + l)) *
             get(b, which * k * n + (down ? j * k + l : l * n + j));
    const double value = gemm->alpha * (ELEMENT(sum));
    if (c->dl.dtype.bits == 64)
      ((double*)tn_data(c))[at] = value;
    else
      ((float*)tn_data(c))[at] = (float)value;
  }
  return TN_OK;
}

static tn_status prepare(void* device, const tn_services* services, const tn_errors* errors, const tn_gemm* gemm,
                         tn_prepared* prepared) {
  (void)device, (void)services;
  PREPARE
  tn_gemm* const copy = malloc(sizeof *copy);
  if (copy == NULL) return tn_fail(errors, TN_OUT_OF_MEMORY, NULL, "no memory for a binding");
  *copy = *gemm;
  prepared->binding = copy;
  prepared->run = run;
  prepared->destroy = free;
  return TN_OK;
}

static tn_gemm_table table = {.size = sizeof table, .prepare = prepare};
static const tn_provider provider = {
    .size = sizeof(tn_provider), .score = 100, .device = "cpu", .id = ID, .name = "bad_gemm", .table = &table};
static const tn_provider* const providers[] = {&provider};
static const tn_plugin plugin = {.size = sizeof(tn_plugin),
                                 .abi = {TN_ABI_MAJOR, TN_ABI_MINOR, REQUIRED, 0},
                                 .id = "bad." NAME,
                                 .version = "1.0.0",
                                 .doc = "Products that may break a rule",
                                 .license = "Apache-2.0",
                                 .isa = "",
                                 MEMBERS.providers_count = 1,
                                 .providers = providers};

const tn_plugin* tenon_plugin(void) {
  ENTRY
  return &plugin;
}
