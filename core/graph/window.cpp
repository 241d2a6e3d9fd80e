// SPDX-License-Identifier: Apache-2.0
#include "core/graph/window.h"

#include <limits>

#include "core/checked.h"
#include "core/error.h"

namespace tenon::core {

void check_window(const char* what, const tn_window& window) {
  if (window.rank < 1 || window.rank > TN_MAX_SPACE)
    fail(TN_INVALID, what, ": a window of ", window.rank, " dimensions; expected 1 to ", TN_MAX_SPACE);
  int64_t elements = 1, places = 1, kernel = 1;
  for (int32_t i = 0; i < window.rank; ++i) {
    const auto least = [&](const char* name, int64_t number, int64_t bound) {
      if (number < bound) fail(TN_INVALID, what, ": ", name, " ", number, " of dimension ", i, "; at least ", bound);
    };
    least("images of size", window.images[i], 1);
    least("kernel", window.kernel[i], 1);
    least("stride", window.stride[i], 1);
    least("dilation", window.dilation[i], 1);
    least("padding", window.before[i], 0);
    least("padding", window.after[i], 0);
    const int64_t extent =
        checked_add(checked_multiply(window.dilation[i], window.kernel[i] - 1, what), int64_t{1}, what);
    const int64_t room = checked_add(checked_add(window.images[i], window.before[i], what), window.after[i], what);
    if (extent > room)
      fail(TN_INVALID, what, ": a window of ", extent, " along dimension ", i, " over images of ", room,
           window.before[i] + window.after[i] > 0 ? " with their padding" : "");
    elements = checked_multiply(elements, window.images[i], what);
    places = checked_multiply(places, tn_window_places(&window, i), what);
    kernel = checked_multiply(kernel, window.kernel[i], what);
  }
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (elements > kMost || places > kMost || kernel > kMost)
    fail(TN_UNSUPPORTED, what, ": images of ", elements, " elements, ", places, " places and ", kernel,
         " elements of a window; at most 2^31 - 1 of each");
}

Shape space_of(const int64_t* sizes, int32_t rank) {
  Shape space;
  for (int32_t i = 0; i < rank; ++i) space.push_back(tn_dim_constant(sizes[i]));
  return space;
}

Shape places_of(const tn_window& window) {
  Shape places;
  for (int32_t i = 0; i < window.rank; ++i) places.push_back(tn_dim_constant(tn_window_places(&window, i)));
  return places;
}

Shape around(const Dim& first, const Shape& space, int64_t last) {
  Shape shape{first};
  shape.insert(shape.end(), space.begin(), space.end());
  shape.push_back(tn_dim_constant(last));
  return shape;
}

int64_t channels_of(const char* what, const Spec& spec, const Shape& space, const char* first) {
  bool right = is_float(spec.dtype) && spec.shape.size() == space.size() + 2 &&
               spec.shape.back().symbol == TN_SYMBOL_NONE && spec.shape.back().offset >= 1;
  for (size_t i = 0; right && i < space.size(); ++i) right = same(spec.shape[i + 1], space[i]);
  if (!right) {
    std::string expected = std::string("[") + first + ", ";
    for (const Dim& dim : space) expected += to_string(dim) + ", ";
    fail(TN_INVALID, what, ": expected floats ", expected, "channels], got ", to_string(spec));
  }
  return spec.shape.back().offset;
}

}  // namespace tenon::core
