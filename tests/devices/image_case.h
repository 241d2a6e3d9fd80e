// Windows and numbers for tests of the primitives over images. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/device_images.h>

#include <random>
#include <string>
#include <vector>

#include "check/definitions/image_reference.h"
#include "tests/devices/prepared_call.h"

namespace tenon_tests {

// One dimension of a window.
struct Line {
  int64_t images, kernel, stride = 1, before = 0, after = 0, dilation = 1;
};

inline tn_window window_of(const std::vector<Line>& lines) {
  tn_window window = {};
  window.size = sizeof window;
  window.rank = static_cast<int32_t>(lines.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    window.images[i] = lines[i].images;
    window.kernel[i] = lines[i].kernel;
    window.stride[i] = lines[i].stride;
    window.dilation[i] = lines[i].dilation;
    window.before[i] = lines[i].before;
    window.after[i] = lines[i].after;
  }
  return window;
}

inline std::string text(const tn_window& window) {
  std::string all;
  for (int32_t i = 0; i < window.rank; ++i)
    all += "[" + std::to_string(window.images[i]) + " kernel " + std::to_string(window.kernel[i]) + " stride " +
           std::to_string(window.stride[i]) + " padding " + std::to_string(window.before[i]) + "," +
           std::to_string(window.after[i]) + " dilation " + std::to_string(window.dilation[i]) + "] ";
  return all;
}

// Numbers that a float holds.
inline std::vector<double> drawn(int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> numbers(static_cast<size_t>(count));
  for (double& x : numbers)
    x = static_cast<double>(static_cast<float>(static_cast<double>(random() % 4001) / 1000 - 2));
  return numbers;
}

}  // namespace tenon_tests
