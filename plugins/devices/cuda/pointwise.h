// "tenon.pointwise/1" on CUDA. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/device.h>

namespace tenon::cuda {

[[nodiscard]] const tn_pointwise_table* pointwise_table();

}  // namespace tenon::cuda
