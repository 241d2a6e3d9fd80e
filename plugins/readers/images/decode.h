// Decodes JPEG and PNG files into pixels. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tenon::images {

// Thrown for a file that is not a sound image. The catcher adds the path.
struct BadImage {
  std::string why;
};

// A decoded image. A JPEG may be decoded smaller than it is.
struct Image {
  int width = 0, height = 0, channels = 0;
  int full_width = 0, full_height = 0;  // size in the file
  std::vector<uint8_t> pixels;          // [height, width, channels]
};

// Returns the least width and height, in pixels, to which an image of this width and height may be decoded: a JPEG is
// decoded at the smallest scale of at least that size.
using Enough = std::function<std::pair<int, int>(int width, int height)>;

// Decodes images.
class Decoder {
 public:
  // channels: 1 for grey, 3 for red, green, blue. Images of more than most_pixels pixels are refused.
  Decoder(int channels, int64_t most_pixels) : channels_(channels), most_pixels_(most_pixels) {}

  // Decodes a file, whose bytes may change. Transparent pixels are blended with white. Throws BadImage with the
  // decoder's reason.
  void decode(std::vector<uint8_t>& file, const Enough& enough, Image& to) const;

 private:
  void decode_jpeg(const std::vector<uint8_t>& file, const Enough& enough, Image& to) const;
  void decode_png(std::vector<uint8_t>& file, Image& to) const;
  void set_size(Image& to, int64_t width, int64_t height) const;
  void check_pixels(int64_t width, int64_t height) const;

  int channels_;
  int64_t most_pixels_;
};

}  // namespace tenon::images
