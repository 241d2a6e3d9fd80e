// Descriptors of files, and errors of system calls. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/error.h"

namespace tenon::core {

[[noreturn]] inline void fail_system(const std::filesystem::path& path, const char* what, int error) {
  const bool absent = error == ENOENT || error == ENOTDIR;
  const tn_status code = absent ? TN_NOT_FOUND : error == ENOMEM ? TN_OUT_OF_MEMORY : TN_IO;
  fail(code, SubjectName{path.string()}, path.string(), ": cannot ", what, ": ",
       std::generic_category().message(error));
}

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

}  // namespace tenon::core
