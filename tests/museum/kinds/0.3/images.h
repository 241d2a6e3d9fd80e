/* The tables of the museum's devices over images: convolution, pooling, resizing. SPDX-License-Identifier: Apache-2.0
 */
#ifndef MUSEUM_IMAGES_H
#define MUSEUM_IMAGES_H

#include "../products.h"

/* ---- windows: places, then elements of a window, counted row by row */

static inline int64_t count_of(const int64_t* sizes, int32_t rank) {
  int64_t count = 1;
  for (int32_t i = 0; i < rank; ++i) count *= sizes[i];
  return count;
}
static inline int64_t places_of(const tn_window* w) {
  int64_t count = 1;
  for (int32_t i = 0; i < w->rank; ++i) count *= tn_window_places(w, i);
  return count;
}
/* The element of an image, without channels, that element number `j` of the window at place number `p` covers; -1:
 * outside. */
static inline int64_t covered(const tn_window* w, int64_t p, int64_t j) {
  int64_t at[TN_MAX_SPACE], element = 0;
  for (int32_t i = w->rank; i-- > 0;) {
    const int64_t places = tn_window_places(w, i);
    at[i] = p % places * w->stride[i] - w->before[i] + j % w->kernel[i] * w->dilation[i];
    p /= places;
    j /= w->kernel[i];
  }
  for (int32_t i = 0; i < w->rank; ++i) {
    if (at[i] < 0 || at[i] >= w->images[i]) return -1;
    element = element * w->images[i] + at[i];
  }
  return element;
}

/* ---- tenon.conv/1, tenon.conv_epilogue/1 */

typedef struct conv {
  binding base;
  tn_conv of;
  tn_window window;
  int32_t operand, reserved; /* of the program behind it */
  program behind;
} conv;

/* One sum of products at a time: an element of the result that is number `at`. */
static inline double conv_element(const conv* it, const uint8_t* a, const uint8_t* b, int64_t samples, int64_t at) {
  const tn_conv* of = &it->of;
  const tn_window* w = &it->window;
  const int64_t group_channels = of->channels / of->groups, group_filters = of->filters / of->groups;
  const int64_t kernel = count_of(w->kernel, w->rank), places = places_of(w), space = count_of(w->images, w->rank);
  double sum = 0;
  if (of->op == TN_CONV_RESULTS) {
    const int64_t f = at % of->filters, p = at / of->filters % places, n = at / of->filters / places;
    for (int64_t j = 0; j < kernel; ++j)
      for (int64_t c = 0, e = covered(w, p, j); e >= 0 && c < group_channels; ++c)
        sum += load(of->dtype, a, (n * space + e) * of->channels + f / group_filters * group_channels + c) *
               load(of->dtype, b, (f * kernel + j) * group_channels + c);
    return sum;
  }
  if (of->op == TN_CONV_IMAGES) {
    const int64_t c = at % of->channels, e = at / of->channels % space, n = at / of->channels / space;
    for (int64_t p = 0; p < places; ++p)
      for (int64_t j = 0; j < kernel; ++j)
        for (int64_t f = 0; covered(w, p, j) == e && f < group_filters; ++f) {
          const int64_t filter = c / group_channels * group_filters + f;
          sum += load(of->dtype, a, (n * places + p) * of->filters + filter) *
                 load(of->dtype, b, (filter * kernel + j) * group_channels + c % group_channels);
        }
    return sum;
  }
  {
    const int64_t c = at % group_channels, j = at / group_channels % kernel, f = at / group_channels / kernel;
    for (int64_t n = 0; n < samples; ++n)
      for (int64_t p = 0; p < places; ++p) {
        const int64_t e = covered(w, p, j);
        if (e >= 0)
          sum += load(of->dtype, a, (n * space + e) * of->channels + f / group_filters * group_channels + c) *
                 load(of->dtype, b, (n * places + p) * of->filters + f);
      }
    return sum;
  }
}
static inline void convolve(const conv* it, const tn_execution* execution, const tn_call* call, uint8_t request) {
  const device* on = it->base.on;
  const tn_conv* of = &it->of;
  const int64_t samples = value_of(on, &of->samples, execution), kernel = count_of(it->window.kernel, it->window.rank);
  const int64_t sizes[] = {samples * places_of(&it->window) * of->filters,
                           samples * count_of(it->window.images, it->window.rank) * of->channels,
                           of->filters * kernel * (of->channels / of->groups)};
  for (int64_t i = 0; request != TN_REQUEST_NONE && i < sizes[of->op]; ++i)
    put(of->dtype, data_of(on, call->outputs[0]), i,
        conv_element(it, data_of(on, call->inputs[0]), data_of(on, call->inputs[1]), samples, i), request);
}
static inline tn_status run_conv(void* self, const tn_execution* execution, const tn_call* call) {
  convolve((const conv*)self, execution, call, call->requests[0]);
  return TN_OK;
}
static inline tn_status run_conv_epilogue(void* self, const tn_execution* execution, const tn_call* call) {
  const conv* it = (const conv*)self;
  const device* on = it->base.on;
  const uint8_t* inputs[OPERANDS];
  uint8_t* outputs[OPERANDS];
  const grid g = {&it->behind,
                  value_of(on, &it->behind.rows, execution),
                  value_of(on, &it->behind.columns, execution),
                  (double*)near_of(on, call->workspace),
                  inputs,
                  outputs,
                  call->requests + 1,
                  (const tn_random*)near_of(on, execution->random),
                  NULL};
  convolve(it, execution, call, call->requests[0] == TN_REQUEST_NONE ? TN_REQUEST_WRITE : call->requests[0]);
  for (int32_t i = 0; i < (int32_t)it->behind.inputs_count; ++i)
    inputs[i] = data_of(on, i == it->operand ? call->outputs[0] : call->inputs[2 + i - (i > it->operand)]);
  for (uint32_t o = 0; o < it->behind.outputs_count; ++o) outputs[o] = data_of(on, call->outputs[1 + o]);
  run_program(&g);
  return TN_OK;
}
static inline int is_float(tn_dtype type) { return type == TN_F32 || type == TN_F64; }
static inline conv* bind_conv(void* on, const tn_errors* errors, const tn_conv* site, uint64_t more,
                              tn_prepared* prepared, tn_status (*run)(void*, const tn_execution*, const tn_call*)) {
  conv* bound = (conv*)bind(on, errors, sizeof *bound + more, prepared, run);
  if (bound == NULL) return NULL;
  bound->of = *site;
  bound->window = *site->window;
  return bound;
}
static inline tn_status prepare_conv(void* on, const tn_services* services, const tn_errors* errors,
                                     const tn_conv* site, tn_prepared* prepared) {
  (void)services;
  if (!is_float(site->dtype)) return unknown_type(errors);
  return bind_conv(on, errors, site, 0, prepared, run_conv) == NULL ? TN_OUT_OF_MEMORY : TN_OK;
}
static inline tn_status supports_conv_epilogue(void* on, const tn_errors* errors, const tn_conv_epilogue* epilogue) {
  (void)on, (void)errors;
  return is_float(epilogue->conv->dtype) && epilogue->conv->op != TN_CONV_WEIGHTS ? TN_OK : TN_UNSUPPORTED;
}
static inline tn_status prepare_conv_epilogue(void* on, const tn_services* services, const tn_errors* errors,
                                              const tn_conv_epilogue* epilogue, tn_prepared* prepared) {
  conv* bound;
  const tn_status status = check_program(errors, epilogue->site);
  (void)services;
  if (status != TN_OK) return status;
  bound = bind_conv(on, errors, epilogue->conv, program_bytes(epilogue->site->program), prepared, run_conv_epilogue);
  if (bound == NULL) return TN_OUT_OF_MEMORY;
  bound->operand = epilogue->product;
  bound->behind = kept_program((uint8_t*)(bound + 1), epilogue->site, NULL, NULL);
  prepared->workspace_bytes = values_bytes(epilogue->site);
  return TN_OK;
}

/* ---- tenon.pool/1 */

typedef struct pool {
  binding base;
  tn_pool of;
  tn_window window;
} pool;

/* The window at place p of a channel: its sum, or its first maximum and where that is. */
static inline double folded(const pool* it, const uint8_t* images, int64_t image, int64_t p, int64_t c,
                            int32_t* where) {
  const int64_t kernel = count_of(it->window.kernel, it->window.rank);
  double result = 0;
  *where = -1;
  for (int64_t j = 0; j < kernel; ++j) {
    const int64_t e = covered(&it->window, p, j);
    const double value = e < 0 ? 0 : load(it->of.dtype, images, (image + e) * it->of.channels + c);
    if (it->of.op == TN_POOL_SUM) result += value;
    if (it->of.op != TN_POOL_MAX || e < 0) continue;
    if (*where < 0 || value > result || (isnan(value) && !isnan(result))) {
      result = value;
      *where = (int32_t)e;
    }
  }
  return result;
}
static inline tn_status pool_place(const pool* it, const tn_execution* execution, const tn_call* call, int64_t image,
                                   int64_t n, int64_t p, int64_t c) {
  const device* on = it->base.on;
  const int64_t at = (n * places_of(&it->window) + p) * it->of.channels + c;
  const int64_t kernel = count_of(it->window.kernel, it->window.rank), channels = it->of.channels;
  const int32_t op = it->of.op;
  const uint8_t* in = data_of(on, call->inputs[0]);
  uint8_t* out = data_of(on, call->outputs[0]);
  int32_t where;
  if (op == TN_POOL_SUM || op == TN_POOL_MAX) {
    put(it->of.dtype, out, at, folded(it, in, image, p, c, &where), call->requests[0]);
    if (op == TN_POOL_MAX) put(TN_I32, data_of(on, call->outputs[1]), at, where, call->requests[1]);
    return TN_OK;
  }
  if (op == TN_POOL_SPREAD) {
    for (int64_t j = 0; j < kernel; ++j) {
      const int64_t e = covered(&it->window, p, j);
      if (e >= 0) put(it->of.dtype, out, (image + e) * channels + c, load(it->of.dtype, in, at), TN_REQUEST_ADD);
    }
    return TN_OK;
  }
  where = ((const int32_t*)(const void*)data_of(on, call->inputs[1]))[at];
  if (where < 0 || where >= count_of(it->window.images, it->window.rank))
    return bad_id(execution, where, count_of(it->window.images, it->window.rank));
  if (op == TN_POOL_SCATTER)
    put(it->of.dtype, out, (image + where) * channels + c, load(it->of.dtype, in, at), TN_REQUEST_ADD);
  else
    put(it->of.dtype, out, at, load(it->of.dtype, in, (image + where) * channels + c), call->requests[0]);
  return TN_OK;
}
static inline tn_status run_pool(void* self, const tn_execution* execution, const tn_call* call) {
  const pool* it = (const pool*)self;
  const int64_t samples = value_of(it->base.on, &it->of.samples, execution), places = places_of(&it->window);
  const int64_t space = count_of(it->window.images, it->window.rank);
  const int spreads = it->of.op == TN_POOL_SPREAD || it->of.op == TN_POOL_SCATTER;
  if (call->requests[0] == TN_REQUEST_NONE && (it->of.op != TN_POOL_MAX || call->requests[1] == TN_REQUEST_NONE))
    return TN_OK;
  if (spreads && call->requests[0] == TN_REQUEST_WRITE)
    memset(data_of(it->base.on, call->outputs[0]), 0,
           (size_t)(samples * space * it->of.channels) * tn_dtype_bytes(it->of.dtype));
  for (int64_t n = 0; n < samples; ++n)
    for (int64_t p = 0; p < places; ++p)
      for (int64_t c = 0; c < it->of.channels; ++c) {
        const tn_status status = pool_place(it, execution, call, n * space, n, p, c);
        if (status != TN_OK) return status;
      }
  return TN_OK;
}
static inline tn_status prepare_pool(void* on, const tn_services* services, const tn_errors* errors,
                                     const tn_pool* site, tn_prepared* prepared) {
  pool* bound;
  (void)services;
  if (!is_float(site->dtype)) return unknown_type(errors);
  bound = (pool*)bind(on, errors, sizeof *bound, prepared, run_pool);
  if (bound == NULL) return TN_OUT_OF_MEMORY;
  bound->of = *site;
  bound->window = *site->window;
  return TN_OK;
}

/* ---- tenon.resize/1 */

typedef struct resize {
  binding base;
  tn_resize_site of;
  tn_resize map;
} resize;

/* Neighbour number `k` (of 2^rank with TN_RESIZE_LINEAR) of element o of the results, and its weight. */
static inline int64_t neighbour(const tn_resize* map, int64_t o, int64_t k, double* weight) {
  int64_t at[TN_MAX_SPACE], element = 0;
  *weight = 1;
  for (int32_t i = map->rank; i-- > 0; o /= map->to[i], k /= 2) {
    const double last = (double)(map->from[i] - 1), raw = map->scale[i] * (double)(o % map->to[i]) + map->offset[i];
    const double place = raw < 0 ? 0 : raw > last ? last : raw, low = floor(place);
    at[i] = (int64_t)low;
    if ((map->flags & TN_RESIZE_LINEAR) == 0) continue;
    *weight *= k % 2 == 0 ? 1 - (place - low) : place - low;
    if (k % 2 == 1 && at[i] < map->from[i] - 1) ++at[i];
  }
  for (int32_t i = 0; i < map->rank; ++i) element = element * map->from[i] + at[i];
  return element;
}
static inline tn_status run_resize(void* self, const tn_execution* execution, const tn_call* call) {
  const resize* it = (const resize*)self;
  const device* on = it->base.on;
  const tn_resize* map = &it->map;
  const int64_t samples = value_of(on, &it->of.samples, execution), channels = it->of.channels;
  const int64_t from = count_of(map->from, map->rank), to = count_of(map->to, map->rank);
  const int64_t neighbours = (map->flags & TN_RESIZE_LINEAR) != 0 ? (int64_t)1 << map->rank : 1;
  const int back = (map->flags & TN_RESIZE_TRANSPOSED) != 0;
  const uint8_t* in = data_of(on, call->inputs[0]);
  uint8_t* out = data_of(on, call->outputs[0]);
  if (call->requests[0] == TN_REQUEST_NONE) return TN_OK;
  if (back && call->requests[0] == TN_REQUEST_WRITE)
    memset(out, 0, (size_t)(samples * from * channels) * tn_dtype_bytes(it->of.dtype));
  for (int64_t i = 0; i < samples * to * channels; ++i) {
    const int64_t c = i % channels, o = i / channels % to, n = i / channels / to;
    double sum = 0, weight;
    for (int64_t k = 0; k < neighbours; ++k) {
      const int64_t e = (n * from + neighbour(map, o, k, &weight)) * channels + c;
      if (back)
        put(it->of.dtype, out, e, weight * load(it->of.dtype, in, i), TN_REQUEST_ADD);
      else
        sum += weight * load(it->of.dtype, in, e);
    }
    if (!back) put(it->of.dtype, out, i, sum, call->requests[0]);
  }
  return TN_OK;
}
static inline tn_status prepare_resize(void* on, const tn_services* services, const tn_errors* errors,
                                       const tn_resize_site* site, tn_prepared* prepared) {
  resize* bound;
  (void)services;
  if (!is_float(site->dtype)) return unknown_type(errors);
  bound = (resize*)bind(on, errors, sizeof *bound, prepared, run_resize);
  if (bound == NULL) return TN_OUT_OF_MEMORY;
  bound->of = *site;
  bound->map = *site->resize;
  return TN_OK;
}

#endif
