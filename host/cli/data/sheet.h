// A contact sheet: a grid of pictures with captions. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::cli {

// Red, green and blue bytes, [height, width, 3].
struct Picture {
  int64_t height = 0, width = 0;
  std::vector<uint8_t> pixels;

  [[nodiscard]] uint8_t* at(int64_t y, int64_t x) { return pixels.data() + 3 * (y * width + x); }
  [[nodiscard]] const uint8_t* at(int64_t y, int64_t x) const { return pixels.data() + 3 * (y * width + x); }
};

struct Captioned {
  Picture picture;
  std::string caption;  // cut if it is wider than the picture
};

// Returns the pictures side by side, in rows of `columns`, each in a cell of the size of the largest, with its caption
// below. Pictures smaller than kLeastSide are enlarged by a whole number, those larger than kMostSide are reduced by
// one. `pictures` must not be empty.
constexpr int64_t kLeastSide = 64, kMostSide = 256;  // pixels, of the longer side
[[nodiscard]] Picture sheet_of(const std::vector<Captioned>& pictures, int64_t columns);

// Writes a PNG file; an existing one is replaced. Throws Failure(kIo) naming it.
void write_png(const Picture& picture, const std::string& path);

}  // namespace tenon::cli
