// The sizes that headers of image files state, against those that the files were made with.
// SPDX-License-Identifier: Apache-2.0
#include "header.h"
#include "tests/support/picture_files.h"

namespace tenon_tests {

using namespace tenon::images;

namespace {

constexpr int kWidth = 37, kHeight = 21;

std::optional<StoredSize> size_of(const Bytes& file) {
  return stored_size({reinterpret_cast<const uint8_t*>(file.data()), file.size()});
}

void expect_size(const Bytes& file, const char* what, bool colour = true, int width = kWidth, int height = kHeight) {
  SCOPED_TRACE(what);
  const std::optional<StoredSize> size = size_of(file);
  ASSERT_TRUE(size);
  EXPECT_EQ(size->width, width);
  EXPECT_EQ(size->height, height);
  EXPECT_EQ(size->colour, colour);
}

// Half of a file, and less, either states the same size or none.
void expect_beginnings(const Bytes& file, const char* what) {
  SCOPED_TRACE(what);
  for (size_t bytes = 0; bytes < file.size(); ++bytes)
    if (const std::optional<StoredSize> size = size_of(file.substr(0, bytes))) {
      EXPECT_EQ(size->width, size_of(file)->width) << bytes;
      EXPECT_EQ(size->height, size_of(file)->height) << bytes;
    }
}

Pixels drawn(size_t channels) { return pattern(kWidth, kHeight, channels); }

TEST(ImageHeaders, Jpeg) {
  const Bytes colours = jpeg(kWidth, kHeight, drawn(3));
  expect_size(colours, "colours");
  expect_size(jpeg(kWidth, kHeight, drawn(1)), "grey", false);
  // A preview in EXIF data is a picture of another size.
  expect_size(jpeg_with_exif(colours, exif(6) + jpeg(8, 8, pattern(8, 8))), "behind a preview");
  expect_size(inks_jpeg(kWidth, kHeight, drawn(4)), "inks");
}

TEST(ImageHeaders, Png) {
  expect_size(png(kWidth, kHeight, drawn(3)), "colours");
  expect_size(png(kWidth, kHeight, drawn(1)), "grey", false);
  expect_size(png(kWidth, kHeight, drawn(4)), "alpha");
}

TEST(ImageHeaders, Gif) {
  const Pixels entries(kWidth * kHeight, 1), palette = {0, 0, 0, 255, 0, 0};
  expect_size(gif(kWidth, kHeight, entries, palette), "as its screen");
  expect_size(gif(kWidth, kHeight, entries, palette, {.screen_width = 60, .screen_height = 70, .left = 3}),
              "in a larger screen", true, 60, 70);
}

TEST(ImageHeaders, WebP) {
  const Bytes plain = webp(kWidth, kHeight, drawn(4));
  expect_size(plain, "lossless");
  expect_size(webp_with_exif(kWidth, kHeight, drawn(4), exif(6)), "extended");
  uint8_t* data = nullptr;
  const size_t bytes = WebPEncodeRGB(drawn(3).data(), kWidth, kHeight, 3 * kWidth, 80, &data);
  expect_size(Bytes(reinterpret_cast<char*>(data), bytes), "lossy");
  WebPFree(data);
}

TEST(ImageHeaders, Bmp) {
  const std::vector<uint32_t> pixels(kWidth * kHeight, 7);
  expect_size(bmp(kWidth, kHeight, pixels, {.bits = 24}), "usual");
  expect_size(bmp(kWidth, kHeight, pixels, {.bits = 24, .oldest = true}), "oldest");
  expect_size(bmp(kWidth, kHeight, pixels, {.bits = 24, .top_down = true}), "from the top");
}

TEST(ImageHeaders, Tiff) {
  const std::vector<uint32_t> colours(kWidth * kHeight * 3, 7), grey(kWidth * kHeight, 7);
  for (const bool big_endian : {false, true}) {
    expect_size(tiff(kWidth, kHeight, colours, {.big_endian = big_endian}), "colours");
    expect_size(tiff(kWidth, kHeight, grey, {.big_endian = big_endian, .samples = 1, .photometric = 0}), "grey", false);
    // 64 bits: a header of 16 bytes, a list of two entries.
    const auto put = [&](uint64_t value, size_t count) { return number_bytes(value, count, big_endian); };
    expect_size((big_endian ? Bytes("MM\0+", 4) : Bytes("II+\0", 4)) + put(8, 2) + put(0, 2) + put(16, 8) + put(3, 8) +
                    put(256, 2) + put(3, 2) + put(1, 8) + put(kWidth, 2) + put(0, 6) + put(257, 2) + put(4, 2) +
                    put(1, 8) + put(kHeight, 4) + put(0, 4) + put(262, 2) + put(3, 2) + put(1, 8) + put(2, 2) +
                    put(0, 6),
                "64 bits");
  }
}

TEST(ImageHeaders, Beginnings) {
  const std::vector<uint32_t> pixels(kWidth * kHeight * 3, 7);
  expect_beginnings(jpeg(kWidth, kHeight, drawn(3)), "JPEG");
  expect_beginnings(png(kWidth, kHeight, drawn(3)), "PNG");
  expect_beginnings(tiff(kWidth, kHeight, pixels, {}), "TIFF");
  EXPECT_FALSE(size_of("a text, whatever its name is"));
  EXPECT_FALSE(size_of(""));
  // The offset of the list of a TIFF file, and the length of a JPEG's segment, lie outside of the file.
  EXPECT_FALSE(size_of(Bytes("II*\0\xff\xff\xff\xff", 8)));
  EXPECT_FALSE(size_of("\xff\xd8\xff\xe1\xff\xff"));
}

}  // namespace

}  // namespace tenon_tests
