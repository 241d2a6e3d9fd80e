// Decodes the first image of WebP files, by libwebp. SPDX-License-Identifier: Apache-2.0
#include <webp/decode.h>
#include <webp/demux.h>

#include <algorithm>
#include <memory>

#include "library.h"

namespace tenon::images {

namespace {

struct WebPLibrary : Library {
  WebPLibrary() : Library("WebP", "libwebpdemux.so.2", "libwebpdemux2") {}  // which needs libwebp
  decltype(&WebPDemuxInternal) open = find("WebPDemuxInternal");
  decltype(&WebPDemuxDelete) close = find("WebPDemuxDelete");
  decltype(&WebPDemuxGetI) get = find("WebPDemuxGetI");
  decltype(&WebPDemuxGetFrame) frame = find("WebPDemuxGetFrame");
  decltype(&WebPDemuxReleaseIterator) release_frame = find("WebPDemuxReleaseIterator");
  decltype(&WebPDemuxGetChunk) chunk = find("WebPDemuxGetChunk");
  decltype(&WebPDemuxReleaseChunkIterator) release_chunk = find("WebPDemuxReleaseChunkIterator");
  decltype(&WebPDecodeRGBAInto) decode = find("WebPDecodeRGBAInto");
};

}  // namespace

// An animation is its first frame; what that leaves free is transparent.
void decode_webp(Bytes file, const Request& request, Image& to) {
  const WebPLibrary library;
  const WebPData data = {file.data(), file.size()};
  const std::unique_ptr<WebPDemuxer, decltype(library.close)> webp(
      library.open(&data, 0, nullptr, WEBP_DEMUX_ABI_VERSION), library.close);
  if (webp == nullptr) throw BadImage{"WebP: damaged, or it ends early"};
  const int64_t width = library.get(webp.get(), WEBP_FF_CANVAS_WIDTH);
  const int64_t height = library.get(webp.get(), WEBP_FF_CANVAS_HEIGHT);
  request.check_pixels(width, height);
  WebPChunkIterator exif = {};
  if (library.chunk(webp.get(), "EXIF", 1, &exif) != 0)
    to.orientation = exif_orientation({exif.chunk.bytes, exif.chunk.size});
  library.release_chunk(&exif);
  WebPIterator frame = {};
  const auto release = [&](WebPIterator* used) { library.release_frame(used); };
  const std::unique_ptr<WebPIterator, decltype(release)> held(&frame, release);
  if (library.frame(webp.get(), 1, &frame) == 0) throw BadImage{"WebP: it has no image"};
  if (frame.x_offset < 0 || frame.y_offset < 0 || frame.width < 1 || frame.height < 1 ||
      frame.x_offset + int64_t{frame.width} > width || frame.y_offset + int64_t{frame.height} > height)
    throw BadImage{"WebP: the first image reaches out of the canvas"};
  to.set_size(width, height, 4);
  std::fill(to.pixels.begin(), to.pixels.end(), uint8_t{0});
  const size_t begin = 4 * static_cast<size_t>(frame.y_offset * width + frame.x_offset);
  if (library.decode(frame.fragment.bytes, frame.fragment.size, &to.pixels[begin], to.pixels.size() - begin,
                     static_cast<int>(4 * width)) == nullptr)
    throw BadImage{"WebP: the pixels are damaged"};
}

}  // namespace tenon::images
