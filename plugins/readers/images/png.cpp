// Decodes PNG files, and mixes light by libpng. SPDX-License-Identifier: Apache-2.0
#include <png.h>

#include <csetjmp>
#include <cstring>
#include <limits>

#include "image.h"

namespace tenon::images {

namespace {

// Returns a PNG file without its ancillary chunks except tRNS: its gamma, profile, texts and times. What is left is the
// header, the palette, the transparency and the pixels. Sets the orientation if one of the chunks has EXIF data.
std::vector<uint8_t> essential_chunks(Bytes file, int& orientation) {
  constexpr size_t kSignature = 8, kAround = 12;  // bytes of the signature; of length, type and checksum of a chunk
  const Bytes signature = part(file, 0, kSignature);
  std::vector<uint8_t> essential;
  essential.reserve(file.size());
  essential.assign(signature.begin(), signature.end());
  for (size_t at = kSignature; at < file.size();) {
    const bool complete = file.size() - at >= kAround;
    const size_t length = complete ? number(file, at, 4, true) : file.size() - at;
    const Bytes chunk = part(file, at, length + kAround), type = part(chunk, 4, 4);
    const bool ancillary = complete && (type[0] & 0x20) != 0 && !begins_with(type, "tRNS");
    if (!ancillary) essential.insert(essential.end(), chunk.begin(), chunk.end());
    if (begins_with(type, "eXIf")) orientation = exif_orientation(part(chunk, 8, length));
    at += chunk.size();
  }
  return essential;
}

struct Png : png_image {
  Png() : png_image() { version = PNG_IMAGE_VERSION; }
  ~Png() { png_image_free(this); }
  Png(const Png&) = delete;
  Png& operator=(const Png&) = delete;

  [[noreturn]] void fail() const { throw BadImage{std::string("PNG: ") + message}; }
  // Reads everything before the pixels.
  void begin(Bytes file) {
    if (png_image_begin_read_from_memory(this, file.data(), file.size()) == 0) fail();
    if (warning_or_error != 0) fail();
  }
};

// A PNG file that libpng reads, and the message of its failure.
struct Input {
  const uint8_t* at;
  size_t left;
  char why[128];
};

[[noreturn]] void on_error(png_structp png, png_const_charp why) {
  auto& input = *static_cast<Input*>(png_get_error_ptr(png));
  std::strncpy(input.why, why, sizeof input.why - 1);
  png_longjmp(png, 1);
}

void read_bytes(png_structp png, png_bytep to, size_t bytes) {
  auto& input = *static_cast<Input*>(png_get_io_ptr(png));
  if (bytes > input.left) png_error(png, "read beyond end of data");
  std::memcpy(to, input.at, bytes);
  input.at += bytes;
  input.left -= bytes;
}

// Reads the samples of a PNG file of 16 bits, each as the nearest of 8 bits, sample / 257, with tRNS as alpha. libpng's
// simplified reader mixes the rows of interlaced ones (1.6.51, and its fix in older ones). Failures of libpng jump to
// setjmp, over no object with a destructor.
bool read_samples(Input& input, uint8_t* to, size_t row_bytes, uint32_t rows) {
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &input, on_error, on_error);
  png_infop info = png == nullptr ? nullptr : png_create_info_struct(png);
  if (info != nullptr) {
    if (setjmp(png_jmpbuf(png)) == 0) {  // NOLINT(cert-err52-cpp): libpng knows no other way
      png_set_read_fn(png, &input, read_bytes);
      png_read_info(png, info);
      if (png_get_valid(png, info, PNG_INFO_tRNS) != 0) png_set_tRNS_to_alpha(png);
      png_set_scale_16(png);
      const int passes = png_set_interlace_handling(png);
      png_read_update_info(png, info);
      if (png_get_rowbytes(png, info) != row_bytes) png_error(png, "unexpected size of a row");
      for (int pass = 0; pass < passes; ++pass)
        for (uint32_t y = 0; y < rows; ++y) png_read_row(png, to + y * row_bytes, nullptr);
      png_destroy_read_struct(&png, &info, nullptr);
      return true;
    }
  }
  png_destroy_read_struct(&png, &info, nullptr);
  return false;
}

}  // namespace

void decode_png(Bytes file, const Request& request, Image& to) {
  // libpng would convert samples by their gamma.
  const std::vector<uint8_t> essential = essential_chunks(file, to.orientation);
  Png png;
  png.begin(essential);
  request.check_pixels(png.width, png.height);
  if ((png.format & PNG_FORMAT_FLAG_LINEAR) != 0) {  // 16 bits, which libpng would take for light
    png.format &= PNG_FORMAT_FLAG_COLOR | PNG_FORMAT_FLAG_ALPHA;
    to.set_size(png.width, png.height, static_cast<int>(PNG_IMAGE_SAMPLE_CHANNELS(png.format)));
    Input input = {essential.data(), essential.size(), "no memory"};
    if (!read_samples(input, to.pixels.data(), PNG_IMAGE_ROW_STRIDE(png), png.height))
      throw BadImage{std::string("PNG: ") + input.why};
    return;
  }
  png.format = request.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  to.set_size(png.width, png.height, request.channels);
  const png_color white = {255, 255, 255};
  // Warnings from here on are about the pixels.
  if (png_image_finish_read(&png, &white, to.pixels.data(), 0, nullptr) == 0 || png.warning_or_error != 0) png.fail();
}

// The same image as a PNG file of 8 bits has the pixels: so they do not depend on the format.
void mix_light(Image& image, int channels) {
  Png png;
  png.width = static_cast<uint32_t>(image.width);
  png.height = static_cast<uint32_t>(image.height);
  if (image.channels > 2) png.format |= PNG_FORMAT_FLAG_COLOR;
  if (image.channels % 2 == 0) png.format |= PNG_FORMAT_FLAG_ALPHA;
  png.flags = PNG_IMAGE_FLAG_FAST;
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(png);
  std::vector<uint8_t> file(bytes);
  if (png_image_write_to_memory(&png, file.data(), &bytes, 0, image.pixels.data(), 0, nullptr) == 0) png.fail();
  const Enough enough;
  decode_png(part(file, 0, bytes), {channels, std::numeric_limits<int64_t>::max(), false, enough}, image);
}

}  // namespace tenon::images
