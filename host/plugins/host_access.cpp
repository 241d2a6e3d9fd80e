// SPDX-License-Identifier: Apache-2.0
#include "host/plugins/host_access.h"

#include <algorithm>

#include "core/alignment.h"

namespace tenon::host {

HostAccess::HostAccess(std::shared_ptr<Device> device, std::shared_ptr<Allocator> allocator)
    : device_(std::move(device)),
      allocator_(std::move(allocator)),
      direct_(device_->host_memory()),
      lends_(!direct_ && device_->primitives<tn_host_memory_table>(TN_HOST_MEMORY) != nullptr),
      stream_(direct_ ? nullptr : device_->create_stream()) {}

HostAccess::~HostAccess() {
  finish();
  if (stream_ != nullptr) device_->destroy_stream(stream_);
}

void HostAccess::copy(void* to, const void* from, uint64_t bytes, int32_t kind) {
  device_->copy(stream_, to, from, bytes, kind);
}

std::byte* HostAccess::stage(uint64_t bytes) {
  constexpr uint64_t kBlock = uint64_t{1} << 16;
  for (; block_ < blocks_.size(); ++block_, used_ = 0)
    if (blocks_[block_].size() - used_ >= bytes) break;
  if (block_ == blocks_.size()) {
    const uint64_t size = std::max(kBlock, whole_lines(bytes));
    if (lends_)
      blocks_.push_back({DeviceMemory::for_copies(device_, size), {}});
    else
      blocks_.push_back({{}, Buffer(allocator_, size)});
  }
  std::byte* const staged = blocks_[block_].data() + used_;
  used_ = std::min(blocks_[block_].size(), used_ + whole_lines(bytes));
  return staged;
}

void HostAccess::zero(void* to, uint64_t bytes) {
  if (bytes == 0) return;
  if (direct_)
    std::memset(to, 0, bytes);
  else
    device_->fill(stream_, to, 0, bytes);
}

void HostAccess::move(void* to, const void* from, uint64_t bytes) {
  if (bytes == 0) return;
  if (direct_)
    std::memcpy(to, from, bytes);
  else
    copy(to, from, bytes, TN_COPY_ON_DEVICE);
}

void HostAccess::read(void* to, const void* from, uint64_t bytes) {
  if (bytes == 0) return;
  if (direct_) {
    std::memcpy(to, from, bytes);
    return;
  }
  if (!lends_) return read_part(to, from, bytes);
  constexpr uint64_t kPart = uint64_t{1} << 22;  // that many bytes are lent at a time
  for (uint64_t done = 0; done < bytes; done += kPart) {
    const uint64_t part = std::min(kPart, bytes - done);
    std::byte* const staged = stage(part);
    read_part(staged, static_cast<const std::byte*>(from) + done, part);
    std::memcpy(static_cast<std::byte*>(to) + done, staged, part);
  }
}

void HostAccess::read_part(void* to, const void* from, uint64_t bytes) {
  try {
    copy(to, from, bytes, TN_COPY_TO_HOST);
  } catch (...) {
    finish();  // `to` is not written any more
    throw;
  }
  wait();
}

const void* HostAccess::view(const void* at, uint64_t bytes) {
  if (direct_ || bytes == 0) return at;
  Buffer& known = views_[at];
  if (known.size() < bytes) known = Buffer(allocator_, bytes);
  read(known.data(), at, bytes);
  return known.data();
}

const void* HostAccess::fetch(const void* from, uint64_t bytes) {
  if (direct_ || bytes == 0) return from;
  std::byte* const staged = stage(bytes);
  copy(staged, from, bytes, TN_COPY_TO_HOST);
  return staged;
}

void HostAccess::wait(const std::string& who) {
  if (direct_) return;
  block_ = used_ = 0;
  device_->wait(stream_, who);
}

void HostAccess::finish() noexcept {
  try {
    wait();
  } catch (...) {  // the work has ended all the same
  }
}

namespace {

// The copy of a home in the memory of a device.
class DeviceReplica final : public Replica {
 public:
  DeviceReplica(const Home& home, const std::shared_ptr<Device>& device, std::shared_ptr<Allocator> allocator)
      : memory_(device, home.size()), access_(device, std::move(allocator)) {
    access_.zero(memory_.data(), memory_.size());  // also between parts, where updates of runs read and write
    access_.wait();
  }
  [[nodiscard]] std::byte* data() const override { return memory_.data(); }
  void write(uint64_t offset, const void* from, uint64_t bytes) override {
    access_.write(data() + offset, from, bytes);
    access_.wait();
  }
  void read(uint64_t offset, void* to, uint64_t bytes) override { access_.read(to, data() + offset, bytes); }

 private:
  DeviceMemory memory_;
  HostAccess access_;
};

}  // namespace

Residence::Residence(Home& home, const HostAccess& access) : home_(&home) {
  if (access.is_direct()) return;
  const std::shared_ptr<Device>& device = access.device();
  replica_ =
      &home.replica(device.get(), [&] { return std::make_unique<DeviceReplica>(home, device, access.allocator()); });
}

}  // namespace tenon::host
