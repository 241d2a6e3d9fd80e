// Tensors of other programs: a file of safetensors, or one in shards. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tenon/tenon.hpp>
#include <vector>

namespace tenon::weights {

using Sizes = std::vector<int64_t>;

// Rows of a tensor in a part of a model file: those whose numbers modulo 256 are in [first, first + count).
struct PartOfRows {
  std::string file;
  uint64_t offset = 0, bytes = 0;
  int64_t first = 0, count = 0;
};

struct StoredTensor {
  std::string name;
  std::string type;  // as in the file: "F32", "BF16"
  Sizes shape;
  std::string file;  // the shard
  uint64_t offset = 0, bytes = 0;
  std::vector<PartOfRows> parts;  // that have the rows; empty: the file has them
};

struct TensorFile {
  std::vector<StoredTensor> tensors;            // in the order of their data; of shards, in the order of their names
  std::map<std::string, std::string> metadata;  // of shards, of the first one
  bool has_topology = false;                    // it is a model file of Tenon

  // Whether PyTorch wrote the file, so that names and layouts are those of its modules.
  [[nodiscard]] bool of_pytorch() const;
};

// Returns what a file holds; its values are not read. path: a file of safetensors; the index of shards in the same
// folder, whose name ends with ".json"; or a folder with "model.safetensors.index.json" or "model.safetensors". Throws
// Error: TN_NOT_FOUND, TN_IO, and TN_BAD_DATA naming the file and the tensor.
[[nodiscard]] TensorFile read_tensors(const Host& host, const std::string& path);

// Returns the bytes of a tensor. Throws Error, TN_BAD_DATA if the file has changed since.
[[nodiscard]] std::string read_bytes(const StoredTensor& tensor);
// Returns its numbers, rounded to float32. Throws Error, also TN_BAD_DATA for a type that Tenon does not compute with.
[[nodiscard]] std::vector<float> read_values(const StoredTensor& tensor);

}  // namespace tenon::weights
