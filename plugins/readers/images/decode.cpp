// Decodes JPEG and PNG files. SPDX-License-Identifier: Apache-2.0
#include "decode.h"

#include <png.h>
#include <turbojpeg.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace tenon::images {

namespace {

bool begins_with(const std::vector<uint8_t>& file, std::initializer_list<uint8_t> magic) {
  return file.size() >= magic.size() && std::equal(magic.begin(), magic.end(), file.begin());
}

// A PNG file up to its first IDAT chunk, without the ancillary chunks except tRNS: the header, the palette and the
// transparency.
std::vector<uint8_t> bare_png(const std::vector<uint8_t>& file) {
  constexpr size_t kSignature = 8, kAround = 12;  // bytes of the signature; of length, type and checksum of a chunk
  const auto is = [&](size_t at, const char* type) { return std::memcmp(file.data() + at + 4, type, 4) == 0; };
  std::vector<uint8_t> bare(file.begin(), file.begin() + static_cast<ptrdiff_t>(std::min(file.size(), kSignature)));
  for (size_t at = kSignature; at + kAround <= file.size();) {
    const size_t length =
        size_t{file[at]} << 24 | size_t{file[at + 1]} << 16 | size_t{file[at + 2]} << 8 | file[at + 3];
    const size_t bytes = std::min(length + kAround, file.size() - at);
    const auto from = file.begin() + static_cast<ptrdiff_t>(at);
    const bool ancillary = (file[at + 4] & 0x20) != 0;
    if (!ancillary || is(at, "tRNS")) bare.insert(bare.end(), from, from + static_cast<ptrdiff_t>(bytes));
    if (is(at, "IDAT")) break;
    at += bytes;
  }
  return bare;
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
  }
};

}  // namespace

Decoder::Decoder(int channels, int64_t most_pixels)
    : channels_(channels), most_pixels_(most_pixels), jpeg_(tjInitDecompress(), &tjDestroy) {
  if (jpeg_ == nullptr) throw std::bad_alloc();
}

void Decoder::decode(const std::vector<uint8_t>& file, const Enough& enough, Image& to) {
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

void Decoder::decode_jpeg(const std::vector<uint8_t>& file, const Enough& enough, Image& to) {
  const auto fail = [&] { throw BadImage{std::string("JPEG: ") + tjGetErrorStr2(jpeg_.get())}; };
  const auto bytes = static_cast<unsigned long>(file.size());
  int width = 0, height = 0, sampling = 0, colors = 0;
  if (tjDecompressHeader3(jpeg_.get(), file.data(), bytes, &width, &height, &sampling, &colors) != 0) fail();
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
  if (tjDecompress2(jpeg_.get(), file.data(), bytes, to.pixels.data(), best_width, 0, best_height, format,
                    TJFLAG_LIMITSCANS) != 0)
    fail();
}

void Decoder::decode_png(const std::vector<uint8_t>& file, Image& to) const {
  Png png;
  png.begin(file);
  if (png.warning_or_error != 0) {  // damage in times, profiles and texts, which libpng skips, leaves the pixels intact
    Png bare;
    bare.begin(bare_png(file));
    if (bare.warning_or_error != 0) bare.fail();
    png.warning_or_error = 0;
  }
  check_pixels(png.width, png.height);
  png.format = channels_ == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  set_size(to, png.width, png.height);
  to.full_width = to.width;
  to.full_height = to.height;
  const png_color white = {255, 255, 255};
  // Warnings from here on are about the pixels.
  if (png_image_finish_read(&png, &white, to.pixels.data(), 0, nullptr) == 0 || png.warning_or_error != 0) png.fail();
}

}  // namespace tenon::images
