// Work that a device has recorded, to enqueue it again with one call. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/device_host.h>

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "host/plugins/device.h"

namespace tenon::host {

using namespace core;

// The recordings of a call array, for a device that offers TN_CAPTURE. The first run of a key enqueues its calls, the
// second records them too, and later ones enqueue the recording. Where that fails the calls of the key are enqueued one
// by one, then and later. Not thread-safe.
class Captures : base::NotCopied {
 public:
  // What must be equal for the same work: the phase, the requests of its outputs, the sizes if a call takes them from
  // the host, and a number that changes with the addresses of operands.
  struct Key {
    uint64_t bindings = 0;
    std::vector<uint8_t> requests;  // the phase before them
    std::vector<int64_t> sizes;
    bool operator==(const Key&) const = default;
  };

  // Null if the device does not record.
  static std::unique_ptr<Captures> of(const std::shared_ptr<Device>& device);
  ~Captures() { clear(); }

  // Enqueues the work of `key` in a stream; `enqueue` does so call by call. No work of an earlier run is in the stream.
  void run(const Key& key, void* stream, const std::function<void()>& enqueue);
  [[nodiscard]] uint64_t launches() const { return launches_; }

 private:
  struct Entry {
    Key key;
    void* graph = nullptr;
    bool refused = false;  // it could not be recorded or enqueued
  };
  Captures(std::shared_ptr<Device> device, const tn_capture_table* table) : device_(std::move(device)), table_(table) {}
  void clear() noexcept;
  void destroy(Entry& entry) noexcept;
  void replay(Entry& entry, void* stream, const std::function<void()>& enqueue);
  [[nodiscard]] void* record(void* stream, const std::function<void()>& enqueue);
  static constexpr size_t kMost = 64;  // entries; the least recently used ones are dropped

  std::shared_ptr<Device> device_;
  const tn_capture_table* table_;
  std::list<Entry> entries_;  // the most recently used one first
  uint64_t launches_ = 0;
};

}  // namespace tenon::host
