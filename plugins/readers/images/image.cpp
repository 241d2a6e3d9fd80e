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

// The header of a TIFF file has the offset of a list, of which an entry is tag, type, count and value. Files of 64 bits
// have wider numbers, of which the low 32 bits suffice: larger files are not read.
std::optional<uint32_t> tiff_value(Bytes file, uint32_t tag) {
  using std::literals::operator""sv;
  constexpr uint32_t kShort = 3;
  const bool big_endian = begins_with(file, "MM"sv);
  const bool wide = begins_with(file, "MM\0+"sv) || begins_with(file, "II+\0"sv);
  if (!wide && !begins_with(file, "MM\0*"sv) && !begins_with(file, "II*\0"sv)) return {};
  const auto low = [&](size_t at) { return number(file, wide && big_endian ? at + 4 : at, 4, big_endian); };
  const size_t entry_bytes = wide ? 20 : 12;
  const size_t list = low(wide ? 8 : 4);
  size_t at = list + (wide ? 8 : 2);
  for (size_t left = wide ? low(list) : number(file, list, 2, big_endian); left > 0; --left, at += entry_bytes) {
    if (at + entry_bytes > file.size()) return {};
    if (number(file, at, 2, big_endian) != tag) continue;
    const uint32_t type = number(file, at + 2, 2, big_endian);
    const size_t value = at + (wide ? 12 : 8);  // of a smaller type it is at the front
    return number(file, value, type == kShort ? 2 : 4, big_endian);
  }
  return {};
}

// EXIF data is a TIFF file.
int exif_orientation(Bytes exif) {
  using std::literals::operator""sv;
  constexpr uint32_t kOrientation = 0x112;
  if (begins_with(exif, "Exif\0\0"sv)) exif = exif.subspan(6);
  const uint32_t value = tiff_value(exif, kOrientation).value_or(1);
  return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
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
