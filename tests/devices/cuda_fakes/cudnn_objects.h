// Objects of a cuDNN for tests: which attributes each kind has, and what is set. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cudnn_graph.h>

#include <cstring>
#include <map>
#include <memory>
#include <vector>

namespace fake_cudnn {

struct Object;

struct Attribute {
  cudnnBackendAttributeType_t type = CUDNN_TYPE_INT64;
  int64_t count = 0;
  std::vector<unsigned char> bytes;
  std::vector<std::shared_ptr<Object>> objects;  // of CUDNN_TYPE_BACKEND_DESCRIPTOR: as they were when they were set
};

struct Object {
  cudnnBackendDescriptorType_t type;
  bool finalized = false;
  std::map<cudnnBackendAttributeName_t, Attribute> attributes;

  template <class T>
  [[nodiscard]] T value(cudnnBackendAttributeName_t name) const {
    T value = {};
    std::memcpy(&value, attributes.at(name).bytes.data(), sizeof value);
    return value;
  }
  [[nodiscard]] std::vector<int64_t> numbers(cudnnBackendAttributeName_t name) const {
    const Attribute& attribute = attributes.at(name);
    std::vector<int64_t> all(static_cast<size_t>(attribute.count));
    std::memcpy(all.data(), attribute.bytes.data(), attribute.bytes.size());
    return all;
  }
  [[nodiscard]] const Object& object(cudnnBackendAttributeName_t name) const { return *attributes.at(name).objects[0]; }
};

struct Rule {
  cudnnBackendDescriptorType_t owner;
  cudnnBackendAttributeName_t name;
  cudnnBackendAttributeType_t type;
  int64_t least, most;  // values; least 0: it may be absent
};

// The attributes that may be set.
inline const std::vector<Rule>& rules() {
  static const std::vector<Rule> all = [] {
    constexpr auto kObject = CUDNN_TYPE_BACKEND_DESCRIPTOR;
    constexpr auto kNumber = CUDNN_TYPE_INT64;
    std::vector<Rule> made = {
        {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1},
        {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_DIMENSIONS, kNumber, 4, 5},
        {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_STRIDES, kNumber, 4, 5},
        {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_UNIQUE_ID, kNumber, 1, 1},
        {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kNumber, 1, 1},
        {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1},
        {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, 1},
        {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, kNumber, 1, 1},
        {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_DILATIONS, kNumber, 2, 3},
        {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, kNumber, 2, 3},
        {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, kNumber, 2, 3},
        {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, kNumber, 2, 3},
        {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_OPS, kObject, 1, 1},
        {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, 1},
        {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, kObject, 1, 1},
        {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, 1},
        {CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, kObject, 1, 1},
        {CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, kNumber, 1, 1},
        {CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, 1},
        {CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, kNumber, 1, 1},
        {CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, CUDNN_ATTR_ENGINECFG_ENGINE, kObject, 1, 1},
        {CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, kObject, 0, 1},
        {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, kObject, 1, 1},
        {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, 1},
        {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, kNumber, 3, 3},
        {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3, 3},
        {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, 1}};
    // The six attributes of an operation follow each other: alpha, beta, window, three tensors.
    const std::pair<cudnnBackendDescriptorType_t, int> operations[] = {
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA},
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA},
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA}};
    for (const auto& [type, first] : operations)
      for (int i = 0; i < 6; ++i)
        made.push_back(
            {type, static_cast<cudnnBackendAttributeName_t>(first + i), i < 2 ? CUDNN_TYPE_FLOAT : kObject, 1, 1});
    return made;
  }();
  return all;
}

inline const Rule* rule_of(cudnnBackendDescriptorType_t owner, cudnnBackendAttributeName_t name) {
  for (const Rule& rule : rules())
    if (rule.owner == owner && rule.name == name) return &rule;
  return nullptr;
}

inline size_t bytes_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    default:
      return 4;  // enumerations and floats
  }
}

}  // namespace fake_cudnn
