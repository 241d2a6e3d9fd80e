// SPDX-License-Identifier: Apache-2.0
#include "host/cli/data/sheet.h"

#include <png.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "host/cli/cli.h"
#include "host/cli/data/glyphs.h"

namespace tenon::cli {

namespace {

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
