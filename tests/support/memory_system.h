// Files and memory of a test: files live in a map, memory is counted, and any single call can be made to fail.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>

#include "core/error.h"
#include "core/system.h"

namespace tenon_tests {

using namespace tenon::core;

class MemoryFiles : public FileSystem {
 public:
  std::map<std::string, std::string> files;  // by path; committed files only
  int calls = 0;
  int fail_at = -1;  // number of the call that fails with TN_IO; -1: none

  std::unique_ptr<InputFile> open(const std::filesystem::path& path) override {
    step("open");
    if (!files.contains(path.string())) fail(TN_NOT_FOUND, "no file ", path);
    return std::make_unique<Input>(*this, files[path.string()]);
  }
  std::unique_ptr<Output> replace(const std::filesystem::path& path) override {
    step("replace");
    return std::make_unique<Pending>(*this, path.string());
  }

 private:
  void step(const char* what) {
    if (calls++ == fail_at) fail(TN_IO, "the test lets ", what, " fail");
  }

  struct Input : InputFile {
    Input(MemoryFiles& of, std::string bytes) : owner(of), content(std::move(bytes)) {}
    [[nodiscard]] uint64_t size() const override { return content.size(); }
    void read(uint64_t offset, void* to, uint64_t bytes) override {
      owner.step("read");
      if (offset > content.size() || bytes > content.size() - offset) fail(TN_BAD_DATA, "read beyond the end");
      if (bytes != 0) std::memcpy(to, content.data() + offset, bytes);
    }
    MemoryFiles& owner;
    std::string content;
  };
  struct Pending : Output {
    Pending(MemoryFiles& of, std::string name) : owner(of), path(std::move(name)) {}
    void write(const void* from, uint64_t bytes) override {
      owner.step("write");
      content.append(static_cast<const char*>(from), bytes);
    }
    void commit() override {
      owner.step("commit");
      owner.files[path] = content;
    }
    MemoryFiles& owner;
    std::string path;
    std::string content;
  };
};

class CountingAllocator : public Allocator {
 public:
  uint64_t held = 0;  // bytes
  int calls = 0;
  int fail_at = -1;  // number of the call that fails; -1: none

  void* allocate(uint64_t bytes) override {
    if (calls++ == fail_at || bytes > uint64_t{1} << 32) fail(TN_OUT_OF_MEMORY, "no memory for ", bytes, " bytes");
    if (bytes == 0) return nullptr;
    held += bytes;
    void* const memory = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    std::memset(memory, 0xab, bytes);  // exposes code that relies on zeros
    return memory;
  }
  void release(void* memory, uint64_t bytes) noexcept override {
    held -= bytes;
    std::free(memory);
  }
};

// The error that `action` throws; TN_OK and an empty message if it throws none.
template <typename Action>
Error error_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  return {TN_OK, ""};
}

}  // namespace tenon_tests
