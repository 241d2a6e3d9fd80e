// The reader images: PNG samples of every colour type, depth and chunk about colours, against the samples themselves.
// SPDX-License-Identifier: Apache-2.0
#include <png.h>

#include <random>

#include "tests/support/reader_check.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

using Pixels = std::vector<uint8_t>;
using Samples = std::vector<uint32_t>;

// What a PNG file holds.
struct Kind {
  int type = PNG_COLOR_TYPE_GRAY, depth = 8;
  bool interlaced = false, see_through = false;  // see_through: has the chunk tRNS
  const char* chunk = "";                        // about colours

  [[nodiscard]] int channels() const {
    constexpr int kColours = PNG_COLOR_MASK_COLOR, kPalette = PNG_COLOR_MASK_PALETTE;
    const bool three = (type & kColours) != 0 && (type & kPalette) == 0;
    return (three ? 3 : 1) + ((type & PNG_COLOR_MASK_ALPHA) != 0 ? 1 : 0);
  }
  [[nodiscard]] std::string text() const {
    return "colour type " + std::to_string(type) + ", depth " + std::to_string(depth) + ", chunk " + chunk +
           (interlaced ? ", interlaced" : "") + (see_through ? ", tRNS" : "");
  }
};

constexpr int kWidth = 16, kHeight = 8;
constexpr png_byte kEntryAlpha[] = {255, 0};  // of the entries of a palette, in turn

png_color entry(uint32_t number) {
  const auto byte = [](uint32_t value) { return static_cast<png_byte>(value); };
  return {byte(17 * number), byte(255 - number), byte(5 * number + 1)};
}

void put_chunk(png_structp png, png_infop info, const std::string& chunk) {
  if (chunk == "gAMA 1/1.8") png_set_gAMA(png, info, 1 / 1.8);
  if (chunk == "gAMA 1") png_set_gAMA(png, info, 1);
  if (chunk == "sRGB") png_set_sRGB(png, info, PNG_sRGB_INTENT_ABSOLUTE);
  if (chunk == "cHRM") png_set_cHRM(png, info, 0.3127, 0.329, 0.64, 0.33, 0.21, 0.71, 0.15, 0.06);
  if (chunk == "gAMA cHRM") put_chunk(png, info, "gAMA 1/1.8"), put_chunk(png, info, "cHRM");
  if (chunk == "sBIT") {
    const png_color_8 bits = {3, 3, 3, 3, 3};
    png_set_sBIT(png, info, &bits);
  }
}

// samples: [height, width, channels of the kind].
Bytes png(const Kind& kind, const Samples& samples) {
  Bytes result;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  const auto write = [](png_structp to, png_bytep data, size_t bytes) {
    static_cast<Bytes*>(png_get_io_ptr(to))->append(reinterpret_cast<char*>(data), bytes);
  };
  png_set_write_fn(png, &result, write, nullptr);
  png_set_IHDR(png, info, kWidth, kHeight, kind.depth, kind.type,
               kind.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, 0, 0);
  put_chunk(png, info, kind.chunk);
  const int entries = std::min(1 << kind.depth, 256);
  if (kind.type == PNG_COLOR_TYPE_PALETTE) {
    std::vector<png_color> palette;
    Pixels alpha;
    for (int i = 0; i < entries; ++i) palette.push_back(entry(static_cast<uint32_t>(i)));
    for (int i = 0; i < entries; ++i) alpha.push_back(kEntryAlpha[i % 2]);
    png_set_PLTE(png, info, palette.data(), entries);
    if (kind.see_through) png_set_tRNS(png, info, alpha.data(), entries, nullptr);
  } else if (kind.see_through) {  // pixels like the first one
    const auto at = [&](size_t i) { return static_cast<png_uint_16>(samples[i]); };
    const png_color_16 colour = {0, at(0), at(1), at(2), at(0)};
    png_set_tRNS(png, info, nullptr, 0, &colour);
  }
  png_write_info(png, info);
  const size_t row_samples = static_cast<size_t>(kWidth) * static_cast<size_t>(kind.channels());
  const size_t row_bytes = png_get_rowbytes(png, info);
  Pixels packed(row_bytes * kHeight);
  for (size_t i = 0; i < samples.size(); ++i) {
    uint8_t* const row = packed.data() + i / row_samples * row_bytes;
    const size_t bit = i % row_samples * static_cast<size_t>(kind.depth);
    if (kind.depth == 16) row[bit / 8] = static_cast<uint8_t>(samples[i] >> 8), row[bit / 8 + 1] = samples[i] & 255;
    if (kind.depth <= 8)
      row[bit / 8] = static_cast<uint8_t>(row[bit / 8] | samples[i] << (8 - bit % 8 - static_cast<size_t>(kind.depth)));
  }
  std::vector<png_bytep> rows;
  for (size_t y = 0; y < kHeight; ++y) rows.push_back(packed.data() + y * row_bytes);
  png_write_image(png, rows.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return result;
}

// The red, green and blue of a pixel in 8 bits, in front of white. samples: of the pixel; first: of the first pixel.
std::array<uint8_t, 3> expected(const Kind& kind, const uint32_t* samples, const uint32_t* first) {
  const uint32_t most = (1u << kind.depth) - 1;
  const auto byte = [&](uint32_t sample) { return static_cast<uint8_t>((sample * 255 + most / 2) / most); };
  const auto channels = static_cast<size_t>(kind.channels());
  bool clear = kind.see_through && std::equal(samples, samples + channels, first);
  if (channels % 2 == 0) clear = samples[channels - 1] == 0;
  if (kind.type == PNG_COLOR_TYPE_PALETTE) clear = kind.see_through && kEntryAlpha[samples[0] % 2] == 0;
  if (clear) return {255, 255, 255};
  if (kind.type == PNG_COLOR_TYPE_PALETTE) {
    const png_color it = entry(samples[0]);
    return {it.red, it.green, it.blue};
  }
  if (channels < 3) return {byte(samples[0]), byte(samples[0]), byte(samples[0])};
  return {byte(samples[0]), byte(samples[1]), byte(samples[2])};
}

// A ramp, or random samples. Alpha is opaque, or clear where the first sample is odd.
Samples drawn(const Kind& kind, bool random, bool grey) {
  std::mt19937 generator(7);
  const uint32_t most = (1u << kind.depth) - 1;
  const auto channels = static_cast<size_t>(kind.channels());
  Samples samples(static_cast<size_t>(kWidth * kHeight) * channels);
  for (size_t i = 0; i < samples.size(); ++i) {
    const size_t pixel = i / channels, channel = i % channels;
    samples[i] =
        random ? static_cast<uint32_t>(generator() % (most + 1)) : most * static_cast<uint32_t>(pixel % 16) / 15;
    if (grey && channel > 0) samples[i] = samples[pixel * channels];
    if (channels % 2 == 0 && channel + 1 == channels)
      samples[i] = random && samples[pixel * channels] % 2 == 1 ? 0 : most;
  }
  return samples;
}

std::vector<Kind> all_kinds() {
  std::vector<Kind> kinds;
  for (const int type : {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_PALETTE, PNG_COLOR_TYPE_GRAY_ALPHA,
                         PNG_COLOR_TYPE_RGB_ALPHA})
    for (const int depth : {1, 2, 4, 8, 16})
      for (const bool interlaced : {false, true})
        for (const bool see_through : {false, true})
          for (const char* chunk : {"", "gAMA 1/1.8", "gAMA 1", "sRGB", "cHRM", "gAMA cHRM", "sBIT"}) {
            const bool small = type == PNG_COLOR_TYPE_GRAY || type == PNG_COLOR_TYPE_PALETTE;
            const bool alpha = (type & PNG_COLOR_MASK_ALPHA) != 0;
            if ((depth < 8 && !small) || (depth == 16 && type == PNG_COLOR_TYPE_PALETTE) || (alpha && see_through))
              continue;
            if (std::string(chunk) == "sBIT" && depth < 4) continue;
            kinds.push_back({type, depth, interlaced, see_through, chunk});
          }
  return kinds;
}

class ImageSamples : public ReaderTest {
 protected:
  ImageSamples() : ReaderTest("images") {}

  Pixels pixels(const Bytes& file, int64_t channels) {
    put("a/1.png", file);
    const Values given = {{"folder", "."}, {"size", Ints{kHeight, kWidth}}, {"channels", channels}};
    return as<uint8_t>(all(given)[0][0].values);
  }
};

TEST_F(ImageSamples, PixelsAreTheSamplesOfTheFile) {
  for (const Kind& kind : all_kinds())
    for (const bool random : {false, true}) {
      const Samples samples = drawn(kind, random, false);
      const Pixels read = pixels(png(kind, samples), 3);
      for (size_t i = 0; i < read.size(); ++i) {
        const size_t pixel = i / 3;
        const uint32_t* const at = samples.data() + pixel * static_cast<size_t>(kind.channels());
        ASSERT_EQ(read[i], expected(kind, at, samples.data())[i % 3]) << kind.text() << ", pixel " << pixel;
      }
    }
}

TEST_F(ImageSamples, GreyPixelsAreTheSamplesOfTheFile) {
  for (const Kind& kind : all_kinds()) {
    if (kind.type == PNG_COLOR_TYPE_PALETTE) continue;  // of colours
    for (const bool random : {false, true}) {
      const Samples samples = drawn(kind, random, true);
      const Pixels read = pixels(png(kind, samples), 1);
      for (size_t pixel = 0; pixel < read.size(); ++pixel) {
        const uint32_t* const at = samples.data() + pixel * static_cast<size_t>(kind.channels());
        ASSERT_EQ(read[pixel], expected(kind, at, samples.data())[0]) << kind.text() << ", pixel " << pixel;
      }
    }
  }
}

// Colours that become grey, and half transparent ones: a file of 16 bits gives the pixels of the same one in 8 bits,
// with every chunk.
TEST_F(ImageSamples, DepthAndChunksDoNotChangeBlendedPixels) {
  for (const int type : {PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB_ALPHA})
    for (const int64_t channels : {1, 3}) {
      Kind kind{type};
      Samples samples = drawn(kind, true, false);
      std::mt19937 generator(9);
      for (uint32_t& sample : samples) sample = static_cast<uint32_t>(generator() % 256);
      const Pixels plain = pixels(png(kind, samples), channels);
      for (const char* chunk : {"gAMA 1/1.8", "gAMA 1", "sRGB", "cHRM", "gAMA cHRM", "sBIT"}) {
        kind.chunk = chunk;
        EXPECT_EQ(pixels(png(kind, samples), channels), plain) << kind.text();
      }
      kind.depth = 16;
      for (uint32_t& sample : samples) sample *= 257;
      for (const char* chunk : {"", "gAMA 1/1.8", "gAMA 1", "sRGB", "cHRM", "gAMA cHRM"}) {
        kind.chunk = chunk;
        EXPECT_EQ(pixels(png(kind, samples), channels), plain) << kind.text();
      }
    }
}

}  // namespace
}  // namespace tenon_tests
