// The decoders of images in a build without the headers of optional libraries, and on a system without a library.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "decode.h"
#include "library.h"
#include "tests/support/image_files.h"

namespace tenon_tests {

using namespace tenon::images;

namespace {

using ::testing::HasSubstr;

std::string refusal(const std::string& file) {
  Image image;
  try {
    Decoder(3, 1000, true)
        .decode(
            {reinterpret_cast<const uint8_t*>(file.data()), file.size()},
            [](int width, int height) { return std::pair(width, height); }, image);
  } catch (const NoDecoder& absent) {
    return absent.why;
  } catch (const BadImage& bad) {
    return "bad: " + bad.why;
  }
  return "";
}

// This program has the decoders of JPEG, PNG and BMP alone.
TEST(AbsentDecoders, FormatsAreRefusedByName) {
  const std::string why = ": this build of the reader has no decoder for it: ";
  EXPECT_EQ(refusal("GIF89a..."), "GIF" + why + "libgif-dev was missing when it was built");
  EXPECT_EQ(refusal("RIFF....WEBPVP8L"), "WebP" + why + "libwebp-dev was missing when it was built");
  for (const char* const order : {"II*", "II+", "MM"})
    EXPECT_EQ(refusal(order == std::string("MM") ? std::string("MM\0*....", 8) : order + std::string("\0....", 5)),
              "TIFF" + why + "libtiff-dev was missing when it was built");
  EXPECT_EQ(refusal(png(2, 2, {1, 2, 3, 4})), "");
  EXPECT_EQ(refusal(jpeg(2, 2, {1, 2, 3, 4})), "");
  EXPECT_THAT(refusal("BM"), HasSubstr("bad: BMP: "));
  EXPECT_EQ(refusal("RIFF....WAVE"), "bad: neither JPEG, PNG, GIF, WebP, BMP nor TIFF");
  EXPECT_EQ(refusal("RIFF"), "bad: neither JPEG, PNG, GIF, WebP, BMP nor TIFF");
}

struct AbsentFunction : Library {
  AbsentFunction() : Library("PNG", "libpng16.so.16", "libpng16-16") {}
  int (*function)() = find("png_no_such_function");
};

TEST(AbsentDecoders, LibrariesAreNamed) {
  try {
    const Library library("TIFF", "libtenon-absent.so.6", "libtiff6");
    ADD_FAILURE() << "it was loaded";
  } catch (const NoDecoder& absent) {
    EXPECT_THAT(absent.why, HasSubstr("TIFF: libtenon-absent.so.6: "));
    EXPECT_THAT(absent.why, HasSubstr("; install libtiff6"));
  }
  try {
    const AbsentFunction library;
    ADD_FAILURE() << "it has the function";
  } catch (const NoDecoder& absent) {
    EXPECT_EQ(absent.why, "libpng16.so.16 has no function png_no_such_function");
  }
}

}  // namespace
}  // namespace tenon_tests
