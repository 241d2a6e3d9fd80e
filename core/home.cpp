// SPDX-License-Identifier: Apache-2.0
#include "core/home.h"

#include <algorithm>

namespace tenon::core {

Home::Home(std::shared_ptr<Allocator> allocator, uint64_t bytes)
    : memory_(std::move(allocator), bytes), replicas_(std::make_unique<Replicas>()) {}

bool Home::has(const Copies& copies, const Replica* copy) {
  return std::find(copies.begin(), copies.end(), copy) != copies.end();
}

void Home::bring_home(Copies& copies, std::byte* home, const Part& part) {
  if (has(copies, kAtHome)) return;
  copies.front()->read(part.offset, home + part.offset, part.bytes);  // any of them: they are equal
  copies.push_back(kAtHome);
}

void Home::bring_from_replicas(const Part& part) const {
  if (part.bytes == 0) return;
  const std::lock_guard lock(replicas_->mutex);
  const auto known = replicas_->newest.find(part.offset);
  if (known != replicas_->newest.end()) bring_home(known->second, data(), part);
}

void Home::mark_home(const Part& part) noexcept {
  const std::lock_guard lock(replicas_->mutex);
  const auto known = replicas_->newest.find(part.offset);
  if (known != replicas_->newest.end()) known->second.assign(1, kAtHome);  // does not allocate: it is never empty
}

void Home::open(const Part& part) {
  bring_home(part);
  changed(part);
  const std::lock_guard lock(replicas_->mutex);
  replicas_->open.insert(part.offset);
}

void Home::close(const Part& part) noexcept {
  changed(part);
  const std::lock_guard lock(replicas_->mutex);
  replicas_->open.erase(part.offset);
}

Replica& Home::replica(const void* device, const std::function<std::unique_ptr<Replica>()>& make) {
  const std::lock_guard lock(replicas_->mutex);
  std::unique_ptr<Replica>& replica = replicas_->by_device[device];
  if (replica == nullptr) replica = make();
  replicas_->any = true;
  return *replica;
}

void Home::bring_to(Replica& replica, const Part& part) {
  if (part.bytes == 0) return;
  const std::lock_guard lock(replicas_->mutex);
  Copies& copies = replicas_->newest.try_emplace(part.offset, 1, kAtHome).first->second;
  if (has(copies, &replica)) return;
  bring_home(copies, data(), part);
  replica.write(part.offset, data() + part.offset, part.bytes);
  if (!replicas_->open.contains(part.offset)) copies.push_back(&replica);
}

void Home::changed_at(Replica& replica, const Part& part) {
  if (part.bytes == 0) return;
  const std::lock_guard lock(replicas_->mutex);
  Copies& copies = replicas_->newest[part.offset];
  copies.assign(1, &replica);
  if (!replicas_->open.contains(part.offset)) return;
  bring_home(copies, data(), part);
  copies.assign(1, kAtHome);
}

}  // namespace tenon::core
