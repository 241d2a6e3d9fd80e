// "tenon.pointwise/1" on CUDA. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/device.h>

namespace tenon::cuda {

extern const tn_pointwise_table kPointwiseTable;

}  // namespace tenon::cuda
