// Images, and what the decoders of their formats share. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon::images {

// Thrown for a file that is not a sound image. The catcher adds the path.
struct BadImage {
  std::string why;
};
// Thrown for a format whose decoder this build or this system lacks. The catcher adds the path.
struct NoDecoder {
  std::string why;
};

// A decoded image. A JPEG may be decoded smaller than it is.
struct Image {
  int width = 0, height = 0;
  int channels = 0;                     // 1: grey; 2: grey, alpha; 3: red, green, blue; 4: red, green, blue, alpha
  int full_width = 0, full_height = 0;  // size in the file
  int orientation = 1;                  // in the file, as EXIF numbers it: 1: upright; 5 to 8: on its side
  std::vector<uint8_t> pixels;          // [height, width, channels]

  // Sets size and channels, and makes room for the pixels, whose values are undefined.
  void set_size(int64_t new_width, int64_t new_height, int new_channels);
  [[nodiscard]] bool on_side() const { return orientation > 4; }
};

// Returns the least width and height, in pixels, to which an image of this width and height may be decoded: a JPEG is
// decoded at the smallest scale of at least that size.
using Enough = std::function<std::pair<int, int>(int width, int height)>;

// What an image is decoded for.
struct Request {
  int channels;         // of the sample, 1 or 3: a decoder that has them at once gives these
  int64_t most_pixels;  // a larger image is refused
  bool upright;         // the image will be turned by its orientation
  const Enough& enough;

  // Throws BadImage unless an image of this size, or a part of one, is read.
  void check_pixels(int64_t width, int64_t height) const;
};

using Bytes = std::span<const uint8_t>;  // of a file

// Decodes a file that begins with the signature of the format: sets size, channels and pixels as they are stored, and
// the orientation if the file has one. Samples of n bits are scaled to 8 bits, linearly. Throws BadImage with the
// decoder's reason, and NoDecoder if the library of the format cannot be loaded.
using Decode = void(Bytes file, const Request& request, Image& to);
Decode decode_bmp, decode_jpeg, decode_png;
// Null in a build without the headers of their libraries.
[[gnu::weak]] Decode decode_gif, decode_tiff, decode_webp;

[[nodiscard]] bool begins_with(Bytes bytes, std::string_view signature);
// The `count` bytes from `at`, as far as they are there.
[[nodiscard]] Bytes part(Bytes bytes, size_t at, size_t count);
// An integer of `count` bytes, at most 4. Bytes beyond the end are 0.
[[nodiscard]] uint32_t number(Bytes bytes, size_t at, size_t count, bool big_endian);
// The nearest of 8 bits: value / most * 255.
[[nodiscard]] inline uint8_t to_byte(uint64_t value, uint64_t most) {
  return static_cast<uint8_t>((value * 255 + most / 2) / most);
}

// The number that a list of a TIFF file gives to a tag; nothing if the first list lacks it or does not lie in `file`.
[[nodiscard]] std::optional<uint32_t> tiff_value(Bytes file, uint32_t tag);
// The orientation in EXIF data, with or without its prefix "Exif"; 1 if the data is damaged or has none.
[[nodiscard]] int exif_orientation(Bytes exif);
// Turns cyan, magenta, yellow and black, in which 255 is all ink, or none if inverted, into red, green and blue.
void mix_inks(Image& image, bool inverted);
// Turns pixels of 2, 3 or 4 channels into those of a sample: transparent ones are blended with white, and colours
// become grey. Light is mixed, of samples that follow the curve of sRGB.
void mix_light(Image& image, int channels);

}  // namespace tenon::images
