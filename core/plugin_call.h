// The call of a plugin that a thread is in, for the text of a crash. SPDX-License-Identifier: Apache-2.0
//
// A signal handler cannot be passed an argument and must not lock, so each thread keeps a pointer to the innermost call
// on its stack. Nothing but the text of a crash depends on it.
#pragma once

#include <atomic>
#include <utility>

#include "base/not_copied.h"

namespace tenon::core {

struct PluginCall {
  const char* plugin;    // id
  const char* who;       // the component, as in messages
  const char* function;  // "run"
  const char* tag;       // "[run]"
};

namespace detail {
// The innermost call of this thread. The model of access needs no call of the loader, which would not be safe in a
// signal handler; __thread promises that no access runs an initialiser, so that a mark is two moves.
extern __attribute__((tls_model("initial-exec"))) __thread const PluginCall* innermost_call;
}  // namespace detail

// Returns the innermost call of this thread, null outside of calls. Safe in a signal handler.
[[nodiscard]] inline const PluginCall* current_plugin_call() noexcept { return detail::innermost_call; }

// Makes `call`, which may be null, the innermost call of this thread while the mark lives. Borrows it. The fences keep
// the compiler from moving what it marks out of it.
class PluginCallMark : base::NotCopied {
 public:
  explicit PluginCallMark(const PluginCall* call) noexcept : before_(std::exchange(detail::innermost_call, call)) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  ~PluginCallMark() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    detail::innermost_call = before_;
  }
  // Makes another call the innermost one, in place of that of the constructor.
  void move_to(const PluginCall* call) noexcept {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    detail::innermost_call = call;
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }

 private:
  const PluginCall* before_;
};

}  // namespace tenon::core
