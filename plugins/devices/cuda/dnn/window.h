// Windows over images in kernels: their numbers and the text that reads them. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/window.h>

#include <cstdint>
#include <vector>

namespace tenon::cuda {

// The numbers of a Window, for Kernels::table, where they come first.
constexpr size_t kWindowNumbers = 18;
// Throws tn::Failure if indices of the images with what is added do not fit into an int.
[[nodiscard]] std::vector<int64_t> numbers_of(const tn_window& window);
// Elements in space: of the images, of the places, of the kernel.
[[nodiscard]] int64_t image_elements(const tn_window& window);
[[nodiscard]] int64_t place_elements(const tn_window& window);
[[nodiscard]] int64_t kernel_elements(const tn_window& window);

// Three dimensions in space; those that are not there come first, with one element. Indices in an image, which has less
// than 2^31 elements, are ints.
inline constexpr const char* kWindowText = R"cuda(
struct Window { int images[3], places[3], kernel[3], stride[3], dilation[3], before[3]; };
__device__ Window window_of(const Int64* table) {
  Window w;
  for (int i = 0; i < 3; ++i) {
    w.images[i] = (int)table[i], w.places[i] = (int)table[3 + i], w.kernel[i] = (int)table[6 + i];
    w.stride[i] = (int)table[9 + i], w.dilation[i] = (int)table[12 + i], w.before[i] = (int)table[15 + i];
  }
  return w;
}
__device__ int elements_of(const int* sizes) { return sizes[0] * sizes[1] * sizes[2]; }
// The indices of a number in row-major order.
struct Spot { int at[3]; };
__device__ Spot spot_of(const int* sizes, int number) {
  const int line = number / sizes[2], plane = line / sizes[1];
  return {{plane, line - plane * sizes[1], number - line * sizes[2]}};
}
// The number of the element of the image that the window at `place` has at `tap`; -1: it lies outside of the image.
__device__ int element_at(const Window& w, const Spot& place, const Spot& tap) {
  int number = 0;
  for (int i = 0; i < 3; ++i) {
    const int index = place.at[i] * w.stride[i] - w.before[i] + tap.at[i] * w.dilation[i];
    if (index < 0 || index >= w.images[i]) return -1;
    number = number * w.images[i] + index;
  }
  return number;
}
// The number of the place whose window has that element of the image at `tap`; -1: there is none.
__device__ int place_at(const Window& w, const Spot& element, const Spot& tap) {
  int number = 0;
  for (int i = 0; i < 3; ++i) {
    const int from = element.at[i] + w.before[i] - tap.at[i] * w.dilation[i], index = from / w.stride[i];
    if (from < 0 || index * w.stride[i] != from || index >= w.places[i]) return -1;
    number = number * w.places[i] + index;
  }
  return number;
}
)cuda";

}  // namespace tenon::cuda
