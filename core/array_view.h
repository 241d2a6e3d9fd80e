// Borrowed arrays in host memory. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::core {

// A borrowed array in host memory: a feed or a result. The members have the meaning of those of tn_array.
struct ArrayView {
  tn_dtype dtype = 0;
  std::vector<int64_t> shape;
  const void* data = nullptr;
  int32_t storage = TN_DENSE;
  uint32_t levels = 0;
  const int64_t* offsets[2] = {nullptr, nullptr};
  const int64_t* ids = nullptr;
  int64_t samples = 0;
};

struct NamedArray {
  std::string name;
  ArrayView array;
};

}  // namespace tenon::core
