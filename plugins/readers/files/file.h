// A file that is read at any offset, and counted memory. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/services.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace tenon::files {

// A regular file, open for reading. Calls throw tn::Failure on its path.
class File {
 public:
  explicit File(std::string path);
  // The file of an open descriptor, which it closes. path: for messages.
  File(std::string path, int descriptor);
  ~File();
  File(File&& other) noexcept;
  File& operator=(File&&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }  // size when it was opened
  // Reads the `bytes` bytes from `offset`, or fewer at the end of the file. Returns their number.
  size_t read(uint64_t offset, void* to, size_t bytes) const;

 private:
  void find_size();
  [[noreturn]] void fail_system(const char* what, int error) const;

  std::string path_;
  int descriptor_ = -1;
  uint64_t bytes_ = 0;
};

// Memory from the host, which counts it, or from malloc if `host` is null.
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

[[nodiscard]] bool is_utf8(std::string_view text);

// Returns why `text` cannot be the name of a slot or a file, such as "has a control character in it", or null if it
// can.
const char* name_fault(std::string_view text);

// `text` in quotes for a message: at most `most` bytes of it, with "?" for control characters and bytes that are not
// UTF-8.
std::string quoted(std::string_view text, size_t most = 40);

// The first 20 of `texts`, quoted, for a message.
template <typename Texts>
std::string listed(const Texts& texts) {
  constexpr size_t kMost = 20;
  std::string known;
  size_t count = 0;
  for (const std::string& text : texts) {
    if (count == kMost) return known + ", ...";
    known += (count++ == 0 ? "" : ", ") + files::quoted(text);
  }
  return known;
}

// Throws TN_CANCELLED, naming `path`, once *cancel is set.
void check_cancel(const volatile int32_t* cancel, const std::string& path);

}  // namespace tenon::files
