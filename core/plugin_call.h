// The call of a plugin that a thread is in, for the text of a crash. SPDX-License-Identifier: Apache-2.0
//
// A signal handler cannot be passed an argument and must not lock, so each thread keeps a pointer to the innermost call
// on its stack. Nothing but the text of a crash depends on it.
#pragma once

namespace tenon::core {

struct PluginCall {
  const char* plugin;    // id
  const char* who;       // the component, as in messages
  const char* function;  // "run"
  const char* tag;       // "[run]"
};

// Returns the innermost call of this thread, null outside of calls. Safe in a signal handler.
[[nodiscard]] const PluginCall* current_plugin_call() noexcept;

// Makes `call`, which may be null, the innermost call of this thread while the mark lives. Borrows it.
class PluginCallMark {
 public:
  explicit PluginCallMark(const PluginCall* call) noexcept;
  ~PluginCallMark();
  PluginCallMark(const PluginCallMark&) = delete;
  PluginCallMark& operator=(const PluginCallMark&) = delete;

 private:
  const PluginCall* before_;
};

}  // namespace tenon::core
