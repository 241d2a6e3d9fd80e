// SPDX-License-Identifier: Apache-2.0
#include "host/readers/image_changes.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace tenon::host {

namespace {

// One row of a plane of an image; a pixel has `bytes` bytes.
struct Row {
  const std::byte* from = nullptr;
  int64_t pixels = 0;
  size_t bytes = 1;

  // Writes `count` pixels from `left` on, mirrored or not; pixels outside the row are zeros.
  void cut(int64_t left, int64_t count, bool mirrored, std::byte* to) const {
    const int64_t begin = std::clamp<int64_t>(-left, 0, count);
    const int64_t end = std::clamp<int64_t>(pixels - left, begin, count);
    const auto at = [&](int64_t pixel) { return static_cast<size_t>(pixel) * bytes; };
    if (begin > 0 || end < count) std::memset(to, 0, at(count));
    if (!mirrored) {
      if (end > begin) std::memcpy(to + at(begin), from + at(left + begin), at(end - begin));
      return;
    }
    for (int64_t i = begin; i < end; ++i) std::memcpy(to + at(count - 1 - i), from + at(left + i), bytes);
  }
};

// The colours of an image of values of type T from 0 to kMost.
template <typename T>
class Colours {
 public:
  Colours(const ImageForm& form, const ColourFactors& factors, T* values)
      : pixels_(form.height * form.width),
        pixel_(form.planes ? 1 : form.channels),
        channel_(form.planes ? pixels_ : 1),
        grey_(form.channels == 1),
        factors_(factors),
        values_(values) {}

  void change() {
    const float mean = factors_.contrast == 1 ? 0 : mean_luminance();
    for (int64_t i = 0; i < pixels_; ++i) grey_ ? change_grey(i, mean) : change_pixel(i, mean);
  }

 private:
  static constexpr float kMost = std::is_same_v<T, uint8_t> ? 255 : 1;

  static float cut(float value) { return std::clamp(value, 0.0F, kMost); }
  static float luminance(float red, float green, float blue) { return 0.299F * red + 0.587F * green + 0.114F * blue; }
  [[nodiscard]] T& at(int64_t pixel, int64_t channel) const { return values_[pixel * pixel_ + channel * channel_]; }
  [[nodiscard]] float bright(int64_t pixel, int64_t channel) const {
    return cut(static_cast<float>(at(pixel, channel)) * factors_.brightness);
  }

  [[nodiscard]] float mean_luminance() const {
    double sum = 0;
    for (int64_t i = 0; i < pixels_; ++i)
      sum += grey_ ? bright(i, 0) : luminance(bright(i, 0), bright(i, 1), bright(i, 2));
    return static_cast<float>(sum / static_cast<double>(std::max<int64_t>(pixels_, 1)));
  }
  [[nodiscard]] float contrasted(float value, float mean) const {
    return factors_.contrast == 1 ? value : cut(mean + factors_.contrast * (value - mean));
  }
  static void put(T& to, float value) {
    if constexpr (std::is_same_v<T, uint8_t>)
      to = static_cast<uint8_t>(value + 0.5F);  // NOLINT(bugprone-incorrect-roundings): it is not negative
    else
      to = value;
  }

  void change_grey(int64_t pixel, float mean) const { put(at(pixel, 0), contrasted(bright(pixel, 0), mean)); }
  void change_pixel(int64_t pixel, float mean) const {
    float colours[3];
    for (int64_t c = 0; c < 3; ++c) colours[c] = contrasted(bright(pixel, c), mean);
    const float own = luminance(colours[0], colours[1], colours[2]);
    for (int64_t c = 0; c < 3; ++c)
      put(at(pixel, c), factors_.saturation == 1 ? colours[c] : cut(own + factors_.saturation * (colours[c] - own)));
  }

  int64_t pixels_, pixel_, channel_;  // the number of pixels; the distances of pixels and of channels
  bool grey_;
  ColourFactors factors_;
  T* values_;
};

}  // namespace

void cut_image(const ImageForm& from_form, const std::byte* from, const ImagePlace& place, const ImageForm& to_form,
               std::byte* to) {
  const int64_t planes = from_form.planes ? from_form.channels : 1;
  const size_t bytes = tn_dtype_bytes(from_form.dtype) * static_cast<size_t>(from_form.planes ? 1 : from_form.channels);
  const size_t from_row = bytes * static_cast<size_t>(from_form.width);
  const size_t to_row = bytes * static_cast<size_t>(to_form.width);
  for (int64_t plane = 0; plane < planes; ++plane) {
    const std::byte* const begin = from + static_cast<size_t>(plane * from_form.height) * from_row;
    for (int64_t y = 0; y < to_form.height; ++y, to += to_row) {
      const int64_t row = place.top + y;
      if (row < 0 || row >= from_form.height)
        std::memset(to, 0, to_row);
      else
        Row{begin + static_cast<size_t>(row) * from_row, from_form.width, bytes}.cut(place.left, to_form.width,
                                                                                     place.mirrored, to);
    }
  }
}

void change_colours(const ImageForm& form, const ColourFactors& factors, std::byte* image) {
  if (form.dtype == TN_U8)
    Colours<uint8_t>(form, factors, reinterpret_cast<uint8_t*>(image)).change();
  else
    Colours<float>(form, factors, reinterpret_cast<float*>(image)).change();
}

}  // namespace tenon::host
