// Interfaces to the operating system: memory, files, clock. SPDX-License-Identifier: Apache-2.0
//
// Every large allocation and every call that can fail goes through them, so that tests can count and fail each one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace tenon::core {

// Allocates the memory of tensors, parameters, updater states and arenas. Thread-safe.
class Allocator {
 public:
  virtual ~Allocator() = default;
  // Returns memory aligned to at least 64 bytes; null for 0 bytes. Throws Error(TN_OUT_OF_MEMORY) naming the bytes.
  virtual void* allocate(uint64_t bytes) = 0;
  virtual void release(void* memory, uint64_t bytes) noexcept = 0;
};

// A file open for reading. Offsets and counts are in bytes.
class InputFile {
 public:
  virtual ~InputFile() = default;
  [[nodiscard]] virtual uint64_t size() const = 0;
  // Reads exactly `bytes` at `offset`. Throws Error(TN_BAD_DATA) if the file is too short, TN_IO on failure.
  virtual void read(uint64_t offset, void* to, uint64_t bytes) = 0;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;
  // Opens a regular file. Throws TN_NOT_FOUND, TN_IO or TN_INVALID (not a regular file), naming the path.
  virtual std::unique_ptr<InputFile> open(const std::filesystem::path& path) = 0;

  // A file that appears under its name only when it is complete. write() goes to a temporary file in the same folder;
  // commit() syncs that file, renames it and syncs the folder. Without commit the destructor removes that file.
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
  // Returns monotonic time in seconds.
  virtual double now() = 0;
};

std::shared_ptr<Allocator> system_allocator();
std::shared_ptr<FileSystem> system_files();
std::shared_ptr<Clock> system_clock();

// Owns a block of an allocator. data() is null if it is empty.
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

}  // namespace tenon::core
