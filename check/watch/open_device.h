// A device that the kit opens itself, by the table of its plugin, without a host. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/plugin.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/not_copied.h"
#include "check/watch/kit_services.h"
#include "check/watch/loaded.h"

namespace tenon::check {

using Bytes = std::vector<unsigned char>;

// Number 0 of a kind; as another host would call it while one lends (other_host.h). Every member throws Fault with the
// device's report if a function fails.
class OpenDevice : base::NotCopied {
 public:
  // Throws Skip if the device is not present.
  OpenDevice(const std::string& file, const std::string& kind);
  ~OpenDevice();

  [[nodiscard]] tn_device_properties properties();
  // Stream null: the device's own first stream.
  void copy(int32_t kind, void* stream, void* to, const void* from, uint64_t bytes);
  void fill(void* stream, void* memory, uint8_t value, uint64_t bytes);
  void wait(void* stream);
  void record(void* event, void* stream);
  void wait_for(void* event, void* stream);
  [[nodiscard]] void* allocate(uint64_t bytes);
  void release(void* memory, uint64_t bytes);

  // A stream or an event of the device, which must live longer.
  class Object : base::NotCopied {
   public:
    enum Kind { kStream, kEvent };
    Object(OpenDevice& device, Kind kind);
    ~Object();
    [[nodiscard]] void* get() const { return handle_; }

   private:
    OpenDevice& device_;
    Kind kind_;
    void* handle_ = nullptr;
  };
  // Memory of the device, which must live longer.
  class Memory : base::NotCopied {
   public:
    Memory(OpenDevice& device, uint64_t bytes)
        : device_(device), bytes_(bytes), data_(static_cast<unsigned char*>(device.allocate(bytes))) {}
    ~Memory() { device_.release(data_, bytes_); }
    [[nodiscard]] unsigned char* data() const { return data_; }

   private:
    OpenDevice& device_;
    uint64_t bytes_;
    unsigned char* data_;
  };

 private:
  void require(tn_status status, const char* function) const;

  Loaded loaded_;
  const tn_device_type* type_ = nullptr;
  KitServices lent_;
  void* instance_ = nullptr;
};

}  // namespace tenon::check
