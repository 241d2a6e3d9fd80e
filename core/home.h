// Values in memory of the host, and their replicas in the memory of devices that the host cannot address.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "base/not_copied.h"
#include "core/system.h"

namespace tenon::core {

// A copy of a home in the memory of a device.
class Replica : base::NotCopied {
 public:
  virtual ~Replica() = default;
  // Returns the device's address of the first byte.
  [[nodiscard]] virtual std::byte* data() const = 0;
  // Copy bytes between memory of the host and those from `offset` on; they are there when the function returns.
  virtual void write(uint64_t offset, const void* from, uint64_t bytes) = 0;
  virtual void read(uint64_t offset, void* to, uint64_t bytes) = 0;
};

// A block of host memory. Without replicas, as on devices whose memory the host can address, all but data() does
// nothing. The values of a part, such as one parameter, change together; each part is at its newest in some of its
// copies, and is copied to another one when that is about to be used. The functions may be called from several threads
// at a time, but nobody may use a part while another thread changes it.
class Home {
 public:
  // Bytes of the block. Two parts are equal or do not overlap.
  struct Part {
    uint64_t offset = 0, bytes = 0;
  };

  Home(std::shared_ptr<Allocator> allocator, uint64_t bytes);

  // The address does not change. Before the host reads a part: bring_home; after it has changed it: changed.
  [[nodiscard]] std::byte* data() const { return memory_.data(); }
  [[nodiscard]] uint64_t size() const { return memory_.size(); }
  void bring_home(const Part& part) const {
    if (replicas_->any) bring_from_replicas(part);
  }
  void changed(const Part& part) noexcept {
    if (replicas_->any) mark_home(part);
  }
  // The host may change the part at any time until close(): whoever is about to use it copies it each time.
  void open(const Part& part);
  void close(const Part& part) noexcept;

  // Returns the replica on a device, which lives as long as this home. `make` makes it, if it is not there yet.
  Replica& replica(const void* device, const std::function<std::unique_ptr<Replica>()>& make);
  // The same for a replica of this home: before its device reads a part, and after it has changed it.
  void bring_to(Replica& replica, const Part& part);
  void changed_at(Replica& replica, const Part& part);

 private:
  // Where a part is at its newest; never empty.
  using Copies = std::vector<Replica*>;
  static constexpr Replica* kAtHome = nullptr;
  struct Replicas {
    std::mutex mutex;
    std::atomic<bool> any{false};
    std::map<const void*, std::unique_ptr<Replica>> by_device;
    std::map<uint64_t, Copies> newest;  // by offset of the part; not in it: at home
    std::set<uint64_t> open;            // offsets of parts
  };
  static bool has(const Copies& copies, const Replica* copy);
  static void bring_home(Copies& copies, std::byte* home, const Part& part);
  void bring_from_replicas(const Part& part) const;
  void mark_home(const Part& part) noexcept;

  Buffer memory_;
  std::unique_ptr<Replicas> replicas_;
};

}  // namespace tenon::core
