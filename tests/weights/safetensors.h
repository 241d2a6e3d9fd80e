// Writes files of safetensors byte by byte. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tenon_tests {

struct TensorText {
  std::string name, type;
  std::vector<int64_t> shape;
  std::string bytes;
};

// Returns numbers as they lie in memory.
template <typename Number>
std::string bytes_of(const std::vector<Number>& numbers) {
  std::string bytes(numbers.size() * sizeof(Number), '\0');
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

// A tensor of float32.
inline TensorText floats(const std::string& name, const std::vector<int64_t>& shape, const std::vector<float>& values) {
  return {name, "F32", shape, bytes_of(values)};
}

inline std::string safetensors(const std::vector<TensorText>& tensors, const nlohmann::json& metadata = {}) {
  nlohmann::json header = nlohmann::json::object();
  if (!metadata.is_null()) header["__metadata__"] = metadata;
  std::string data;
  for (const TensorText& tensor : tensors) {
    header[tensor.name] = {{"dtype", tensor.type},
                           {"shape", tensor.shape},
                           {"data_offsets", {data.size(), data.size() + tensor.bytes.size()}}};
    data += tensor.bytes;
  }
  const std::string text = header.dump();
  return bytes_of<uint64_t>({text.size()}) + text + data;
}

}  // namespace tenon_tests
