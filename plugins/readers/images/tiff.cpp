// Decodes the first page of TIFF files, by libtiff. SPDX-License-Identifier: Apache-2.0
#include <tiffio.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>

#include "library.h"

namespace tenon::images {

namespace {

struct TiffLibrary : Library {
  TiffLibrary() : Library("TIFF", "libtiff.so.6", "libtiff6") {}
  decltype(&TIFFOpenOptionsAlloc) make_options = find("TIFFOpenOptionsAlloc");
  decltype(&TIFFOpenOptionsFree) free_options = find("TIFFOpenOptionsFree");
  decltype(&TIFFOpenOptionsSetMaxSingleMemAlloc) set_most_bytes = find("TIFFOpenOptionsSetMaxSingleMemAlloc");
  decltype(&TIFFOpenOptionsSetErrorHandlerExtR) set_on_error = find("TIFFOpenOptionsSetErrorHandlerExtR");
  decltype(&TIFFOpenOptionsSetWarningHandlerExtR) set_on_warning = find("TIFFOpenOptionsSetWarningHandlerExtR");
  decltype(&TIFFClientOpenExt) open = find("TIFFClientOpenExt");
  decltype(&TIFFClose) close = find("TIFFClose");
  decltype(&TIFFGetFieldDefaulted) get = find("TIFFGetFieldDefaulted");
  decltype(&TIFFSetField) set = find("TIFFSetField");
  decltype(&TIFFIsTiled) is_tiled = find("TIFFIsTiled");
  decltype(&TIFFReadEncodedTile) read_tile = find("TIFFReadEncodedTile");
  decltype(&TIFFReadEncodedStrip) read_strip = find("TIFFReadEncodedStrip");
};

// A file that libtiff reads, and its first message about damage.
struct TiffInput {
  Bytes file;
  uint64_t at = 0;
  bool pixels = false;  // are read: a warning is about damage from here on
  std::string why = {};

  [[noreturn]] void fail() const { throw BadImage{"TIFF: " + (why.empty() ? "damaged" : why)}; }
  void add(const char* format, va_list arguments) {
    char words[160] = "";
    std::vsnprintf(words, sizeof words, format, arguments);
    if (why.empty()) why = words;
    for (char& c : why)
      if (c < ' ' || c > '~') c = '?';
  }
};

int on_tiff_error(TIFF*, void* user, const char*, const char* format, va_list arguments) {
  static_cast<TiffInput*>(user)->add(format, arguments);
  return 1;
}

int on_tiff_warning(TIFF*, void* user, const char*, const char* format, va_list arguments) {
  auto& input = *static_cast<TiffInput*>(user);
  if (input.pixels) input.add(format, arguments);
  return 1;
}

tmsize_t read_tiff(thandle_t user, void* to, tmsize_t count) {
  auto& input = *static_cast<TiffInput*>(user);
  const Bytes bytes = part(input.file, input.at, static_cast<size_t>(count));
  if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
  input.at += bytes.size();
  return static_cast<tmsize_t>(bytes.size());
}

toff_t seek_tiff(thandle_t user, toff_t offset, int whence) {
  auto& input = *static_cast<TiffInput*>(user);
  if (whence == SEEK_SET) input.at = 0;
  if (whence == SEEK_END) input.at = input.file.size();
  return input.at += offset;
}

// The page of a file, with what its pixels depend on.
class TiffPage {
 public:
  TiffPage(const TiffLibrary& library, TiffInput& input, const Request& request);

  void read(Image& to);

 private:
  using Close = decltype(TiffLibrary::close);
  [[nodiscard]] std::unique_ptr<TIFF, Close> open(const Request& request) const;
  void read_layout(const Request& request);
  void read_colours();
  void put(const uint8_t* row, size_t count, size_t plane, uint8_t* to) const;
  [[nodiscard]] uint32_t tag(uint32_t name) const {
    uint16_t value = 0xFFFF;  // if it has neither value nor default
    library_.get(tiff_.get(), name, &value);
    return value;
  }

  const TiffLibrary& library_;
  TiffInput& input_;
  std::unique_ptr<TIFF, Close> tiff_;
  uint32_t width_ = 0, height_ = 0;
  uint32_t block_width_ = 0, block_height_ = 0;  // of a strip or tile
  bool tiled_ = false, separate_ = false;        // separate: each block has one sample of a pixel
  size_t samples_ = 0, bits_ = 0;                // of a pixel; of a sample
  size_t colours_ = 0;                           // the first samples: 1, 3, or 4 inks
  bool alpha_ = false, multiplied_ = false;      // the sample after the colours is alpha; colours are multiplied by it
  bool inverted_ = false;                        // 0 is white
  std::vector<uint8_t> palette_;                 // [entries, 3]; empty: none
};

TiffPage::TiffPage(const TiffLibrary& library, TiffInput& input, const Request& request)
    : library_(library), input_(input), tiff_(open(request)) {
  if (tiff_ == nullptr) input_.fail();
  read_layout(request);
  read_colours();
}

std::unique_ptr<TIFF, TiffPage::Close> TiffPage::open(const Request& request) const {
  const std::unique_ptr<TIFFOpenOptions, decltype(library_.free_options)> options(library_.make_options(),
                                                                                  library_.free_options);
  if (options == nullptr) throw std::bad_alloc();
  constexpr int64_t kMostPixelBytes = 16, kLeast = int64_t{1} << 24;
  library_.set_most_bytes(options.get(), kLeast + request.most_pixels * kMostPixelBytes);
  library_.set_on_error(options.get(), &on_tiff_error, &input_);
  library_.set_on_warning(options.get(), &on_tiff_warning, &input_);
  const auto close = [](thandle_t) { return 0; };
  const auto size = [](thandle_t user) -> toff_t { return static_cast<TiffInput*>(user)->file.size(); };
  // r: read, so that nothing is written; m: do not map the file
  return {library_.open("", "rm", &input_, &read_tiff, &read_tiff, &seek_tiff, close, size, nullptr, nullptr,
                        options.get()),
          library_.close};
}

// Reads how the pixels are stored. Refuses sizes before anything of their size is allocated.
void TiffPage::read_layout(const Request& request) {
  constexpr size_t kMostSamples = 16;
  TIFF* const tiff = tiff_.get();
  library_.get(tiff, TIFFTAG_IMAGEWIDTH, &width_);
  library_.get(tiff, TIFFTAG_IMAGELENGTH, &height_);
  request.check_pixels(width_, height_);
  tiled_ = library_.is_tiled(tiff) != 0;
  block_width_ = width_;
  if (tiled_) library_.get(tiff, TIFFTAG_TILEWIDTH, &block_width_);
  library_.get(tiff, tiled_ ? TIFFTAG_TILELENGTH : TIFFTAG_ROWSPERSTRIP, &block_height_);
  if (!tiled_) block_height_ = std::min(block_height_, height_);
  request.check_pixels(block_width_, block_height_);
  separate_ = tag(TIFFTAG_PLANARCONFIG) == PLANARCONFIG_SEPARATE;
  samples_ = tag(TIFFTAG_SAMPLESPERPIXEL);
  bits_ = tag(TIFFTAG_BITSPERSAMPLE);
  constexpr const char* kSampleKinds[] = {"", "unsigned", "signed", "floating-point"};
  const uint32_t format = tag(TIFFTAG_SAMPLEFORMAT);
  const bool readable = bits_ == 1 || bits_ == 2 || bits_ == 4 || bits_ == 8 || bits_ == 16;
  if (!readable || samples_ > kMostSamples || format != SAMPLEFORMAT_UINT)
    throw BadImage{"TIFF: a pixel has " + std::to_string(samples_) + " " +
                   (format < std::size(kSampleKinds) ? kSampleKinds[format] : "unknown") + " samples of " +
                   std::to_string(bits_) + " bits; at most 16 unsigned ones of 1, 2, 4, 8 or 16 bits are read"};
}

// Reads what the samples mean.
void TiffPage::read_colours() {
  TIFF* const tiff = tiff_.get();
  uint32_t meaning = tag(TIFFTAG_PHOTOMETRIC);
  if (meaning == PHOTOMETRIC_YCBCR && tag(TIFFTAG_COMPRESSION) == COMPRESSION_JPEG) {
    library_.set(tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);  // libtiff converts them
    meaning = PHOTOMETRIC_RGB;
  }
  inverted_ = meaning == PHOTOMETRIC_MINISWHITE;
  if (inverted_ || meaning == PHOTOMETRIC_MINISBLACK || meaning == PHOTOMETRIC_PALETTE) colours_ = 1;
  if (meaning == PHOTOMETRIC_RGB) colours_ = 3;
  if (meaning == PHOTOMETRIC_SEPARATED && tag(TIFFTAG_INKSET) == INKSET_CMYK) colours_ = 4;
  if (colours_ == 0 || colours_ > samples_)
    throw BadImage{"TIFF: photometric interpretation " + std::to_string(meaning) + " of " + std::to_string(samples_) +
                   " samples is not read; grey, RGB, CMYK and palettes are"};
  uint16_t extras = 0, *kinds = nullptr;
  library_.get(tiff, TIFFTAG_EXTRASAMPLES, &extras, &kinds);
  const uint32_t kind = extras > 0 && colours_ + extras == samples_ ? kinds[0] : uint32_t{EXTRASAMPLE_UNSPECIFIED};
  multiplied_ = kind == EXTRASAMPLE_ASSOCALPHA;
  alpha_ = colours_ != 4 && meaning != PHOTOMETRIC_PALETTE && (multiplied_ || kind == EXTRASAMPLE_UNASSALPHA);
  if (meaning != PHOTOMETRIC_PALETTE) return;
  uint16_t* parts[3] = {};
  if (library_.get(tiff, TIFFTAG_COLORMAP, &parts[0], &parts[1], &parts[2]) == 0)
    throw BadImage{"TIFF: it has no palette"};
  const size_t entries = size_t{1} << bits_;
  uint32_t united = 0, white = 65535;  // united: the bits of all values
  for (const uint16_t* const values : parts)
    for (size_t i = 0; i < entries; ++i) united |= values[i];
  if (united % 256 == 0) white = 65280;  // many programs write 256 times a value of 8 bits,
  if (united < 256) white = 255;         // old ones such a value
  for (size_t i = 0; i < entries; ++i)
    for (const uint16_t* const values : parts) palette_.push_back(to_byte(values[i], white));
}

// Writes `count` pixels of a row of a block to an image.
void TiffPage::put(const uint8_t* row, size_t count, size_t plane, uint8_t* to) const {
  const size_t stored = separate_ ? 1 : samples_, used = colours_ + size_t{alpha_};
  const size_t channels = palette_.empty() ? used : 3;
  const uint32_t most = (1U << bits_) - 1;
  for (size_t x = 0; x < count; ++x)
    for (size_t s = 0; s < stored && plane + s < used; ++s) {
      const size_t i = x * stored + s, bit = i * bits_;
      uint32_t value = bits_ == 16 ? reinterpret_cast<const uint16_t*>(row)[i] : row[bit / 8] >> (8 - bits_ - bit % 8);
      value &= most;
      if (inverted_ && plane + s == 0) value = most - value;
      if (palette_.empty())
        to[x * channels + plane + s] = to_byte(value, most);
      else
        std::copy_n(&palette_[size_t{3} * value], 3, to + x * channels);
    }
}

void TiffPage::read(Image& to) {
  to.orientation = static_cast<int>(tag(TIFFTAG_ORIENTATION));  // 1 to 8: libtiff refuses others
  const size_t channels = palette_.empty() ? colours_ + size_t{alpha_} : 3;
  to.set_size(width_, height_, static_cast<int>(channels));
  const size_t stored = separate_ ? 1 : samples_, row_bytes = (block_width_ * stored * bits_ + 7) / 8;
  std::vector<uint16_t> block((row_bytes * block_height_ + 1) / 2);
  auto* const bytes = reinterpret_cast<uint8_t*>(block.data());
  const auto read_block = tiled_ ? library_.read_tile : library_.read_strip;
  input_.pixels = true;
  uint32_t block_number = 0;
  for (size_t plane = 0; plane < (separate_ ? samples_ : 1); ++plane)
    for (uint32_t top = 0; top < height_; top += std::min(block_height_, height_ - top))
      for (uint32_t left = 0; left < width_; left += std::min(block_width_, width_ - left)) {
        const size_t rows = std::min(block_height_, height_ - top), columns = std::min(block_width_, width_ - left);
        const size_t expected = row_bytes * (tiled_ ? block_height_ : rows);
        const tmsize_t size = read_block(tiff_.get(), block_number++, bytes, static_cast<tmsize_t>(expected));
        if (size < 0 || static_cast<size_t>(size) < expected || !input_.why.empty()) input_.fail();
        for (size_t y = 0; y < rows; ++y)
          put(bytes + y * row_bytes, columns, plane, &to.pixels[((top + y) * width_ + left) * channels]);
      }
  if (colours_ == 4) mix_inks(to, false);
  for (size_t i = channels - 1; multiplied_ && alpha_ && i < to.pixels.size(); i += channels)
    for (size_t c = 1; c < channels && to.pixels[i] > 0; ++c)
      to.pixels[i - c] = to_byte(std::min(to.pixels[i - c], to.pixels[i]), to.pixels[i]);
}

}  // namespace

void decode_tiff(Bytes file, const Request& request, Image& to) {
  const TiffLibrary library;
  TiffInput input{file};
  TiffPage page(library, input, request);
  page.read(to);
}

}  // namespace tenon::images
