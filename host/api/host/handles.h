// Typed handles {index, generation}: a stale or foreign handle is refused.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"

namespace tenon::host {

using namespace core;

// The objects of one kind that an application has handles of. T is cheap to copy, such as a shared_ptr: at() returns a
// copy, which keeps the object alive while a call uses it, whatever other threads release. Thread-safe.
template <typename T>
class HandleTable {
 public:
  // first_generation differs between hosts and kinds, so that a handle of another host does not match by chance.
  HandleTable(const char* kind, uint32_t first_generation) : kind_(kind), next_generation_(first_generation) {}

  // If the object has a set_name, it gets the name of its handle for its errors: "machine {0, 5}".
  template <typename Handle>
  Handle add(T value) {
    const std::lock_guard lock(mutex_);
    const uint32_t generation = draw();
    const uint32_t index = free_.empty() ? static_cast<uint32_t>(entries_.size()) : free_.back();
    if constexpr (requires { value->set_name(std::string()); })
      value->set_name(text(kind_, " {", index, ", ", generation, "}"));
    if (free_.empty()) {
      // Reserves the place of this entry in free_, so that releasing it needs no memory.
      if (free_.capacity() <= entries_.size()) free_.reserve(2 * entries_.size() + 8);
      entries_.push_back({generation, std::move(value)});
    } else {
      entries_[index] = {generation, std::move(value)};
      free_.pop_back();
    }
    return {index, generation};
  }

  template <typename Handle>
  [[nodiscard]] T at(Handle handle) const {
    const std::lock_guard lock(mutex_);
    return *entries_[checked(handle)].value;
  }

  // Removes the object and returns it. The handle is stale from then on.
  template <typename Handle>
  T take(Handle handle) {
    const std::lock_guard lock(mutex_);
    std::optional<T>& value = entries_[checked(handle)].value;
    T taken = std::move(*value);
    free_.push_back(handle.index);
    value.reset();
    return taken;
  }

 private:
  struct Entry {
    uint32_t generation = 0;
    std::optional<T> value;
  };
  // Returns the index of a valid handle.
  template <typename Handle>
  [[nodiscard]] uint32_t checked(Handle handle) const {
    if (handle.index >= entries_.size() || !entries_[handle.index].value ||
        entries_[handle.index].generation != handle.generation)
      fail(TN_MISUSE, "the ", kind_, " handle {", handle.index, ", ", handle.generation,
           "} is stale or of another host");
    return handle.index;
  }
  uint32_t draw() {
    if (++next_generation_ == 0) ++next_generation_;  // 0 is not a generation: a zeroed handle matches nothing
    return next_generation_;
  }

  const char* kind_;
  mutable std::mutex mutex_;
  uint32_t next_generation_;
  std::vector<Entry> entries_;
  std::vector<uint32_t> free_;
};

}  // namespace tenon::host
