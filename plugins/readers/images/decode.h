// JPEG and PNG files as pixels. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tenon::images {

// Why a file is no image; the path is the caller's to add.
struct BadImage {
  std::string why;
};

struct Image {
  int width = 0, height = 0, channels = 0;
  int full_width = 0, full_height = 0;  // as the file says
  std::vector<uint8_t> pixels;          // [height, width, channels]
};

// Which size is enough for an image of this width and height, in pixels: a JPEG may be decoded smaller than it is,
// but not below that.
using Enough = std::function<std::pair<int, int>(int width, int height)>;

class Decoder {
 public:
  // channels: 1 for grey, 3 for red, green, blue. An image of more pixels than `most_pixels` is refused.
  Decoder(int channels, int64_t most_pixels);

  // Throws BadImage with the decoder's reason. What is transparent becomes white.
  void decode(const std::vector<uint8_t>& file, const Enough& enough, Image& to);

 private:
  void decode_jpeg(const std::vector<uint8_t>& file, const Enough& enough, Image& to);
  void decode_png(const std::vector<uint8_t>& file, Image& to) const;
  void set_size(Image& to, int64_t width, int64_t height) const;
  void check_pixels(int64_t width, int64_t height) const;

  int channels_;
  int64_t most_pixels_;
  std::unique_ptr<void, int (*)(void*)> jpeg_;
};

}  // namespace tenon::images
