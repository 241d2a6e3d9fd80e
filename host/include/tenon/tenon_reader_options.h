/* Tenon: the structs of the options of wrappers of readers. Include <tenon/tenon.h>. Written by
 * host/api/spec/generate_options.py. SPDX-License-Identifier: Apache-2.0 */
#ifndef TENON_TENON_READER_OPTIONS_H
#define TENON_TENON_READER_OPTIONS_H

#include <tenon/tenon_base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Random changes of the images of a slot, for training. They depend on the seed, the pass and the number of the sample
 * in `of` alone: put augment before shard and shuffle, and the samples are the same for any shards, threads and order.
 * The order is: crop, flip, brightness, contrast, saturation. */
typedef struct tn_augment_options {
  uint32_t size;
  /* TN_CHANNELS_*, of the slot. */
  uint32_t layout;
  /* Dense, [height, width] or of `layout`. */
  const char* slot;
  /* Pixels of zeros around the image before it is cropped. */
  int64_t pad;
  /* Of a crop at a random place of the padded image; 0: of the image. */
  int64_t height;
  /* Likewise. */
  int64_t width;
  /* 1: mirrors an image left to right, with probability 1/2. */
  uint32_t flip;
  /* 1: crops the middle of the image, not a random place. */
  uint32_t centre;
  /* Of all draws. */
  uint64_t seed;
  /* The colours, of bytes or of float32 in [0, 1]; 0: unchanged. Each of brightness, contrast and saturation draws a
   * factor from [max(0, 1 - x), 1 + x]. brightness multiplies all values. */
  double brightness;
  /* As brightness, but multiplies the differences from the mean luminance of the image. */
  double contrast;
  /* As brightness, but of images with 3 channels: multiplies the differences of a pixel from its own luminance. */
  double saturation;
} tn_augment_options;

/* Minibatches of samples of similar length: sorts each `window` of samples by their number of rows or entries in
 * `slot`, splits the window into minibatches, and yields these in an order determined by seed, pass and window. At
 * least one of the two bounds must be set. A sample counts as at least one row; a sample of more than `rows` rows is a
 * minibatch of its own. */
typedef struct tn_bucket_options {
  uint32_t size;
  uint32_t reserved; /* 0 */
  /* TN_RAGGED or TN_CSR; its rows or entries are counted. */
  const char* slot;
  /* Samples that are sorted together. */
  int64_t window;
  /* The most in a minibatch; 0: no bound. */
  int64_t samples;
  /* The most rows of `slot` in a minibatch; 0: no bound. */
  int64_t rows;
  /* Of the order of the minibatches of a window. */
  uint64_t seed;
} tn_bucket_options;

#ifdef __cplusplus
}
#endif
#endif
