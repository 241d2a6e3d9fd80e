// Convolutions by cuDNN, where that library is present. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/device_images.h>

#include <memory>
#include <string>

namespace tenon::cuda {

class Context;
class Device;
class Dnn;

constexpr const char* kDnnName = "libcudnn.so.9";
constexpr const char* kDnnHint = "optional: install cuDNN 9, or convolutions run on slower kernels";

// Loads the library for the GPU of the context. Null if it cannot be used, and *why gets the reason. capability: 90 for
// 9.0.
[[nodiscard]] std::shared_ptr<Dnn> open_dnn(const Context& context, int capability, std::string* why);

// Puts the library before the device's own kernels, which `prepared` has, if the device has it and it knows the
// convolution. The kernels stay for the calls that it does not compute after all. What the convolution is has been
// checked. Throws tn::Failure, and leaves `prepared`.
void put_dnn_before(Device& device, const tn_conv& conv, tn_prepared* prepared);

}  // namespace tenon::cuda
