// Reads headers of image files. SPDX-License-Identifier: Apache-2.0
#include "header.h"

#include <algorithm>
#include <cstdlib>

namespace tenon::images {

namespace {

using std::literals::operator""sv;

struct Signature {
  Format format;
  std::string_view bytes;
  size_t at;
};

constexpr Signature kSignatures[] = {
    {Format::kJpeg, "\xFF\xD8\xFF"sv, 0}, {Format::kPng, "\x89PNG"sv, 0}, {Format::kGif, "GIF8"sv, 0},
    {Format::kWebP, "WEBP"sv, 8},         {Format::kBmp, "BM"sv, 0},      {Format::kTiff, "II*\0"sv, 0},
    {Format::kTiff, "MM\0*"sv, 0},        {Format::kTiff, "II+\0"sv, 0},  // of 64 bits
    {Format::kTiff, "MM\0+"sv, 0},
};

StoredSize jpeg_size(Bytes file) {
  const JpegHeader header = jpeg_header(file);
  return {header.width, header.height, header.channels > 1};
}

// The first chunk of a PNG has width, height, bits of a sample, and the kind of colours: 0: grey, 4: grey with alpha.
StoredSize png_size(Bytes file) {
  const uint32_t kind = number(file, 25, 1, true);
  return {number(file, 16, 4, true), number(file, 20, 4, true), kind != 0 && kind != 4};
}

StoredSize gif_size(Bytes file) { return {number(file, 6, 2, false), number(file, 8, 2, false)}; }

// The first chunk is the header of the extended form, or lossy or lossless pixels, which begin with their size.
StoredSize webp_size(Bytes file) {
  constexpr uint32_t kFourteen = 0x3FFF;  // bits of a side
  const Bytes kind = part(file, 12, 4);
  if (begins_with(kind, "VP8X")) return {number(file, 24, 3, false) + 1, number(file, 27, 3, false) + 1};
  if (begins_with(kind, "VP8 "))
    return {number(file, 26, 2, false) & kFourteen, number(file, 28, 2, false) & kFourteen};
  const uint32_t sides = number(file, 21, 4, false);
  if (begins_with(kind, "VP8L")) return {(sides & kFourteen) + 1, (sides >> 14 & kFourteen) + 1};
  return {};
}

// Headers of 12 bytes have sides of 16 bits, later ones of 32, with a negative height if the rows begin at the top.
StoredSize bmp_size(Bytes file) {
  if (number(file, 14, 4, false) == 12) return {number(file, 18, 2, false), number(file, 20, 2, false)};
  const auto side = [&](size_t at) { return int64_t{static_cast<int32_t>(number(file, at, 4, false))}; };
  return {side(18), std::abs(side(22))};
}

StoredSize tiff_size(Bytes file) {
  constexpr uint32_t kWidth = 256, kHeight = 257, kPhotometric = 262, kGrey = 1;  // 0, 1: grey
  return {tiff_value(file, kWidth).value_or(0), tiff_value(file, kHeight).value_or(0),
          tiff_value(file, kPhotometric).value_or(0) > kGrey};
}

}  // namespace

Format format_of(Bytes file) {
  const auto* const signature = std::find_if(std::begin(kSignatures), std::end(kSignatures), [&](const auto& each) {
    return begins_with(part(file, each.at, each.bytes.size()), each.bytes);
  });
  return signature == std::end(kSignatures) ? Format::kUnknown : signature->format;
}

// A segment is 0xFF, its kind, and a length of two bytes that counts itself. That of a frame, SOF, has the bits of a
// sample, height, width, and the number of channels.
JpegHeader jpeg_header(Bytes file) {
  constexpr uint32_t kFill = 0xFF, kPicture = 0xDA, kExif = 0xE1, kAdobe = 0xEE;
  constexpr uint32_t kFirstFrame = 0xC0, kLastFrame = 0xCF, kTables = 0xC4, kReserved = 0xC8, kCoding = 0xCC;
  constexpr size_t kAdobeBytes = 12, kFrameBytes = 6;
  JpegHeader header;
  for (size_t at = 2; number(file, at, 1, true) == kFill;) {
    const uint32_t kind = number(file, at + 1, 1, true);
    const size_t length = number(file, at + 2, 2, true);
    if (kind == kPicture || (kind != kFill && length < 2)) break;
    if (kind == kFill) {
      ++at;
      continue;
    }
    const Bytes content = part(file, at + 4, length - 2);
    if (kind == kExif && header.orientation == 1) header.orientation = exif_orientation(content);
    header.adobe = header.adobe || (kind == kAdobe && content.size() >= kAdobeBytes && begins_with(content, "Adobe"));
    const bool frame =
        kind >= kFirstFrame && kind <= kLastFrame && kind != kTables && kind != kReserved && kind != kCoding;
    if (frame && content.size() >= kFrameBytes) {
      header.height = number(content, 1, 2, true);
      header.width = number(content, 3, 2, true);
      header.channels = number(content, 5, 1, true);
    }
    at += 2 + length;
  }
  return header;
}

std::optional<StoredSize> stored_size(Bytes beginning) {
  using Read = StoredSize(Bytes);
  // In the order of the formats.
  constexpr Read* kReads[] = {nullptr, &jpeg_size, &png_size, &gif_size, &webp_size, &bmp_size, &tiff_size};
  Read* const read = kReads[static_cast<size_t>(format_of(beginning))];
  const StoredSize size = read == nullptr ? StoredSize() : read(beginning);
  return size.width > 0 && size.height > 0 ? std::optional(size) : std::nullopt;
}

}  // namespace tenon::images
