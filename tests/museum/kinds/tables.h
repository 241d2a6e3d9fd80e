/* The tables of 0.2 that the devices of the museum have, and what declares a device.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MUSEUM_TABLES_H
#define MUSEUM_TABLES_H

#include "core.h"
#include "products.h"
#include "rows.h"

static const tn_gemm_table gemm_table = {.size = sizeof(tn_gemm_table), .prepare = prepare_gemm};
static const tn_pointwise_table pointwise_table = {
    .size = sizeof(tn_pointwise_table), .opset = TN_OPSET, .prepare = prepare_pointwise};
static const tn_gemm_epilogue_table epilogue_table = {.size = sizeof(tn_gemm_epilogue_table),
                                                      .opset = TN_OPSET,
                                                      .supports = supports_epilogue,
                                                      .prepare = prepare_epilogue};
static const tn_gather_table gather_table = {.size = sizeof(tn_gather_table), .prepare = prepare_gather};
static const tn_move_table move_table = {.size = sizeof(tn_move_table), .prepare = prepare_move};
static const tn_segment_table segment_table = {.size = sizeof(tn_segment_table), .prepare = prepare_segment};
static const tn_row_sparse_table row_sparse_table = {.size = sizeof(tn_row_sparse_table),
                                                     .opset = TN_OPSET,
                                                     .prepare_coalesce = prepare_coalesce,
                                                     .prepare_update = prepare_update};
static const tn_native_table native_table = {.size = sizeof(tn_native_table), .stream = native_stream};

/* A device whose functions are those of core.h; the file has `tables` and `extension`, and OPEN if it opens otherwise.
 */
#ifndef OPEN
#define OPEN open_device
#endif
#define DEVICE(name, text, number)                                                                            \
  static const tn_device_description name##_description = {.size = sizeof(tn_device_description),             \
                                                           .dlpack_type = (number) == 0 ? kDLCPU : kDLExtDev, \
                                                           .kind = "museum." #name,                           \
                                                           .doc = text,                                       \
                                                           .tables = tables};                                 \
  static const tn_device_type name##_type = {.size = sizeof(tn_device_type),                                  \
                                             .description = &name##_description,                              \
                                             .count = count,                                                  \
                                             .open = OPEN,                                                    \
                                             .close = close_device,                                           \
                                             .properties = properties,                                        \
                                             .allocate = allocate,                                            \
                                             .release = release,                                              \
                                             .copy = copy,                                                    \
                                             .fill = fill,                                                    \
                                             .stream_create = make_handle,                                    \
                                             .stream_destroy = drop_handle,                                   \
                                             .stream_wait = wait_for,                                         \
                                             .event_create = make_handle,                                     \
                                             .event_destroy = drop_handle,                                    \
                                             .event_record = order,                                           \
                                             .event_wait = order,                                             \
                                             .extension = extension,                                          \
                                             .user = (void*)(uintptr_t)&shifts[number]}

#endif
