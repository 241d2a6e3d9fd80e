// SPDX-License-Identifier: Apache-2.0
#include "check/definitions/image_reference.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace tenon::check::reference {

namespace {

int64_t product(const int64_t* sizes, int32_t rank) {
  int64_t all = 1;
  for (int32_t i = 0; i < rank; ++i) all *= sizes[i];
  return all;
}

// Returns the index of an element in an image, or -1 if element `tap` of the window at `place` lies outside of it.
int64_t element_at(const tn_window& window, int64_t place, int64_t tap) {
  int64_t at = 0, step = 1;
  for (int32_t i = window.rank; i-- > 0;) {
    const int64_t places = tn_window_places(&window, i);
    const int64_t index =
        place % places * window.stride[i] - window.before[i] + tap % window.kernel[i] * window.dilation[i];
    if (index < 0 || index >= window.images[i]) return -1;
    at += index * step;
    step *= window.images[i];
    place /= places;
    tap /= window.kernel[i];
  }
  return at;
}

double& in(Numbers& numbers, int64_t at) { return numbers.at(static_cast<size_t>(at)); }
double in(const Numbers& numbers, int64_t at) { return numbers.at(static_cast<size_t>(at)); }

}  // namespace

int64_t image_elements(const tn_window& window) { return product(window.images, window.rank); }
int64_t kernel_elements(const tn_window& window) { return product(window.kernel, window.rank); }
int64_t place_elements(const tn_window& window) {
  int64_t all = 1;
  for (int32_t i = 0; i < window.rank; ++i) all *= tn_window_places(&window, i);
  return all;
}

Numbers conv(int32_t op, const tn_window& window, const ImageSizes& sizes, const Numbers& a, const Numbers& b,
             Numbers* terms) {
  const int64_t images = image_elements(window), places = place_elements(window), taps = kernel_elements(window);
  const int64_t inner = sizes.channels / sizes.groups, outer = sizes.filters / sizes.groups;
  const int64_t count = op == TN_CONV_RESULTS  ? sizes.samples * places * sizes.filters
                        : op == TN_CONV_IMAGES ? sizes.samples * images * sizes.channels
                                               : sizes.filters * taps * inner;
  Numbers results(static_cast<size_t>(count));
  if (terms != nullptr) terms->assign(results.size(), 0);
  for (int64_t n = 0; n < sizes.samples; ++n)
    for (int64_t place = 0; place < places; ++place)
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t element = element_at(window, place, tap);
        if (element < 0) continue;
        for (int64_t f = 0; f < sizes.filters; ++f)
          for (int64_t c = 0; c < inner; ++c) {
            const int64_t image = (n * images + element) * sizes.channels + f / outer * inner + c;
            const int64_t weight = (f * taps + tap) * inner + c;
            const int64_t result = (n * places + place) * sizes.filters + f;
            const int64_t to = op == TN_CONV_RESULTS ? result : op == TN_CONV_IMAGES ? image : weight;
            const double term =
                in(a, op == TN_CONV_IMAGES ? result : image) * in(b, op == TN_CONV_WEIGHTS ? result : weight);
            in(results, to) += term;
            if (terms != nullptr) in(*terms, to) += std::abs(term);
          }
      }
  return results;
}

std::pair<Numbers, Numbers> pool(int32_t op, const tn_window& window, const ImageSizes& sizes, const Numbers& value,
                                 const Numbers& positions) {
  const int64_t images = image_elements(window), places = place_elements(window), taps = kernel_elements(window);
  const bool spreads = op == TN_POOL_SPREAD || op == TN_POOL_SCATTER;
  Numbers results(static_cast<size_t>(sizes.samples * (spreads ? images : places) * sizes.channels));
  Numbers where(op == TN_POOL_MAX ? results.size() : 0, -1.0);
  for (int64_t n = 0; n < sizes.samples; ++n)
    for (int64_t place = 0; place < places; ++place)
      for (int64_t c = 0; c < sizes.channels; ++c) {
        const int64_t result = (n * places + place) * sizes.channels + c;
        const auto image = [&](int64_t element) { return (n * images + element) * sizes.channels + c; };
        if (op == TN_POOL_SCATTER || op == TN_POOL_TAKE) {
          const auto element = static_cast<int64_t>(in(positions, result));
          if (element < 0 || element >= images) throw std::out_of_range("a position outside of its image");
          if (op == TN_POOL_TAKE) in(results, result) = in(value, image(element));
          if (op == TN_POOL_SCATTER) in(results, image(element)) += in(value, result);
          continue;
        }
        for (int64_t tap = 0; tap < taps; ++tap) {
          const int64_t element = element_at(window, place, tap);
          if (element < 0) continue;
          if (op == TN_POOL_SUM) in(results, result) += in(value, image(element));
          if (op == TN_POOL_SPREAD) in(results, image(element)) += in(value, result);
          if (op != TN_POOL_MAX) continue;
          const double x = in(value, image(element)), most = in(results, result);
          const bool larger = x > most || (std::isnan(x) && !std::isnan(most));
          if (in(where, result) >= 0 && !larger) continue;
          in(results, result) = x;
          in(where, result) = static_cast<double>(element);
        }
      }
  return {results, where};
}

Numbers resize(const tn_resize& how, int64_t samples, int64_t channels, const Numbers& value) {
  const int64_t from = product(how.from, how.rank), to = product(how.to, how.rank);
  const bool transposed = (how.flags & TN_RESIZE_TRANSPOSED) != 0;
  Numbers results(static_cast<size_t>(samples * (transposed ? from : to) * channels));
  // Along one axis: the weight with which element `o` of the resized image reads element `s`.
  const auto weight = [&](int32_t axis, int64_t o, int64_t s) {
    const double last = static_cast<double>(how.from[axis] - 1);
    const double at = std::min(std::max(how.scale[axis] * static_cast<double>(o) + how.offset[axis], 0.0), last);
    if ((how.flags & TN_RESIZE_LINEAR) == 0) return static_cast<double>(s) == std::floor(at) ? 1.0 : 0.0;
    return std::max(0.0, 1 - std::abs(at - static_cast<double>(s)));
  };
  for (int64_t o = 0; o < to; ++o)
    for (int64_t s = 0; s < from; ++s) {
      double by = 1;
      int64_t rest_o = o, rest_s = s;
      for (int32_t i = how.rank; i-- > 0;) {
        by *= weight(i, rest_o % how.to[i], rest_s % how.from[i]);
        rest_o /= how.to[i];
        rest_s /= how.from[i];
      }
      if (by == 0) continue;
      for (int64_t n = 0; n < samples; ++n)
        for (int64_t c = 0; c < channels; ++c) {
          const int64_t small = (n * from + s) * channels + c, large = (n * to + o) * channels + c;
          in(results, transposed ? small : large) += by * in(value, transposed ? large : small);
        }
    }
  return results;
}

}  // namespace tenon::check::reference
