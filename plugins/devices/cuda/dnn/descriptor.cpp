// SPDX-License-Identifier: Apache-2.0
#include "descriptor.h"

#include <algorithm>

namespace tenon::cuda {

Descriptor::Descriptor(const DnnFunctions& dnn, cudnnBackendDescriptorType_t type) : dnn_(&dnn) {
  cudnnBackendDescriptor_t made = nullptr;
  dnn.check(dnn.cudnnBackendCreateDescriptor(type, &made), "cudnnBackendCreateDescriptor");
  handle_ = std::shared_ptr<void>(made, [&dnn](void* handle) { dnn.cudnnBackendDestroyDescriptor(handle); });
}

void Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                     const void* values) {
  dnn_->check(dnn_->cudnnBackendSetAttribute(handle(), name, type, count, values), "cudnnBackendSetAttribute");
}

void Descriptor::set(cudnnBackendAttributeName_t name, const Descriptor& value) { set(name, std::vector{&value}); }

void Descriptor::set(cudnnBackendAttributeName_t name, const std::vector<const Descriptor*>& values) {
  std::vector<cudnnBackendDescriptor_t> handles;
  for (const Descriptor* value : values) handles.push_back(value->handle());
  set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(handles.size()), handles.data());
}

void Descriptor::set(cudnnBackendAttributeName_t name, const std::vector<int64_t>& values) {
  set(name, CUDNN_TYPE_INT64, static_cast<int64_t>(values.size()), values.data());
}

void Descriptor::finalize() { dnn_->check(dnn_->cudnnBackendFinalize(handle()), "cudnnBackendFinalize"); }

int64_t Descriptor::get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t most,
                        void* values) const {
  int64_t count = 0;
  dnn_->check(dnn_->cudnnBackendGetAttribute(handle(), name, type, most, &count, values), "cudnnBackendGetAttribute");
  return count;
}

int64_t Descriptor::number(cudnnBackendAttributeName_t name) const {
  int64_t value = 0;
  get(name, CUDNN_TYPE_INT64, 1, &value);
  return value;
}

std::vector<Descriptor> Descriptor::list(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type,
                                         int64_t most) const {
  std::vector<Descriptor> all;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (int64_t i = 0; i < most; ++i) {
    all.emplace_back(*dnn_, type);
    handles.push_back(all.back().handle());
  }
  const int64_t count = get(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, most, handles.data());
  all.erase(all.begin() + static_cast<std::ptrdiff_t>(std::min(count, most)), all.end());
  return all;
}

}  // namespace tenon::cuda
