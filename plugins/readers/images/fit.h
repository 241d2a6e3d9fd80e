// Scales and cuts a decoded image to the size of a sample. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "image.h"

namespace tenon::images {

// The place of the sample in the image: if the image is scaled to scaled_width x scaled_height pixels, the sample
// begins at `left`, `top`.
struct Place {
  double scaled_width = 0, scaled_height = 0;
  double left = 0, top = 0;
};

struct Target {
  int width = 0, height = 0;
};

// Cuts samples out of images.
class Fitter {
 public:
  // Writes the sample, uint8 [height, width, channels], to `to`. The image is halved by means of four pixels while it
  // is at least twice its scaled size, then interpolated bilinearly. Changes `image`.
  void fit(Image& image, const Place& place, const Target& target, uint8_t* to);

 private:
  // A position between two pixels: (kOne - weight) * first + weight * second.
  struct Between {
    int first = 0, second = 0;
    int weight = 0;
  };

  // Positions of `count` pixels of the sample, from `begin` on, in an image of `pixels` pixels; `step` pixels of the
  // image are one of the sample.
  static std::vector<Between> positions(int count, double begin, double step, int pixels);
  static void halve(Image& image);
};

}  // namespace tenon::images
