// Writes tensors as a model file. Used by the sources beside it alone. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/files/model_file.h"

namespace tenon::core {

using TakeBytes = std::function<void(const void* data, uint64_t bytes)>;

struct TensorToWrite {
  ModelTensor tensor;                                      // without its place in the data
  std::function<void(const TakeBytes& take)> read_values;  // calls take with all values in their order; called twice
};

// metadata: with the topology, without the checksum. Returns the checksum.
std::string write_tensors(FileSystem& files, const std::filesystem::path& path,
                          const std::map<std::string, std::string>& metadata, std::vector<TensorToWrite> tensors);

}  // namespace tenon::core
