// Tenon's C++ API: the options of wrappers of readers. Include <tenon/tenon.hpp>. Written by
// host/api/spec/generate_options.py. SPDX-License-Identifier: Apache-2.0
#ifndef TENON_TENON_READER_OPTIONS_HPP
#define TENON_TENON_READER_OPTIONS_HPP

#include <cstdint>
#include <string>
#include <tenon/tenon_base.hpp>
#include <tenon/tenon_option_lists.hpp>

namespace tenon {
inline namespace v0 {

// As tn_augment_options documents it.
struct AugmentOptions {
  // Dense, [height, width] or of `layout`.
  std::string slot;
  // TN_CHANNELS_*, of the slot.
  uint32_t layout = TN_CHANNELS_LAST;
  // Pixels of zeros around the image before it is cropped.
  int64_t pad = 0;
  // Of a crop at a random place of the padded image; 0: of the image.
  int64_t height = 0;
  // Likewise.
  int64_t width = 0;
  // 1: mirrors an image left to right, with probability 1/2.
  bool flip = false;
  // 1: crops the middle of the image, not a random place.
  bool centre = false;
  // The colours, of bytes or of float32 in [0, 1]; 0: unchanged.
  double brightness = 0;
  // As brightness, but multiplies the differences from the mean luminance of the image.
  double contrast = 0;
  // As brightness, but of images with 3 channels: multiplies the differences of a pixel from its own luminance.
  double saturation = 0;
  // Of all draws.
  uint64_t seed = 0;
};

// As tn_bucket_options documents it.
struct BucketOptions {
  // TN_RAGGED or TN_CSR; its rows or entries are counted.
  std::string slot;
  // Samples that are sorted together.
  int64_t window = 0;
  // The most in a minibatch; 0: no bound.
  int64_t samples = 0;
  // The most rows of `slot` in a minibatch; 0: no bound.
  int64_t rows = 0;
  // Of the order of the minibatches of a window.
  uint64_t seed = 0;
};

namespace detail {

// Each fills a struct of C, which borrows from `from` and `lists`.
inline void fill(tn_augment_options& to, const AugmentOptions& from, [[maybe_unused]] OptionLists& lists) {
  to.size = sizeof to;
  to.layout = from.layout;
  to.slot = c_text(from.slot, "options.slot");
  to.pad = from.pad;
  to.height = from.height;
  to.width = from.width;
  to.flip = from.flip ? 1 : 0;
  to.centre = from.centre ? 1 : 0;
  to.seed = from.seed;
  to.brightness = from.brightness;
  to.contrast = from.contrast;
  to.saturation = from.saturation;
}
inline void fill(tn_bucket_options& to, const BucketOptions& from, [[maybe_unused]] OptionLists& lists) {
  to.size = sizeof to;
  to.slot = c_text(from.slot, "options.slot");
  to.window = from.window;
  to.samples = from.samples;
  to.rows = from.rows;
  to.seed = from.seed;
}

}  // namespace detail
}  // namespace v0
}  // namespace tenon
#endif
