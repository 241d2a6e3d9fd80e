// SPDX-License-Identifier: Apache-2.0
#include "host/machine/set_gate.h"

#include <algorithm>

namespace tenon::host {

void SetGate::refuse(const char* why) const {
  if (name_.empty()) fail(TN_MISUSE, why);
  fail(TN_MISUSE, ComponentName{name_}, why);
}

bool SetGate::is_reading(std::thread::id thread) const {
  return std::find(reading_.begin(), reading_.end(), thread) != reading_.end();
}

bool SetGate::trains_elsewhere(std::thread::id thread) const {
  return training_ != std::thread::id() && training_ != thread;
}

void SetGate::require_no_writing_lease_elsewhere(std::thread::id thread) const {
  if (writing_lease_ != std::thread::id() && writing_lease_ != thread)
    refuse("another thread holds a writing lease of the parameters; end it first");
}

void SetGate::check_viewable(std::thread::id thread) const {
  if (trains_elsewhere(thread))
    refuse("the parameters are written by a training on another thread: tn_parameters_read copies them");
  require_no_writing_lease_elsewhere(thread);
}

std::optional<uint64_t> SetGate::enter_read() {
  const std::thread::id self = std::this_thread::get_id();
  std::unique_lock lock(mutex_);
  if (writing_ == self) refuse("this call reads parameters inside a call of its own thread that writes them");
  require_no_writing_lease_elsewhere(self);
  reading_.reserve(reading_.size() + 1 + admitted_ + waiting_readers_);  // entering then needs no memory
  if (!is_reading(self) && (writing_ != std::thread::id() || waiting_writers_ > 0)) {
    ++waiting_readers_;
    const uint64_t seen = steps_;
    changed_.wait(lock, [&] { return steps_ != seen; });
    --admitted_;
  }
  reading_.push_back(self);
  return present_version();
}

void SetGate::leave_read() noexcept {
  const std::lock_guard lock(mutex_);
  reading_.erase(std::find(reading_.begin(), reading_.end(), std::this_thread::get_id()));
  if (reading_.empty()) changed_.notify_all();
}

// Lets the readers in that wait.
void SetGate::admit() noexcept {
  ++steps_;
  admitted_ += waiting_readers_;
  waiting_readers_ = 0;
  changed_.notify_all();
}

void SetGate::enter_write() {
  const std::thread::id self = std::this_thread::get_id();
  std::unique_lock lock(mutex_);
  const auto check = [&] {
    if (trains_elsewhere(self))
      refuse("the parameters cannot be written while a training on another thread writes them");
    require_no_writing_lease_elsewhere(self);
    // A training writes at its steps, between which its thread's handlers and others read their leases.
    if (training_ != self && std::any_of(leased_.begin(), leased_.end(), [&](const auto& by) { return by != self; }))
      refuse("another thread holds a lease of the parameters; end it before they are written");
  };
  check();
  if (training_ == self && writing_lease_ == self)
    refuse("a writing lease of the parameters outlives the handler that took it; end it in the handler");
  if (writing_ == self || is_reading(self))
    refuse("this call writes parameters inside a call of its own thread that uses them");
  ++waiting_writers_;
  changed_.wait(lock, [&] { return writing_ == std::thread::id() && reading_.empty() && admitted_ == 0; });
  --waiting_writers_;
  try {
    check();  // a training or a lease may have begun meanwhile
  } catch (...) {
    admit();
    throw;
  }
  writing_ = self;
}

void SetGate::leave_write() noexcept {
  const std::lock_guard lock(mutex_);
  writing_ = {};
  ++version_;
  admit();
}

void SetGate::begin_training() {
  const std::lock_guard lock(mutex_);
  if (training_ != std::thread::id()) refuse("a training of these parameters has not ended");
  if (writing_lease_ != std::thread::id())
    refuse("the parameters cannot be trained while a writing lease of them is held; end it first");
  training_ = std::this_thread::get_id();
}

void SetGate::end_training() noexcept {
  const std::lock_guard lock(mutex_);
  training_ = {};
}

void SetGate::require_viewable() {
  const std::lock_guard lock(mutex_);
  check_viewable(std::this_thread::get_id());
}

void SetGate::begin_lease(bool writing) {
  const std::thread::id self = std::this_thread::get_id();
  const std::lock_guard lock(mutex_);
  check_viewable(self);
  if (writing_lease_ != std::thread::id()) refuse("a writing lease of these parameters is held; end it first");
  if (!writing) {
    leased_.push_back(self);
    return;
  }
  if (!leased_.empty() || !reading_.empty() || admitted_ > 0 || writing_ != std::thread::id())
    refuse("no writing lease can be taken while the parameters are in use by other leases or calls");
  writing_lease_ = self;
}

void SetGate::end_lease(bool writing, std::thread::id by) noexcept {
  const std::lock_guard lock(mutex_);
  if (writing) {
    writing_lease_ = {};
    ++version_;
  } else {
    leased_.erase(std::find(leased_.begin(), leased_.end(), by));
  }
}

std::optional<uint64_t> SetGate::version() const {
  const std::lock_guard lock(mutex_);
  return present_version();
}

std::optional<uint64_t> SetGate::present_version() const noexcept {
  if (writing_lease_ != std::thread::id()) return std::nullopt;
  return version_;
}

}  // namespace tenon::host
