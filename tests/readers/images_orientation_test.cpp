// The reader images: the orientation that EXIF data states, in every format and at every size.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/picture_files.h"
#include "tests/support/reader_check.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

constexpr int kSides[] = {1, 3, 4, 7, 17};

// Where the first row and the first column of the stored pixels are in the upright image, as the EXIF standard puts it.
enum class Side { kTop, kBottom, kLeft, kRight };
constexpr std::pair<Side, Side> kFirst[] = {
    {Side::kTop, Side::kLeft}, {Side::kTop, Side::kRight}, {Side::kBottom, Side::kRight}, {Side::kBottom, Side::kLeft},
    {Side::kLeft, Side::kTop}, {Side::kRight, Side::kTop}, {Side::kRight, Side::kBottom}, {Side::kLeft, Side::kBottom}};

// stored [height, width, channels] -> the upright image, [width, height, channels] if it lies on its side.
Pixels upright(int orientation, int width, int height, const Pixels& stored) {
  const auto [row_side, column_side] = kFirst[orientation - 1];
  const bool on_side = row_side == Side::kLeft || row_side == Side::kRight;
  const size_t channels = stored.size() / static_cast<size_t>(width * height);
  Pixels result(stored.size());
  for (int row = 0; row < height; ++row)
    for (int column = 0; column < width; ++column) {
      const bool row_first = row_side == Side::kTop || row_side == Side::kLeft;
      const bool column_first = column_side == Side::kTop || column_side == Side::kLeft;
      int y = row_first ? row : height - 1 - row, x = column_first ? column : width - 1 - column;
      if (on_side) std::swap(x, y);
      const auto to = static_cast<size_t>(y * (on_side ? height : width) + x);
      for (size_t c = 0; c < channels; ++c)
        result[channels * to + c] = stored[channels * static_cast<size_t>(row * width + column) + c];
    }
  return result;
}

class ImageOrientation : public ReaderTest {
 protected:
  ImageOrientation() : ReaderTest("images") {}

  Pixels read(int width, int height, const Values& more = {}) {
    Values values = more;
    values["folder"] = ".";
    values["size"] = Ints{height, width};
    values.emplace("crop", "none");
    return as<uint8_t>(all(values)[0][0].values);
  }
  // Checks the file against its stored pixels, upright and as stored.
  void expect_turned(int orientation, int width, int height, const Bytes& file, const Pixels& stored) {
    put("a/1.jpg", file);
    EXPECT_EQ(read(width, height, {{"orientation", "stored"}}), stored);
    const bool on_side = orientation >= 5;
    EXPECT_EQ(read(on_side ? height : width, on_side ? width : height), upright(orientation, width, height, stored));
  }
};

TEST_F(ImageOrientation, EveryFormatAndSize) {
  for (const int width : kSides)
    for (const int height : kSides)
      for (int orientation = 1; orientation <= 8; ++orientation) {
        SCOPED_TRACE(std::to_string(width) + " x " + std::to_string(height) + ", " + std::to_string(orientation));
        const bool big = (width + orientation) % 2 == 0;
        const Pixels colours = pattern(width, height);
        expect_turned(orientation, width, height,
                      png_with_chunk(png(width, height, colours), "eXIf", exif(orientation, big)), colours);
        const Bytes data = exif(orientation, big, orientation % 3 == 0 ? 4 : 3);
        expect_turned(orientation, width, height, webp_with_exif(width, height, pattern(width, height, 4), data),
                      colours);
        const Bytes prefixed = Bytes("Exif\0\0", 6) + data;
        expect_turned(orientation, width, height, webp_with_exif(width, height, pattern(width, height, 4), prefixed),
                      colours);
        TiffKind kind;
        kind.orientation = static_cast<uint64_t>(orientation);
        kind.big_endian = big;
        expect_turned(
            orientation, width, height,
            tiff(static_cast<size_t>(width), static_cast<size_t>(height), {colours.begin(), colours.end()}, kind),
            colours);
        const Bytes photo = jpeg(width, height, colours);
        put("a/1.jpg", photo);
        const Pixels decoded = read(width, height);
        expect_turned(orientation, width, height, jpeg_with_exif(photo, exif(orientation, big)), decoded);
        if (HasFailure()) return;
      }
}

// A JPEG is decoded at a scale of the size that the upright image needs.
TEST_F(ImageOrientation, ScaledJpegs) {
  constexpr int kWidth = 64, kHeight = 32;
  Pixels slope;
  for (int i = 0; i < kWidth * kHeight; ++i)
    slope.insert(slope.end(), {static_cast<uint8_t>(4 * (i % kWidth)), static_cast<uint8_t>(8 * (i / kWidth)), 0});
  const Bytes photo = jpeg(kWidth, kHeight, slope);
  for (int orientation = 1; orientation <= 8; ++orientation)
    for (const int factor : {1, 2, 4, 8}) {
      const int width = kWidth / factor, height = kHeight / factor;
      put("a/1.jpg", photo);
      const Pixels stored = read(width, height);
      expect_turned(orientation, width, height, jpeg_with_exif(photo, exif(orientation)), stored);
    }
  // Cropped: the middle of the upright image, which is higher than wide.
  put("a/1.jpg", jpeg_with_exif(photo, exif(6)));
  const Pixels middle = read(16, 16, {{"crop", "centre"}});
  for (int y = 0; y < 16; ++y)
    for (int x = 0; x < 16; ++x) {
      const auto at = static_cast<size_t>(3 * (16 * y + x));
      ASSERT_NEAR(middle[at], 4 * (16 + 2 * y + 0.5), 8) << "red falls downwards";
      ASSERT_NEAR(middle[at + 1], 8 * (31 - 2 * x - 0.5), 12) << "green rises leftwards";
    }
}

TEST_F(ImageOrientation, ExifThatStatesNone) {
  const Pixels colours = pattern(4, 3);
  const Bytes plain = png(4, 3, colours), good = exif(6);
  const auto unturned = [&](const Bytes& data, const char* what) {
    put("a/1.jpg", png_with_chunk(plain, "eXIf", data));
    EXPECT_EQ(read(4, 3), colours) << what;
  };
  for (const int other : {0, 9, 65535}) unturned(exif(other), "an unknown orientation");
  for (size_t size = 0; size < good.size() - 4; ++size) unturned(good.substr(0, size), "cut off");
  for (const size_t at : {0, 2, 4, 22}) {
    Bytes changed = good;
    changed[at] = static_cast<char>(changed[at] ^ 0x55);
    unturned(changed, "damaged");
  }
  // JPEG: the segment of another kind, one that is cut off, and one after fill bytes.
  const Bytes photo = jpeg(4, 3, colours);
  put("a/1.jpg", photo);
  const Pixels decoded = read(4, 3);
  put("a/1.jpg", with_segment(photo, '\xe1', "http://ns.adobe.com/xap/1.0/"));
  EXPECT_EQ(read(4, 3), decoded);
  put("a/1.jpg", with_segment(photo, '\xe2', Bytes("Exif\0\0", 6) + good));
  EXPECT_EQ(read(4, 3), decoded);
  const Bytes turned = jpeg_with_exif(photo, good);
  put("a/1.jpg", turned.substr(0, 2) + "\xff\xff" + turned.substr(2));
  EXPECT_EQ(read(3, 4), upright(6, 4, 3, decoded));
}

}  // namespace
}  // namespace tenon_tests
