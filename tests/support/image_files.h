// Small pictures as PNG and JPEG. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <png.h>
#include <turbojpeg.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tenon_tests {

using Bytes = std::string;
using Pixels = std::vector<uint8_t>;

// Pixels of different colours, opaque.
inline Pixels pattern(int width, int height, size_t channels = 3) {
  Pixels pixels;
  for (int i = 0; i < width * height; ++i)
    for (size_t c = 0; c < channels; ++c)
      pixels.push_back(c == 3 ? 255 : static_cast<uint8_t>((37 * i + 90 * static_cast<int>(c)) % 251));
  return pixels;
}

// A PNG file of pixels [height, width, channels] with 1, 3 or 4 channels.
inline Bytes png(int width, int height, const Pixels& pixels) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  const size_t channels = pixels.size() / static_cast<size_t>(width * height);
  image.format = channels == 1 ? PNG_FORMAT_GRAY : channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_RGBA;
  png_alloc_size_t bytes = 0;
  EXPECT_NE(png_image_write_to_memory(&image, nullptr, &bytes, 0, pixels.data(), 0, nullptr), 0);
  Bytes result(bytes, '\0');
  EXPECT_NE(png_image_write_to_memory(&image, result.data(), &bytes, 0, pixels.data(), 0, nullptr), 0);
  result.resize(bytes);
  return result;
}

inline Bytes jpeg(int width, int height, const Pixels& pixels) {
  const tjhandle handle = tjInitCompress();
  unsigned char* data = nullptr;
  unsigned long bytes = 0;
  const bool gray = pixels.size() == static_cast<size_t>(width * height);
  EXPECT_EQ(tjCompress2(handle, pixels.data(), width, 0, height, gray ? TJPF_GRAY : TJPF_RGB, &data, &bytes,
                        gray ? TJSAMP_GRAY : TJSAMP_444, 95, 0),
            0);
  Bytes result(reinterpret_cast<char*>(data), bytes);
  tjFree(data);
  tjDestroy(handle);
  return result;
}

}  // namespace tenon_tests
