// Changes of one image: cut, mirror, colours. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/base.h>

#include <cstddef>
#include <cstdint>

namespace tenon::host {

// The form of an image in memory.
struct ImageForm {
  int64_t height = 0, width = 0, channels = 1;
  bool planes = false;  // [channels, height, width]; else [height, width, channels]
  tn_dtype dtype = TN_U8;
};

// The place of the part of an image that is kept; outside of the image are zeros.
struct ImagePlace {
  int64_t top = 0, left = 0;
  bool mirrored = false;  // left to right
};

// Copies the part of `from` at `place` that is as large as `to`, and of which all else agrees.
void cut_image(const ImageForm& from_form, const std::byte* from, const ImagePlace& place, const ImageForm& to_form,
               std::byte* to);

// Factors of the colours; 1 leaves them.
struct ColourFactors {
  float brightness = 1, contrast = 1, saturation = 1;
};

// Changes the colours of an image of 1 or 3 channels of bytes, or of float32 in [0, 1], in place: multiplies by
// `brightness`, then moves each value by `contrast` away from the mean luminance of the image, then by `saturation`
// away from the luminance of its pixel. Results are cut to the range of the values after each step, and rounded once.
void change_colours(const ImageForm& form, const ColourFactors& factors, std::byte* image);

}  // namespace tenon::host
