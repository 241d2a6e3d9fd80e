// Files, counted memory, and texts in messages. SPDX-License-Identifier: Apache-2.0
#include "file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <new>
#include <system_error>
#include <tenon/base.hpp>
#include <utility>

namespace tenon::files {

namespace {

// One character of UTF-8, or one byte that does not begin one.
struct Character {
  size_t bytes = 1;
  bool valid = false;
  bool control = false;  // a control character: of ASCII, or U+0080 to U+009F
};

Character first_of(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const unsigned first = byte(0);
  if (first < 0x80) return {1, true, first < 0x20 || first == 0x7f};
  const size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4) return {};
  // Refuses overlong forms, halves of surrogate pairs, and code points above U+10FFFF.
  const unsigned low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const unsigned high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (byte(1) < low || byte(1) > high) return {};
  for (size_t i = 2; i < bytes; ++i)
    if ((byte(i) & 0xc0) != 0x80) return {};
  return {bytes, true, first == 0xc2 && byte(1) < 0xa0};
}

}  // namespace

File::File(std::string path) : path_(std::move(path)) {
  do {
    descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // does not block on a named pipe
  } while (descriptor_ < 0 && errno == EINTR);
  if (descriptor_ < 0) fail_system("open", errno);
  find_size();
}

File::File(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) { find_size(); }

// Closes the descriptor if it throws: then there is no destructor.
void File::find_size() try {
  struct stat status = {};
  if (::fstat(descriptor_, &status) != 0) fail_system("open", errno);
  if (!S_ISREG(status.st_mode))
    throw tn::Failure(TN_INVALID, path_,
                      S_ISDIR(status.st_mode) ? "it is a folder; expected a file" : "not a regular file");
  bytes_ = static_cast<uint64_t>(status.st_size);
} catch (...) {
  ::close(descriptor_);
  throw;
}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

File::File(File&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)), bytes_(other.bytes_) {}

size_t File::read(uint64_t offset, void* to, size_t bytes) const {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t got =
        ::pread(descriptor_, static_cast<uint8_t*>(to) + done, bytes - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_system("read", errno);
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

void File::fail_system(const char* what, int error) const {
  const bool absent = error == ENOENT || error == ENOTDIR;
  throw tn::Failure(absent ? TN_NOT_FOUND : TN_IO, path_,
                    std::string("cannot ") + what + " it: " + std::generic_category().message(error));
}

Block::Block(const tn_memory* host, uint64_t bytes) : host_(host), bytes_(bytes) {
  if (bytes == 0) return;
  data_ = static_cast<uint8_t*>(host_ != nullptr ? host_->allocate(host_->self, bytes) : std::malloc(bytes));
  if (data_ == nullptr) throw std::bad_alloc();
}

Block::~Block() {
  if (data_ == nullptr) return;
  if (host_ != nullptr)
    host_->release(host_->self, data_, bytes_);
  else
    std::free(data_);
}

void Block::swap(Block& other) noexcept {
  std::swap(host_, other.host_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const Character it = first_of(text);
    if (!it.valid) return false;
    text.remove_prefix(it.bytes);
  }
  return true;
}

const char* name_fault(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const Character it = first_of(text.substr(at));
    if (!it.valid) return "is not UTF-8";
    if (it.control) return "has a control character in it";
    at += it.bytes;
  }
  return nullptr;
}

std::string quoted(std::string_view text, size_t most) {
  std::string shown = "\"";
  for (size_t at = 0; at < text.size();) {
    const Character it = first_of(text.substr(at));
    if (at + it.bytes > most) return shown + "...\"";
    if (it.valid && !it.control)
      shown += text.substr(at, it.bytes);
    else
      shown += '?';
    at += it.bytes;
  }
  return shown + "\"";
}

void check_cancel(const volatile int32_t* cancel, const std::string& path) {
  if (cancel != nullptr && *cancel != 0) throw tn::Failure(TN_CANCELLED, path, "cancelled while it was read");
}

}  // namespace tenon::files
