// Integers as kernels of several plugins read them. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/tensor.h>

#include <cstdint>

namespace tenon::kernels {

// The elements of a tensor of any integer type.
class Integers {
 public:
  explicit Integers(const tn_tensor& tensor)
      : data_(tn_data(&tensor)), bits_(tensor.dl.dtype.bits), has_sign_(tensor.dl.dtype.code == kDLInt) {}

  int64_t operator[](int64_t i) const {
    switch (bits_) {
      case 8:
        return has_sign_ ? int64_t{reinterpret_cast<const int8_t*>(data_)[i]} : int64_t{data_[i]};
      case 16:
        return has_sign_ ? int64_t{reinterpret_cast<const int16_t*>(data_)[i]}
                         : int64_t{reinterpret_cast<const uint16_t*>(data_)[i]};
      case 32:
        return has_sign_ ? int64_t{reinterpret_cast<const int32_t*>(data_)[i]}
                         : int64_t{reinterpret_cast<const uint32_t*>(data_)[i]};
      default:
        return reinterpret_cast<const int64_t*>(data_)[i];
    }
  }

 private:
  const uint8_t* data_;
  uint8_t bits_;
  bool has_sign_;
};

}  // namespace tenon::kernels
