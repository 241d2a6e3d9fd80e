// SPDX-License-Identifier: Apache-2.0
#include "host/cli/data/sheet.h"

#include <png.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>

#include "host/cli/cli.h"

namespace tenon::cli {

namespace {

constexpr int kGlyphWidth = 5, kGlyphHeight = 7;  // pixels

// The rows of a character from top to bottom; bit 4 is the leftmost pixel. Small letters look like capital ones;
// characters that the font lacks are a box.
using Glyph = std::array<uint8_t, kGlyphHeight>;
[[nodiscard]] const Glyph& glyph_of(char character);

constexpr char kFirst = ' ', kLast = '_';
constexpr Glyph kBox = {0x1f, 0x11, 0x11, 0x11, 0x11, 0x11, 0x1f};

constexpr Glyph kGlyphs[] = {
    {0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00},  // space
    {0x04, 0x04, 0x04, 0x04, 0x04, 0x00, 0x04},  // !
    {0x0a, 0x0a, 0x00, 0x00, 0x00, 0x00, 0x00},  // "
    {0x0a, 0x0a, 0x1f, 0x0a, 0x1f, 0x0a, 0x0a},  // #
    {0x1f, 0x11, 0x11, 0x11, 0x11, 0x11, 0x1f},  // $
    {0x19, 0x19, 0x02, 0x04, 0x08, 0x13, 0x13},  // %
    {0x0c, 0x12, 0x14, 0x08, 0x15, 0x12, 0x0d},  // &
    {0x04, 0x04, 0x00, 0x00, 0x00, 0x00, 0x00},  // '
    {0x02, 0x04, 0x08, 0x08, 0x08, 0x04, 0x02},  // (
    {0x08, 0x04, 0x02, 0x02, 0x02, 0x04, 0x08},  // )
    {0x00, 0x04, 0x15, 0x0e, 0x15, 0x04, 0x00},  // *
    {0x00, 0x04, 0x04, 0x1f, 0x04, 0x04, 0x00},  // +
    {0x00, 0x00, 0x00, 0x00, 0x0c, 0x04, 0x08},  // ,
    {0x00, 0x00, 0x00, 0x1f, 0x00, 0x00, 0x00},  // -
    {0x00, 0x00, 0x00, 0x00, 0x00, 0x0c, 0x0c},  // .
    {0x00, 0x01, 0x02, 0x04, 0x08, 0x10, 0x00},  // /
    {0x0e, 0x11, 0x13, 0x15, 0x19, 0x11, 0x0e},  // 0
    {0x04, 0x0c, 0x04, 0x04, 0x04, 0x04, 0x0e},  // 1
    {0x0e, 0x11, 0x01, 0x06, 0x08, 0x10, 0x1f},  // 2
    {0x0e, 0x11, 0x01, 0x06, 0x01, 0x11, 0x0e},  // 3
    {0x02, 0x06, 0x0a, 0x12, 0x1f, 0x02, 0x02},  // 4
    {0x1f, 0x10, 0x1e, 0x01, 0x01, 0x11, 0x0e},  // 5
    {0x06, 0x08, 0x10, 0x1e, 0x11, 0x11, 0x0e},  // 6
    {0x1f, 0x01, 0x02, 0x04, 0x08, 0x08, 0x08},  // 7
    {0x0e, 0x11, 0x11, 0x0e, 0x11, 0x11, 0x0e},  // 8
    {0x0e, 0x11, 0x11, 0x0f, 0x01, 0x02, 0x0c},  // 9
    {0x00, 0x0c, 0x0c, 0x00, 0x0c, 0x0c, 0x00},  // :
    {0x00, 0x0c, 0x0c, 0x00, 0x0c, 0x04, 0x08},  // ;
    {0x02, 0x04, 0x08, 0x10, 0x08, 0x04, 0x02},  // <
    {0x00, 0x00, 0x1f, 0x00, 0x1f, 0x00, 0x00},  // =
    {0x08, 0x04, 0x02, 0x01, 0x02, 0x04, 0x08},  // >
    {0x0e, 0x11, 0x01, 0x02, 0x04, 0x00, 0x04},  // ?
    {0x1f, 0x11, 0x11, 0x11, 0x11, 0x11, 0x1f},  // @
    {0x0e, 0x11, 0x11, 0x1f, 0x11, 0x11, 0x11},  // A
    {0x1e, 0x11, 0x11, 0x1e, 0x11, 0x11, 0x1e},  // B
    {0x0e, 0x11, 0x10, 0x10, 0x10, 0x11, 0x0e},  // C
    {0x1c, 0x12, 0x11, 0x11, 0x11, 0x12, 0x1c},  // D
    {0x1f, 0x10, 0x10, 0x1e, 0x10, 0x10, 0x1f},  // E
    {0x1f, 0x10, 0x10, 0x1e, 0x10, 0x10, 0x10},  // F
    {0x0e, 0x11, 0x10, 0x17, 0x11, 0x11, 0x0e},  // G
    {0x11, 0x11, 0x11, 0x1f, 0x11, 0x11, 0x11},  // H
    {0x0e, 0x04, 0x04, 0x04, 0x04, 0x04, 0x0e},  // I
    {0x07, 0x02, 0x02, 0x02, 0x02, 0x12, 0x0c},  // J
    {0x11, 0x12, 0x14, 0x18, 0x14, 0x12, 0x11},  // K
    {0x10, 0x10, 0x10, 0x10, 0x10, 0x10, 0x1f},  // L
    {0x11, 0x1b, 0x15, 0x15, 0x11, 0x11, 0x11},  // M
    {0x11, 0x19, 0x15, 0x13, 0x11, 0x11, 0x11},  // N
    {0x0e, 0x11, 0x11, 0x11, 0x11, 0x11, 0x0e},  // O
    {0x1e, 0x11, 0x11, 0x1e, 0x10, 0x10, 0x10},  // P
    {0x0e, 0x11, 0x11, 0x11, 0x15, 0x12, 0x0d},  // Q
    {0x1e, 0x11, 0x11, 0x1e, 0x14, 0x12, 0x11},  // R
    {0x0f, 0x10, 0x10, 0x0e, 0x01, 0x01, 0x1e},  // S
    {0x1f, 0x04, 0x04, 0x04, 0x04, 0x04, 0x04},  // T
    {0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x0e},  // U
    {0x11, 0x11, 0x11, 0x11, 0x11, 0x0a, 0x04},  // V
    {0x11, 0x11, 0x11, 0x15, 0x15, 0x1b, 0x11},  // W
    {0x11, 0x11, 0x0a, 0x04, 0x0a, 0x11, 0x11},  // X
    {0x11, 0x11, 0x0a, 0x04, 0x04, 0x04, 0x04},  // Y
    {0x1f, 0x01, 0x02, 0x04, 0x08, 0x10, 0x1f},  // Z
    {0x0e, 0x08, 0x08, 0x08, 0x08, 0x08, 0x0e},  // [
    {0x1f, 0x11, 0x11, 0x11, 0x11, 0x11, 0x1f},  // backslash
    {0x0e, 0x02, 0x02, 0x02, 0x02, 0x02, 0x0e},  // ]
    {0x1f, 0x11, 0x11, 0x11, 0x11, 0x11, 0x1f},  // ^
    {0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x1f},  // _
};

const Glyph& glyph_of(char character) {
  const auto shown = static_cast<char>(std::toupper(static_cast<unsigned char>(character)));
  return shown < kFirst || shown > kLast ? kBox : kGlyphs[shown - kFirst];
}

constexpr int64_t kGap = 4;  // pixels between cells, and around picture and caption
constexpr uint8_t kPaper = 255, kInk = 0;
constexpr int64_t kLetter = kGlyphWidth + 1;

// Each pixel becomes `factor` x `factor` of them.
Picture enlarged(const Picture& picture, int64_t factor) {
  Picture result{picture.height * factor, picture.width * factor, {}};
  result.pixels.resize(static_cast<size_t>(3 * result.height * result.width));
  for (int64_t y = 0; y < result.height; ++y)
    for (int64_t x = 0; x < result.width; ++x) std::memcpy(result.at(y, x), picture.at(y / factor, x / factor), 3);
  return result;
}

// Each `factor` x `factor` pixels become their mean, those at the end without a whole square are dropped.
Picture reduced(const Picture& picture, int64_t factor) {
  Picture result{std::max<int64_t>(picture.height / factor, 1), std::max<int64_t>(picture.width / factor, 1), {}};
  result.pixels.resize(static_cast<size_t>(3 * result.height * result.width));
  const int64_t tall = std::min(factor, picture.height), wide = std::min(factor, picture.width);
  for (int64_t y = 0; y < result.height; ++y)
    for (int64_t x = 0; x < result.width; ++x)
      for (int c = 0; c < 3; ++c) {
        int64_t sum = 0;
        for (int64_t i = 0; i < tall; ++i)
          for (int64_t k = 0; k < wide; ++k) sum += picture.at(y * factor + i, x * factor + k)[c];
        result.at(y, x)[c] = static_cast<uint8_t>(sum / (tall * wide));
      }
  return result;
}

Picture fitted(const Picture& picture) {
  const int64_t side = std::max<int64_t>({picture.height, picture.width, 1});
  if (side > kMostSide) return reduced(picture, (side + kMostSide - 1) / kMostSide);
  return enlarged(picture, (kLeastSide + side - 1) / side);
}

void draw_text(Picture& on, int64_t top, int64_t left, const std::string& text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const Glyph& glyph = glyph_of(text[i]);
    for (int y = 0; y < kGlyphHeight; ++y)
      for (int x = 0; x < kGlyphWidth; ++x)
        if ((glyph[static_cast<size_t>(y)] >> (kGlyphWidth - 1 - x) & 1) != 0)
          std::memset(on.at(top + y, left + static_cast<int64_t>(i) * kLetter + x), kInk, 3);
  }
}

std::string cut_to(const std::string& text, int64_t width) {
  const auto most = static_cast<size_t>(std::max<int64_t>(width / kLetter, 2));
  return text.size() <= most ? text : text.substr(0, most - 2) + "..";
}

}  // namespace

Picture sheet_of(const std::vector<Captioned>& pictures, int64_t columns) {
  std::vector<Picture> shown;
  int64_t height = 0, width = 0;
  for (const Captioned& each : pictures) {
    shown.push_back(fitted(each.picture));
    height = std::max(height, shown.back().height);
    width = std::max(width, shown.back().width);
  }
  const int64_t cell_height = height + kGlyphHeight + 2 * kGap, cell_width = width + kGap;
  const auto count = static_cast<int64_t>(pictures.size());
  columns = std::min(columns, count);
  Picture sheet{kGap + (count + columns - 1) / columns * cell_height, kGap + columns * cell_width, {}};
  sheet.pixels.assign(static_cast<size_t>(3 * sheet.height * sheet.width), kPaper);
  for (int64_t i = 0; i < count; ++i) {
    const Picture& picture = shown[static_cast<size_t>(i)];
    const int64_t top = kGap + i / columns * cell_height, left = kGap + i % columns * cell_width;
    for (int64_t y = 0; y < picture.height; ++y)
      std::memcpy(sheet.at(top + y, left), picture.at(y, 0), static_cast<size_t>(3 * picture.width));
    draw_text(sheet, top + height + kGap / 2, left, cut_to(pictures[static_cast<size_t>(i)].caption, width));
  }
  return sheet;
}

void write_png(const Picture& picture, const std::string& path) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(picture.width);
  image.height = static_cast<png_uint_32>(picture.height);
  image.format = PNG_FORMAT_RGB;
  png_alloc_size_t bytes = 0;
  std::vector<uint8_t> file;
  bool done = png_image_write_to_memory(&image, nullptr, &bytes, 0, picture.pixels.data(), 0, nullptr) != 0;
  file.resize(bytes);
  done = done && png_image_write_to_memory(&image, file.data(), &bytes, 0, picture.pixels.data(), 0, nullptr) != 0;
  if (!done) throw Failure(kInternal, path + ": PNG: " + image.message);
  const std::string target = file_target(path);  // not the file that a link of another user chooses
  const std::unique_ptr<FILE, int (*)(FILE*)> to(std::fopen(target.c_str(), "wb"), &std::fclose);
  if (to == nullptr || std::fwrite(file.data(), 1, bytes, to.get()) != bytes || std::fflush(to.get()) != 0)
    throw Failure(kIo, path + ": cannot write it: " + std::strerror(errno));
}

}  // namespace tenon::cli
