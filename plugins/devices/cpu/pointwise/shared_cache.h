// What the pointwise programs of a device share. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "pointwise/executable_memory.h"

namespace tenon::cpu {

// Values by a key that says all that they depend on. Of those that no program uses any more it keeps a few hundred.
// Safe for calls from several threads.
template <typename Value>
class SharedCache {
 public:
  // Returns the value with the key, or null.
  [[nodiscard]] std::shared_ptr<const Value> find(const std::string& key) {
    const std::lock_guard lock(mutex_);
    const auto found = values_.find(key);
    return found == values_.end() ? nullptr : found->second;
  }
  void add(const std::string& key, const std::shared_ptr<const Value>& value) {
    const std::lock_guard lock(mutex_);
    if (values_.size() >= most_) {
      std::erase_if(values_, [](const auto& entry) { return entry.second.use_count() == 1; });
      most_ = 2 * values_.size() + 256;
    }
    values_[key] = value;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const Value>> values_;
  size_t most_ = 256;  // entries at which those that no program uses are removed
};

// Appends the bytes of the numbers to the key of a value.
template <typename... Numbers>
void append(std::string& key, Numbers... numbers) {
  (key.append(reinterpret_cast<const char*>(&numbers), sizeof numbers), ...);
}

// Functions that were compiled together.
struct Functions {
  ExecutableMemory memory;
  std::vector<size_t> offsets;  // of each function in `memory`
};
// Programs with the same calls share their functions, since compiling them takes a tenth of a millisecond.
using FunctionCache = SharedCache<Functions>;

// Programs at equal sites share all that is prepared for them.
struct Binding;
using BindingCache = SharedCache<Binding>;

struct ProgramCaches {
  FunctionCache functions;
  BindingCache bindings;
};

}  // namespace tenon::cpu
