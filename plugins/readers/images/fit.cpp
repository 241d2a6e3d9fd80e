// Scales and cuts images. SPDX-License-Identifier: Apache-2.0
#include "fit.h"

#include <algorithm>
#include <cmath>

namespace tenon::images {

namespace {

constexpr int kBits = 11;  // of a weight: a pixel times two weights, 255 << 22, fits into an int
constexpr int kOne = 1 << kBits;

}  // namespace

// Pixel i covers [i, i + 1), so that its centre is i + 0.5.
std::vector<Fitter::Between> Fitter::positions(int count, double begin, double step, int pixels) {
  std::vector<Between> result(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    const double at = std::clamp((i + begin + 0.5) * step - 0.5, 0.0, static_cast<double>(pixels - 1));
    const int first = static_cast<int>(at);
    result[static_cast<size_t>(i)] = {first, std::min(first + 1, pixels - 1),
                                      static_cast<int>(std::lround((at - first) * kOne))};
  }
  return result;
}

// pixels [height, width, channels] -> [height / 2, width / 2, channels], in place: the mean of 2 x 2 pixels.
void Fitter::halve(Image& image) {
  const int width = image.width / 2, height = image.height / 2, channels = image.channels;
  const ptrdiff_t row = static_cast<ptrdiff_t>(image.width) * channels;
  uint8_t* to = image.pixels.data();  // never ahead of the pixels that are still read
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < channels; ++c) {
        const uint8_t* const from = image.pixels.data() + ptrdiff_t{2} * y * row + ptrdiff_t{2} * x * channels + c;
        *to++ = static_cast<uint8_t>((from[0] + from[channels] + from[row] + from[row + channels] + 2) / 4);
      }
  image.width = width;
  image.height = height;
}

void Fitter::fit(Image& image, const Place& place, const Target& target, uint8_t* to) {
  double step_across = image.width / place.scaled_width, step_down = image.height / place.scaled_height;
  while (step_across >= 2 && step_down >= 2) {
    halve(image);
    step_across /= 2;
    step_down /= 2;
  }
  const std::vector<Between> columns = positions(target.width, place.left, step_across, image.width);
  const std::vector<Between> rows = positions(target.height, place.top, step_down, image.height);
  const int channels = image.channels;
  const ptrdiff_t row_bytes = static_cast<ptrdiff_t>(image.width) * channels;
  for (int y = 0; y < target.height; ++y) {
    const Between& row = rows[static_cast<size_t>(y)];
    const uint8_t* const above = image.pixels.data() + row.first * row_bytes;
    const uint8_t* const below = image.pixels.data() + row.second * row_bytes;
    for (int x = 0; x < target.width; ++x) {
      const Between& column = columns[static_cast<size_t>(x)];
      const int left = column.first * channels, right = column.second * channels;
      for (int c = 0; c < channels; ++c) {
        const int top = above[left + c] * (kOne - column.weight) + above[right + c] * column.weight;
        const int bottom = below[left + c] * (kOne - column.weight) + below[right + c] * column.weight;
        const int value = (top * (kOne - row.weight) + bottom * row.weight + (1 << (2 * kBits - 1))) >> (2 * kBits);
        *to++ = static_cast<uint8_t>(value);
      }
    }
  }
}

}  // namespace tenon::images
