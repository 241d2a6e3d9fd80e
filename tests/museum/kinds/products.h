/* The tables of the museum's devices that run products and programs: gemm, gemm_epilogue, pointwise.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MUSEUM_PRODUCTS_H
#define MUSEUM_PRODUCTS_H

#include "program.h"

/* ---- tenon.gemm/1 and tenon.gemm_epilogue/1 */

typedef struct product {
  binding base;
  tn_gemm gemm;
  int32_t operand; /* of the program behind it: that which is the product */
  int32_t reserved;
  program behind;
} product;

typedef struct product_run {
  const product* of;
  const tn_call* call;
  const grid* behind;
  const uint8_t *a, *b;
  uint8_t* c;
  int64_t m, n, k;
} product_run;

static inline void multiply_row(void* argument, int64_t row, int32_t worker) {
  const product_run* run = (const product_run*)argument;
  const tn_gemm* gemm = &run->of->gemm;
  const int64_t g = row / run->m, i = row % run->m, m = run->m, n = run->n, k = run->k;
  (void)worker;
  for (int64_t j = 0; j < n; ++j) {
    double sum = 0; /* in the order of k alone, so that a row does not depend on the others */
    for (int64_t l = 0; l < k; ++l)
      sum += load(gemm->dtype, run->a, g * m * k + (gemm->flags & TN_TRANSPOSE_A ? l * m + i : i * k + l)) *
             load(gemm->dtype, run->b, g * k * n + (gemm->flags & TN_TRANSPOSE_B ? j * k + l : l * n + j));
    put(gemm->dtype, run->c, row * n + j, gemm->alpha * sum,
        run->behind != NULL && run->call->requests[0] == TN_REQUEST_NONE ? TN_REQUEST_WRITE : run->call->requests[0]);
  }
}
static inline void run_phase(void* argument, int32_t phase, int64_t index, int32_t worker) {
  if (phase == 0)
    multiply_row(argument, index, worker);
  else
    run_program(((const product_run*)argument)->behind);
}
static inline product_run run_of(const product* of, const tn_execution* execution, const tn_call* call) {
  const device* on = of->base.on;
  const product_run result = {of,
                              call,
                              NULL,
                              data_of(on, call->inputs[0]),
                              data_of(on, call->inputs[1]),
                              data_of(on, call->outputs[0]),
                              value_of(on, &of->gemm.m, execution),
                              value_of(on, &of->gemm.n, execution),
                              value_of(on, &of->gemm.k, execution)};
  return result;
}
static inline tn_status run_gemm(void* self, const tn_execution* execution, const tn_call* call) {
  const product* of = (const product*)self;
  product_run run = run_of(of, execution, call);
  const int64_t batch = value_of(of->base.on, &of->gemm.batch, execution);
  if (call->requests[0] == TN_REQUEST_NONE) return TN_OK;
  execution->parallel->for_each(execution->parallel->self, batch * run.m, multiply_row, &run);
  return TN_OK;
}
static inline tn_status run_epilogue(void* self, const tn_execution* execution, const tn_call* call) {
  const product* of = (const product*)self;
  const device* on = of->base.on;
  const uint8_t* inputs[OPERANDS];
  uint8_t* outputs[OPERANDS];
  product_run run = run_of(of, execution, call);
  const int64_t sizes[2] = {value_of(on, &of->gemm.batch, execution) * run.m, 1};
  const grid behind = {&of->behind,
                       value_of(on, &of->behind.rows, execution),
                       value_of(on, &of->behind.columns, execution),
                       (double*)near_of(on, call->workspace),
                       inputs,
                       outputs,
                       call->requests + 1,
                       (const tn_random*)near_of(on, execution->random),
                       NULL};
  for (int32_t i = 0; i < (int32_t)of->behind.inputs_count; ++i)
    inputs[i] = i == of->operand ? run.c : data_of(on, call->inputs[2 + i - (i > of->operand)]);
  for (uint32_t o = 0; o < of->behind.outputs_count; ++o) outputs[o] = data_of(on, call->outputs[1 + o]);
  run.behind = &behind;
  execution->parallel->phases(execution->parallel->self, 2, sizes, run_phase, &run);
  return TN_OK;
}
static inline int is_product(const tn_gemm* gemm) { return gemm->dtype == TN_F32 || gemm->dtype == TN_F64; }
static inline tn_status prepare_gemm(void* on, const tn_services* services, const tn_errors* errors,
                                     const tn_gemm* gemm, tn_prepared* prepared) {
  product* bound;
  (void)services;
  if (!is_product(gemm))
    return tn_fail(errors, TN_UNSUPPORTED, NULL, "products of other types than float32 and float64");
  bound = (product*)bind(on, errors, sizeof *bound, prepared, run_gemm);
  if (bound == NULL) return TN_OUT_OF_MEMORY;
  memcpy(&bound->gemm, gemm, gemm->size < sizeof(tn_gemm) ? gemm->size : sizeof(tn_gemm));
  return TN_OK;
}
static inline tn_status supports_epilogue(void* on, const tn_errors* errors, const tn_gemm_epilogue* epilogue) {
  (void)on, (void)errors;
  return is_product(epilogue->gemm) && epilogue->site->program->inputs_count <= OPERANDS &&
                 epilogue->site->program->outputs_count <= OPERANDS
             ? TN_OK
             : TN_UNSUPPORTED;
}
static inline tn_status prepare_epilogue(void* on, const tn_services* services, const tn_errors* errors,
                                         const tn_gemm_epilogue* epilogue, tn_prepared* prepared) {
  product* bound;
  const tn_status status = check_program(errors, epilogue->site);
  (void)services;
  if (status != TN_OK) return status;
  if (!is_product(epilogue->gemm)) return tn_fail(errors, TN_UNSUPPORTED, NULL, "products of an unknown type");
  bound = (product*)bind(on, errors, sizeof *bound + program_bytes(epilogue->site->program), prepared, run_epilogue);
  if (bound == NULL) return TN_OUT_OF_MEMORY;
  memcpy(&bound->gemm, epilogue->gemm, epilogue->gemm->size < sizeof(tn_gemm) ? epilogue->gemm->size : sizeof(tn_gemm));
  bound->operand = epilogue->product;
  bound->behind = kept_program((uint8_t*)(bound + 1), epilogue->site, NULL, NULL);
  prepared->workspace_bytes = values_bytes(epilogue->site);
  return TN_OK;
}

/* ---- tenon.pointwise/1 */

typedef struct pointwise {
  binding base;
  program of;
} pointwise;

static inline tn_status run_pointwise(void* self, const tn_execution* execution, const tn_call* call) {
  const pointwise* it = (const pointwise*)self;
  const device* on = it->base.on;
  const uint8_t* inputs[OPERANDS];
  uint8_t* outputs[OPERANDS];
  const grid g = {&it->of,
                  value_of(on, &it->of.rows, execution),
                  value_of(on, &it->of.columns, execution),
                  (double*)near_of(on, call->workspace),
                  inputs,
                  outputs,
                  call->requests,
                  (const tn_random*)near_of(on, execution->random),
                  NULL};
  for (uint32_t i = 0; i < call->inputs_count; ++i) inputs[i] = data_of(on, call->inputs[i]);
  for (uint32_t i = 0; i < call->outputs_count; ++i) outputs[i] = data_of(on, call->outputs[i]);
  run_program(&g);
  return TN_OK;
}
static inline tn_status prepare_pointwise(void* on, const tn_services* services, const tn_errors* errors,
                                          const tn_pointwise_site* site, tn_prepared* prepared) {
  pointwise* bound;
  const tn_status status = check_program(errors, site);
  (void)services;
  if (status != TN_OK) return status;
  bound = (pointwise*)bind(on, errors, sizeof *bound + program_bytes(site->program), prepared, run_pointwise);
  if (bound == NULL) return TN_OUT_OF_MEMORY;
  bound->of = kept_program((uint8_t*)(bound + 1), site, NULL, NULL);
  prepared->workspace_bytes = values_bytes(site);
  return TN_OK;
}

#endif
