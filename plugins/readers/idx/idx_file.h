// One IDX file, plain or compressed, decoded into memory. SPDX-License-Identifier: Apache-2.0
//
// IDX: two zero bytes, a type, the number of dimensions; each dimension as 4 bytes; the values. All big-endian. The
// first dimension counts the samples.
#pragma once

#include <cstdint>
#include <string>
#include <tenon/reader.hpp>
#include <vector>

#include "file.h"

namespace tenon::idx {

struct File {
  std::string path;
  tn_dtype dtype = 0;
  const char* dtype_name = "";
  uint64_t all_samples = 0;    // in the file
  int64_t samples = 0;         // in the shard
  std::vector<int64_t> shape;  // of one sample
  uint64_t sample_bytes = 0;
  files::Block values;  // [samples, shape...], native byte order
};

// Reads the samples of the shard of `open`, or the header alone if `open` asks for the schema alone. Memory grows with
// the bytes read, not with the sizes in the header. Throws tn::Failure or std::bad_alloc.
File read_file(const std::string& path, const tn::ReaderOpen& open);

// Throws tn::Failure unless every value, a whole number, is in [0, limit).
void check_values(const File& file, const tn::Shard& shard, int64_t limit);

}  // namespace tenon::idx
