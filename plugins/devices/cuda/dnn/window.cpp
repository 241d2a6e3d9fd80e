// SPDX-License-Identifier: Apache-2.0
#include "window.h"

#include <tenon/base.hpp>

#include "runtime/kernels.h"

namespace tenon::cuda {

namespace {

int64_t product(const int64_t* sizes, int32_t rank) {
  int64_t all = 1;
  for (int32_t i = 0; i < rank; ++i) all = product_of(all, sizes[i]);
  return all;
}

}  // namespace

int64_t image_elements(const tn_window& window) { return product(window.images, window.rank); }
int64_t kernel_elements(const tn_window& window) { return product(window.kernel, window.rank); }
int64_t place_elements(const tn_window& window) {
  int64_t all = 1;
  for (int32_t i = 0; i < window.rank; ++i) all = product_of(all, tn_window_places(&window, i));
  return all;
}

std::vector<int64_t> numbers_of(const tn_window& window) {
  std::vector<int64_t> numbers(kWindowNumbers, 1);
  for (int i = 0; i < TN_MAX_SPACE; ++i) numbers[15 + static_cast<size_t>(i)] = 0;
  constexpr int64_t kMost = INT32_MAX / 4;
  bool fits = image_elements(window) <= kMost && place_elements(window) <= kMost && kernel_elements(window) <= kMost;
  for (int32_t i = 0; i < window.rank; ++i) {
    const auto to = static_cast<size_t>(TN_MAX_SPACE - window.rank + i);
    const int64_t row[] = {window.images[i], tn_window_places(&window, i), window.kernel[i],
                           window.stride[i], window.dilation[i],           window.before[i]};
    for (size_t k = 0; k < 6; ++k) numbers[3 * k + to] = row[k];
    for (const int64_t number : {window.before[i], window.after[i], window.stride[i], window.dilation[i]})
      fits = fits && number <= kMost;
    fits = fits && product_of(window.dilation[i], window.kernel[i]) <= kMost;
  }
  if (!fits) throw tn::Failure(TN_UNSUPPORTED, "window", "CUDA has no windows over images of 2^29 elements and more");
  return numbers;
}

}  // namespace tenon::cuda
