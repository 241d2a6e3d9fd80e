// Decodes BMP files. Debian has no library for them alone. SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cstdlib>

#include "image.h"

namespace tenon::images {

namespace {

// What a header says. It is little-endian, and comes after "BM" and 12 further bytes.
struct BmpHeader {
  enum Compression : uint32_t { kNone = 0, kMasks = 3, kMasksWithAlpha = 6 };

  explicit BmpHeader(Bytes file) : bytes(get(file, 14, 4)), offset(get(file, 10, 4)) {
    constexpr uint32_t kOldest = 12, kUsual = 40, kWithAlpha = 56;
    if (file.size() < kStart + bytes || (bytes != kOldest && bytes < kUsual))
      throw BadImage{"BMP: a header of " + std::to_string(bytes) + " bytes, in a file of " +
                     std::to_string(file.size())};
    const bool oldest = bytes == kOldest;
    const size_t side_bytes = oldest ? 2 : 4;
    width = static_cast<int32_t>(get(file, 18, side_bytes));
    height = static_cast<int32_t>(get(file, 18 + side_bytes, side_bytes));
    bits = get(file, oldest ? 24 : 28, 2);
    if (bits != 1 && bits != 4 && bits != 8 && bits != 16 && bits != 24 && bits != 32)
      throw BadImage{"BMP: pixels of " + std::to_string(bits) + " bits"};
    const uint32_t compression = oldest ? uint32_t{kNone} : get(file, 30, 4);
    const bool masked = compression == kMasks || compression == kMasksWithAlpha;
    if (compression != kNone && !(masked && (bits == 16 || bits == 32)))
      throw BadImage{"BMP: compression " + std::to_string(compression) + " of pixels of " + std::to_string(bits) +
                     " bits is not read"};
    if (bits == 16) masks[0] = 0x7C00, masks[1] = 0x3E0, masks[2] = 0x1F;
    for (size_t c = 0; masked && c < 3; ++c) masks[c] = get(file, 54 + 4 * c, 4);
    if (masked && (bytes >= kWithAlpha || compression == kMasksWithAlpha)) masks[3] = get(file, 66, 4);
    entry_bytes = oldest ? 3 : 4;
    colours = oldest ? 0 : get(file, 46, 4);
    if (bits <= 8 && (colours == 0 || colours > 1U << bits)) colours = 1U << bits;
  }

  static constexpr size_t kStart = 14;
  static uint32_t get(Bytes file, size_t at, size_t count) { return number(file, at, count, false); }

  uint32_t bytes, offset;
  int64_t width = 0, height = 0;  // height: negative if the rows go from top to bottom
  uint32_t bits = 0;
  uint32_t masks[4] = {0xFF0000, 0xFF00, 0xFF, 0};  // of red, green, blue and alpha in a pixel
  uint32_t colours = 0, entry_bytes = 4;            // of the palette
};

// The sample that a mask selects from a pixel, in 8 bits.
uint8_t sample(uint32_t pixel, uint32_t mask) {
  if (mask == 0) return 0;
  const int shift = std::countr_zero(mask);
  return to_byte((pixel & mask) >> shift, mask >> shift);
}

}  // namespace

void decode_bmp(Bytes file, const Request& request, Image& to) {
  const BmpHeader header(file);
  const int64_t rows = std::abs(header.height);
  request.check_pixels(header.width, rows);
  const auto width = static_cast<size_t>(header.width), height = static_cast<size_t>(rows);
  const size_t row_bits = width * header.bits, row_bytes = (row_bits + 31) / 32 * 4;  // a row fills 32-bit words
  if (file.size() < header.offset + row_bytes * (height - 1) + (row_bits + 7) / 8)
    throw BadImage{"BMP: ends before its pixels end"};
  const int channels = header.masks[3] != 0 ? 4 : 3;
  to.set_size(header.width, rows, channels);
  uint8_t* out = to.pixels.data();
  for (size_t y = 0; y < height; ++y) {
    const Bytes row = part(file, header.offset + row_bytes * (header.height < 0 ? y : height - 1 - y), row_bytes);
    for (size_t x = 0; x < width; ++x) {
      const size_t bit = x * header.bits;
      uint32_t pixel = BmpHeader::get(row, bit / 8, (header.bits + 7) / 8);
      if (header.bits <= 8) {
        const uint32_t entry = pixel >> (8 - header.bits - bit % 8) & ((1U << header.bits) - 1);
        const size_t at = BmpHeader::kStart + header.bytes + size_t{entry} * header.entry_bytes;
        if (entry >= header.colours || at + 3 > file.size())
          throw BadImage{"BMP: a pixel has colour " + std::to_string(entry) + " of " + std::to_string(header.colours)};
        pixel = BmpHeader::get(file, at, 3);
      }
      for (int c = 0; c < channels; ++c) *out++ = sample(pixel, header.masks[c]);
    }
  }
}

}  // namespace tenon::images
