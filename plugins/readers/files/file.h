// A file that is read at any offset, and counted memory. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/services.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace tenon::files {

// A regular file, open for reading. Calls throw tn::Failure that names it.
class File {
 public:
  explicit File(std::string path);
  ~File();
  File(File&& other) noexcept;
  File& operator=(File&&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }  // when it was opened
  // As many of the bytes from `offset` as there are.
  size_t read(uint64_t offset, void* to, size_t bytes) const;

 private:
  [[noreturn]] void fail_system(const char* what, int error) const;

  std::string path_;
  int descriptor_ = -1;
  uint64_t bytes_ = 0;
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

// What keeps `text` from naming a slot or a file, such as "has a control character in it", or null: nothing does.
const char* name_fault(std::string_view text);

// `text` in quotes for a message: at most so many bytes of it, and without what a terminal would obey or is no UTF-8.
std::string quoted(std::string_view text, size_t most = 40);

// The first of `texts`, for a message that says what there is.
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
