// Decodes the first image of GIF files, by giflib. SPDX-License-Identifier: Apache-2.0
#include <gif_lib.h>

#include <algorithm>
#include <memory>

#include "library.h"

namespace tenon::images {

namespace {

struct GifLibrary : Library {
  GifLibrary() : Library("GIF", "libgif.so.7", "libgif7") {}
  decltype(&DGifOpen) open = find("DGifOpen");
  decltype(&DGifCloseFile) close = find("DGifCloseFile");
  decltype(&DGifGetRecordType) record = find("DGifGetRecordType");
  decltype(&DGifGetExtension) extension = find("DGifGetExtension");
  decltype(&DGifGetExtensionNext) next = find("DGifGetExtensionNext");
  decltype(&DGifExtensionToGCB) control = find("DGifExtensionToGCB");
  decltype(&DGifGetImageDesc) description = find("DGifGetImageDesc");
  decltype(&DGifGetLine) line = find("DGifGetLine");
  decltype(&GifErrorString) words = find("GifErrorString");

  [[noreturn]] void fail(int error) const {
    const char* const why = words(error);
    throw BadImage{std::string("GIF: ") + (why == nullptr ? "damaged" : why)};
  }
  void check(const GifFileType& gif, int status) const {
    if (status == GIF_ERROR) fail(gif.Error);
  }
};

int read_gif(GifFileType* gif, GifByteType* to, int count) {
  auto& rest = *static_cast<Bytes*>(gif->UserData);
  const Bytes bytes = part(rest, 0, static_cast<size_t>(count));
  std::copy(bytes.begin(), bytes.end(), to);
  rest = rest.subspan(bytes.size());
  return static_cast<int>(bytes.size());
}

// Reads up to the pixels of the first image. Returns the colour that is transparent, -1 if none is.
int begin_image(const GifLibrary& library, GifFileType& gif) {
  GraphicsControlBlock control = {0, false, 0, NO_TRANSPARENT_COLOR};
  for (GifRecordType type = UNDEFINED_RECORD_TYPE; type != IMAGE_DESC_RECORD_TYPE;) {
    library.check(gif, library.record(&gif, &type));
    if (type == TERMINATE_RECORD_TYPE) throw BadImage{"GIF: it has no image"};
    if (type != EXTENSION_RECORD_TYPE) continue;
    int code = 0;
    GifByteType* block = nullptr;
    for (int status = library.extension(&gif, &code, &block);; status = library.next(&gif, &block)) {
      library.check(gif, status);
      if (block == nullptr) break;
      if (code == GRAPHICS_EXT_FUNC_CODE) library.check(gif, library.control(block[0], block + 1, &control));
    }
  }
  library.check(gif, library.description(&gif));
  return control.TransparentColor;
}

}  // namespace

// What the image leaves free of the screen is transparent, as in browsers. An image larger than the screen enlarges it.
void decode_gif(Bytes file, const Request& request, Image& to) {
  const GifLibrary library;
  int error = D_GIF_SUCCEEDED;
  const auto close = [&](GifFileType* opened) { library.close(opened, &error); };
  const std::unique_ptr<GifFileType, decltype(close)> gif(library.open(&file, &read_gif, &error), close);
  if (gif == nullptr) library.fail(error);
  const int transparent = begin_image(library, *gif);
  const GifImageDesc& frame = gif->Image;
  const ColorMapObject* const palette = frame.ColorMap != nullptr ? frame.ColorMap : gif->SColorMap;
  if (palette == nullptr) throw BadImage{"GIF: it has no palette"};
  if (frame.Left < 0 || frame.Top < 0) throw BadImage{"GIF: the image begins outside of the screen"};
  request.check_pixels(frame.Width, frame.Height);
  const int64_t width = std::max<int64_t>(gif->SWidth, int64_t{frame.Left} + frame.Width);
  const int64_t height = std::max<int64_t>(gif->SHeight, int64_t{frame.Top} + frame.Height);
  request.check_pixels(width, height);
  to.set_size(width, height, 4);
  std::fill(to.pixels.begin(), to.pixels.end(), uint8_t{0});
  std::vector<GifPixelType> line(static_cast<size_t>(frame.Width));
  // The rows of the four passes of an interlaced image, and of the one of others.
  constexpr int kFirst[] = {0, 4, 2, 1, 0}, kStep[] = {8, 8, 4, 2, 1};
  const std::pair<int, int> passes = frame.Interlace ? std::pair(0, 4) : std::pair(4, 5);
  for (int pass = passes.first; pass < passes.second; ++pass)
    for (int y = kFirst[pass]; y < frame.Height; y += kStep[pass]) {
      library.check(*gif, library.line(gif.get(), line.data(), frame.Width));
      uint8_t* pixel = &to.pixels[4 * static_cast<size_t>((int64_t{frame.Top} + y) * width + frame.Left)];
      for (const int entry : line) {
        if (entry != transparent && entry >= palette->ColorCount)
          throw BadImage{"GIF: a pixel has colour " + std::to_string(entry) + " of " +
                         std::to_string(palette->ColorCount)};
        if (entry != transparent) {
          const GifColorType& colour = palette->Colors[entry];
          const uint8_t values[] = {colour.Red, colour.Green, colour.Blue, 255};
          std::copy_n(values, 4, pixel);
        }
        pixel += 4;
      }
    }
}

}  // namespace tenon::images
