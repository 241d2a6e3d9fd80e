// Brings a decoded image to the size of a sample. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "decode.h"

namespace tenon::images {

// Where the sample lies in the image: the image is thought scaled to `scaled_*` pixels, and the sample is the part of
// it that begins at `left`, `top`.
struct Place {
  double scaled_width = 0, scaled_height = 0;
  double left = 0, top = 0;
  bool mirrored = false;
};

struct Target {
  int width = 0, height = 0;
  bool planes = false;  // [channels, height, width]; else [height, width, channels]
};

class Fitter {
 public:
  // Writes the sample, [height, width] of `target` with the channels of `image`. Bilinear, after halving by means of
  // four pixels as long as the image is at least twice as large as it is thought. Changes `image`.
  void fit(Image& image, const Place& place, const Target& target, uint8_t* to);

 private:
  // A position between two pixels: (kOne - weight) * first + weight * second.
  struct Between {
    int first = 0, second = 0;
    int weight = 0;
  };

  // Of `count` pixels of the sample from `begin` on, in an image of `pixels`, `step` of which make one.
  static std::vector<Between> positions(int count, double begin, double step, int pixels);
  static void halve(Image& image);
};

}  // namespace tenon::images
