// One IDX file, plain or gzip, decoded into memory. SPDX-License-Identifier: Apache-2.0
//
// IDX: two zero bytes, a type, the number of dimensions; each dimension as 4 bytes; the values. All big-endian. The
// first dimension counts the samples.
#pragma once

#include <tenon/services.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::idx {

// Why a file or an attribute cannot be used. Never leaves the plugin.
struct Failure {
  tn_status code;
  std::string port;  // the file or the attribute
  std::string message;
};

// Memory from the host, which counts it; from malloc where the host offers none.
class Block {
 public:
  Block() = default;
  Block(const tn_memory* host, uint64_t bytes);
  ~Block();
  Block(Block&& other) noexcept { swap(other); }
  Block& operator=(Block&& other) noexcept {
    swap(other);
    return *this;
  }

  [[nodiscard]] uint8_t* data() const { return data_; }
  [[nodiscard]] uint64_t size() const { return bytes_; }
  void swap(Block& other) noexcept;

 private:
  const tn_memory* host_ = nullptr;
  uint8_t* data_ = nullptr;
  uint64_t bytes_ = 0;
};

// Which samples to keep: i with i % count == number.
struct Shard {
  uint32_t number = 0;
  uint32_t count = 1;
};

struct File {
  std::string path;
  tn_dtype dtype = 0;
  const char* dtype_name = "";
  uint64_t all_samples = 0;    // in the file
  int64_t samples = 0;         // in the shard
  std::vector<int64_t> shape;  // of one sample
  uint64_t sample_bytes = 0;
  Block values;  // [samples, shape...], native byte order
};

// Throws Failure, or std::bad_alloc. Memory grows with the bytes that are there, not with what the header says.
File read_file(const std::string& path, const Shard& shard, const tn_memory* memory, const volatile int32_t* cancel);

// Throws Failure unless every value, a whole number, is in [0, limit).
void check_values(const File& file, const Shard& shard, int64_t limit);

}  // namespace tenon::idx
