// Decodes JPEG and PNG files. SPDX-License-Identifier: Apache-2.0
#include "decode.h"

#include <png.h>
#include <turbojpeg.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <memory>
#include <new>

namespace tenon::images {

namespace {

bool begins_with(const std::vector<uint8_t>& file, std::initializer_list<uint8_t> magic) {
  return file.size() >= magic.size() && std::equal(magic.begin(), magic.end(), file.begin());
}

// Removes the ancillary chunks of a PNG file except tRNS: its gamma, profile, texts and times. What is left is the
// header, the palette, the transparency and the pixels.
void remove_ancillary(std::vector<uint8_t>& file) {
  constexpr size_t kSignature = 8, kAround = 12;  // bytes of the signature; of length, type and checksum of a chunk
  auto to = file.begin() + static_cast<ptrdiff_t>(std::min(file.size(), kSignature));
  for (auto from = to; from != file.end();) {
    const auto left = static_cast<size_t>(file.end() - from);
    const bool whole = left >= kAround;
    const size_t length = whole ? size_t{from[0]} << 24 | size_t{from[1]} << 16 | size_t{from[2]} << 8 | from[3] : left;
    const auto end = from + static_cast<ptrdiff_t>(std::min(length + kAround, left));
    const bool ancillary = whole && (from[4] & 0x20) != 0 && std::memcmp(&from[4], "tRNS", 4) != 0;
    if (!ancillary) to = from == to ? end : std::copy(from, end, to);
    from = end;
  }
  file.erase(to, file.end());
}

struct Png : png_image {
  Png() : png_image() { version = PNG_IMAGE_VERSION; }
  ~Png() { png_image_free(this); }
  Png(const Png&) = delete;
  Png& operator=(const Png&) = delete;

  [[noreturn]] void fail() const { throw BadImage{std::string("PNG: ") + message}; }
  // Reads everything before the pixels.
  void begin(const std::vector<uint8_t>& file) {
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

// Replaces a PNG file of 16 bits by the same image in 8 bits. pixels: room.
void reduce(const Png& from, std::vector<uint8_t>& pixels, std::vector<uint8_t>& file) {
  Png to;
  to.width = from.width;
  to.height = from.height;
  to.format = from.format & (PNG_FORMAT_FLAG_COLOR | PNG_FORMAT_FLAG_ALPHA);
  to.flags = PNG_IMAGE_FLAG_FAST;
  pixels.resize(PNG_IMAGE_SIZE(to));
  Input input = {file.data(), file.size(), "no memory"};
  if (!read_samples(input, pixels.data(), PNG_IMAGE_ROW_STRIDE(to), to.height))
    throw BadImage{std::string("PNG: ") + input.why};
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(to);
  file.resize(bytes);
  if (png_image_write_to_memory(&to, file.data(), &bytes, 0, pixels.data(), 0, nullptr) == 0) to.fail();
  file.resize(bytes);
}

}  // namespace

void Decoder::decode(std::vector<uint8_t>& file, const Enough& enough, Image& to) const {
  if (begins_with(file, {0xFF, 0xD8, 0xFF})) return decode_jpeg(file, enough, to);
  if (begins_with(file, {0x89, 'P', 'N', 'G'})) return decode_png(file, to);
  throw BadImage{file.empty() ? "the file is empty" : "neither JPEG nor PNG"};
}

void Decoder::check_pixels(int64_t width, int64_t height) const {
  if (width < 1 || height < 1 || width > most_pixels_ / height)
    throw BadImage{std::to_string(width) + " x " + std::to_string(height) + " pixels; at most " +
                   std::to_string(most_pixels_) + " are read"};
}

void Decoder::set_size(Image& to, int64_t width, int64_t height) const {
  to.width = static_cast<int>(width);
  to.height = static_cast<int>(height);
  to.channels = channels_;
  to.pixels.resize(static_cast<size_t>(width) * static_cast<size_t>(height) * static_cast<size_t>(channels_));
}

// A decoder of its own for each file: one that is used again keeps the tables of the file before, which a file without
// tables would then be decoded by, and the place of a fault in its header, at which it goes on.
void Decoder::decode_jpeg(const std::vector<uint8_t>& file, const Enough& enough, Image& to) const {
  const std::unique_ptr<void, int (*)(void*)> jpeg(tjInitDecompress(), &tjDestroy);
  if (jpeg == nullptr) throw std::bad_alloc();
  const auto fail = [&] { throw BadImage{std::string("JPEG: ") + tjGetErrorStr2(jpeg.get())}; };
  const auto bytes = static_cast<unsigned long>(file.size());
  int width = 0, height = 0, sampling = 0, colors = 0;
  if (tjDecompressHeader3(jpeg.get(), file.data(), bytes, &width, &height, &sampling, &colors) != 0) fail();
  if (width < 1 || height < 1) throw BadImage{"JPEG: ends before the picture begins"};
  check_pixels(width, height);
  const auto [least_width, least_height] = enough(width, height);
  int factors = 0, best_width = width, best_height = height;
  const tjscalingfactor* const factor = tjGetScalingFactors(&factors);
  for (int i = 0; factor != nullptr && i < factors; ++i) {
    const int w = TJSCALED(width, factor[i]), h = TJSCALED(height, factor[i]);
    if (w >= least_width && h >= least_height && w <= best_width && h <= best_height) best_width = w, best_height = h;
  }
  set_size(to, best_width, best_height);
  to.full_width = width;
  to.full_height = height;
  const int format = channels_ == 1 ? TJPF_GRAY : TJPF_RGB;
  // Warnings count as failures: they are about missing or damaged pixels.
  if (tjDecompress2(jpeg.get(), file.data(), bytes, to.pixels.data(), best_width, 0, best_height, format,
                    TJFLAG_LIMITSCANS) != 0)
    fail();
}

void Decoder::decode_png(std::vector<uint8_t>& file, Image& to) const {
  remove_ancillary(file);  // libpng would convert samples by their gamma
  Png png;
  png.begin(file);
  check_pixels(png.width, png.height);
  if ((png.format & PNG_FORMAT_FLAG_LINEAR) != 0) {  // which libpng would take for light
    reduce(png, to.pixels, file);
    return decode_png(file, to);
  }
  png.format = channels_ == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  set_size(to, png.width, png.height);
  to.full_width = to.width;
  to.full_height = to.height;
  const png_color white = {255, 255, 255};
  // Warnings from here on are about the pixels.
  if (png_image_finish_read(&png, &white, to.pixels.data(), 0, nullptr) == 0 || png.warning_or_error != 0) png.fail();
}

}  // namespace tenon::images
