// Descriptors of files, and system calls that go on until all is done. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon::base {

// Repeats a system call as long as a signal interrupts it.
template <typename Call>
auto uninterrupted(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }

  [[nodiscard]] int get() const { return number_; }
  // Returns the result of ::close; 0 if already closed.
  int close() { return number_ < 0 ? 0 : ::close(std::exchange(number_, -1)); }

 private:
  int number_;
};

// Writes all bytes. Returns false, with errno, if the system refuses some.
bool write_all(int to, std::string_view bytes) noexcept;

// Writes a folder to the disk, so that names in it last through a loss of power. Returns false, with errno, if that
// fails, but not where folders cannot be written alone.
bool sync_folder(const std::filesystem::path& folder) noexcept;

// Returns the folder of a file: "." for a plain name.
[[nodiscard]] std::filesystem::path folder_of(const std::filesystem::path& file);

// Returns the folder `inner` beside the library that holds `symbol`: beside the name by which the system's loader found
// the library, and then, if that name is a link out of its folder, beside the file, if such a folder exists.
[[nodiscard]] std::vector<std::filesystem::path> folders_beside(const void* symbol, const std::filesystem::path& inner);

}  // namespace tenon::base
