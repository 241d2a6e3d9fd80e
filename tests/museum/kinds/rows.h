/* The tables of the museum's devices that read and write rows: gather, move, segment, row_sparse.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MUSEUM_ROWS_H
#define MUSEUM_ROWS_H

#include "program.h"

/* ---- tenon.gather/1 */

typedef struct gather {
  binding base;
  tn_gather of;
} gather;

static inline tn_status check_ids(const gather* it, const tn_execution* execution, const uint8_t* ids, int64_t count,
                                  int64_t height) {
  for (int64_t i = 0; i < count; ++i) {
    const int64_t id = (int64_t)load(it->of.ids, ids, i);
    if (id < 0 || id >= height) return bad_id(execution, id, height);
  }
  return TN_OK;
}
static inline tn_status run_gather(void* self, const tn_execution* execution, const tn_call* call) {
  const gather* it = (const gather*)self;
  const device* on = it->base.on;
  const int64_t height = value_of(on, &it->of.height, execution), width = value_of(on, &it->of.width, execution);
  const int64_t count = value_of(on, &it->of.count, execution);
  const uint8_t *from = data_of(on, call->inputs[0]), *ids = data_of(on, call->inputs[1]);
  uint8_t* to = data_of(on, call->outputs[0]);
  const uint8_t request = call->requests[0];
  const tn_status status = check_ids(it, execution, ids, count, height);
  if (status != TN_OK || request == TN_REQUEST_NONE) return status;
  if (it->of.op == TN_GATHER_SUM) {
    const int64_t segments = value_of(on, &it->of.segments, execution);
    const int64_t* offsets = (const int64_t*)data_of(on, call->inputs[2]);
    for (int64_t s = 0; s < segments; ++s)
      for (int64_t w = 0; w < width; ++w) {
        double sum = 0;
        for (int64_t i = offsets[s]; i < offsets[s + 1]; ++i)
          sum += load(it->of.dtype, from, (int64_t)load(it->of.ids, ids, i) * width + w);
        put(it->of.dtype, to, s * width + w, sum, request);
      }
    return TN_OK;
  }
  if (it->of.op == TN_SCATTER_ADD && request == TN_REQUEST_WRITE)
    memset(to, 0, (size_t)(height * width) * tn_dtype_bytes(it->of.dtype));
  for (int64_t i = 0; i < count; ++i)
    for (int64_t w = 0; w < width; ++w) {
      const int64_t row = (int64_t)load(it->of.ids, ids, i) * width + w;
      if (it->of.op == TN_SCATTER_ADD)
        put(it->of.dtype, to, row, load(it->of.dtype, from, i * width + w), TN_REQUEST_ADD);
      else
        put(it->of.dtype, to, i * width + w, load(it->of.dtype, from, row), request);
    }
  return TN_OK;
}
static inline tn_status prepare_gather(void* on, const tn_services* services, const tn_errors* errors,
                                       const tn_gather* site, tn_prepared* prepared) {
  gather* bound;
  (void)services;
  if (!is_element(site->dtype) || site->op > TN_GATHER_SUM) return unknown_type(errors);
  bound = (gather*)bind(on, errors, sizeof *bound, prepared, run_gather);
  if (bound == NULL) return TN_OUT_OF_MEMORY;
  memcpy(&bound->of, site, sizeof bound->of);
  return TN_OK;
}

/* ---- tenon.move/1 */

typedef struct part {
  uint32_t input, reserved;
  tn_dim from[TN_MAX_RANK], box[TN_MAX_RANK];
  int64_t from_start[TN_MAX_RANK], to_start[TN_MAX_RANK];
  int32_t axes[TN_MAX_RANK];
} part;
typedef struct move {
  binding base;
  tn_dtype dtype;
  int32_t rank;
  uint32_t parts_count, fill;
  tn_dim to[TN_MAX_RANK];
} move; /* the parts follow */

static inline void move_part(const move* it, const part* box, const tn_execution* execution, const tn_call* call) {
  const device* on = it->base.on;
  const uint8_t* from = data_of(on, call->inputs[box->input]);
  uint8_t* to = data_of(on, call->outputs[0]);
  int64_t sizes[TN_MAX_RANK], elements = 1;
  for (int32_t i = 0; i < it->rank; ++i) elements *= sizes[i] = value_of(on, &box->box[i], execution);
  for (int64_t e = 0; e < elements; ++e) {
    int64_t x[TN_MAX_RANK], y[TN_MAX_RANK], rest = e, read = 0, written = 0;
    for (int32_t i = it->rank; i-- > 0; rest /= sizes[i]) x[i] = rest % sizes[i];
    for (int32_t i = 0; i < it->rank; ++i) {
      read = read * value_of(on, &box->from[i], execution) + box->from_start[i] + x[i];
      y[box->axes[i]] = box->to_start[box->axes[i]] + x[i];
    }
    for (int32_t i = 0; i < it->rank; ++i) written = written * value_of(on, &it->to[i], execution) + y[i];
    put(it->dtype, to, written, load(it->dtype, from, read), call->requests[0]);
  }
}
static inline tn_status run_move(void* self, const tn_execution* execution, const tn_call* call) {
  const move* it = (const move*)self;
  int64_t elements = 1;
  if (call->requests[0] == TN_REQUEST_NONE) return TN_OK;
  for (int32_t i = 0; i < it->rank; ++i) elements *= value_of(it->base.on, &it->to[i], execution);
  if (it->fill && call->requests[0] == TN_REQUEST_WRITE)
    memset(data_of(it->base.on, call->outputs[0]), 0, (size_t)elements * tn_dtype_bytes(it->dtype));
  for (uint32_t i = 0; i < it->parts_count; ++i) move_part(it, (const part*)(it + 1) + i, execution, call);
  return TN_OK;
}
static inline tn_status prepare_move(void* on, const tn_services* services, const tn_errors* errors,
                                     const tn_move* site, tn_prepared* prepared) {
  const uint64_t rank = (uint64_t)site->rank;
  move* bound;
  (void)services;
  if (!is_element(site->dtype)) return unknown_type(errors);
  bound = (move*)bind(on, errors, sizeof *bound + site->parts_count * sizeof(part), prepared, run_move);
  if (bound == NULL) return TN_OUT_OF_MEMORY;
  bound->dtype = site->dtype;
  bound->rank = site->rank;
  bound->parts_count = site->parts_count;
  bound->fill = site->fill;
  memcpy(bound->to, site->to, rank * sizeof(tn_dim));
  for (uint32_t i = 0; i < site->parts_count; ++i) {
    part* to = (part*)(bound + 1) + i;
    to->input = site->parts[i]->input;
    memcpy(to->from, site->parts[i]->from, rank * sizeof(tn_dim));
    memcpy(to->box, site->parts[i]->box, rank * sizeof(tn_dim));
    memcpy(to->from_start, site->parts[i]->from_start, rank * sizeof(int64_t));
    memcpy(to->to_start, site->parts[i]->to_start, rank * sizeof(int64_t));
    memcpy(to->axes, site->parts[i]->axes, rank * sizeof(int32_t));
  }
  return TN_OK;
}

/* ---- tenon.segment/1 */

typedef struct segment {
  binding base;
  tn_segment of;
} segment;

/* The index of row r among [begin, end), sorted from the largest. */
static inline int64_t rank_of(tn_dtype dtype, const uint8_t* from, int64_t begin, int64_t end, int64_t r) {
  int64_t before = 0;
  for (int64_t s = begin; s < end; ++s) {
    const double a = load(dtype, from, r), b = load(dtype, from, s);
    before += b > a || (b == a && s < r);
  }
  return before;
}
static inline double segment_value(const segment* it, const uint8_t* from, const int64_t* offsets, int64_t s, int64_t r,
                                   int64_t w, int64_t width) {
  const int64_t begin = offsets[s], end = offsets[s + 1], other = r + it->of.by;
  double value = 0;
  switch (it->of.op) {
    case TN_SEGMENT_SUM:
      for (int64_t i = begin; i < end; ++i) value += load(it->of.dtype, from, i * width + w);
      return value;
    case TN_SEGMENT_MAX:
      for (int64_t i = begin; i < end; ++i) {
        const double at = load(it->of.dtype, from, i * width + w);
        value = i == begin ? at : -least(-value, -at);
      }
      return value;
    case TN_SEGMENT_BROADCAST:
      return load(it->of.dtype, from, s * width + w);
    case TN_SEGMENT_SHIFT:
      return other < begin || other >= end ? 0 : load(it->of.dtype, from, other * width + w);
    case TN_SEGMENT_POSITION:
      return (double)(r - begin);
    case TN_SEGMENT_LENGTH:
      return (double)(end - begin);
    case TN_SEGMENT_START:
      return (double)begin;
    default: /* TN_SEGMENT_RANK */
      return (double)rank_of(it->of.dtype, from, begin, end, r);
  }
}
static inline tn_status run_segment(void* self, const tn_execution* execution, const tn_call* call) {
  const segment* it = (const segment*)self;
  const device* on = it->base.on;
  const int64_t segments = value_of(on, &it->of.segments, execution), width = value_of(on, &it->of.width, execution);
  const uint8_t* from = data_of(on, call->inputs[0]);
  const int64_t* offsets = (const int64_t*)data_of(on, call->inputs[1]);
  uint8_t* to = data_of(on, call->outputs[0]);
  const int by_segment = it->of.op == TN_SEGMENT_SUM || it->of.op == TN_SEGMENT_MAX || it->of.op == TN_SEGMENT_LENGTH ||
                         it->of.op == TN_SEGMENT_START;
  const tn_dtype type = it->of.op >= TN_SEGMENT_POSITION ? TN_I64 : it->of.dtype;
  for (int64_t s = 0; s < segments; ++s)
    for (int64_t r = offsets[s]; by_segment ? r == offsets[s] : r < offsets[s + 1]; ++r)
      for (int64_t w = 0; w < width; ++w)
        put(type, to, (by_segment ? s : r) * width + w, segment_value(it, from, offsets, s, r, w, width),
            call->requests[0]);
  return TN_OK;
}
static inline tn_status prepare_segment(void* on, const tn_services* services, const tn_errors* errors,
                                        const tn_segment* site, tn_prepared* prepared) {
  segment* bound;
  (void)services;
  if (!is_element(site->dtype) || site->op < TN_SEGMENT_SUM || site->op > TN_SEGMENT_RANK) return unknown_type(errors);
  bound = (segment*)bind(on, errors, sizeof *bound, prepared, run_segment);
  if (bound == NULL) return TN_OUT_OF_MEMORY;
  memcpy(&bound->of, site, sizeof bound->of);
  return TN_OK;
}

/* ---- tenon.row_sparse/1 */

typedef struct coalesce {
  binding base;
  tn_dtype dtype;
  uint32_t parts_count;
  tn_dim height, width;
} coalesce; /* tn_coalesce_part follow */

/* The rows that a call has so far. */
typedef struct row_list {
  int64_t *ids, count, height, width;
  uint8_t* values;
} row_list;

static inline tn_status add_row(const coalesce* it, const tn_execution* execution, row_list* to, int64_t id,
                                const uint8_t* from, int64_t row) {
  int64_t at = 0;
  if (id < 0 || id >= to->height) return bad_id(execution, id, to->height);
  while (at < to->count && to->ids[at] != id) ++at;
  for (int64_t w = 0; w < to->width; ++w)
    put(it->dtype, to->values, at * to->width + w, load(it->dtype, from, row * to->width + w),
        at == to->count ? TN_REQUEST_WRITE : TN_REQUEST_ADD);
  if (at == to->count) to->ids[to->count++] = id;
  return TN_OK;
}
static inline tn_status run_coalesce(void* self, const tn_execution* execution, const tn_call* call) {
  const coalesce* it = (const coalesce*)self;
  const device* on = it->base.on;
  const tn_row_sparse* out = (const tn_row_sparse*)call->outputs[0]->part;
  int64_t* count = (int64_t*)near_of(on, out->count);
  row_list to = {(int64_t*)near_of(on, out->ids), call->requests[0] == TN_REQUEST_ADD ? *count : 0,
                 value_of(on, &it->height, execution), value_of(on, &it->width, execution),
                 data_of(on, call->outputs[0])};
  for (uint32_t p = 0; p < it->parts_count; ++p) {
    const tn_coalesce_part* each = (const tn_coalesce_part*)(it + 1) + p;
    const uint8_t *from = data_of(on, call->inputs[(size_t)3 * p]), *ids = data_of(on, call->inputs[(size_t)3 * p + 1]);
    const int64_t* offsets = (const int64_t*)data_of(on, call->inputs[(size_t)3 * p + 2]);
    const int64_t many = value_of(on, each->has_offsets ? &each->segments : &each->count, execution);
    for (int64_t s = 0; s < many; ++s)
      for (int64_t i = each->has_offsets ? offsets[s] : s; i < (each->has_offsets ? offsets[s + 1] : s + 1); ++i) {
        const tn_status status = add_row(it, execution, &to, (int64_t)load(each->ids, ids, i), from, s);
        if (status != TN_OK) return status;
      }
  }
  *count = to.count;
  return TN_OK;
}
static inline tn_status prepare_coalesce(void* on, const tn_services* services, const tn_errors* errors,
                                         const tn_coalesce* site, tn_prepared* prepared) {
  coalesce* bound;
  (void)services;
  if (!is_element(site->dtype)) return unknown_type(errors);
  bound =
      (coalesce*)bind(on, errors, sizeof *bound + site->parts_count * sizeof(tn_coalesce_part), prepared, run_coalesce);
  if (bound == NULL) return TN_OUT_OF_MEMORY;
  bound->dtype = site->dtype;
  bound->parts_count = site->parts_count;
  bound->height = site->height;
  bound->width = site->width;
  for (uint32_t i = 0; i < site->parts_count; ++i)
    memcpy((tn_coalesce_part*)(bound + 1) + i, site->parts[i], sizeof(tn_coalesce_part));
  return TN_OK;
}

typedef struct update {
  binding base;
  int64_t rows; /* number of the input with the rows */
  program of;
} update;

static inline tn_status run_update(void* self, const tn_execution* execution, const tn_call* call) {
  const update* it = (const update*)self;
  const device* on = it->base.on;
  const tn_row_sparse* table = (const tn_row_sparse*)call->inputs[it->rows]->part;
  const uint8_t* inputs[OPERANDS];
  uint8_t* outputs[OPERANDS];
  const grid g = {&it->of,
                  *(const int64_t*)near_of(on, table->count),
                  value_of(on, &it->of.columns, execution),
                  (double*)near_of(on, call->workspace),
                  inputs,
                  outputs,
                  call->requests,
                  (const tn_random*)near_of(on, execution->random),
                  (const int64_t*)near_of(on, table->ids)};
  for (uint32_t i = 0; i < call->inputs_count; ++i) inputs[i] = data_of(on, call->inputs[i]);
  for (uint32_t i = 0; i < call->outputs_count; ++i) outputs[i] = data_of(on, call->outputs[i]);
  run_program(&g);
  return TN_OK;
}
static inline tn_status prepare_update(void* on, const tn_services* services, const tn_errors* errors,
                                       const tn_row_sparse_update* site, tn_prepared* prepared) {
  update* bound;
  const tn_status status = check_program(errors, site->site);
  (void)services;
  if (status != TN_OK) return status;
  bound = (update*)bind(on, errors, sizeof *bound + program_bytes(site->site->program), prepared, run_update);
  if (bound == NULL) return TN_OUT_OF_MEMORY;
  bound->rows = site->rows;
  bound->of = kept_program((uint8_t*)(bound + 1), site->site, site->indexed_inputs, site->indexed_outputs);
  prepared->workspace_bytes = values_bytes(site->site);
  return TN_OK;
}

#endif
