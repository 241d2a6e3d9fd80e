// Who may read and write the values of a ParameterSet. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/not_copied.h"
#include "core/error.h"

namespace tenon::host {

using namespace core;

// The gate of one set. Readers enter together; a writer enters alone, for one step: a write, or forward to commit of a
// training's minibatch. A training is registered from its first to its last step; between its steps others may read,
// not write. Readers that wait for a step enter before the next one, and a writer that waits enters before later
// readers, so nobody waits for more than one step and the readers before it. Nobody waits for itself: TN_MISUSE. A
// lease is a view that an application holds beyond a call. Thread-safe.
class SetGate : base::NotCopied {
 public:
  // The name of the set in errors, such as "parameters {0, 5}". Call it before other threads know the gate.
  void set_name(std::string name) { name_ = std::move(name); }

  // Returns the version of the values, which are the same until leave_read.
  std::optional<uint64_t> enter_read();
  void leave_read() noexcept;
  // TN_MISUSE during a training of another thread, and while a lease of another thread lives.
  void enter_write();
  void leave_write() noexcept;
  // TN_MISUSE if the set is trained already, or a writing lease lives.
  void begin_training();
  void end_training() noexcept;
  // Throws TN_MISUSE if the calling thread may not have a view: as begin_lease for reading.
  void require_viewable();
  // TN_MISUSE during a training of another thread; for writing also while any other lease lives.
  void begin_lease(bool writing);
  void end_lease(bool writing, std::thread::id by) noexcept;
  // The version of the values, for a thread that has entered: it grows when a write or a writing lease ends. Empty
  // while a writing lease lives, under which they may change at any time.
  [[nodiscard]] std::optional<uint64_t> version() const;

 private:
  [[noreturn]] void refuse(const char* why) const;
  [[nodiscard]] bool is_reading(std::thread::id thread) const;
  [[nodiscard]] bool trains_elsewhere(std::thread::id thread) const;
  void require_no_writing_lease_elsewhere(std::thread::id thread) const;
  void check_viewable(std::thread::id thread) const;
  void admit() noexcept;
  [[nodiscard]] std::optional<uint64_t> present_version() const noexcept;

  std::string name_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::thread::id training_;              // empty: no training
  std::thread::id writing_;               // empty: no writer is inside
  std::vector<std::thread::id> reading_;  // inside, one entry for each read
  std::vector<std::thread::id> leased_;   // one entry for each reading lease, by the thread that took it
  std::thread::id writing_lease_;         // empty: none
  uint64_t steps_ = 0;                    // of writers, that have ended
  uint64_t version_ = 0;                  // of the values
  uint32_t waiting_readers_ = 0;          // for the end of a step
  uint32_t admitted_ = 0;                 // of them, those that may enter but have not yet
  uint32_t waiting_writers_ = 0;
};

class SetRead : base::NotCopied {
 public:
  explicit SetRead(SetGate& gate) : gate_(gate), version_(gate.enter_read()) {}
  ~SetRead() { gate_.leave_read(); }

  // SetGate::version of the values that it reads.
  [[nodiscard]] std::optional<uint64_t> version() const { return version_; }

 private:
  SetGate& gate_;
  std::optional<uint64_t> version_;
};

class SetWrite : base::NotCopied {
 public:
  explicit SetWrite(SetGate& gate) : gate_(gate) { gate_.enter_write(); }
  ~SetWrite() { gate_.leave_write(); }

 private:
  SetGate& gate_;
};

class SetTraining : base::NotCopied {
 public:
  explicit SetTraining(SetGate& gate) : gate_(gate) { gate_.begin_training(); }
  ~SetTraining() { gate_.end_training(); }

 private:
  SetGate& gate_;
};

}  // namespace tenon::host
