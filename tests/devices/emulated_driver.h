// What the emulated CUDA driver offers tests. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>

#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace tenon_tests {

class EmulatedDriver {
 public:
  // None if the driver is a real one, or absent.
  static std::optional<EmulatedDriver> find() {
    void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    EmulatedDriver made;
    if (driver == nullptr || !made.find(driver, "emulated_fail_after", made.fail_after_) ||
        !made.find(driver, "emulated_used", made.used_) ||
        !made.find(driver, "emulated_clear_calls", made.clear_calls_) ||
        !made.find(driver, "emulated_calls", made.calls_) || !made.find(driver, "emulated_fail_call", made.fail_call_))
      return std::nullopt;
    return made;
  }

  // The allocation after `count` more fails, once; a negative count: none.
  void fail_after(int count) const { fail_after_(count); }
  // The bytes that are allocated, of device memory and pinned memory.
  [[nodiscard]] size_t used() const { return used_(); }
  // Starts a new list of calls; returns it. What is captured begins with "captured ".
  void clear_calls() const { clear_calls_(); }
  [[nodiscard]] std::vector<std::string> calls() const {
    std::istringstream text(calls_());
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
  }
  // From now on calls whose line begins so fail; null: none.
  void fail_call(const char* line) const { fail_call_(line); }

 private:
  template <typename Function>
  static bool find(void* driver, const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(dlsym(driver, name));
    return function != nullptr;
  }

  void (*fail_after_)(int) = nullptr;
  size_t (*used_)() = nullptr;
  void (*clear_calls_)() = nullptr;
  const char* (*calls_)() = nullptr;
  void (*fail_call_)(const char*) = nullptr;
};

}  // namespace tenon_tests
