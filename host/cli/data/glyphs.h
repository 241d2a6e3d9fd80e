// A small font for labels in images. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace tenon::cli {

constexpr int kGlyphWidth = 5, kGlyphHeight = 7;  // pixels

// The rows of a character from top to bottom; bit 4 is the leftmost pixel. Small letters look like capital ones;
// characters that the font lacks are a box.
using Glyph = std::array<uint8_t, kGlyphHeight>;
[[nodiscard]] const Glyph& glyph_of(char character);

}  // namespace tenon::cli
