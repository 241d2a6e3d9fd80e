// The kinds of compressed data: how a file of each begins, and what inflates it. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace tenon::files {

// Inflates one stream of compressed data after another.
class Decoder {
 public:
  struct Step {
    size_t read = 0, written = 0;  // bytes
    bool ended = false;            // the stream has ended, and its checksum is right
    const char* fault = nullptr;   // why the data is damaged
  };

  Decoder() = default;
  virtual ~Decoder() = default;
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // Inflates as much of [from, from + bytes) as fits into [to, to + room). Throws std::bad_alloc.
  virtual Step step(const uint8_t* from, size_t bytes, uint8_t* to, size_t room) = 0;
  // Prepares for another stream, after the end of one.
  virtual void restart() = 0;
};

struct Compression {
  const char* name;
  const char* library;  // that inflates it
  bool (*begins)(std::string_view file);
  std::unique_ptr<Decoder> (*make)();  // null: the build lacks the library
};

constexpr size_t kBeginningBytes = 10;  // of a file say how it is compressed

// The compression of a file with these first kBeginningBytes, or as many as it has; null if it is none of those known.
const Compression* compression_of(std::string_view beginning);
// Whether the file is a ZIP archive.
bool is_zip(std::string_view beginning);
// Throws TN_UNSUPPORTED on `path` if the build lacks the library.
std::unique_ptr<Decoder> decoder_of(const Compression& compression, const std::string& path);

}  // namespace tenon::files
