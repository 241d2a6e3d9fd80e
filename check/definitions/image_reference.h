// The primitives over images as plain loops in fp64: the definition that devices are compared with.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/window.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace tenon::check::reference {

using Numbers = std::vector<double>;

// The sizes of a convolution, or of pooling with as many filters as channels.
struct ImageSizes {
  int64_t samples, channels, filters, groups;
};

// Elements in space: of the images, of the places, of the kernel.
[[nodiscard]] int64_t image_elements(const tn_window& window);
[[nodiscard]] int64_t place_elements(const tn_window& window);
[[nodiscard]] int64_t kernel_elements(const tn_window& window);

// TN_CONV_*, from the two tensors that the operation reads. terms: not null: of each element the sum of the sizes of
// its terms, for the error that a sum in another order may have.
[[nodiscard]] Numbers conv(int32_t op, const tn_window& window, const ImageSizes& sizes, const Numbers& a,
                           const Numbers& b, Numbers* terms = nullptr);

// TN_POOL_*. positions: those that the operation reads, else ignored. Returns the results and, of a maximum, the
// positions. Throws std::out_of_range for a position outside of its image.
[[nodiscard]] std::pair<Numbers, Numbers> pool(int32_t op, const tn_window& window, const ImageSizes& sizes,
                                               const Numbers& value, const Numbers& positions);

[[nodiscard]] Numbers resize(const tn_resize& how, int64_t samples, int64_t channels, const Numbers& value);

}  // namespace tenon::check::reference
