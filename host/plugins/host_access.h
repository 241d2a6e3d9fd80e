// How the host reads and writes the memory of a device. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/home.h"
#include "core/system.h"
#include "host/plugins/device.h"

namespace tenon::host {

using namespace core;

// Returns the bytes of the elements of a dense tensor.
[[nodiscard]] inline uint64_t bytes_of(const tn_tensor& tensor) {
  const tn_dtype dtype = TN_DTYPE(tensor.dl.dtype.code, tensor.dl.dtype.bits);
  return tn_dtype_storage(dtype, static_cast<uint64_t>(tn_elements(&tensor)));
}

// The work of one owner, such as a machine, on a device, in order. On a device whose memory the host can address,
// everything happens at once and in place, and no function of the device is called. On others the work goes to a stream
// of its own, and the functions copy: they return before the copy is done, except those that give the host something.
// Not thread-safe.
class HostAccess : base::NotCopied {
 public:
  HostAccess(std::shared_ptr<Device> device, std::shared_ptr<Allocator> allocator);
  ~HostAccess();

  // Whether the host addresses the memory.
  [[nodiscard]] bool is_direct() const { return direct_; }
  [[nodiscard]] const std::shared_ptr<Device>& device() const { return device_; }
  [[nodiscard]] const std::shared_ptr<Allocator>& allocator() const { return allocator_; }
  // For tn_execution; null: the device's first stream.
  [[nodiscard]] void* stream() const { return stream_; }

  // Writes what `fill` writes to the std::byte* that it gets, [bytes].
  template <typename Fill>
  void write_by(void* to, uint64_t bytes, const Fill& fill) {
    if (bytes == 0) return;
    if (direct_) return fill(static_cast<std::byte*>(to));
    std::byte* const staged = stage(bytes);
    fill(staged);
    copy(to, staged, bytes, TN_COPY_TO_DEVICE);
  }
  // Writes memory of the host, which may change as soon as the function returns.
  void write(void* to, const void* from, uint64_t bytes) {
    write_by(to, bytes, [=](std::byte* at) { std::memcpy(at, from, bytes); });
  }
  void zero(void* to, uint64_t bytes);
  // Copies on the device. The memory does not overlap.
  void move(void* to, const void* from, uint64_t bytes);
  // Copies to memory of the host, which has it when the function returns.
  void read(void* to, const void* from, uint64_t bytes);
  // Returns where the host finds the bytes at present: in place, or in a copy that lives until the next view() of that
  // place with more bytes, or drop_views().
  [[nodiscard]] const void* view(const void* at, uint64_t bytes);
  void drop_views() { views_.clear(); }
  // Starts a copy to the host, so that it costs no wait of its own. Returns where the host finds the bytes from the
  // next wait until the next function of this object.
  [[nodiscard]] const void* fetch(const void* from, uint64_t bytes);

  // Waits until all work is done; throws the failure of the first that failed, as one of component `who` or, without a
  // name, of the device.
  void wait(const std::string& who);
  void wait() { wait(device_->who()); }
  // Waits, and drops the failures of the work: after one of the host, which has precedence.
  void finish() noexcept;
  // Calls finish() at the end of its scope, before memory is released that was allocated earlier in the scope.
  class Finishing : base::NotCopied {
   public:
    explicit Finishing(HostAccess& access) : access_(access) {}
    ~Finishing() { access_.finish(); }

   private:
    HostAccess& access_;
  };

 private:
  // A block for staging: of the device, if it lends memory for copies, else of the allocator.
  struct Block {
    DeviceMemory lent;
    Buffer own;
    [[nodiscard]] std::byte* data() const { return lent.data() != nullptr ? lent.data() : own.data(); }
    [[nodiscard]] uint64_t size() const { return lent.size() + own.size(); }
  };
  // Returns room that no copy reads any more after the next wait.
  [[nodiscard]] std::byte* stage(uint64_t bytes);
  void copy(void* to, const void* from, uint64_t bytes, int32_t kind);
  void read_part(void* to, const void* from, uint64_t bytes);

  std::shared_ptr<Device> device_;
  std::shared_ptr<Allocator> allocator_;
  const bool direct_;
  const bool lends_;  // the device lends memory for copies
  void* stream_ = nullptr;
  std::vector<Block> blocks_;  // for staging: used up to byte `used_` of number `block_`
  size_t block_ = 0;
  uint64_t used_ = 0;
  std::map<const void*, Buffer> views_;
};

// Where the calls of a device find the values of a home: there, or in a replica.
class Residence {
 public:
  // Makes the replica if there is none yet. Borrows the home.
  Residence(Home& home, const HostAccess& access);

  [[nodiscard]] std::byte* data() const { return replica_ == nullptr ? home_->data() : replica_->data(); }
  // Before calls read a part, and after they have changed it.
  void bring(const Home::Part& part) const {
    replica_ == nullptr ? home_->bring_home(part) : home_->bring_to(*replica_, part);
  }
  void changed(const Home::Part& part) const {
    replica_ == nullptr ? home_->changed(part) : home_->changed_at(*replica_, part);
  }

 private:
  Home* home_;
  Replica* replica_ = nullptr;  // null: calls work at home
};

}  // namespace tenon::host
