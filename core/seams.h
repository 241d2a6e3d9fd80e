// The seams to the system: memory, files, clock. Everything large or fallible passes here, so that a test can count
// it and make every single call fail. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace tenon {

// Memory of tensors, parameters, slots and arenas. Thread-safe.
class Allocator {
 public:
  virtual ~Allocator() = default;
  // At least 64-byte aligned; throws Error(TN_OUT_OF_MEMORY) naming the bytes. bytes 0 gives null.
  virtual void* allocate(uint64_t bytes) = 0;
  virtual void release(void* memory, uint64_t bytes) noexcept = 0;
};

// A file that is being read. Positions and counts are bytes.
class InputFile {
 public:
  virtual ~InputFile() = default;
  [[nodiscard]] virtual uint64_t size() const = 0;
  // Reads exactly `bytes` at `offset`; throws Error(TN_BAD_DATA) when the file ends before, TN_IO on failure.
  virtual void read(uint64_t offset, void* to, uint64_t bytes) = 0;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;
  // Opens a regular file; TN_NOT_FOUND, TN_IO or TN_INVALID (not a regular file), naming the path.
  virtual std::unique_ptr<InputFile> open(const std::filesystem::path& path) = 0;

  // A file that appears under its name only when it is whole: written to a temporary name beside it, then, by
  // commit, synced, renamed and the folder synced. Without commit the destructor removes the temporary.
  class Output {
   public:
    virtual ~Output() = default;
    virtual void write(const void* from, uint64_t bytes) = 0;
    virtual void commit() = 0;
  };
  virtual std::unique_ptr<Output> replace(const std::filesystem::path& path) = 0;
};

class Clock {
 public:
  virtual ~Clock() = default;
  // Monotonic seconds.
  virtual double now() = 0;
};

std::shared_ptr<Allocator> system_allocator();
std::shared_ptr<FileSystem> system_files();
std::shared_ptr<Clock> system_clock();

// A block from an allocator; null when empty.
class Buffer {
 public:
  Buffer() = default;
  Buffer(std::shared_ptr<Allocator> allocator, uint64_t bytes);
  ~Buffer() { reset(); }
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] uint64_t size() const { return bytes_; }
  void reset() noexcept;

 private:
  std::shared_ptr<Allocator> allocator_;
  std::byte* data_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace tenon
