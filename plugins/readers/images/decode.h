// Decodes image files into the pixels of samples. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "image.h"

namespace tenon::images {

// Decodes images of all formats. Immutable; used by any thread.
class Decoder {
 public:
  // channels: 1 for grey, 3 for red, green, blue. Images of more than most_pixels pixels are refused. upright: images
  // are turned by the orientation in their files.
  Decoder(int channels, int64_t most_pixels, bool upright)
      : channels_(channels), most_pixels_(most_pixels), upright_(upright) {}

  // Decodes a file, whose content says the format. Transparent pixels are blended with white. Throws BadImage and
  // NoDecoder.
  void decode(Bytes file, const Enough& enough, Image& to) const;

 private:
  int channels_;
  int64_t most_pixels_;
  bool upright_;
};

}  // namespace tenon::images
