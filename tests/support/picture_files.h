// Small pictures in the formats BMP, GIF, TIFF and WebP, JPEG of inks, and EXIF data in files, byte by byte.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <webp/encode.h>
#include <zlib.h>

#include <algorithm>
#include <map>

#include "tests/support/image_files.h"

namespace tenon_tests {

// `bytes` bytes of a number, the least significant first, or last.
inline Bytes number_bytes(uint64_t value, size_t bytes, bool big_endian = false) {
  Bytes result;
  for (size_t i = 0; i < bytes; ++i) result += static_cast<char>(value >> 8 * (big_endian ? bytes - 1 - i : i));
  return result;
}

// ---- EXIF

// EXIF data with an orientation, behind another entry.
inline Bytes exif(int orientation, bool big_endian = false, int type = 3) {
  const auto put = [&](uint64_t value, size_t bytes) { return number_bytes(value, bytes, big_endian); };
  const auto value = static_cast<uint64_t>(orientation);
  return (big_endian ? Bytes("MM\0*", 4) : Bytes("II*\0", 4)) + put(8, 4) + put(2, 2) + put(0x100, 2) + put(4, 2) +
         put(1, 4) + put(7, 4) + put(0x112, 2) + put(static_cast<uint64_t>(type), 2) + put(1, 4) +
         (type == 3 ? put(value, 2) + put(0, 2) : put(value, 4)) + put(0, 4);
}
// Adds a segment to a JPEG file, before all others.
inline Bytes with_segment(const Bytes& jpeg_file, char kind, const Bytes& content) {
  return jpeg_file.substr(0, 2) + '\xff' + kind + number_bytes(content.size() + 2, 2, true) + content +
         jpeg_file.substr(2);
}
inline Bytes jpeg_with_exif(const Bytes& jpeg_file, const Bytes& data) {
  return with_segment(jpeg_file, '\xe1', Bytes("Exif\0\0", 6) + data);
}
// Adds a chunk to a PNG file behind its header.
inline Bytes png_with_chunk(const Bytes& png_file, const Bytes& type, const Bytes& content) {
  constexpr size_t kHeaderEnd = 33;
  const Bytes summed = type + content;
  const auto sum = crc32(0, reinterpret_cast<const Bytef*>(summed.data()), static_cast<uInt>(summed.size()));
  return png_file.substr(0, kHeaderEnd) + number_bytes(content.size(), 4, true) + summed + number_bytes(sum, 4, true) +
         png_file.substr(kHeaderEnd);
}

// ---- JPEG of inks

// A JPEG file of pixels [height, width, 4], cyan to black, stored as YCCK with the mark of Adobe's programs.
inline Bytes inks_jpeg(int width, int height, const Pixels& inks) {
  const tjhandle handle = tjInitCompress();
  unsigned char* data = nullptr;
  unsigned long bytes = 0;
  EXPECT_EQ(tjCompress2(handle, inks.data(), width, 0, height, TJPF_CMYK, &data, &bytes, TJSAMP_444, 100, 0), 0);
  Bytes result(reinterpret_cast<char*>(data), bytes);
  tjFree(data);
  tjDestroy(handle);
  return result;
}

// ---- BMP

struct BmpKind {
  uint32_t bits = 24;
  bool oldest = false, top_down = false;
  uint32_t compression = 0;            // 3: masks
  std::vector<uint32_t> masks = {};    // of red, green, blue and, in a header with room for it, alpha
  std::vector<uint32_t> palette = {};  // 0xRRGGBB
};

// pixels [height, width]: numbers of the palette, or as masks select from them.
inline Bytes bmp(int width, int height, const std::vector<uint32_t>& pixels, const BmpKind& kind) {
  const auto put = [](uint64_t value, size_t bytes) { return number_bytes(value, bytes); };
  Bytes rest, rows;
  const uint32_t header = kind.oldest ? 12 : kind.masks.size() == 4 ? 108 : 40;
  if (kind.compression != 0)
    for (const uint32_t mask : kind.masks) rest += put(mask, 4);
  if (header == 108) rest.resize(108 - 40);
  for (const uint32_t colour : kind.palette) rest += put(colour, kind.oldest ? 3 : 4);
  for (int y = 0; y < height; ++y) {
    Bytes row;
    uint64_t held = 0, count = 0;  // bits that do not fill a byte yet
    const auto from = static_cast<size_t>((kind.top_down ? y : height - 1 - y) * width);
    for (size_t x = from; x < from + static_cast<size_t>(width); ++x) {
      if (kind.bits >= 8) row += put(pixels[x], kind.bits / 8);
      if (kind.bits >= 8) continue;
      held = held << kind.bits | pixels[x];
      count += kind.bits;
      if (count == 8) row += static_cast<char>(held), held = count = 0;
    }
    if (count > 0) row += static_cast<char>(held << (8 - count));
    row.resize((row.size() + 3) / 4 * 4);
    rows += row;
  }
  const auto w = static_cast<uint64_t>(width), h = static_cast<uint64_t>(kind.top_down ? -int64_t{height} : height);
  const size_t side = kind.oldest ? 2 : 4;
  Bytes start = put(header, 4) + put(w, side) + put(h, side) + put(1, 2) + put(kind.bits, 2);
  if (!kind.oldest)
    start += put(kind.compression, 4) + put(rows.size(), 4) + put(2835, 4) + put(2835, 4) +
             put(kind.palette.size(), 4) + put(0, 4);
  const size_t offset = 14 + start.size() + rest.size();
  return "BM" + put(offset + rows.size(), 4) + put(0, 4) + put(offset, 4) + start + rest + rows;
}

// ---- GIF

struct GifKind {
  int screen_width = 0, screen_height = 0, left = 0, top = 0;  // of the screen: 0: as the image
  bool interlaced = false, local = false;                      // local: the palette is that of the image
  int transparent = -1;
  int frames = 1;  // further ones are of colour 0
};

// entries [height, width] of a palette [2^n, 3]. The codes of LZW are the entries: the table is cleared before it is
// large enough for longer codes.
inline Bytes gif(int width, int height, const Pixels& entries, const Pixels& palette, const GifKind& kind = {}) {
  const auto put = [](int value, size_t bytes) { return number_bytes(static_cast<uint64_t>(value), bytes); };
  int bits = 1;
  while (3 << bits < static_cast<int>(palette.size())) ++bits;
  const Bytes colours(palette.begin(), palette.end());
  const int code_bits = std::max(bits, 2), clear = 1 << code_bits;
  Bytes file = "GIF89a" + put(kind.screen_width == 0 ? width : kind.screen_width, 2) +
               put(kind.screen_height == 0 ? height : kind.screen_height, 2) +
               put(kind.local ? 0 : 0x80 | (bits - 1), 1) + put(0, 2);
  if (!kind.local) file += colours;
  file += Bytes(
      "!\xfe\x03"
      "abc\0",
      7);  // a comment
  for (int frame = 0; frame < kind.frames; ++frame) {
    if (kind.transparent >= 0 || kind.frames > 1)
      file += Bytes("!\xf9\x04", 3) + put(kind.transparent >= 0 ? 1 : 0, 1) + put(0, 2) +
              put(std::max(kind.transparent, 0), 1) + put(0, 1);
    file += "," + put(kind.left, 2) + put(kind.top, 2) + put(width, 2) + put(height, 2) +
            put((kind.local ? 0x80 | (bits - 1) : 0) | (kind.interlaced ? 0x40 : 0), 1);
    if (kind.local) file += colours;
    std::vector<int> rows;
    for (const auto& [first, step] : std::vector<std::pair<int, int>>{{0, 8}, {4, 8}, {2, 4}, {1, 2}})
      for (int y = first; kind.interlaced && y < height; y += step) rows.push_back(y);
    for (int y = 0; !kind.interlaced && y < height; ++y) rows.push_back(y);
    Bytes data;
    uint64_t held = 0, count = 0;
    const auto code = [&](int value) {
      held |= static_cast<uint64_t>(value) << count;
      for (count += static_cast<uint64_t>(code_bits) + 1; count >= 8; count -= 8, held >>= 8)
        data += static_cast<char>(held);
    };
    int since_clear = clear;
    for (const int y : rows)
      for (int x = 0; x < width; ++x) {
        if (since_clear++ >= clear - 2) code(clear), since_clear = 1;
        code(frame > 0 ? 0 : entries[static_cast<size_t>(y * width + x)]);
      }
    code(clear + 1);
    if (count > 0) data += static_cast<char>(held);
    file += put(code_bits, 1);
    for (size_t at = 0; at < data.size(); at += 255) {
      const Bytes block = data.substr(at, 255);
      file += put(static_cast<int>(block.size()), 1) + block;
    }
    file += '\0';
  }
  return file + ";";
}

// ---- TIFF

struct TiffKind {
  bool big_endian = false, separate = false;  // separate: one plane for each sample
  uint64_t bits = 8, samples = 3;
  uint64_t photometric = 2;  // 0: white is 0; 1: black is 0; 2: RGB; 3: palette; 5: CMYK
  uint64_t tile = 0;         // side of a tile, a multiple of 16; 0: strips
  uint64_t rows = 2;         // of a strip
  uint64_t compression = 1;  // 1: none; 8: deflate; 32773: runs of bytes
  uint64_t orientation = 1, pages = 1;
  uint64_t format = 1;                              // 1: unsigned; 2: signed; 3: floating
  std::vector<uint64_t> extras = {}, palette = {};  // kinds of the samples after the colours; [3, entries]
};

inline Bytes packed(const Bytes& plain, uint64_t compression) {
  if (compression == 1) return plain;
  Bytes result;
  if (compression == 32773) {
    for (const char byte : plain) result += Bytes{0, byte};  // runs of one byte
    return result;
  }
  uLongf bytes = compressBound(plain.size());
  result.resize(bytes);
  EXPECT_EQ(compress(reinterpret_cast<Bytef*>(result.data()), &bytes, reinterpret_cast<const Bytef*>(plain.data()),
                     plain.size()),
            Z_OK);
  result.resize(bytes);
  return result;
}

// The bytes of a row of samples, which fill bytes from the highest bit.
inline Bytes tiff_row(const std::vector<uint64_t>& samples, const TiffKind& kind) {
  Bytes row;
  uint64_t held = 0, count = 0;  // bits of the last byte
  for (const uint64_t value : samples) {
    if (kind.bits >= 8) row += number_bytes(value, kind.bits / 8, kind.big_endian);
    if (kind.bits >= 8) continue;
    held = held << kind.bits | value;
    count += kind.bits;
    if (count == 8) row += static_cast<char>(held), held = count = 0;
  }
  if (count > 0) row += static_cast<char>(held << (8 - count));
  return row;
}

// The tags of a page: type (3: 16 bits, 4: 32 bits) and values. offsets, counts: of its blocks, in bytes.
inline std::map<uint64_t, std::pair<uint64_t, std::vector<uint64_t>>> tiff_tags(size_t width, size_t height,
                                                                                const TiffKind& kind, uint64_t page,
                                                                                const std::vector<uint64_t>& offsets,
                                                                                const std::vector<uint64_t>& counts) {
  return {{256, {4, {width}}},
          {257, {4, {height}}},
          {258, {3, std::vector<uint64_t>(kind.samples, kind.bits)}},
          {259, {3, {kind.compression}}},
          {262, {3, {page == 0 ? kind.photometric : 1 - kind.photometric}}},
          {kind.tile != 0 ? 324U : 273U, {4, offsets}},
          {274, {3, {kind.orientation}}},
          {277, {3, {kind.samples}}},
          {278, {4, std::vector<uint64_t>(kind.tile != 0 ? 0 : 1, kind.rows)}},
          {kind.tile != 0 ? 325U : 279U, {4, counts}},
          {284, {3, {kind.separate ? 2U : 1U}}},
          {320, {3, kind.palette}},
          {322, {4, std::vector<uint64_t>(kind.tile != 0 ? 1 : 0, kind.tile)}},
          {323, {4, std::vector<uint64_t>(kind.tile != 0 ? 1 : 0, kind.tile)}},
          {338, {3, kind.extras}},
          {339, {3, std::vector<uint64_t>(kind.format == 1 ? 0 : kind.samples, kind.format)}}};
}

// samples: [height, width, samples of a pixel]. Further pages of grey have black and white exchanged.
inline Bytes tiff(size_t width, size_t height, const std::vector<uint32_t>& samples, const TiffKind& kind) {
  const auto put = [&](uint64_t value, size_t bytes) { return number_bytes(value, bytes, kind.big_endian); };
  Bytes file = (kind.big_endian ? Bytes("MM\0*", 4) : Bytes("II*\0", 4)) + "....";
  const size_t block_width = kind.tile != 0 ? kind.tile : width, block_height = kind.tile != 0 ? kind.tile : kind.rows;
  std::vector<uint64_t> offsets, counts;
  const size_t planes = kind.separate ? kind.samples : 1, stored = kind.separate ? 1 : kind.samples;
  for (size_t plane = 0; plane < planes; ++plane)
    for (size_t top = 0; top < height; top += block_height)
      for (size_t left = 0; left < width; left += block_width) {
        const size_t bottom = kind.tile != 0 ? top + block_height : std::min(top + block_height, height);
        Bytes block;
        for (size_t y = top; y < bottom; ++y) {
          std::vector<uint64_t> row;
          for (size_t x = left; x < left + block_width; ++x)
            for (size_t s = 0; s < stored; ++s)
              row.push_back(x < width && y < height ? samples[(y * width + x) * kind.samples + plane + s] : 0);
          block += tiff_row(row, kind);
        }
        offsets.push_back(file.size());
        block = packed(block, kind.compression);
        counts.push_back(block.size());
        file += block;
      }
  size_t link = 4;  // where the offset of the next page's list is
  for (uint64_t page = 0; page < kind.pages; ++page) {
    Bytes entries;
    uint64_t entries_count = 0;
    for (const auto& [tag, content] : tiff_tags(width, height, kind, page, offsets, counts)) {
      const auto& [type, values] = content;
      if (values.empty()) continue;
      Bytes bytes;
      for (const uint64_t value : values) bytes += put(value, type == 3 ? 2 : 4);
      if (bytes.size() > 4) {
        file.resize((file.size() + 1) / 2 * 2);
        const Bytes offset = put(file.size(), 4);
        file += bytes;
        bytes = offset;
      }
      bytes.resize(4);
      entries += put(tag, 2) + put(type, 2) + put(values.size(), 4) + bytes;
      ++entries_count;
    }
    file.resize((file.size() + 1) / 2 * 2);
    file.replace(link, 4, put(file.size(), 4));
    file += put(entries_count, 2) + entries + put(0, 4);
    link = file.size() - 4;
  }
  return file;
}

// ---- WebP

// A lossless WebP file of pixels [height, width, 4].
inline Bytes webp(int width, int height, const Pixels& pixels) {
  uint8_t* data = nullptr;
  const size_t bytes = WebPEncodeLosslessRGBA(pixels.data(), width, height, 4 * width, &data);
  EXPECT_GT(bytes, 0u);
  Bytes result(reinterpret_cast<char*>(data), bytes);
  WebPFree(data);
  return result;
}
inline Bytes webp_chunk(const Bytes& type, const Bytes& content) {
  return type + number_bytes(content.size(), 4) + content + Bytes(content.size() % 2, '\0');
}
inline Bytes webp_file(const Bytes& chunks) { return "RIFF" + number_bytes(chunks.size() + 4, 4) + "WEBP" + chunks; }
// The chunk VP8X of the extended form. flags: 0x10 alpha, 0x08 EXIF, 0x02 animation.
inline Bytes webp_header(uint64_t flags, int width, int height) {
  return webp_chunk("VP8X", number_bytes(flags, 4) + number_bytes(static_cast<uint64_t>(width - 1), 3) +
                                number_bytes(static_cast<uint64_t>(height - 1), 3));
}
inline Bytes webp_with_exif(int width, int height, const Pixels& pixels, const Bytes& data) {
  return webp_file(webp_header(0x18, width, height) + webp(width, height, pixels).substr(12) +
                   webp_chunk("EXIF", data));
}
// An animation whose frames have their corner at `left`, `top`, both even.
inline Bytes webp_animation(int canvas_width, int canvas_height, int left, int top, int width, int height,
                            const std::vector<Pixels>& frames) {
  const auto put = [](int value) { return number_bytes(static_cast<uint64_t>(value), 3); };
  Bytes chunks = webp_header(0x12, canvas_width, canvas_height) + webp_chunk("ANIM", number_bytes(0, 6));
  for (const Pixels& pixels : frames)
    chunks += webp_chunk("ANMF", put(left / 2) + put(top / 2) + put(width - 1) + put(height - 1) + put(100) + '\0' +
                                     webp(width, height, pixels).substr(12));
  return webp_file(chunks);
}

}  // namespace tenon_tests
