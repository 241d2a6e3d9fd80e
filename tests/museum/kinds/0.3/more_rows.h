/* The tables of the museum's devices over rows that came with 0.3: argsort, prefix_sum, packed_gemm, gather_gemm,
 * coalesce_products. SPDX-License-Identifier: Apache-2.0 */
#ifndef MUSEUM_MORE_ROWS_H
#define MUSEUM_MORE_ROWS_H

#include "../products.h"
#include "../rows.h"

/* ---- tenon.argsort/1, tenon.prefix_sum/1 */

typedef struct argsort {
  binding base;
  tn_argsort of;
} argsort;

/* Whether value a at position i comes before b at position j. */
static inline int is_before(double a, int64_t i, double b, int64_t j, int descending) {
  if (isnan(a) || isnan(b)) return isnan(a) && isnan(b) ? i < j : isnan(b);
  if (a == b) return i < j;
  return descending ? a > b : a < b;
}
static inline tn_status run_argsort(void* self, const tn_execution* execution, const tn_call* call) {
  const argsort* it = (const argsort*)self;
  const device* on = it->base.on;
  const int64_t rows = value_of(on, &it->of.rows, execution), columns = value_of(on, &it->of.columns, execution);
  const int64_t count = value_of(on, &it->of.count, execution);
  const uint8_t* in = data_of(on, call->inputs[0]);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < columns; ++i) {
      int64_t before = 0;
      for (int64_t j = 0; j < columns; ++j)
        before += is_before(load(it->of.dtype, in, r * columns + j), j, load(it->of.dtype, in, r * columns + i), i,
                            (it->of.flags & TN_SORT_DESCENDING) != 0);
      if (before < count) put(TN_I64, data_of(on, call->outputs[0]), r * count + before, (double)i, call->requests[0]);
    }
  return TN_OK;
}
static inline tn_status prepare_argsort(void* on, const tn_services* services, const tn_errors* errors,
                                        const tn_argsort* site, tn_prepared* prepared) {
  argsort* bound = (argsort*)bind(on, errors, sizeof *bound, prepared, run_argsort);
  (void)services;
  if (bound == NULL) return TN_OUT_OF_MEMORY;
  bound->of = *site;
  return TN_OK;
}

typedef struct prefix_sum {
  binding base;
  tn_prefix_sum of;
} prefix_sum;

static inline tn_status run_prefix_sum(void* self, const tn_execution* execution, const tn_call* call) {
  const prefix_sum* it = (const prefix_sum*)self;
  const device* on = it->base.on;
  const int64_t rows = value_of(on, &it->of.rows, execution), columns = value_of(on, &it->of.columns, execution);
  const uint8_t* in = data_of(on, call->inputs[0]);
  for (int64_t r = 0; r < rows; ++r) {
    double sum = 0;
    for (int64_t i = 0; i < columns; ++i) {
      const int64_t at = r * columns + ((it->of.flags & TN_SUM_REVERSE) != 0 ? columns - 1 - i : i);
      const double value = load(it->of.dtype, in, at), before = sum;
      sum += value;
      put(it->of.dtype, data_of(on, call->outputs[0]), at, (it->of.flags & TN_SUM_EXCLUSIVE) != 0 ? before : sum,
          call->requests[0]);
    }
  }
  return TN_OK;
}
static inline tn_status prepare_prefix_sum(void* on, const tn_services* services, const tn_errors* errors,
                                           const tn_prefix_sum* site, tn_prepared* prepared) {
  prefix_sum* bound = (prefix_sum*)bind(on, errors, sizeof *bound, prepared, run_prefix_sum);
  (void)services;
  if (bound == NULL) return TN_OUT_OF_MEMORY;
  bound->of = *site;
  return TN_OK;
}

/* ---- tenon.packed_gemm/1: a packed B is B */

typedef struct pack {
  binding base;
  uint64_t size;
} pack;

static inline tn_status packed_bytes(void* on, const tn_errors* errors, const tn_gemm* gemm, uint64_t* bytes) {
  (void)on, (void)errors;
  if (!is_product(gemm) || gemm->n.symbol != TN_SYMBOL_NONE || gemm->k.symbol != TN_SYMBOL_NONE) return TN_UNSUPPORTED;
  *bytes = (uint64_t)(gemm->n.offset * gemm->k.offset) * tn_dtype_bytes(gemm->dtype) + 1;
  return TN_OK;
}
static inline tn_status run_pack(void* self, const tn_execution* execution, const tn_call* call) {
  const pack* it = (const pack*)self;
  (void)execution;
  if (call->requests[0] != TN_REQUEST_NONE && it->size > 0)
    memcpy(data_of(it->base.on, call->outputs[0]), data_of(it->base.on, call->inputs[0]), it->size);
  return TN_OK;
}
static inline tn_status prepare_pack(void* on, const tn_services* services, const tn_errors* errors,
                                     const tn_gemm* gemm, tn_prepared* prepared) {
  pack* bound = (pack*)bind(on, errors, sizeof *bound, prepared, run_pack);
  uint64_t bytes = 1;
  (void)services;
  if (bound == NULL) return TN_OUT_OF_MEMORY;
  (void)packed_bytes(on, errors, gemm, &bytes);
  bound->size = bytes - 1;
  return TN_OK;
}

/* ---- tenon.gather_gemm/1 */

typedef struct gathered_operand {
  const uint8_t *rows, *ids;
  tn_dtype dtype, ids_type;
  int64_t columns;
} gathered_operand;
typedef struct gather_gemm {
  binding base;
  tn_gemm gemm;
  tn_gathered tables[2];
  int32_t has_table[2];
} gather_gemm;

static inline double operand_at(const gathered_operand* it, int64_t row, int64_t column) {
  const int64_t at = it->ids == NULL ? row : (int64_t)load(it->ids_type, it->ids, row);
  return load(it->dtype, it->rows, at * it->columns + column);
}
static inline tn_status operand_of(const gather_gemm* it, int side, const tn_execution* execution, const tn_call* call,
                                   int64_t rows, int64_t columns, gathered_operand* to) {
  const device* on = it->base.on;
  const gathered_operand operand = {data_of(on, call->inputs[side]),
                                    it->has_table[side] ? data_of(on, call->inputs[2 + side]) : NULL, it->gemm.dtype,
                                    it->tables[side].ids, columns};
  *to = operand;
  for (int64_t i = 0; it->has_table[side] && i < rows; ++i) {
    const int64_t id = (int64_t)load(operand.ids_type, operand.ids, i);
    const int64_t height = value_of(on, &it->tables[side].height, execution);
    if (id < 0 || id >= height) return bad_id(execution, id, height);
  }
  return TN_OK;
}
static inline tn_status run_gather_gemm(void* self, const tn_execution* execution, const tn_call* call) {
  const gather_gemm* it = (const gather_gemm*)self;
  const device* on = it->base.on;
  const int64_t batch = value_of(on, &it->gemm.batch, execution), m = value_of(on, &it->gemm.m, execution);
  const int64_t n = value_of(on, &it->gemm.n, execution), k = value_of(on, &it->gemm.k, execution);
  const int turned_a = (it->gemm.flags & TN_TRANSPOSE_A) != 0, turned_b = (it->gemm.flags & TN_TRANSPOSE_B) != 0;
  const int64_t a_rows = turned_a ? k : m, b_rows = turned_b ? n : k;
  gathered_operand a, b;
  tn_status status = operand_of(it, 0, execution, call, batch * a_rows, turned_a ? m : k, &a);
  if (status == TN_OK) status = operand_of(it, 1, execution, call, batch * b_rows, turned_b ? k : n, &b);
  if (status != TN_OK || call->requests[0] == TN_REQUEST_NONE) return status;
  for (int64_t row = 0; row < batch * m; ++row)
    for (int64_t j = 0; j < n; ++j) {
      const int64_t g = row / m, i = row % m;
      double sum = 0;
      for (int64_t l = 0; l < k; ++l)
        sum += operand_at(&a, g * a_rows + (turned_a ? l : i), turned_a ? i : l) *
               operand_at(&b, g * b_rows + (turned_b ? j : l), turned_b ? l : j);
      put(it->gemm.dtype, data_of(on, call->outputs[0]), row * n + j, it->gemm.alpha * sum, call->requests[0]);
    }
  return TN_OK;
}
static inline tn_status supports_gather_gemm(void* on, const tn_errors* errors, const tn_gather_gemm* product_site) {
  (void)on, (void)errors;
  return is_product(product_site->gemm) ? TN_OK : TN_UNSUPPORTED;
}
static inline tn_status prepare_gather_gemm(void* on, const tn_services* services, const tn_errors* errors,
                                            const tn_gather_gemm* site, tn_prepared* prepared) {
  gather_gemm* bound = (gather_gemm*)bind(on, errors, sizeof *bound, prepared, run_gather_gemm);
  const tn_gathered* const tables[] = {site->a, site->b};
  const tn_gathered none = {.size = sizeof(tn_gathered)};
  (void)services;
  if (bound == NULL) return TN_OUT_OF_MEMORY;
  bound->gemm = *site->gemm;
  for (int i = 0; i < 2; ++i) {
    bound->has_table[i] = tables[i] != NULL;
    bound->tables[i] = tables[i] != NULL ? *tables[i] : none;
  }
  return TN_OK;
}

/* ---- tenon.coalesce_products/1 */

typedef struct coalesce_products {
  binding base;
  tn_dtype dtype;
  uint32_t parts_count;
  tn_dim height, width;
} coalesce_products; /* product_part follow */
typedef struct product_part {
  tn_product_part of;
  tn_gathered values;
} product_part;

static inline double rounded(tn_dtype dtype, double value) { return dtype == TN_F32 ? (double)(float)value : value; }

/* Adds what id i of segment s contributes. */
static inline tn_status add_product(const coalesce_products* it, const product_part* each,
                                    const tn_execution* execution, const tn_call* call, size_t first, row_list* to,
                                    int64_t s, int64_t i) {
  const device* on = it->base.on;
  const uint8_t *values = data_of(on, call->inputs[first]), *ids = data_of(on, call->inputs[first + 1]);
  const uint8_t *weights = data_of(on, call->inputs[first + 3]), *rows_ids = data_of(on, call->inputs[first + 4]);
  const int64_t id = (int64_t)load(each->of.ids, ids, i);
  const int64_t row = each->of.values != NULL ? (int64_t)load(each->values.ids, rows_ids, s) : s;
  int64_t at = 0;
  if (id < 0 || id >= to->height) return bad_id(execution, id, to->height);
  if (each->of.values != NULL && (row < 0 || row >= value_of(on, &each->values.height, execution)))
    return bad_id(execution, row, value_of(on, &each->values.height, execution));
  while (at < to->count && to->ids[at] != id) ++at;
  for (int64_t w = 0; w < to->width; ++w) {
    double value = load(it->dtype, values, row * to->width + w);
    if (each->of.has_weights) value = each->of.alpha * rounded(it->dtype, load(it->dtype, weights, i) * value);
    put(it->dtype, to->values, at * to->width + w, rounded(it->dtype, value),
        at == to->count ? TN_REQUEST_WRITE : TN_REQUEST_ADD);
  }
  if (at == to->count) to->ids[to->count++] = id;
  return TN_OK;
}
static inline tn_status run_coalesce_products(void* self, const tn_execution* execution, const tn_call* call) {
  const coalesce_products* it = (const coalesce_products*)self;
  const device* on = it->base.on;
  const tn_row_sparse* out = (const tn_row_sparse*)call->outputs[0]->part;
  int64_t* count = (int64_t*)near_of(on, out->count);
  row_list to = {(int64_t*)near_of(on, out->ids), call->requests[0] == TN_REQUEST_ADD ? *count : 0,
                 value_of(on, &it->height, execution), value_of(on, &it->width, execution),
                 data_of(on, call->outputs[0])};
  for (uint32_t p = 0; p < it->parts_count; ++p) {
    const product_part* each = (const product_part*)(it + 1) + p;
    const size_t first = (size_t)5 * p;
    const int64_t* offsets = (const int64_t*)data_of(on, call->inputs[first + 2]);
    const int64_t segments = value_of(on, &each->of.segments, execution);
    const int64_t many = segments == 0 ? 0 : value_of(on, &each->of.count, execution) / segments;
    for (int64_t s = 0; s < segments; ++s)
      for (int64_t i = each->of.has_offsets ? offsets[s] : s * many;
           i < (each->of.has_offsets ? offsets[s + 1] : (s + 1) * many); ++i) {
        const tn_status status = add_product(it, each, execution, call, first, &to, s, i);
        if (status != TN_OK) return status;
      }
  }
  *count = to.count;
  return TN_OK;
}
static inline tn_status supports_products(void* on, const tn_errors* errors, const tn_coalesce_products* site) {
  (void)on, (void)errors;
  return is_element(site->dtype) ? TN_OK : TN_UNSUPPORTED;
}
static inline tn_status prepare_products(void* on, const tn_services* services, const tn_errors* errors,
                                         const tn_coalesce_products* site, tn_prepared* prepared) {
  coalesce_products* bound = (coalesce_products*)bind(
      on, errors, sizeof *bound + site->parts_count * sizeof(product_part), prepared, run_coalesce_products);
  (void)services;
  if (bound == NULL) return TN_OUT_OF_MEMORY;
  bound->dtype = site->dtype;
  bound->parts_count = site->parts_count;
  bound->height = site->height;
  bound->width = site->width;
  for (uint32_t i = 0; i < site->parts_count; ++i) {
    product_part* to = (product_part*)(bound + 1) + i;
    to->of = *site->parts[i];
    if (to->of.values != NULL) to->values = *to->of.values;
  }
  return TN_OK;
}

#endif
