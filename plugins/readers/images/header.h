// The formats of image files, and what their headers say. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "image.h"

namespace tenon::images {

enum class Format { kUnknown, kJpeg, kPng, kGif, kWebP, kBmp, kTiff };

// Returns the format whose signature the file has.
[[nodiscard]] Format format_of(Bytes file);

// What the segments of a JPEG before its pixels say.
struct JpegHeader {
  int orientation = 1;
  bool adobe = false;             // Adobe's programs store inks inverted
  int64_t width = 0, height = 0;  // 0: no segment states them
  uint32_t channels = 0;
};
[[nodiscard]] JpegHeader jpeg_header(Bytes file);

// The size of an image as its file stores it.
struct StoredSize {
  int64_t width = 0, height = 0;
  bool colour = true;  // false: its samples are grey
};

// Returns the size that the header states; nothing if it is not the header of an image, or goes on behind `beginning`.
// Pixels are not decoded.
[[nodiscard]] std::optional<StoredSize> stored_size(Bytes beginning);

}  // namespace tenon::images
