// The reader images: the pixels of GIF, WebP, BMP, TIFF and JPEG of inks, against the samples that the files were made
// of, byte by byte. SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <random>

#include "tests/support/picture_files.h"
#include "tests/support/reader_check.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

using ::testing::HasSubstr;
using Numbers = std::vector<uint32_t>;

constexpr int kSides[] = {1, 3, 4, 7, 17};

Numbers drawn(size_t count, uint64_t below, unsigned seed = 3) {
  std::mt19937 generator(seed);
  Numbers numbers(count);
  for (uint32_t& each : numbers) each = static_cast<uint32_t>(generator() % below);
  return numbers;
}
Pixels bytes_of(const Numbers& numbers) { return {numbers.begin(), numbers.end()}; }

// The nearest of 8 bits.
uint8_t scaled(uint32_t sample, uint64_t bits) {
  const double most = static_cast<double>((uint64_t{1} << bits) - 1);
  return static_cast<uint8_t>(std::lround(sample * 255.0 / most));
}

class ImageFormats : public ReaderTest {
 protected:
  ImageFormats() : ReaderTest("images") {}

  static Values of(int width, int height, int64_t channels) {
    return {{"folder", "."}, {"size", Ints{height, width}}, {"channels", channels}};
  }
  // The pixels of a file that is read at its own size.
  Pixels pixels(const Bytes& file, int width, int height, int64_t channels = 3) {
    put("a/1.jpg", file);  // the content says the format
    return as<uint8_t>(all(of(width, height, channels))[0][0].values);
  }
  void expect_refusal(const Bytes& file, const std::string& why) {
    put("a/1.jpg", file);
    expect_damage(of(4, 4, 3), "a/1.jpg: " + why);
  }
  // Calls `test` with every pair of sides.
  template <typename Test>
  static void for_sizes(const Test& test) {
    for (const int width : kSides)
      for (const int height : kSides) {
        SCOPED_TRACE(std::to_string(width) + " x " + std::to_string(height));
        test(width, height, static_cast<size_t>(width) * static_cast<size_t>(height));
      }
  }
};

TEST_F(ImageFormats, BmpOfColours) {
  const BmpKind kinds[] = {{.bits = 24},
                           {.bits = 24, .oldest = true},
                           {.bits = 24, .top_down = true},
                           {.bits = 32},
                           {.bits = 32, .compression = 3, .masks = {0xFF, 0xFF00, 0xFF0000}},
                           {.bits = 32, .compression = 3, .masks = {0x3FF00000, 0xFFC00, 0x3FF}},
                           {.bits = 16},
                           {.bits = 16, .compression = 3, .masks = {0xF800, 0x7E0, 0x1F}},
                           {.bits = 16, .top_down = true, .compression = 3, .masks = {0xF00, 0xF0, 0xF}}};
  for_sizes([&](int width, int height, size_t count) {
    for (const BmpKind& kind : kinds) {
      Numbers masks = kind.masks;
      if (masks.empty()) masks = kind.bits == 16 ? Numbers{0x7C00, 0x3E0, 0x1F} : Numbers{0xFF0000, 0xFF00, 0xFF};
      const Numbers stored = drawn(count, uint64_t{1} << kind.bits);
      Pixels expected;
      for (const uint32_t pixel : stored)
        for (const uint32_t mask : masks) {
          const int shift = __builtin_ctz(mask);
          expected.push_back(scaled((pixel & mask) >> shift, static_cast<uint64_t>(__builtin_popcount(mask))));
        }
      ASSERT_EQ(pixels(bmp(width, height, stored, kind), width, height), expected)
          << kind.bits << " bits, " << kind.compression << ", top down " << kind.top_down;
    }
  });
}

TEST_F(ImageFormats, BmpOfPalettes) {
  for_sizes([&](int width, int height, size_t count) {
    for (const uint32_t bits : {1, 4, 8})
      for (const bool oldest : {false, true}) {
        const Numbers palette = drawn(size_t{1} << bits, 1 << 24, 5), stored = drawn(count, 1U << bits);
        Pixels expected;
        for (const uint32_t entry : stored)
          for (const int shift : {16, 8, 0}) expected.push_back(static_cast<uint8_t>(palette[entry] >> shift));
        const Bytes file = bmp(width, height, stored, {.bits = bits, .oldest = oldest, .palette = palette});
        ASSERT_EQ(pixels(file, width, height), expected) << bits << " bits";
      }
  });
  const Bytes grey = bmp(3, 1, {0, 1, 2}, {.bits = 8, .palette = {0x070707, 0x505050, 0xFEFEFE}});
  EXPECT_EQ(pixels(grey, 3, 1, 1), (Pixels{7, 0x50, 0xFE}));
  EXPECT_EQ(pixels(bmp(2, 1, {0xFF102030, 0x00102030},
                       {.bits = 32, .compression = 3, .masks = {0xFF0000, 0xFF00, 0xFF, 0xFF000000}}),
                   2, 1),
            (Pixels{0x10, 0x20, 0x30, 255, 255, 255}));
}

TEST_F(ImageFormats, BmpThatIsDamaged) {
  const Bytes good = bmp(4, 4, drawn(16, 256), {.bits = 24});
  const auto changed = [&](size_t at, const Bytes& bytes) { return Bytes(good).replace(at, bytes.size(), bytes); };
  EXPECT_EQ(pixels(good, 4, 4).size(), 48u);
  expect_refusal(good.substr(0, good.size() - 1), "BMP: ends before its pixels end");
  expect_refusal("BM", "BMP: a header of 0 bytes, in a file of 2");
  expect_refusal(good.substr(0, 30), "BMP: a header of 40 bytes, in a file of 30");
  expect_refusal(changed(14, number_bytes(39, 4)), "BMP: a header of 39 bytes");
  expect_refusal(changed(28, number_bytes(5, 2)), "BMP: pixels of 5 bits");
  expect_refusal(changed(30, number_bytes(1, 4)), "BMP: compression 1 of pixels of 24 bits is not read");
  expect_refusal(changed(18, number_bytes(0, 4)), "0 x 4 pixels");
  expect_refusal(changed(18, number_bytes(uint32_t(-4), 4)), "-4 x 4 pixels");
  expect_refusal(changed(22, number_bytes(0x80000000, 4)), "4 x 2147483648 pixels");
  expect_refusal(changed(10, number_bytes(0xFFFFFFFF, 4)), "BMP: ends before its pixels end");
  expect_refusal(bmp(4, 4, Numbers(16, 3), {.bits = 8, .palette = {1, 2, 3}}), "BMP: a pixel has colour 3 of 3");
}

TEST_F(ImageFormats, GifPixels) {
  for_sizes([&](int width, int height, size_t count) {
    for (const int bits : {1, 2, 5, 8})
      for (const bool interlaced : {false, true}) {
        const Pixels palette = bytes_of(drawn(size_t{3} << bits, 256, 5)), entries = bytes_of(drawn(count, 1U << bits));
        Pixels expected;
        for (const uint8_t entry : entries)
          for (size_t c = 0; c < 3; ++c) expected.push_back(palette[3 * size_t{entry} + c]);
        GifKind kind;
        kind.interlaced = interlaced;
        kind.local = bits == 2;
        kind.frames = bits == 5 ? 3 : 1;
        ASSERT_EQ(pixels(gif(width, height, entries, palette, kind), width, height), expected)
            << bits << " bits, interlaced " << interlaced;
        kind.transparent = entries[0];
        for (size_t i = 0; i < count; ++i)
          if (entries[i] == entries[0]) std::fill_n(&expected[3 * i], 3, uint8_t{255});
        ASSERT_EQ(pixels(gif(width, height, entries, palette, kind), width, height), expected) << "transparent";
      }
  });
}

TEST_F(ImageFormats, GifScreens) {
  const Pixels palette = {10, 10, 10, 20, 20, 20};
  GifKind kind;
  kind.screen_width = 4, kind.screen_height = 3, kind.left = 1, kind.top = 1;
  EXPECT_EQ(pixels(gif(2, 1, {0, 1}, palette, kind), 4, 3, 1),
            (Pixels{255, 255, 255, 255, 255, 10, 20, 255, 255, 255, 255, 255}));
  kind.screen_width = 1, kind.screen_height = 1, kind.left = 0;  // smaller than the image
  EXPECT_EQ(pixels(gif(2, 1, {0, 1}, palette, kind), 2, 2, 1), (Pixels{255, 255, 10, 20}));
  const Bytes good = gif(4, 4, Pixels(16, 1), palette);
  for (size_t size = 6; size + 3 < good.size(); ++size) expect_refusal(good.substr(0, size), "GIF: ");
  expect_refusal(gif(4, 4, Pixels(16, 2), palette), "GIF: a pixel has colour 2 of 2");
  expect_refusal(gif(4, 4, {}, palette, {.frames = 0}), "GIF: it has no image");
  kind.screen_width = kind.screen_height = 65535;
  expect_refusal(gif(2, 1, {0, 1}, palette, kind), "65535 x 65535 pixels; at most 67108864 are read");
}

TEST_F(ImageFormats, WebPPixels) {
  for_sizes([&](int width, int height, size_t count) {
    Pixels stored = bytes_of(drawn(4 * count, 256)), expected;
    for (size_t i = 0; i < count; ++i) {
      stored[4 * i + 3] = i % 3 == 1 ? 0 : 255;
      for (size_t c = 0; c < 3; ++c) expected.push_back(i % 3 == 1 ? 255 : stored[4 * i + c]);
    }
    ASSERT_EQ(pixels(webp(width, height, stored), width, height), expected);
    ASSERT_EQ(pixels(webp_animation(width + 2, height + 4, 2, 4, width, height, {stored, Pixels(4 * count, 9)}),
                     width + 2, height + 4)
                  .size(),
              static_cast<size_t>(3 * (width + 2) * (height + 4)));
  });
  const Pixels dark = {1, 2, 3, 255}, bright = {200, 201, 202, 255};
  EXPECT_EQ(pixels(webp_animation(3, 1, 2, 0, 1, 1, {dark, bright}), 3, 1),
            (Pixels{255, 255, 255, 255, 255, 255, 1, 2, 3}));
  const Bytes good = webp(4, 4, bytes_of(drawn(64, 256)));
  for (size_t size = 12; size < good.size(); ++size) expect_refusal(good.substr(0, size), "WebP: ");
  expect_refusal(webp_file(webp_chunk("VP8L", "abcdefgh")), "WebP: ");
}

TEST_F(ImageFormats, TiffSamples) {
  std::vector<TiffKind> kinds;
  for (const uint64_t bits : {1, 2, 4, 8, 16})
    for (const uint64_t photometric : {0, 1, 2, 3})
      for (const bool separate : {false, true}) {
        if ((bits < 8 && photometric == 2) || (bits == 16 && photometric == 3)) continue;
        TiffKind kind;
        kind.bits = bits;
        kind.photometric = photometric;
        kind.samples = photometric == 2 ? 3 : 1;
        kind.separate = separate;
        kind.big_endian = separate != (bits == 4);
        kind.compression = bits == 8 ? 8 : bits == 2 ? 32773 : 1;
        if (photometric == 3)
          for (const uint32_t value : drawn(size_t{3} << bits, 65536, 5)) kind.palette.push_back(value);
        kinds.push_back(kind);
        kind.tile = 16;
        kinds.push_back(kind);
        if (photometric == 3) continue;
        kind.extras = {0, 0};  // samples that mean nothing
        kind.samples += 2;
        kinds.push_back(kind);
      }
  for_sizes([&](int width, int height, size_t count) {
    for (const TiffKind& kind : kinds) {
      const Numbers stored = drawn(count * kind.samples, uint64_t{1} << kind.bits);
      Pixels expected;
      for (size_t i = 0; i < count; ++i)
        for (size_t c = 0; c < 3; ++c) {
          const uint32_t sample = stored[i * kind.samples + (kind.photometric == 2 ? c : 0)];
          const uint8_t value = scaled(sample, kind.bits);
          if (kind.photometric == 3)
            expected.push_back(scaled(static_cast<uint32_t>(kind.palette[(c << kind.bits) + sample]), 16));
          else
            expected.push_back(kind.photometric == 0 ? static_cast<uint8_t>(255 - value) : value);
        }
      const Bytes file = tiff(static_cast<size_t>(width), static_cast<size_t>(height), stored, kind);
      ASSERT_EQ(pixels(file, width, height), expected)
          << kind.bits << " bits, photometric " << kind.photometric << ", tile " << kind.tile << ", separate "
          << kind.separate << ", samples " << kind.samples;
    }
  });
}

TEST_F(ImageFormats, TiffOfOtherKinds) {
  TiffKind grey;
  grey.photometric = grey.samples = 1;
  grey.pages = 2;
  EXPECT_EQ(pixels(tiff(3, 1, {5, 6, 7}, grey), 3, 1, 1), (Pixels{5, 6, 7})) << "the first page";
  TiffKind alpha = grey;
  alpha.samples = 2, alpha.pages = 1, alpha.extras = {2};
  EXPECT_EQ(pixels(tiff(3, 1, {5, 255, 6, 0, 7, 255}, alpha), 3, 1, 1), (Pixels{5, 255, 7}));
  alpha.extras = {1};  // multiplied by it
  const Pixels multiplied = pixels(tiff(2, 1, {100, 255, 60, 120}, alpha), 2, 1, 1);
  alpha.extras = {2};
  EXPECT_EQ(multiplied, pixels(tiff(2, 1, {100, 255, 128, 120}, alpha), 2, 1, 1)) << "60 of 120 are 128 of 255";
  TiffKind eight;
  eight.bits = 4, eight.samples = 1, eight.photometric = 3;
  eight.palette.assign(48, 0);
  eight.palette[1] = 255, eight.palette[17] = 100;  // 8 bits, as old programs wrote them
  EXPECT_EQ(pixels(tiff(2, 1, {1, 0}, eight), 2, 1), (Pixels{255, 100, 0, 0, 0, 0}));
  for (uint64_t& value : eight.palette) value *= 256;  // as many write them
  EXPECT_EQ(pixels(tiff(2, 1, {1, 0}, eight), 2, 1), (Pixels{255, 100, 0, 0, 0, 0}));
  TiffKind inks;
  inks.samples = 4, inks.photometric = 5;
  EXPECT_EQ(pixels(tiff(3, 1, {0, 0, 0, 0, 255, 0, 51, 0, 0, 102, 0, 51}, inks), 3, 1),
            (Pixels{255, 255, 255, 0, 255, 204, 204, 122, 204}));
}

TEST_F(ImageFormats, TiffThatIsNotRead) {
  TiffKind kind;
  const Numbers samples = drawn(4 * 4 * 3, 256);
  const Bytes good = tiff(4, 4, samples, kind);
  for (size_t size = 4; size < good.size() - 4; size += 5) expect_refusal(good.substr(0, size), "TIFF: ");
  expect_refusal(good.substr(0, 2) + Bytes(6, '\0'), "neither JPEG");
  const auto other = [&](const TiffKind& changed) { return tiff(4, 4, drawn(4 * 4 * changed.samples, 256), changed); };
  kind.bits = 32;
  expect_refusal(
      other(kind),
      "TIFF: a pixel has 3 unsigned samples of 32 bits; at most 16 unsigned ones of 1, 2, 4, 8 or 16 bits are");
  kind.bits = 16, kind.format = 2;
  expect_refusal(other(kind), "TIFF: a pixel has 3 signed samples of 16 bits");
  kind.format = 1, kind.bits = 8, kind.photometric = 8;
  expect_refusal(other(kind), "TIFF: photometric interpretation 8 of 3 samples is not read; grey, RGB, CMYK and");
  kind.photometric = 2, kind.samples = 2;
  expect_refusal(other(kind), "TIFF: photometric interpretation 2 of 2 samples");
  kind.samples = 17;
  expect_refusal(other(kind), "TIFF: a pixel has 17 unsigned samples");
  kind.samples = 3, kind.tile = 16;
  Bytes huge = other(kind);
  for (const uint64_t tag : {322, 323}) {  // sides of a tile
    const Bytes entry = number_bytes(tag, 2) + number_bytes(4, 2) + number_bytes(1, 4);
    huge.replace(huge.find(entry) + entry.size(), 4, number_bytes(32768, 4));
  }
  expect_refusal(huge, "32768 x 32768 pixels; at most 67108864 are read");
  put("a/1.jpg", good);
  Values small = of(4, 4, 3);
  small["most_pixels"] = int64_t{15};
  expect_damage(small, "a/1.jpg: 4 x 4 pixels; at most 15 are read");
}

TEST_F(ImageFormats, JpegOfInks) {
  constexpr int kSide = 16;
  const auto of_one = [&](const Pixels& inks) {
    Pixels all_inks;
    for (int i = 0; i < kSide * kSide; ++i) all_inks.insert(all_inks.end(), inks.begin(), inks.end());
    return inks_jpeg(kSide, kSide, all_inks);
  };
  const auto expect_colour = [&](const Bytes& file, const std::array<double, 3>& colour, const char* what) {
    const Pixels read = pixels(file, kSide, kSide);
    for (size_t i = 0; i < read.size(); ++i) ASSERT_NEAR(read[i], colour[i % 3], 3) << what << ", channel " << i % 3;
    Pixels one;
    for (const double value : colour) one.push_back(static_cast<uint8_t>(std::lround(value)));
    const uint8_t grey = pixels(png(1, 1, one), 1, 1, 1).at(0);
    // Decoded at a quarter of its size.
    for (const uint8_t value : pixels(file, 4, 4, 1)) ASSERT_NEAR(value, grey, 3) << what;
  };
  const auto mixed = [](double c, double m, double y, double k, bool inverted) -> std::array<double, 3> {
    if (inverted) return {c * k / 255, m * k / 255, y * k / 255};
    return {(255 - c) * (255 - k) / 255, (255 - m) * (255 - k) / 255, (255 - y) * (255 - k) / 255};
  };
  const Bytes adobe = of_one({200, 90, 30, 160});
  const size_t mark = adobe.find("Adobe");
  ASSERT_NE(mark, Bytes::npos);
  expect_colour(adobe, mixed(200, 90, 30, 160, true), "YCCK of Adobe");
  // As CMYK the planes are the inks themselves; YCCK has those of 255 - ink.
  const auto plain = [](Bytes file, size_t at) { return file[at + 11] = 0, file; };
  const double red = 255 - 140, green = 255 - 120, blue = 255 - 110;
  const double luma = 0.299 * red + 0.587 * green + 0.114 * blue;
  const std::array<double, 3> planes = {luma, 128 + 0.564 * (blue - luma), 128 + 0.713 * (red - luma)};
  const Bytes other = plain(of_one({140, 120, 110, 60}), of_one({140, 120, 110, 60}).find("Adobe"));
  expect_colour(other, mixed(planes[0], planes[1], planes[2], 60, true), "CMYK of Adobe");
  Bytes unmarked = other;
  const size_t segment = unmarked.find("Adobe") - 4;
  unmarked.erase(segment, 16);
  expect_colour(unmarked, mixed(planes[0], planes[1], planes[2], 60, false), "CMYK");
}

// Pixels that are mixed, where alpha is between, or colours become grey, are those of the same picture as PNG.
TEST_F(ImageFormats, MixedPixelsAreThoseOfPng) {
  constexpr int kWidth = 7, kHeight = 17;
  const size_t count = kWidth * kHeight;
  const Pixels mixed = bytes_of(drawn(4 * count, 256));
  Pixels solid;
  Numbers rgb, rgba, packed_rgba;
  for (size_t i = 0; i < count; ++i) {
    solid.insert(solid.end(), {mixed[4 * i], mixed[4 * i + 1], mixed[4 * i + 2]});
    packed_rgba.push_back(uint32_t{mixed[4 * i + 3]} << 24 | uint32_t{mixed[4 * i]} << 16 |
                          uint32_t{mixed[4 * i + 1]} << 8 | mixed[4 * i + 2]);
  }
  for (const uint8_t value : solid) rgb.push_back(value);
  for (const uint8_t value : mixed) rgba.push_back(value);
  TiffKind plain, alpha;
  alpha.samples = 4, alpha.extras = {2};
  const BmpKind bmp_alpha = {.bits = 32, .compression = 3, .masks = {0xFF0000, 0xFF00, 0xFF, 0xFF000000}};
  for (const int64_t channels : {1, 3}) {
    const auto read = [&](const Bytes& file) { return pixels(file, kWidth, kHeight, channels); };
    const Pixels expected = read(png(kWidth, kHeight, mixed));
    EXPECT_EQ(read(webp(kWidth, kHeight, mixed)), expected);
    EXPECT_EQ(read(tiff(kWidth, kHeight, rgba, alpha)), expected);
    EXPECT_EQ(read(bmp(kWidth, kHeight, packed_rgba, bmp_alpha)), expected);
    EXPECT_EQ(read(tiff(kWidth, kHeight, rgb, plain)), read(png(kWidth, kHeight, solid)));
    EXPECT_EQ(read(bmp(kWidth, kHeight, packed_rgba, {.bits = 32})), read(png(kWidth, kHeight, solid)));
  }
}

// Damage anywhere is an error of the file, or other pixels; the next file is read as ever.
TEST_F(ImageFormats, AnyChangedByteIsSurvived) {
  const Pixels colours = bytes_of(drawn(48, 256)), solid(64, 200), entries = bytes_of(drawn(16, 4));
  TiffKind tiled, deflated;
  tiled.tile = 16;
  deflated.compression = 8;
  const Numbers samples = drawn(48, 256);
  const Bytes files[] = {bmp(4, 4, drawn(16, 4), {.bits = 4, .palette = drawn(4, 1 << 24)}),
                         gif(4, 4, entries, Pixels(colours.begin(), colours.begin() + 12)),
                         webp(4, 4, solid),
                         webp_animation(6, 6, 2, 2, 4, 4, {solid, solid}),
                         tiff(4, 4, samples, deflated),
                         tiff(4, 4, samples, tiled).substr(0, 2000),
                         inks_jpeg(4, 4, solid)};
  put("a/1.jpg", "");
  put("a/2.png", png(4, 4, colours));
  Values bounded = of(4, 4, 3);
  bounded["most_pixels"] = int64_t{100'000};
  const Sample next_one = open(bounded)->read_at({1}).at(0);
  const auto reader = open(bounded);
  for (const Bytes& sound : files)
    for (size_t at = 0; at < sound.size(); ++at)
      for (const int change : {0xA5, 0x01, 0x80}) {
        Bytes changed = sound;
        changed[at] = static_cast<char>(changed[at] ^ change);
        put("a/1.jpg", changed);
        reader->seek(0);
        const Error error = error_of([&] { reader->next(1); });
        EXPECT_TRUE(error.code() == TN_OK || error.code() == TN_BAD_DATA) << error.message();
        reader->seek(1);
        ASSERT_TRUE(reader->next(1).at(0) == next_one);
      }
}

}  // namespace
}  // namespace tenon_tests
