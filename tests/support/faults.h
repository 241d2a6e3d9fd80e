// System interfaces over working ones that count calls and make one fail. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>

#include "core/error.h"
#include "core/system.h"

namespace tenon_tests {

using namespace tenon::core;

class FaultyAllocator final : public Allocator {
 public:
  explicit FaultyAllocator(std::shared_ptr<Allocator> over = system_allocator()) : over_(std::move(over)) {}

  int64_t fail_at = -1;  // number of the call that fails, from 0; -1: none
  int64_t calls = 0;
  uint64_t held = 0, most_held = 0;  // bytes

  void* allocate(uint64_t bytes) override {
    const std::lock_guard lock(mutex_);
    if (calls++ == fail_at) fail(TN_OUT_OF_MEMORY, "the test has no memory for ", bytes, " bytes");
    void* const memory = over_->allocate(bytes);
    held += bytes;
    most_held = std::max(most_held, held);
    return memory;
  }
  void release(void* memory, uint64_t bytes) noexcept override {
    const std::lock_guard lock(mutex_);
    held -= bytes;
    over_->release(memory, bytes);
  }

 private:
  std::shared_ptr<Allocator> over_;
  std::mutex mutex_;
};

class FaultyFiles final : public FileSystem {
 public:
  explicit FaultyFiles(std::shared_ptr<FileSystem> over = system_files()) : over_(std::move(over)) {}

  int64_t fail_at = -1;  // number of the call of this object or of its files that fails with TN_IO, from 0; -1: none
  int64_t calls = 0;
  uint64_t bytes_read = 0, bytes_written = 0;

  std::unique_ptr<InputFile> open(const std::filesystem::path& path) override {
    step("open");
    return std::make_unique<Input>(*this, over_->open(path));
  }
  std::unique_ptr<Output> replace(const std::filesystem::path& path) override {
    step("replace");
    return std::make_unique<Written>(*this, over_->replace(path));
  }

 private:
  void step(const char* what) {
    if (calls++ == fail_at) fail(TN_IO, "the test lets ", what, " fail");
  }

  struct Input final : InputFile {
    Input(FaultyFiles& files, std::unique_ptr<InputFile> file) : owner(files), over(std::move(file)) {}
    [[nodiscard]] uint64_t size() const override { return over->size(); }
    void read(uint64_t offset, void* to, uint64_t bytes) override {
      owner.step("read");
      over->read(offset, to, bytes);
      owner.bytes_read += bytes;
    }
    FaultyFiles& owner;
    std::unique_ptr<InputFile> over;
  };
  struct Written final : Output {
    Written(FaultyFiles& files, std::unique_ptr<Output> file) : owner(files), over(std::move(file)) {}
    void write(const void* from, uint64_t bytes) override {
      owner.step("write");
      over->write(from, bytes);
      owner.bytes_written += bytes;
    }
    void commit() override {
      owner.step("commit");
      over->commit();
    }
    FaultyFiles& owner;
    std::unique_ptr<Output> over;
  };

  std::shared_ptr<FileSystem> over_;
};

}  // namespace tenon_tests
