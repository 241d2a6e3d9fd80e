// An object of cuDNN's graphs: attributes that are set, then finalised, then read. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "functions.h"

namespace tenon::cuda {

// Throws tn::Failure with cuDNN's words. An object that was set as an attribute may be destroyed before its owner.
class Descriptor {
 public:
  Descriptor(const DnnFunctions& dnn, cudnnBackendDescriptorType_t type);

  [[nodiscard]] cudnnBackendDescriptor_t handle() const { return handle_.get(); }

  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count, const void* values);
  // One value of the kinds that the names say; the list is of numbers.
  void set(cudnnBackendAttributeName_t name, const Descriptor& value);
  void set(cudnnBackendAttributeName_t name, const std::vector<const Descriptor*>& values);
  void set(cudnnBackendAttributeName_t name, const std::vector<int64_t>& values);
  void set(cudnnBackendAttributeName_t name, int64_t value) { set(name, std::vector<int64_t>{value}); }
  void set(cudnnBackendAttributeName_t name, float value) { set(name, CUDNN_TYPE_FLOAT, 1, &value); }
  void set(cudnnBackendAttributeName_t name, cudnnDataType_t value) { set(name, CUDNN_TYPE_DATA_TYPE, 1, &value); }
  void set(cudnnBackendAttributeName_t name, cudnnHandle_t value) { set(name, CUDNN_TYPE_HANDLE, 1, &value); }
  void finalize();

  // Copies at most `most` values; returns how many there are, if they are fewer than `most` or values is null.
  int64_t get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t most, void* values) const;
  [[nodiscard]] int64_t number(cudnnBackendAttributeName_t name) const;
  // The objects that an attribute lists, at most `most`.
  [[nodiscard]] std::vector<Descriptor> list(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type,
                                             int64_t most) const;

 private:
  const DnnFunctions* dnn_;
  std::shared_ptr<void> handle_;
};

}  // namespace tenon::cuda
