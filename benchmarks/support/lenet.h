// LeNet-5 of rows 4 and 13: 6 and 16 filters of 5 x 5, each with relu and a maximum over 2 x 2, then 120, 84 and 10.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench.h"

namespace bench {

inline tenon::Layer lenet(const tenon::Host& host, const tenon::Layer& image) {
  const auto conv = [&](const tenon::Layer& from, int64_t filters, const char* name) {
    const tenon::Layer made = host.layer("conv", {from}, {{"filters", filters}, {"kernel", 5}, {"act", "relu"}}, name);
    return host.layer("pool", {made}, {{"kind", "max"}, {"kernel", 2}}, std::string(name) + "_pool");
  };
  const tenon::Layer features = conv(conv(image, 6, "conv1"), 16, "conv2");
  const tenon::Layer first = host.layer("fc", {features}, {{"size", 120}, {"act", "relu"}}, "fc1");
  const tenon::Layer second = host.layer("fc", {first}, {{"size", 84}, {"act", "relu"}}, "fc2");
  return host.layer("fc", {second}, {{"size", 10}}, "fc3");
}

inline const std::vector<std::string>& lenet_parameters() {
  static const std::vector<std::string> names = {"conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias",
                                                 "fc1.weight",   "fc1.bias",   "fc2.weight",   "fc2.bias",
                                                 "fc3.weight",   "fc3.bias"};
  return names;
}

// Multiplications of one image, forward: those of the gradients are twice as many, without those of the image's own.
constexpr double kLenetFirst = 24.0 * 24 * 25 * 6;
constexpr double kLenetRest = 8.0 * 8 * 150 * 16 + 256 * 120 + 120 * 84 + 84 * 10;

}  // namespace bench
