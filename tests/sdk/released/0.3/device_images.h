/* Tenon SDK: devices: the tables of the primitives over images. SPDX-License-Identifier: MIT
 *
 * The rules of tenon/device.h hold. All since 0.3. */
#ifndef TENON_DEVICE_IMAGES_H
#define TENON_DEVICE_IMAGES_H

#include <tenon/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "tenon.conv/1": TN_CONV_* of window.h; inputs: the two tensors that the operation reads, in the order that window.h
 * states; outputs: one. Of TN_CONV_RESULTS and TN_CONV_IMAGES the bits of a sample's part follow from that sample, the
 * weights and this struct alone; never from the number of samples, the sample's place or the number of threads. A call
 * with TN_TRAIT_BATCH_VARIANT does not promise this of the number and the place. */
#define TN_CONV "tenon.conv/1"
typedef struct tn_conv {
  uint32_t size;
  tn_dtype dtype; /* TN_F32 or TN_F64 */
  int32_t op;     /* TN_CONV_* */
  uint32_t reserved;
  tn_dim samples;
  int64_t channels, filters, groups; /* C and F, both multiples of groups */
  const tn_window* window;           /* borrowed until prepare returns */
} tn_conv;
typedef struct tn_conv_table {
  uint32_t size;
  uint32_t reserved;
  tn_status (*prepare)(void* device, const tn_services* services, const tn_errors* errors, const tn_conv* conv,
                       tn_prepared* prepared);
} tn_conv_table;

/* "tenon.conv_epilogue/1": a convolution fused with a program that reads its output while it is in the cache, as
 * tenon.gemm_epilogue/1 does for products. op: TN_CONV_RESULTS or TN_CONV_IMAGES. The program's grid has the samples
 * times the places as rows and the last dimension as columns. inputs: the two of the convolution, then the program's
 * without number `product`; outputs: that of the convolution, then the program's. */
#define TN_CONV_EPILOGUE "tenon.conv_epilogue/1"
typedef struct tn_conv_epilogue {
  uint32_t size;
  int32_t product; /* number of the program's input that is the output of the convolution; FULL */
  const tn_conv* conv;
  const tn_pointwise_site* site;
} tn_conv_epilogue;
typedef struct tn_conv_epilogue_table {
  uint32_t size;
  uint32_t opset; /* as in tn_pointwise_table */
  /* [setup] As in tn_gemm_epilogue_table. */
  tn_status (*supports)(void* device, const tn_errors* errors, const tn_conv_epilogue* epilogue);
  tn_status (*prepare)(void* device, const tn_services* services, const tn_errors* errors,
                       const tn_conv_epilogue* epilogue, tn_prepared* prepared);
} tn_conv_epilogue_table;

/* "tenon.pool/1": TN_POOL_* of window.h; inputs and outputs as stated there. Sums are in the order of the window's
 * elements or of the places. A position outside of its image ends the step with TN_BAD_DATA. */
#define TN_POOL "tenon.pool/1"
typedef struct tn_pool {
  uint32_t size;
  tn_dtype dtype; /* TN_F32 or TN_F64 */
  int32_t op;     /* TN_POOL_* */
  uint32_t reserved;
  tn_dim samples;
  int64_t channels;
  const tn_window* window; /* borrowed until prepare returns */
} tn_pool;
typedef struct tn_pool_table {
  uint32_t size;
  uint32_t reserved;
  tn_status (*prepare)(void* device, const tn_services* services, const tn_errors* errors, const tn_pool* pool,
                       tn_prepared* prepared);
} tn_pool_table;

/* "tenon.resize/1": inputs: one; outputs: one. */
#define TN_RESIZE "tenon.resize/1"
typedef struct tn_resize_site {
  uint32_t size;
  tn_dtype dtype; /* TN_F32 or TN_F64 */
  tn_dim samples;
  int64_t channels;
  const tn_resize* resize; /* borrowed until prepare returns */
} tn_resize_site;
typedef struct tn_resize_table {
  uint32_t size;
  uint32_t reserved;
  tn_status (*prepare)(void* device, const tn_services* services, const tn_errors* errors, const tn_resize_site* site,
                       tn_prepared* prepared);
} tn_resize_table;

#ifdef __cplusplus
}
#endif
#endif
