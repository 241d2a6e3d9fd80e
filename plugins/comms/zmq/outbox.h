// What other threads tell the thread of a communicator. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

namespace tenon_zmq {

// A send whose memory libzmq has borrowed.
struct Loan {
  uint64_t number;
  int32_t peer;
};

// Collects the loans that libzmq has given back, and calls of wake. Any thread may call the functions that add.
class Outbox {
 public:
  Outbox() : descriptor_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    if (descriptor_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
  }
  ~Outbox() { close(descriptor_); }
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  int descriptor() const { return descriptor_; }  // readable if there is something
  // The caller has reserved room by expect_loan, so that nothing fails here.
  void add(Loan loan) noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_.push_back(loan);
    signal();
  }
  void wake() noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    woken_ = true;
    signal();
  }

  void expect_loan() {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_.reserve(++expected_);
  }
  // Moves the loans to `ended`, which is empty; returns whether wake was called.
  bool take(std::vector<Loan>& ended) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!std::exchange(signalled_, false)) return false;
    uint64_t count = 0;
    static_cast<void>(!read(descriptor_, &count, sizeof count));
    ended.assign(ended_.begin(), ended_.end());
    expected_ -= ended_.size();
    ended_.clear();
    return std::exchange(woken_, false);
  }

 private:
  void signal() {
    if (std::exchange(signalled_, true)) return;
    const uint64_t one = 1;
    static_cast<void>(!write(descriptor_, &one, sizeof one));
  }

  int descriptor_;
  std::mutex mutex_;
  std::vector<Loan> ended_;
  size_t expected_ = 0;
  bool signalled_ = false;
  bool woken_ = false;
};

}  // namespace tenon_zmq
