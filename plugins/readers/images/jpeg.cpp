// Decodes JPEG files. SPDX-License-Identifier: Apache-2.0
#include <turbojpeg.h>

#include <memory>
#include <new>

#include "image.h"

namespace tenon::images {

namespace {

// What the segments before the picture say that TurboJPEG does not.
struct Marks {
  int orientation = 1;
  bool adobe = false;  // Adobe's programs store inks inverted
};

// A segment is 0xFF, its kind, and a length of two bytes that counts itself.
Marks marks_of(Bytes file) {
  constexpr uint32_t kFill = 0xFF, kPicture = 0xDA, kExif = 0xE1, kAdobe = 0xEE;
  constexpr size_t kAdobeBytes = 12;
  Marks marks;
  for (size_t at = 2; number(file, at, 1, true) == kFill;) {
    const uint32_t kind = number(file, at + 1, 1, true);
    const size_t length = number(file, at + 2, 2, true);
    if (kind == kPicture || (kind != kFill && length < 2)) break;
    if (kind == kFill) {
      ++at;
      continue;
    }
    const Bytes content = part(file, at + 4, length - 2);
    if (kind == kExif && marks.orientation == 1) marks.orientation = exif_orientation(content);
    marks.adobe = marks.adobe || (kind == kAdobe && content.size() >= kAdobeBytes && begins_with(content, "Adobe"));
    at += 2 + length;
  }
  return marks;
}

}  // namespace

// A decoder of its own for each file: one that is used again keeps the tables of the file before, which a file without
// tables would then be decoded by, and the place of a fault in its header, at which it goes on.
void decode_jpeg(Bytes file, const Request& request, Image& to) {
  const std::unique_ptr<void, int (*)(void*)> jpeg(tjInitDecompress(), &tjDestroy);
  if (jpeg == nullptr) throw std::bad_alloc();
  const auto fail = [&] { throw BadImage{std::string("JPEG: ") + tjGetErrorStr2(jpeg.get())}; };
  const auto bytes = static_cast<unsigned long>(file.size());
  int width = 0, height = 0, sampling = 0, colors = 0;
  if (tjDecompressHeader3(jpeg.get(), file.data(), bytes, &width, &height, &sampling, &colors) != 0) fail();
  if (width < 1 || height < 1) throw BadImage{"JPEG: ends before the picture begins"};
  request.check_pixels(width, height);
  const Marks marks = marks_of(file);
  to.orientation = marks.orientation;
  const bool turned = request.upright && to.on_side();
  auto [least_width, least_height] = turned ? request.enough(height, width) : request.enough(width, height);
  if (turned) std::swap(least_width, least_height);
  int factors = 0, best_width = width, best_height = height;
  const tjscalingfactor* const factor = tjGetScalingFactors(&factors);
  for (int i = 0; factor != nullptr && i < factors; ++i) {
    const int w = TJSCALED(width, factor[i]), h = TJSCALED(height, factor[i]);
    if (w >= least_width && h >= least_height && w <= best_width && h <= best_height) best_width = w, best_height = h;
  }
  const bool inks = colors == TJCS_CMYK || colors == TJCS_YCCK;
  to.set_size(best_width, best_height, inks ? 4 : request.channels);
  to.full_width = width;
  to.full_height = height;
  const int format = request.channels == 1 ? TJPF_GRAY : TJPF_RGB;
  // Warnings count as failures: they are about missing or damaged pixels.
  if (tjDecompress2(jpeg.get(), file.data(), bytes, to.pixels.data(), best_width, 0, best_height,
                    inks ? TJPF_CMYK : format, TJFLAG_LIMITSCANS) != 0)
    fail();
  if (inks) mix_inks(to, marks.adobe);
}

}  // namespace tenon::images
