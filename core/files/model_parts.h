// The parts of a model file: files with the rows of its tables. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/table_rows.h"

namespace tenon::core {

// A tensor whose rows lie in the parts of a model file. Its values are float32.
struct PartedTensor {
  std::string name;
  std::vector<int64_t> shape;  // of all rows, which are the first dimension
  uint64_t place = 0;          // its number among all tensors of the model, also those of the file itself
  bool operator==(const PartedTensor&) const = default;
};

// A file beside the model file, with the rows of some blocks of all parted tensors.
struct ModelPart {
  std::string file;  // relative to the folder of the model file: "checkpoint-2-40.parts/000-of-002.safetensors"
  TableBlocks blocks;
  std::string checksum;  // that the part states
  bool operator==(const ModelPart&) const = default;
};

struct ModelParts {
  std::vector<PartedTensor> tensors;
  std::vector<ModelPart> parts;  // in the order of their blocks; each block is in one of them
  bool operator==(const ModelParts&) const = default;
};

constexpr const char* kPartsKey = "tenon.parts";  // in the metadata of the model file: a ModelParts
constexpr const char* kPartKey = "tenon.part";    // in that of a part: its blocks

constexpr const char* kModelEnding = ".safetensors";
constexpr const char* kPartsEnding = ".parts";
// Returns the name of the folder for the parts of a model file: "best.parts" for "best.safetensors".
[[nodiscard]] std::string parts_folder(const std::string& model);
// Returns the name of a part in its folder: "000-of-002.safetensors".
[[nodiscard]] std::string part_name(int64_t number, int64_t count);
[[nodiscard]] bool is_part_name(const std::string& name);

// Return the texts of the metadata, and read them. Untrusted texts: TN_BAD_DATA that begins with `file`.
[[nodiscard]] std::string parts_text(const ModelParts& parts);
[[nodiscard]] ModelParts parts_of_text(const std::string& text, const std::string& file);
[[nodiscard]] std::string blocks_text(const TableBlocks& blocks);

// Copies of a stream of rows, those of the blocks `from`, the ones that the blocks `to` have, too.
class RowCopy {
 public:
  // rows: [to.rows(height), row_bytes]
  RowCopy(const TableBlocks& from, const TableBlocks& to, uint64_t row_bytes, std::byte* rows)
      : from_(from), to_(to), row_bytes_(row_bytes), rows_(rows) {}

  // Takes bytes of the stream, which begin `offset` bytes behind its beginning.
  void take(uint64_t offset, const std::byte* data, uint64_t bytes) const;

 private:
  TableBlocks from_, to_;
  uint64_t row_bytes_;
  std::byte* rows_;
};

// Whether two ranges of blocks have a block in common.
[[nodiscard]] inline bool overlap(const TableBlocks& a, const TableBlocks& b) {
  return a.first < b.first + b.count && b.first < a.first + a.count;
}

}  // namespace tenon::core
