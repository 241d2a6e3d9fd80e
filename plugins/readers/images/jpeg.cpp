// Decodes JPEG files. SPDX-License-Identifier: Apache-2.0
#include <turbojpeg.h>

#include <memory>
#include <new>

#include "header.h"

namespace tenon::images {

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
  const JpegHeader header = jpeg_header(file);
  to.orientation = header.orientation;
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
  if (inks) mix_inks(to, header.adobe);
}

}  // namespace tenon::images
