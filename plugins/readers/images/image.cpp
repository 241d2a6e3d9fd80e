// What the decoders of images share. SPDX-License-Identifier: Apache-2.0
#include "image.h"

#include <algorithm>
#include <cstring>

namespace tenon::images {

void Image::set_size(int64_t new_width, int64_t new_height, int new_channels) {
  width = static_cast<int>(new_width);
  height = static_cast<int>(new_height);
  channels = new_channels;
  pixels.resize(static_cast<size_t>(width) * static_cast<size_t>(height) * static_cast<size_t>(channels));
}

void Request::check_pixels(int64_t width, int64_t height) const {
  if (width < 1 || height < 1 || width > most_pixels / height)
    throw BadImage{std::to_string(width) + " x " + std::to_string(height) + " pixels; at most " +
                   std::to_string(most_pixels) + " are read"};
}

bool begins_with(Bytes bytes, std::string_view signature) {
  return bytes.size() >= signature.size() && std::memcmp(bytes.data(), signature.data(), signature.size()) == 0;
}

Bytes part(Bytes bytes, size_t at, size_t count) {
  const Bytes rest = bytes.subspan(std::min(at, bytes.size()));
  return rest.first(std::min(count, rest.size()));
}

uint32_t number(Bytes bytes, size_t at, size_t count, bool big_endian) {
  uint32_t value = 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t place = at + (big_endian ? i : count - 1 - i);
    value = value << 8 | (place < bytes.size() ? bytes[place] : 0U);
  }
  return value;
}

// EXIF data is a TIFF file: its header has the offset of a list, of which an entry is tag, type, count and value.
int exif_orientation(Bytes exif) {
  using std::literals::operator""sv;
  constexpr size_t kEntry = 12;
  constexpr uint32_t kOrientation = 0x112, kShort = 3;
  if (begins_with(exif, "Exif\0\0"sv)) exif = exif.subspan(6);
  const bool big = begins_with(exif, "MM\0*"sv);
  if (!big && !begins_with(exif, "II*\0"sv)) return 1;
  const size_t list = number(exif, 4, 4, big), entries = number(exif, list, 2, big);
  for (size_t at = list + 2; at < list + 2 + entries * kEntry && at + kEntry <= exif.size(); at += kEntry) {
    if (number(exif, at, 2, big) != kOrientation) continue;
    const uint32_t value = number(exif, at + 8, number(exif, at + 2, 2, big) == kShort ? 2 : 4, big);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

void mix_inks(Image& image, bool inverted) {
  const uint8_t flip = inverted ? 0 : 255;
  const uint8_t* from = image.pixels.data();
  uint8_t* to = image.pixels.data();  // never ahead of the pixels that are still read
  for (const uint8_t* const end = from + image.pixels.size(); from != end; from += 4) {
    const auto paper = static_cast<uint64_t>(from[3] ^ flip);  // what black leaves of it
    for (int c = 0; c < 3; ++c) *to++ = to_byte(static_cast<uint64_t>(from[c] ^ flip) * paper, uint64_t{255} * 255);
  }
  image.set_size(image.width, image.height, 3);
}

}  // namespace tenon::images
