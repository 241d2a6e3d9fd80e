// Decodes image files. SPDX-License-Identifier: Apache-2.0
#include "decode.h"

#include <algorithm>

#include "header.h"

namespace tenon::images {

namespace {

struct Decoding {
  Format format;
  const char* name;
  Decode* decode;        // null: not in this build
  const char* required;  // the package whose headers the build needs
};

constexpr Decoding kDecodings[] = {
    {Format::kJpeg, "JPEG", &decode_jpeg, ""},        {Format::kPng, "PNG", &decode_png, ""},
    {Format::kGif, "GIF", &decode_gif, "libgif-dev"}, {Format::kWebP, "WebP", &decode_webp, "libwebp-dev"},
    {Format::kBmp, "BMP", &decode_bmp, ""},           {Format::kTiff, "TIFF", &decode_tiff, "libtiff-dev"},
};

Decode& decode_of(Bytes file) {
  if (file.empty()) throw BadImage{"the file is empty"};
  const Format format = format_of(file);
  const auto* const decoding = std::find_if(std::begin(kDecodings), std::end(kDecodings),
                                            [&](const Decoding& each) { return each.format == format; });
  if (decoding == std::end(kDecodings)) throw BadImage{"neither JPEG, PNG, GIF, WebP, BMP nor TIFF"};
  if (decoding->decode == nullptr)
    throw NoDecoder{std::string(decoding->name) + ": this build of the reader has no decoder for it: " +
                    decoding->required + " was missing when it was built"};
  return *decoding->decode;
}

// Drops the last channel.
void drop_alpha(Image& image) {
  const auto channels = static_cast<size_t>(image.channels);
  auto to = image.pixels.begin();
  for (auto from = image.pixels.begin(); from != image.pixels.end(); from += image.channels)
    to = std::copy(from, from + image.channels - 1, to);
  image.set_size(image.width, image.height, static_cast<int>(channels - 1));
}

bool is_opaque(const Image& image) {
  const auto channels = static_cast<size_t>(image.channels);
  for (size_t i = channels - 1; i < image.pixels.size(); i += channels)
    if (image.pixels[i] != 255) return false;
  return true;
}

// Gives an image the channels of a sample. Samples stay as they are where nothing has to be mixed.
void set_channels(Image& image, int channels) {
  if (image.channels % 2 == 0 && is_opaque(image)) drop_alpha(image);
  if (image.channels == channels) return;
  if (image.channels != 1) return mix_light(image, channels);
  const size_t count = image.pixels.size();
  image.set_size(image.width, image.height, channels);
  for (size_t i = count; i-- > 0;) std::fill_n(&image.pixels[3 * i], 3, image.pixels[i]);
}

// Turns the image so that its orientation becomes 1.
void turn(Image& image) {
  const int orientation = image.orientation, width = image.width, height = image.height;
  if (orientation == 1) return;
  const bool from_right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool from_below = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  Image upright = image;
  if (image.on_side()) {
    upright.set_size(height, width, image.channels);
    std::swap(upright.full_width, upright.full_height);
  }
  auto to = upright.pixels.begin();
  for (int y = 0; y < upright.height; ++y)
    for (int x = 0; x < upright.width; ++x) {
      int column = x, row = y;  // of the stored pixel
      if (image.on_side()) std::swap(column, row);
      if (from_right) column = width - 1 - column;
      if (from_below) row = height - 1 - row;
      to = std::copy_n(image.pixels.begin() + (ptrdiff_t{row} * width + column) * image.channels, image.channels, to);
    }
  image = std::move(upright);
}

}  // namespace

void Decoder::decode(Bytes file, const Enough& enough, Image& to) const {
  Decode& decode_format = decode_of(file);
  to.full_width = to.full_height = 0;
  to.orientation = 1;
  decode_format(file, {channels_, most_pixels_, upright_, enough}, to);
  if (to.full_width == 0) to.full_width = to.width, to.full_height = to.height;
  set_channels(to, channels_);
  if (upright_) turn(to);
}

}  // namespace tenon::images
