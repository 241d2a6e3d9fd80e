// Marks an object that one call at a time may use. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <string>
#include <thread>
#include <utility>

#include "base/not_copied.h"
#include "core/error.h"

namespace tenon::host {

using namespace core;

// The thread in a call that uses an object, if any.
class UseMark {
 public:
  // The object's name in errors, such as "machine {0, 5}". Call it before other threads know the object.
  void set_name(std::string name) { name_ = std::move(name); }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  friend class Use;
  std::string name_;
  std::atomic<std::thread::id> user_{};  // empty: not in use
};

// Whether a handler may make a call on an object that the call around it uses.
enum class Reentry { kRefused, kAllowed };

// The use of an object by a call. A call on an object that is in use fails with TN_MISUSE instead of waiting: it would
// replace the results that the other thread has yet to read.
class Use : base::NotCopied {
 public:
  // kind: of the object, for the message.
  Use(UseMark& mark, const char* kind, Reentry reentry = Reentry::kRefused) {
    const std::thread::id self = std::this_thread::get_id();
    std::thread::id user;  // none
    if (mark.user_.compare_exchange_strong(user, self, std::memory_order_acquire)) {
      mark_ = &mark;
      return;
    }
    if (user != self || reentry == Reentry::kRefused)
      fail(TN_MISUSE, ComponentName{mark.name_}, "the ", kind, " is in use by a call that has not ended");
  }
  ~Use() {
    if (mark_ != nullptr) mark_->user_.store({}, std::memory_order_release);
  }

 private:
  UseMark* mark_ = nullptr;  // null: the call around this one has set it
};

}  // namespace tenon::host
