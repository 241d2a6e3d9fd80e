// Where the records of text files lie, in one to four bytes each: of files of ten gigabytes in short lines a pair of
// numbers for each would take more memory than the files. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "file.h"

namespace tenon::files {

// Bytes of all files, one file after the other.
struct Extent {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

class RecordIndex {
 public:
  // memory: borrowed; null: that of malloc.
  explicit RecordIndex(const tn_memory* memory) : memory_(memory) {}

  // Adds a record behind those before. It may not begin before their end.
  void add(const Extent& record);
  [[nodiscard]] int64_t size() const { return records_; }
  // Decodes the records of a group up to this one.
  [[nodiscard]] Extent at(int64_t number) const;

 private:
  // kGroup records that follow each other.
  struct Group {
    uint64_t offset;  // where the first begins
    const uint8_t* codes;
  };

  void begin_group(uint64_t offset);
  void write(uint64_t number);

  const tn_memory* memory_;
  std::vector<Block> groups_;  // of [kGroupsPerBlock] Group each
  std::vector<Block> blocks_;  // of codes; a group lies in one
  uint64_t used_ = 0;          // bytes of the last block
  uint64_t end_ = 0;           // of the last record
  int64_t records_ = 0;
};

}  // namespace tenon::files
