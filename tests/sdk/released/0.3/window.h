/* Tenon SDK: windows over images: how convolution, pooling and resizing map places. SPDX-License-Identifier: MIT
 *
 * Images have 1 to 3 dimensions in space and their channels last: [samples, space..., channels]. All since 0.3. */
#ifndef TENON_WINDOW_H
#define TENON_WINDOW_H

#include <tenon/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TN_MAX_SPACE 3

/* A window that moves over images. Along dimension i its place number p covers the indices
 * p * stride[i] - before[i] + j * dilation[i] of the images, for j in [0, kernel[i]); what lies outside of the images
 * is 0 for a sum and absent for a maximum. Entries of dimensions from `rank` on are ignored. */
typedef struct tn_window {
  uint32_t size;
  int32_t rank;                   /* dimensions in space, 1 to TN_MAX_SPACE */
  int64_t images[TN_MAX_SPACE];   /* of the images, at least 1 */
  int64_t kernel[TN_MAX_SPACE];   /* at least 1 */
  int64_t stride[TN_MAX_SPACE];   /* at least 1 */
  int64_t dilation[TN_MAX_SPACE]; /* at least 1 */
  int64_t before[TN_MAX_SPACE];   /* at least 0: indices that are added before the images */
  int64_t after[TN_MAX_SPACE];    /* at least 0: and after them */
} tn_window;

/* The number of places along dimension i; at most 0 if the window is larger than the images with what is added. */
static inline int64_t tn_window_places(const tn_window* w, int32_t i) {
  const int64_t room = w->images[i] + w->before[i] + w->after[i] - w->dilation[i] * (w->kernel[i] - 1) - 1;
  return room < 0 ? 0 : room / w->stride[i] + 1;
}

/* The three tensors of a convolution are images [N, space..., C], weights [F, kernel..., C / groups] and results
 * [N, places..., F]. Filter f reads the channels of its group, f / (F / groups). Each operation makes one of the three
 * from the other two; each is the derivative of the others. */
enum {
  TN_CONV_RESULTS = 0, /* images, weights: the convolution: results[n, p, f] = sum of image times weight */
  TN_CONV_IMAGES = 1,  /* results, weights: the transposed convolution: every result spreads over its window */
  TN_CONV_WEIGHTS = 2  /* images, results: summed over samples and places */
};

/* Operations of pooling, on each channel by itself. Positions are int32 [N, places..., C]: the index of an element in
 * its image, row-major over the space, without the channel. */
enum {
  TN_POOL_SUM = 0,     /* images: results, the sums over the windows */
  TN_POOL_SPREAD = 1,  /* results: images; every result is added to each element of its window */
  TN_POOL_MAX = 2,     /* images: results, and positions: the first maximum of each window; a NaN is the largest */
  TN_POOL_SCATTER = 3, /* results, positions: images; every result is added at its position */
  TN_POOL_TAKE = 4     /* images, positions: results, the elements at the positions */
};

/* How resizing maps images [N, from..., C] to images [N, to..., C]: along dimension i element o is read at
 * scale[i] * o + offset[i], cut to [0, from[i] - 1]. Without TN_RESIZE_LINEAR it is the element at the floor of that
 * number; with it the two neighbours are weighted by their distance. TN_RESIZE_TRANSPOSED: the transposed map, from
 * [N, to..., C] to [N, from..., C]. */
enum { TN_RESIZE_LINEAR = 1, TN_RESIZE_TRANSPOSED = 2 };
typedef struct tn_resize {
  uint32_t size;
  int32_t rank;               /* dimensions in space, 1 to TN_MAX_SPACE */
  int64_t from[TN_MAX_SPACE]; /* at least 1 */
  int64_t to[TN_MAX_SPACE];   /* at least 1 */
  double scale[TN_MAX_SPACE]; /* finite, at least 0 */
  double offset[TN_MAX_SPACE];
  uint32_t flags; /* TN_RESIZE_* */
  uint32_t reserved;
} tn_resize;

#ifdef __cplusplus
}
#endif
#endif
